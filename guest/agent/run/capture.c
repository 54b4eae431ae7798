#include "capture.h"
#include <stdlib.h>
#include <string.h>

void capture_init(struct capture *capture, size_t max_bytes) {
    *capture = (struct capture){.head_limit = max_bytes / 2};
    capture->tail_limit = max_bytes - capture->head_limit;
}

void capture_free(struct capture *capture) {
    free(capture->head);
    free(capture->tail);
    capture->head = capture->tail = NULL;
    capture->head_bytes = capture->head_sent = 0;
    capture->tail_bytes = capture->tail_sent = capture->tail_start = 0;
    capture->head_limit = capture->tail_limit = 0;
}

// False when nothing can be kept there.
static bool ensure(uint8_t **buffer, size_t *limit) {
    if (*buffer == NULL && *limit > 0)
        *buffer = malloc(*limit);
    if (*buffer == NULL)
        *limit = 0;
    return *buffer != NULL;
}

static size_t add_to_head(struct capture *capture, const uint8_t *bytes, size_t length) {
    size_t space = capture->head_limit - capture->head_bytes;
    size_t taken = length < space ? length : space;
    if (taken == 0 || !ensure(&capture->head, &capture->head_limit))
        return 0;
    memcpy(capture->head + capture->head_bytes, bytes, taken);
    capture->head_bytes += taken;
    return taken;
}

static void add_to_tail(struct capture *capture, const uint8_t *bytes, size_t length) {
    if (length == 0 || !ensure(&capture->tail, &capture->tail_limit))
        return;
    size_t limit = capture->tail_limit;
    if (length > limit) {
        bytes += length - limit;
        length = limit;
    }
    size_t at = (capture->tail_start + capture->tail_bytes) % limit;
    size_t first = length < limit - at ? length : limit - at;
    memcpy(capture->tail + at, bytes, first);
    memcpy(capture->tail, bytes + first, length - first);
    capture->tail_bytes += length;
    if (capture->tail_bytes > limit) {
        capture->tail_start = (capture->tail_start + capture->tail_bytes - limit) % limit;
        capture->tail_bytes = limit;
    }
}

void capture_add(struct capture *capture, const uint8_t *bytes, size_t length) {
    capture->total += length;
    size_t taken = add_to_head(capture, bytes, length);
    add_to_tail(capture, bytes + taken, length - taken);
}

bool capture_would_lose(const struct capture *capture, size_t length) {
    return capture->total + length > (uint64_t)capture->head_limit + capture->tail_limit;
}

size_t capture_next_head(const struct capture *capture, const uint8_t **bytes) {
    if (capture->head == NULL)
        return 0;
    *bytes = capture->head + capture->head_sent;
    return capture->head_bytes - capture->head_sent;
}

size_t capture_next_tail(const struct capture *capture, const uint8_t **bytes) {
    if (capture->tail == NULL)
        return 0;
    size_t at = (capture->tail_start + capture->tail_sent) % capture->tail_limit;
    size_t left = capture->tail_bytes - capture->tail_sent;
    *bytes = capture->tail + at;
    return left < capture->tail_limit - at ? left : capture->tail_limit - at;
}

size_t capture_pieces(const struct capture *capture, struct capture_piece pieces[3]) {
    size_t count = 0;
    if (capture->head_bytes > 0)
        pieces[count++] = (struct capture_piece){capture->head, capture->head_bytes};
    if (capture->tail_bytes == 0)
        return count;
    size_t until_wrap = capture->tail_limit - capture->tail_start;
    size_t first = capture->tail_bytes < until_wrap ? capture->tail_bytes : until_wrap;
    pieces[count++] = (struct capture_piece){capture->tail + capture->tail_start, first};
    if (first < capture->tail_bytes)
        pieces[count++] = (struct capture_piece){capture->tail, capture->tail_bytes - first};
    return count;
}
