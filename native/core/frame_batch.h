#pragma once
#include "chunk.h"

#include <stddef.h>

/* Decoded frames on their way to JavaScript: small payloads packed into shared chunks, large ones
 * alone. */

struct frame {
    uint32_t stream;
    uint32_t size;
    /* Where the payload lies: index into `chunks`, offset in it */
    uint32_t chunk;
    uint32_t offset;
    uint8_t type;
};

struct frame_batch {
    struct frame *frames;
    size_t frame_count, frame_capacity;
    struct chunk **chunks;
    size_t chunk_count, chunk_capacity;
    /* Payload bytes plus a fixed price per frame, so that empty frames are bounded too */
    size_t weight;
};

#define FRAME_WEIGHT_BYTES 64u
#define SHARED_CHUNK_BYTES 65536u

/* Appends a frame and copies its payload. Returns 0 or -ENOMEM. */
int frame_batch_copy(struct frame_batch *batch, uint8_t type, uint32_t stream,
                     const uint8_t *payload, uint32_t size);

/* Appends a frame whose payload is all of `chunk`, which the batch owns on success. Returns 0 or
 * -ENOMEM. */
int frame_batch_adopt(struct frame_batch *batch, uint8_t type, uint32_t stream,
                      struct chunk *chunk);

/* Frees everything; chunks that were handed on are NULL in `chunks`. The batch is empty afterwards.
 */
void frame_batch_clear(struct frame_batch *batch);
