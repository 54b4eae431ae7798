#include "../agent/wire/conn.h"
#include "check.h"
#include <string.h>

static void give(struct conn *conn, const void *bytes, size_t length) {
    size_t space;
    uint8_t *at = conn_space(conn, &space);
    memcpy(at, bytes, length);
    conn_received(conn, length);
}

static void give_text(struct conn *conn, const char *text) {
    give(conn, text, strlen(text));
}

static size_t make_frame(uint8_t *bytes, uint8_t type, size_t payload_bytes) {
    frame_encode_header(bytes, type, 1, payload_bytes);
    memset(bytes + FRAME_HEADER_BYTES, 'x', payload_bytes);
    return FRAME_HEADER_BYTES + payload_bytes;
}

static int connect_byte_by_byte(void) {
    struct conn conn;
    struct frame frame;
    CHECK(conn_init(&conn, CONN_SEEKING));
    const char *line = "CONNECT 7000\n";
    for (size_t i = 0; i < strlen(line); i++) {
        CHECK(conn_next(&conn, &frame) == CONN_NEED_MORE);
        give(&conn, line + i, 1);
    }
    CHECK(conn_next(&conn, &frame) == CONN_CONNECTED);
    CHECK(conn_next(&conn, &frame) == CONN_NEED_MORE);
    conn_free(&conn);
    return 0;
}

static int leftovers_before_connect(void) {
    struct conn conn;
    struct frame frame;
    uint8_t bytes[64];
    CHECK(conn_init(&conn, CONN_SEEKING));
    for (int i = 0; i < 100000; i++) {
        give_text(&conn, "CONNECT 700 garbage CONNECT 7000x");
        CHECK(conn_next(&conn, &frame) == CONN_NEED_MORE);
    }
    give_text(&conn, "CONNECT 7000\n");
    give(&conn, bytes, make_frame(bytes, FRAME_PING, 2));
    CHECK(conn_next(&conn, &frame) == CONN_CONNECTED);
    CHECK(conn_next(&conn, &frame) == CONN_FRAME && frame.type == FRAME_PING);
    conn_free(&conn);
    return 0;
}

static int other_port_is_not_ours(void) {
    struct conn conn;
    struct frame frame;
    CHECK(conn_init(&conn, CONN_SEEKING));
    give_text(&conn, "CONNECT 70000\nCONNECT 9000\n");
    CHECK(conn_next(&conn, &frame) == CONN_NEED_MORE);
    conn_free(&conn);
    return 0;
}

static int broken_then_connect(void) {
    struct conn conn;
    struct frame frame;
    CHECK(conn_init(&conn, CONN_OPEN));
    give_text(&conn, "\xff\xff\xff\xff garbage CONNECT 7000\n");
    CHECK(conn_next(&conn, &frame) == CONN_BROKEN);
    CHECK(conn_next(&conn, &frame) == CONN_CONNECTED);
    conn_free(&conn);
    return 0;
}

static int connect_where_a_frame_should_be(void) {
    struct conn conn;
    struct frame frame;
    CHECK(conn_init(&conn, CONN_OPEN));
    give_text(&conn, "CONNECT");
    CHECK(conn_next(&conn, &frame) == CONN_NEED_MORE);
    give_text(&conn, " 7000\n");
    CHECK(conn_next(&conn, &frame) == CONN_CONNECTED);
    conn_free(&conn);
    return 0;
}

static int connect_inside_a_frame(void) {
    struct conn conn;
    struct frame frame;
    uint8_t header[FRAME_HEADER_BYTES];
    CHECK(conn_init(&conn, CONN_OPEN));
    frame_encode_header(header, FRAME_DATA, 1, 100);
    give(&conn, header, sizeof header);
    CHECK(!conn_ends_in_connect(&conn));
    give_text(&conn, "CONNECT 7000\n");
    CHECK(conn_next(&conn, &frame) == CONN_NEED_MORE);
    CHECK(conn_ends_in_connect(&conn));
    give_text(&conn, "x");
    CHECK(!conn_ends_in_connect(&conn));
    conn_free(&conn);
    return 0;
}

static int many_large_frames(void) {
    static uint8_t bytes[FRAME_MAX_LENGTH + 4];
    struct conn conn;
    struct frame frame;
    CHECK(conn_init(&conn, CONN_OPEN));
    size_t length = make_frame(bytes, FRAME_DATA, FRAME_MAX_PAYLOAD), frames = 0;
    CHECK(length == sizeof bytes);
    for (int i = 0; i < 5; i++) {
        for (size_t at = 0; at < length;) {
            size_t space, part = 100003;
            uint8_t *to = conn_space(&conn, &space);
            CHECK(space > 0);
            part = part < length - at ? part : length - at;
            part = part < space ? part : space;
            memcpy(to, bytes + at, part);
            conn_received(&conn, part);
            at += part;
            while (conn_next(&conn, &frame) == CONN_FRAME) {
                CHECK(frame.payload_bytes == FRAME_MAX_PAYLOAD);
                CHECK(frame.payload[0] == 'x' && frame.payload[FRAME_MAX_PAYLOAD - 1] == 'x');
                frames++;
            }
        }
    }
    CHECK(frames == 5);
    conn_free(&conn);
    return 0;
}

static const struct test tests[] = {
    {"a CONNECT line may come byte by byte", connect_byte_by_byte},
    {"leftovers before CONNECT are skipped", leftovers_before_connect},
    {"a CONNECT to another port is skipped", other_port_is_not_ours},
    {"after an impossible length the next CONNECT is found", broken_then_connect},
    {"a CONNECT between frames is a new connection", connect_where_a_frame_should_be},
    {"a CONNECT at the end of a cut-off frame is noticed", connect_inside_a_frame},
    {"frames of the largest size pass in odd pieces", many_large_frames},
};
const struct suite conn_suite = SUITE("conn", tests);
