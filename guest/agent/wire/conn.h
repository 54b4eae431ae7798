// What arrives on one connection: the handshake line, then frames. Pure: bytes in, events out.
#ifndef IGNITION_CONN_H
#define IGNITION_CONN_H

#include "frame.h"
#include <stdbool.h>

enum { CONN_BUFFER_BYTES = 2 * FRAME_MAX_LENGTH };

enum conn_state {
    CONN_SEEKING, // anything but a CONNECT line is skipped: leftovers of an earlier connection
    CONN_OPEN,
};

enum conn_event {
    CONN_NEED_MORE,
    CONN_CONNECTED, // a CONNECT line: answer it
    CONN_FRAME,
    CONN_BROKEN, // a length that cannot be, and no CONNECT line's start: now seeking again
};

struct conn {
    enum conn_state state;
    uint8_t *bytes; // CONN_BUFFER_BYTES, owned
    size_t begin, end;
};

// False when there is no memory.
bool conn_init(struct conn *conn, enum conn_state state);
void conn_free(struct conn *conn);

// Forgets everything received and seeks the next CONNECT line.
void conn_reset(struct conn *conn);

// Where the next received bytes go, and how many fit (at least one). Moves what earlier frames
// pointed to.
uint8_t *conn_space(struct conn *conn, size_t *space);
void conn_received(struct conn *conn, size_t count);

// The next event. A frame's payload stays valid until conn_space or conn_reset.
enum conn_event conn_next(struct conn *conn, struct frame *frame);

// True inside an unfinished frame whose last bytes are a CONNECT line. A sender that stays silent
// after that is a new connection, and the frame's sender is gone.
bool conn_ends_in_connect(const struct conn *conn);

#endif
