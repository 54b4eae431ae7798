// Head and tail of one output stream, and exact counts. Pure: memory only.
#ifndef IGNITION_CAPTURE_H
#define IGNITION_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The first `head_limit` bytes are kept for good, of what follows the last `tail_limit`.
struct capture {
    size_t head_limit, tail_limit;
    uint8_t *head, *tail; // NULL until the first byte for them
    size_t head_bytes, head_sent;
    size_t tail_start, tail_bytes, tail_sent; // `tail` is a ring
    uint64_t total;                           // everything ever added
};

// Half of `max_bytes`, rounded down, is head.
void capture_init(struct capture *capture, size_t max_bytes);
void capture_free(struct capture *capture);

// Without memory the bytes are only counted.
void capture_add(struct capture *capture, const uint8_t *bytes, size_t length);

// True when adding `length` more bytes would lose some of what was added so far or of them.
bool capture_would_lose(const struct capture *capture, size_t length);

// The next contiguous unsent bytes of head and tail; 0 when all were sent. Advance with *_sent.
size_t capture_next_head(const struct capture *capture, const uint8_t **bytes);
size_t capture_next_tail(const struct capture *capture, const uint8_t **bytes);

// The held bytes in order, in up to three pieces; returns how many pieces there are.
struct capture_piece {
    const uint8_t *bytes;
    size_t length;
};
size_t capture_pieces(const struct capture *capture, struct capture_piece pieces[3]);

#endif
