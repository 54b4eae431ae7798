#include "frame_batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for one more item of `item_size`. The counts stay far below SIZE_MAX / item_size:
 * the reactor stops reading at a batch's high-water mark. */
static void *grown(void *items, size_t count, size_t *capacity, size_t item_size) {
    if (count < *capacity)
        return items;
    const size_t wanted = *capacity == 0 ? 8 : *capacity * 2;
    void *larger = realloc(items, wanted * item_size);
    if (larger != NULL)
        *capacity = wanted;
    return larger;
}

static int add_chunk(struct frame_batch *batch, struct chunk *chunk) {
    struct chunk **chunks =
        grown(batch->chunks, batch->chunk_count, &batch->chunk_capacity, sizeof(struct chunk *));
    if (chunks == NULL)
        return -ENOMEM;
    batch->chunks = chunks;
    batch->chunks[batch->chunk_count++] = chunk;
    return 0;
}

/* The frame lies at the end of the last chunk. */
static int add_frame(struct frame_batch *batch, uint8_t type, uint32_t stream, uint32_t offset,
                     uint32_t size) {
    struct frame *frames =
        grown(batch->frames, batch->frame_count, &batch->frame_capacity, sizeof(struct frame));
    if (frames == NULL)
        return -ENOMEM;
    batch->frames = frames;
    batch->frames[batch->frame_count++] = (struct frame){
        .type = type,
        .stream = stream,
        .size = size,
        .offset = offset,
        .chunk = (uint32_t)(batch->chunk_count - 1),
    };
    batch->weight += FRAME_WEIGHT_BYTES + size;
    return 0;
}

/* The last chunk if `size` more bytes fit into it, else a new one. */
static struct chunk *room_for(struct frame_batch *batch, uint32_t size) {
    if (batch->chunk_count > 0) {
        struct chunk *last = batch->chunks[batch->chunk_count - 1];
        if (last->capacity - last->used >= size)
            return last;
    }
    struct chunk *chunk = chunk_new(size > SHARED_CHUNK_BYTES / 4 ? size : SHARED_CHUNK_BYTES);
    if (chunk == NULL)
        return NULL;
    if (add_chunk(batch, chunk) != 0) {
        chunk_free(chunk);
        return NULL;
    }
    return chunk;
}

int frame_batch_copy(struct frame_batch *batch, uint8_t type, uint32_t stream,
                     const uint8_t *payload, uint32_t size) {
    struct chunk *chunk = room_for(batch, size);
    if (chunk == NULL || add_frame(batch, type, stream, chunk->used, size) != 0)
        return -ENOMEM;
    if (size > 0)
        memcpy(chunk->bytes + chunk->used, payload, size);
    chunk->used += size;
    return 0;
}

int frame_batch_adopt(struct frame_batch *batch, uint8_t type, uint32_t stream,
                      struct chunk *chunk) {
    if (add_chunk(batch, chunk) != 0)
        return -ENOMEM;
    if (add_frame(batch, type, stream, 0, chunk->used) == 0)
        return 0;
    batch->chunk_count--;
    return -ENOMEM;
}

void frame_batch_clear(struct frame_batch *batch) {
    for (size_t at = 0; at < batch->chunk_count; at++)
        chunk_free(batch->chunks[at]);
    free(batch->chunks);
    free(batch->frames);
    *batch = (struct frame_batch){0};
}
