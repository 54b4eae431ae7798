#include "../agent/wire/frame.h"
#include "check.h"
#include <string.h>

static int round_trip(void) {
    uint8_t bytes[FRAME_HEADER_BYTES + 3];
    frame_encode_header(bytes, FRAME_DATA, 0xfedcba98, 3);
    memcpy(bytes + FRAME_HEADER_BYTES, "abc", 3);
    struct frame frame;
    size_t consumed = 0;
    CHECK(frame_decode(bytes, sizeof bytes, &frame, &consumed) == FRAME_COMPLETE);
    CHECK(consumed == sizeof bytes && frame.type == FRAME_DATA && frame.stream == 0xfedcba98);
    CHECK(frame.payload_bytes == 3 && memcmp(frame.payload, "abc", 3) == 0);
    return 0;
}

static int layout(void) {
    uint8_t bytes[FRAME_HEADER_BYTES];
    frame_encode_header(bytes, 0x91, 7, 0x10203);
    CHECK(memcmp(bytes, "\x08\x02\x01\x00\x91\x07\x00\x00\x00", sizeof bytes) == 0);
    return 0;
}

static int incomplete_at_every_length(void) {
    uint8_t bytes[FRAME_HEADER_BYTES + 2] = {0};
    frame_encode_header(bytes, FRAME_PING, 1, 2);
    struct frame frame;
    size_t consumed = 0;
    for (size_t held = 0; held < sizeof bytes; held++)
        CHECK(frame_decode(bytes, held, &frame, &consumed) == FRAME_INCOMPLETE);
    return 0;
}

static int length_bounds(void) {
    const struct {
        uint32_t length;
        enum frame_result result;
    } cases[] = {{0, FRAME_INVALID},
                 {4, FRAME_INVALID},
                 {5, FRAME_INCOMPLETE},
                 {FRAME_MAX_LENGTH, FRAME_INCOMPLETE},
                 {FRAME_MAX_LENGTH + 1, FRAME_INVALID},
                 {UINT32_MAX, FRAME_INVALID}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t bytes[4];
        struct frame frame;
        size_t consumed;
        write_u32le(bytes, cases[i].length);
        CHECK(frame_decode(bytes, sizeof bytes, &frame, &consumed) == cases[i].result);
    }
    return 0;
}

static const struct test tests[] = {
    {"a frame survives encoding and decoding", round_trip},
    {"the header's bytes are those of the specification", layout},
    {"every prefix of a frame is incomplete", incomplete_at_every_length},
    {"a length outside 5 to 1 MiB is invalid", length_bounds},
};
const struct suite frame_suite = SUITE("frame", tests);
