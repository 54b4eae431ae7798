#pragma once
#include "frame_batch.h"

#include <stdbool.h>

/* Cuts a byte stream into frames. Layout and limits: docs/wire/frames.md. */

#define FRAME_HEADER_BYTES 9u
#define FRAME_OVERHEAD_BYTES 5u
#define FRAME_MAX_BYTES 1048576u

struct frame_decoder {
    uint8_t header[FRAME_HEADER_BYTES];
    size_t header_used;
    /* The payload of a frame that is not complete yet; NULL between frames and inside a header */
    struct chunk *partial;
    /* The length that was out of bounds, once frame_decoder_push returned -EBADMSG */
    uint32_t invalid_length;
};

/*
 * Takes the next bytes and appends the frames they complete to `batch`; how the stream is split
 * makes no difference. Returns 0, -EBADMSG for a length out of bounds (the stream ends there), or
 * -ENOMEM.
 */
int frame_decoder_push(struct frame_decoder *decoder, struct frame_batch *batch,
                       const uint8_t *bytes, size_t size);

/* Where the rest of a partial payload belongs, to be read there directly; `*room` is 0 between
 * frames. */
uint8_t *frame_decoder_target(struct frame_decoder *decoder, size_t *room);

/* Says that `size` bytes, at most the room, were read into the target. Returns 0 or -ENOMEM. */
int frame_decoder_filled(struct frame_decoder *decoder, struct frame_batch *batch, size_t size);

/* An end of stream here would cut a frame. */
bool frame_decoder_is_mid_frame(const struct frame_decoder *decoder);

void frame_decoder_clear(struct frame_decoder *decoder);
