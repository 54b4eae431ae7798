/* Any bytes give the same frames and the same verdict whole and split. The first byte says where to
 * split. */
#include "frame_codec.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    struct frame_decoder decoder;
    struct frame_batch batch;
    int error;
};

static void require(bool condition) {
    if (!condition)
        abort();
}

/* As the reactor does: what fits into a partial payload is read there, the rest is pushed. */
static struct outcome decode(const uint8_t *data, size_t size, size_t step) {
    struct outcome outcome = {0};
    for (size_t at = 0; at < size && outcome.error == 0;) {
        size_t room = 0, piece = size - at < step ? size - at : step;
        uint8_t *target = frame_decoder_target(&outcome.decoder, &room);
        if (room > 0 && piece <= room && (at & 1) != 0) {
            memcpy(target, data + at, piece);
            outcome.error = frame_decoder_filled(&outcome.decoder, &outcome.batch, piece);
        } else {
            outcome.error = frame_decoder_push(&outcome.decoder, &outcome.batch, data + at, piece);
        }
        at += piece;
    }
    return outcome;
}

static const uint8_t *payload(const struct frame_batch *batch, const struct frame *frame) {
    require(frame->chunk < batch->chunk_count);
    const struct chunk *chunk = batch->chunks[frame->chunk];
    require(chunk->used <= chunk->capacity && frame->offset + frame->size <= chunk->used);
    return chunk->bytes + frame->offset;
}

static void require_same(const struct outcome *left, const struct outcome *right) {
    require(left->error == right->error);
    require(left->decoder.invalid_length == right->decoder.invalid_length);
    require(left->batch.frame_count == right->batch.frame_count);
    require(left->batch.weight == right->batch.weight);
    if (left->error == 0)
        require(frame_decoder_is_mid_frame(&left->decoder) ==
                frame_decoder_is_mid_frame(&right->decoder));
    for (size_t at = 0; at < left->batch.frame_count; at++) {
        const struct frame *one = &left->batch.frames[at], *other = &right->batch.frames[at];
        require(one->type == other->type && one->stream == other->stream);
        require(one->size == other->size && one->size <= FRAME_MAX_BYTES - FRAME_OVERHEAD_BYTES);
        require(memcmp(payload(&left->batch, one), payload(&right->batch, other), one->size) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    struct outcome whole = decode(data + 1, size - 1, size);
    struct outcome split = decode(data + 1, size - 1, data[0] + 1u);
    require_same(&whole, &split);
    frame_batch_clear(&whole.batch);
    frame_batch_clear(&split.batch);
    frame_decoder_clear(&whole.decoder);
    frame_decoder_clear(&split.decoder);
    return 0;
}
