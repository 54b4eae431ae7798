// Frames: docs/wire/frames.md. Message types: docs/wire/agent.md. Pure: no system calls.
#ifndef IGNITION_FRAME_H
#define IGNITION_FRAME_H

#include <stddef.h>
#include <stdint.h>

enum {
    FRAME_HEADER_BYTES = 9,
    FRAME_OVERHEAD_BYTES = 5,
    FRAME_MAX_LENGTH = 1048576,
    FRAME_MAX_PAYLOAD = FRAME_MAX_LENGTH - FRAME_OVERHEAD_BYTES,
    FRAME_MAX_CONTROL_PAYLOAD = 65536,
};

enum frame_type {
    FRAME_HELLO = 0x01,
    FRAME_CLONED = 0x02,
    FRAME_PING = 0x03,
    FRAME_HOLD = 0x04,
    FRAME_RELEASE = 0x05,
    FRAME_PROBE = 0x06,
    FRAME_RUN = 0x10,
    FRAME_COMMAND = 0x11,
    FRAME_STDIN = 0x12,
    FRAME_STDIN_EOF = 0x13,
    FRAME_KILL = 0x14,
    FRAME_PUT = 0x20,
    FRAME_DATA = 0x21,
    FRAME_EOF = 0x22,
    FRAME_GET = 0x30,
    FRAME_CREDIT = 0x40,
    FRAME_CANCEL = 0x41,
    FRAME_LISTEN = 0x50,
    FRAME_OPEN = 0x51,
    FRAME_OK = 0x80,
    FRAME_STDOUT = 0x91,
    FRAME_STDERR = 0x92,
    FRAME_REPORT = 0x93,
    FRAME_EXIT = 0x95,
    FRAME_ACCEPTED = 0x96,
    FRAME_ERROR = 0xff,
};

struct frame {
    uint8_t type;
    uint32_t stream;
    const uint8_t *payload; // borrowed from the buffer that was decoded
    size_t payload_bytes;
};

enum frame_result { FRAME_COMPLETE, FRAME_INCOMPLETE, FRAME_INVALID };

// Decodes the frame at the start of `bytes`. `consumed` is set when it is complete.
enum frame_result frame_decode(const uint8_t *bytes, size_t available, struct frame *frame,
                               size_t *consumed);

// `payload_bytes` is at most FRAME_MAX_PAYLOAD.
void frame_encode_header(uint8_t header[FRAME_HEADER_BYTES], uint8_t type, uint32_t stream,
                         size_t payload_bytes);

uint32_t read_u32le(const uint8_t *bytes);
void write_u32le(uint8_t *bytes, uint32_t value);

#endif
