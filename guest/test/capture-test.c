#include "../agent/run/capture.h"
#include "check.h"
#include <stdlib.h>
#include <string.h>

// Byte number `index` of every test stream.
static uint8_t byte_at(uint64_t index) {
    return (uint8_t)(index * 31 + (index >> 8));
}

static void add(struct capture *capture, size_t length) {
    uint8_t *bytes = malloc(length + 1);
    for (size_t i = 0; bytes != NULL && i < length; i++)
        bytes[i] = byte_at(capture->total + i);
    capture_add(capture, bytes, length);
    free(bytes);
}

// Takes everything that can be sent, in the order it would be; returns the count.
static size_t collect(struct capture *capture, uint8_t *into) {
    const uint8_t *bytes;
    size_t length, total = 0;
    while ((length = capture_next_head(capture, &bytes)) > 0) {
        memcpy(into + total, bytes, length);
        capture->head_sent += length;
        total += length;
    }
    while ((length = capture_next_tail(capture, &bytes)) > 0) {
        memcpy(into + total, bytes, length);
        capture->tail_sent += length;
        total += length;
    }
    return total;
}

static int matches(const uint8_t *bytes, size_t length, uint64_t from) {
    for (size_t i = 0; i < length; i++)
        if (bytes[i] != byte_at(from + i))
            return 0;
    return 1;
}

static int check_split(size_t limit, size_t total, size_t step) {
    struct capture capture;
    uint8_t *sent = malloc(limit + 1);
    CHECK(sent != NULL);
    capture_init(&capture, limit);
    for (size_t left = total; left > 0;) {
        size_t part = step < left ? step : left;
        add(&capture, part);
        left -= part;
    }
    size_t head = total < limit / 2 ? total : limit / 2;
    size_t tail = total - head < limit - limit / 2 ? total - head : limit - limit / 2;
    CHECK(capture.total == total && capture.head_bytes == head && capture.tail_bytes == tail);
    CHECK(collect(&capture, sent) == head + tail);
    CHECK(matches(sent, head, 0) && matches(sent + head, tail, total - tail));
    capture_free(&capture);
    free(sent);
    return 0;
}

static int head_and_tail_of_every_shape(void) {
    static const size_t limits[] = {0, 1, 2, 3, 7, 64, 1000};
    static const size_t steps[] = {1, 3, 64, 5000};
    for (size_t l = 0; l < sizeof limits / sizeof limits[0]; l++)
        for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++)
            for (size_t total = 0; total < 300; total++)
                CHECK(check_split(limits[l], total, steps[s]) == 0);
    return 0;
}

static int ten_mebibytes(void) {
    CHECK(check_split(32768, 10 << 20, 65536) == 0);
    CHECK(check_split(1 << 20, 10 << 20, 65521) == 0);
    return 0;
}

static int loss_is_foreseen(void) {
    struct capture capture;
    capture_init(&capture, 10);
    CHECK(!capture_would_lose(&capture, 10) && capture_would_lose(&capture, 11));
    add(&capture, 6);
    CHECK(!capture_would_lose(&capture, 4) && capture_would_lose(&capture, 5));
    capture_free(&capture);
    return 0;
}

static int pieces_are_in_order(void) {
    struct capture capture;
    struct capture_piece pieces[3];
    capture_init(&capture, 10);
    CHECK(capture_pieces(&capture, pieces) == 0);
    add(&capture, 7);
    add(&capture, 5);
    CHECK(capture_pieces(&capture, pieces) == 3);
    CHECK(pieces[0].length == 5 && matches(pieces[0].bytes, 5, 0));
    CHECK(pieces[1].length == 3 && matches(pieces[1].bytes, 3, 7));
    CHECK(pieces[2].length == 2 && matches(pieces[2].bytes, 2, 10));
    capture_free(&capture);
    CHECK(capture_pieces(&capture, pieces) == 0);
    return 0;
}

static const struct test tests[] = {
    {"head and tail are right for every total, limit and step", head_and_tail_of_every_shape},
    {"ten mebibytes are counted exactly", ten_mebibytes},
    {"a loss is foreseen to the byte", loss_is_foreseen},
    {"the held pieces are in order", pieces_are_in_order},
};
const struct suite capture_suite = SUITE("capture", tests);
