#include "frame.h"

uint32_t read_u32le(const uint8_t *bytes) {
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

void write_u32le(uint8_t *bytes, uint32_t value) {
    bytes[0] = (uint8_t)value;
    bytes[1] = (uint8_t)(value >> 8);
    bytes[2] = (uint8_t)(value >> 16);
    bytes[3] = (uint8_t)(value >> 24);
}

enum frame_result frame_decode(const uint8_t *bytes, size_t available, struct frame *frame,
                               size_t *consumed) {
    if (available < 4)
        return FRAME_INCOMPLETE;
    uint32_t length = read_u32le(bytes);
    if (length < FRAME_OVERHEAD_BYTES || length > FRAME_MAX_LENGTH)
        return FRAME_INVALID;
    if (available - 4 < length)
        return FRAME_INCOMPLETE;
    frame->type = bytes[4];
    frame->stream = read_u32le(bytes + 5);
    frame->payload = bytes + FRAME_HEADER_BYTES;
    frame->payload_bytes = length - FRAME_OVERHEAD_BYTES;
    *consumed = 4 + (size_t)length;
    return FRAME_COMPLETE;
}

void frame_encode_header(uint8_t header[FRAME_HEADER_BYTES], uint8_t type, uint32_t stream,
                         size_t payload_bytes) {
    // At most FRAME_MAX_PAYLOAD, so the sum fits in 32 bits.
    write_u32le(header, (uint32_t)(payload_bytes + FRAME_OVERHEAD_BYTES));
    header[4] = type;
    write_u32le(header + 5, stream);
}
