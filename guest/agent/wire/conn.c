#include "conn.h"
#include <stdlib.h>
#include <string.h>

static const char connect_line[] = "CONNECT 7000\n";
enum { CONNECT_LINE_BYTES = sizeof connect_line - 1 };

bool conn_init(struct conn *conn, enum conn_state state) {
    *conn = (struct conn){.state = state, .bytes = malloc(CONN_BUFFER_BYTES)};
    return conn->bytes != NULL;
}

void conn_free(struct conn *conn) {
    free(conn->bytes);
    conn->bytes = NULL;
}

void conn_reset(struct conn *conn) {
    conn->state = CONN_SEEKING;
    conn->begin = conn->end = 0;
}

uint8_t *conn_space(struct conn *conn, size_t *space) {
    if (conn->begin == conn->end)
        conn->begin = conn->end = 0;
    // A frame is at most half of the buffer, so after the move there is room.
    if (conn->begin > CONN_BUFFER_BYTES / 2 || conn->end == CONN_BUFFER_BYTES) {
        memmove(conn->bytes, conn->bytes + conn->begin, conn->end - conn->begin);
        conn->end -= conn->begin;
        conn->begin = 0;
    }
    *space = CONN_BUFFER_BYTES - conn->end;
    return conn->bytes + conn->end;
}

void conn_received(struct conn *conn, size_t count) {
    conn->end += count;
}

static enum conn_event seek(struct conn *conn) {
    const uint8_t *from = conn->bytes + conn->begin;
    size_t held = conn->end - conn->begin;
    const uint8_t *line = memmem(from, held, connect_line, CONNECT_LINE_BYTES);
    if (line == NULL) {
        // The line may have arrived in part: its first bytes are kept.
        if (held >= CONNECT_LINE_BYTES)
            conn->begin = conn->end - (CONNECT_LINE_BYTES - 1);
        return CONN_NEED_MORE;
    }
    conn->begin += (size_t)(line - from) + CONNECT_LINE_BYTES;
    conn->state = CONN_OPEN;
    return CONN_CONNECTED;
}

enum conn_event conn_next(struct conn *conn, struct frame *frame) {
    if (conn->state == CONN_SEEKING)
        return seek(conn);
    size_t consumed = 0;
    switch (frame_decode(conn->bytes + conn->begin, conn->end - conn->begin, frame, &consumed)) {
    case FRAME_COMPLETE:
        conn->begin += consumed;
        return CONN_FRAME;
    case FRAME_INCOMPLETE:
        return CONN_NEED_MORE;
    default:
        // The bytes are kept: a CONNECT line where a frame should be is a new connection.
        conn->state = CONN_SEEKING;
        return memcmp(conn->bytes + conn->begin, connect_line, 4) == 0 ? seek(conn) : CONN_BROKEN;
    }
}

bool conn_ends_in_connect(const struct conn *conn) {
    return conn->state == CONN_OPEN && conn->end - conn->begin >= CONNECT_LINE_BYTES &&
           memcmp(conn->bytes + conn->end - CONNECT_LINE_BYTES, connect_line, CONNECT_LINE_BYTES) ==
               0;
}
