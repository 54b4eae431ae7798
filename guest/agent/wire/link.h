// One connection to a host: what it received (conn), what waits to be sent, and its streams.
#ifndef IGNITION_LINK_H
#define IGNITION_LINK_H

#include "../loop.h"
#include "conn.h"
#include "json-writer.h"

enum {
    LINK_OUT_BYTES = 4 * FRAME_MAX_LENGTH,
    // Streams stop adding data above the mark; only answers may still be queued.
    LINK_OUT_MARK_BYTES = 512 * 1024,
    // Above this nothing more is read from the host, so its requests cannot pile up answers.
    LINK_OUT_LIMIT_BYTES = 2 * FRAME_MAX_LENGTH,
    LINK_MAX_STREAMS = 160,
};

enum link_carrier {
    LINK_PORT,   // one descriptor for ever; connections are told apart by CONNECT lines
    LINK_SOCKET, // the carrier did the handshake; the end of the socket ends the link
};

struct stream;

struct link {
    struct watch watch;
    enum link_carrier carrier;
    struct conn conn;
    uint8_t *out; // LINK_OUT_BYTES, owned
    size_t out_begin, out_end;
    bool greeted;         // HELLO was answered
    bool host_seen;       // see is_end_of_host
    uint32_t connections; // CONNECT lines answered
    struct timer silence; // see conn_ends_in_connect
    bool held;            // see link_hold
    size_t sendable;      // while held: unsent bytes that may still go
    struct stream *streams[LINK_MAX_STREAMS];
    size_t cursor; // where the next round of pumping starts
    struct link *next;
};

// What a stream does. All run on the loop; `ended` streams were detached before.
struct stream_ops {
    void (*frame)(struct stream *stream, const struct frame *frame);
    // Adds output while link_has_room. Returns true when it has more to send right now.
    bool (*pump)(struct stream *stream);
    // The link is gone: free everything, send nothing.
    void (*abandon)(struct stream *stream);
};

struct stream {
    uint32_t id;
    struct link *link; // NULL when detached
    const struct stream_ops *ops;
};

// Takes over `fd` (non-blocking). NULL, with the descriptor closed, when there is no memory.
struct link *link_open(int fd, enum link_carrier carrier);
size_t link_count(enum link_carrier carrier);

// Sends and receives what is possible on all links; true when some stream has more to do at once.
bool link_service_all(void);

bool link_has_room(const struct link *link);
// Space for a payload of `payload_bytes`, to be filled and committed with at most that many.
// NULL when it does not fit, which happens only above the mark.
uint8_t *link_reserve(struct link *link, size_t payload_bytes);
void link_commit(struct link *link, uint8_t type, uint32_t stream, size_t payload_bytes);

void link_send(struct link *link, uint8_t type, uint32_t stream, const void *payload,
               size_t payload_bytes);
void link_send_json(struct link *link, uint8_t type, uint32_t stream,
                    const struct json_writer *writer);
void link_send_credit(struct link *link, uint32_t stream, uint32_t bytes);
// `error_number` 0 is sent as null.
void link_send_error(struct link *link, uint32_t stream, const char *code, int error_number,
                     const char *message);

// What is queued now is sent, and nothing after it until link_release: then the host has read all
// there is, and the wire is empty.
void link_hold(struct link *link);
void link_release(struct link *link);

struct stream *link_find(struct link *link, uint32_t id);
// False when the link has too many streams.
bool stream_attach(struct stream *stream, struct link *link, uint32_t id,
                   const struct stream_ops *ops);
void stream_detach(struct stream *stream);

#endif
