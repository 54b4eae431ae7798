#include "check.h"
#include "frame_codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PAYLOAD (FRAME_MAX_BYTES - FRAME_OVERHEAD_BYTES)

static void put_u32(uint8_t *bytes, uint32_t value) {
    for (size_t at = 0; at < 4; at++)
        bytes[at] = (uint8_t)(value >> (8 * at));
}

/* Writes a frame whose payload bytes count up from `stream`; returns its size. */
static size_t put_frame(uint8_t *bytes, uint8_t type, uint32_t stream, uint32_t size) {
    put_u32(bytes, size + FRAME_OVERHEAD_BYTES);
    bytes[4] = type;
    put_u32(bytes + 5, stream);
    for (uint32_t at = 0; at < size; at++)
        bytes[FRAME_HEADER_BYTES + at] = (uint8_t)(stream + at);
    return FRAME_HEADER_BYTES + size;
}

static bool is_frame(const struct frame_batch *batch, size_t index, uint8_t type, uint32_t stream,
                     uint32_t size) {
    CHECK(index < batch->frame_count);
    const struct frame *frame = &batch->frames[index];
    CHECK(frame->type == type && frame->stream == stream && frame->size == size);
    const struct chunk *chunk = batch->chunks[frame->chunk];
    CHECK(frame->offset + size <= chunk->used && chunk->used <= chunk->capacity);
    for (uint32_t at = 0; at < size; at++)
        CHECK(chunk->bytes[frame->offset + at] == (uint8_t)(stream + at));
    return true;
}

static bool gives_the_same_however_split(void) {
    static const uint32_t sizes[] = {0, 1, 100, 20000, 70000, 3};
    uint8_t *bytes = malloc(100000);
    CHECK(bytes != NULL);
    size_t total = 0;
    for (uint32_t at = 0; at < 6; at++)
        total += put_frame(bytes + total, (uint8_t)(at + 250), at, sizes[at]);
    for (size_t step = 1; step < total; step = step * 2 + 1) {
        struct frame_decoder decoder = {0};
        struct frame_batch batch = {0};
        for (size_t at = 0; at < total; at += step)
            CHECK(frame_decoder_push(&decoder, &batch, bytes + at,
                                     total - at < step ? total - at : step) == 0);
        CHECK(batch.frame_count == 6 && !frame_decoder_is_mid_frame(&decoder));
        for (uint32_t at = 0; at < 6; at++)
            CHECK(is_frame(&batch, at, (uint8_t)(at + 250), at, sizes[at]));
        frame_batch_clear(&batch);
        frame_decoder_clear(&decoder);
    }
    free(bytes);
    return true;
}

static bool reads_a_partial_payload_in_place(void) {
    uint8_t *bytes = malloc(FRAME_HEADER_BYTES + MAX_PAYLOAD);
    CHECK(bytes != NULL);
    const size_t total = put_frame(bytes, 7, 9, MAX_PAYLOAD);
    struct frame_decoder decoder = {0};
    struct frame_batch batch = {0};
    size_t room = 1;
    CHECK(frame_decoder_target(&decoder, &room) == NULL && room == 0);
    CHECK(frame_decoder_push(&decoder, &batch, bytes, 1000) == 0);
    for (size_t at = 1000; at < total;) {
        uint8_t *target = frame_decoder_target(&decoder, &room);
        CHECK(target != NULL && room == total - at && frame_decoder_is_mid_frame(&decoder));
        const size_t size = room < 300000 ? room : 300000;
        memcpy(target, bytes + at, size);
        CHECK(frame_decoder_filled(&decoder, &batch, size) == 0);
        at += size;
    }
    CHECK(is_frame(&batch, 0, 7, 9, MAX_PAYLOAD) && !frame_decoder_is_mid_frame(&decoder));
    frame_batch_clear(&batch);
    free(bytes);
    return true;
}

static bool refuses_lengths_out_of_bounds(void) {
    static const uint32_t lengths[] = {0, 4, FRAME_MAX_BYTES + 1, UINT32_MAX};
    for (size_t at = 0; at < sizeof lengths / sizeof lengths[0]; at++) {
        uint8_t bytes[64];
        const size_t good = put_frame(bytes, 1, 2, 3);
        put_u32(bytes + good, lengths[at]);
        struct frame_decoder decoder = {0};
        struct frame_batch batch = {0};
        CHECK(frame_decoder_push(&decoder, &batch, bytes, good + 3) == 0);
        CHECK(frame_decoder_push(&decoder, &batch, bytes + good + 3, 1) == -EBADMSG);
        CHECK(decoder.invalid_length == lengths[at]);
        CHECK(batch.frame_count == 1 && is_frame(&batch, 0, 1, 2, 3));
        frame_batch_clear(&batch);
        frame_decoder_clear(&decoder);
    }
    return true;
}

static bool weighs_empty_frames(void) {
    uint8_t bytes[FRAME_HEADER_BYTES];
    (void)put_frame(bytes, 1, 1, 0);
    struct frame_decoder decoder = {0};
    struct frame_batch batch = {0};
    for (int at = 0; at < 1000; at++)
        CHECK(frame_decoder_push(&decoder, &batch, bytes, sizeof bytes) == 0);
    CHECK(batch.frame_count == 1000 && batch.weight >= 1000 * sizeof(struct frame));
    CHECK(batch.chunk_count == 1);
    frame_batch_clear(&batch);
    CHECK(batch.weight == 0 && batch.frame_count == 0);
    return true;
}

const struct test frame_codec_tests[] = {
    {"frames: the same however split", gives_the_same_however_split},
    {"frames: a partial payload is read in place", reads_a_partial_payload_in_place},
    {"frames: lengths out of bounds are refused", refuses_lengths_out_of_bounds},
    {"frames: empty frames have a weight", weighs_empty_frames},
    {0},
};
