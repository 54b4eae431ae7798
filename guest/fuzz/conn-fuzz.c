// Arbitrary bytes in arbitrary pieces. The first byte says in which state and in which pieces.
#include "../agent/wire/conn.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition)
        abort();
}

static void take_events(struct conn *conn) {
    for (;;) {
        struct frame frame;
        switch (conn_next(conn, &frame)) {
        case CONN_NEED_MORE:
            require(conn->begin <= conn->end && conn->end <= CONN_BUFFER_BYTES);
            (void)conn_ends_in_connect(conn);
            return;
        case CONN_FRAME:
            require(conn->state == CONN_OPEN && frame.payload_bytes <= FRAME_MAX_PAYLOAD);
            require(frame.payload >= conn->bytes &&
                    frame.payload + frame.payload_bytes <= conn->bytes + conn->end);
            break;
        case CONN_CONNECTED:
            require(conn->state == CONN_OPEN);
            break;
        case CONN_BROKEN:
            require(conn->state == CONN_SEEKING);
            break;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct conn conn; // its buffer is made once: that is most of the time otherwise
    if (size == 0 || (conn.bytes == NULL && !conn_init(&conn, CONN_SEEKING)))
        return 0;
    conn_reset(&conn);
    conn.state = data[0] & 1 ? CONN_OPEN : CONN_SEEKING;
    size_t piece = (size_t)(data[0] >> 1) + 1;
    for (size_t at = 1; at < size;) {
        size_t space, length = piece < size - at ? piece : size - at;
        uint8_t *to = conn_space(&conn, &space);
        require(space > 0);
        length = length < space ? length : space;
        memcpy(to, data + at, length);
        conn_received(&conn, length);
        at += length;
        take_events(&conn);
    }
    return 0;
}
