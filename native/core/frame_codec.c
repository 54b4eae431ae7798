#include "frame_codec.h"

#include <errno.h>
#include <string.h>

static uint32_t read_u32(const uint8_t *bytes) {
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

static size_t smaller(size_t left, size_t right) {
    return left < right ? left : right;
}

static uint8_t frame_type(const struct frame_decoder *decoder) {
    return decoder->header[4];
}

static uint32_t frame_stream(const struct frame_decoder *decoder) {
    return read_u32(decoder->header + 5);
}

/* Takes header bytes, at most what is missing. Returns how many, or -EBADMSG. */
static int take_header(struct frame_decoder *decoder, const uint8_t *bytes, size_t size) {
    const size_t taken = smaller(size, FRAME_HEADER_BYTES - decoder->header_used);
    memcpy(decoder->header + decoder->header_used, bytes, taken);
    decoder->header_used += taken;
    if (decoder->header_used < 4)
        return (int)taken;
    const uint32_t length = read_u32(decoder->header);
    if (length >= FRAME_OVERHEAD_BYTES && length <= FRAME_MAX_BYTES)
        return (int)taken;
    decoder->invalid_length = length;
    return -EBADMSG;
}

/* Starts the payload behind a complete header. Returns how many bytes it took, or -ENOMEM. */
static int take_payload(struct frame_decoder *decoder, struct frame_batch *batch,
                        const uint8_t *bytes, size_t size) {
    const uint32_t payload_size = read_u32(decoder->header) - FRAME_OVERHEAD_BYTES;
    if (size >= payload_size) {
        int error = frame_batch_copy(batch, frame_type(decoder), frame_stream(decoder), bytes,
                                     payload_size);
        if (error != 0)
            return error;
        decoder->header_used = 0;
        return (int)payload_size;
    }
    decoder->partial = chunk_new(payload_size);
    if (decoder->partial == NULL)
        return -ENOMEM;
    memcpy(decoder->partial->bytes, bytes, size);
    decoder->partial->used = (uint32_t)size;
    return (int)size;
}

int frame_decoder_push(struct frame_decoder *decoder, struct frame_batch *batch,
                       const uint8_t *bytes, size_t size) {
    if (decoder->partial != NULL) {
        size_t room = 0;
        uint8_t *target = frame_decoder_target(decoder, &room);
        const size_t taken = smaller(size, room);
        if (taken > 0)
            memcpy(target, bytes, taken);
        int error = frame_decoder_filled(decoder, batch, taken);
        if (error != 0)
            return error;
        bytes += taken;
        size -= taken;
    }
    while (size > 0 && decoder->partial == NULL) {
        int taken = take_header(decoder, bytes, size);
        if (taken < 0)
            return taken;
        bytes += taken;
        size -= (size_t)taken;
        if (decoder->header_used < FRAME_HEADER_BYTES)
            return 0;
        taken = take_payload(decoder, batch, bytes, size);
        if (taken < 0)
            return taken;
        bytes += taken;
        size -= (size_t)taken;
    }
    return 0;
}

uint8_t *frame_decoder_target(struct frame_decoder *decoder, size_t *room) {
    struct chunk *partial = decoder->partial;
    *room = partial == NULL ? 0 : partial->capacity - partial->used;
    return partial == NULL ? NULL : partial->bytes + partial->used;
}

int frame_decoder_filled(struct frame_decoder *decoder, struct frame_batch *batch, size_t size) {
    struct chunk *partial = decoder->partial;
    if (partial == NULL)
        return 0;
    partial->used += (uint32_t)size;
    if (partial->used < partial->capacity)
        return 0;
    int error = frame_batch_adopt(batch, frame_type(decoder), frame_stream(decoder), partial);
    if (error != 0)
        return error;
    decoder->partial = NULL;
    decoder->header_used = 0;
    return 0;
}

bool frame_decoder_is_mid_frame(const struct frame_decoder *decoder) {
    return decoder->header_used > 0;
}

void frame_decoder_clear(struct frame_decoder *decoder) {
    chunk_free(decoder->partial);
    *decoder = (struct frame_decoder){0};
}
