// What waits to be sent on a link.
#include "link.h"
#include <string.h>

bool link_has_room(const struct link *link) {
    return link->out_end - link->out_begin < LINK_OUT_MARK_BYTES;
}

uint8_t *link_reserve(struct link *link, size_t payload_bytes) {
    size_t wanted = FRAME_HEADER_BYTES + payload_bytes;
    if (LINK_OUT_BYTES - link->out_end < wanted) {
        memmove(link->out, link->out + link->out_begin, link->out_end - link->out_begin);
        link->out_end -= link->out_begin;
        link->out_begin = 0;
        if (LINK_OUT_BYTES - link->out_end < wanted)
            return NULL;
    }
    return link->out + link->out_end + FRAME_HEADER_BYTES;
}

void link_commit(struct link *link, uint8_t type, uint32_t stream, size_t payload_bytes) {
    frame_encode_header(link->out + link->out_end, type, stream, payload_bytes);
    link->out_end += FRAME_HEADER_BYTES + payload_bytes;
}

void link_hold(struct link *link) {
    link->held = true;
    link->sendable = link->out_end - link->out_begin;
}

void link_release(struct link *link) {
    link->held = false;
}

void link_send(struct link *link, uint8_t type, uint32_t stream, const void *payload,
               size_t payload_bytes) {
    // Answers are small and reading stops at LINK_OUT_LIMIT_BYTES, far below the buffer's size.
    uint8_t *at = link_reserve(link, payload_bytes);
    if (at == NULL)
        return;
    if (payload_bytes > 0)
        memcpy(at, payload, payload_bytes);
    link_commit(link, type, stream, payload_bytes);
}

void link_send_json(struct link *link, uint8_t type, uint32_t stream,
                    const struct json_writer *writer) {
    link_send(link, type, stream, writer->text, writer->used);
}

void link_send_credit(struct link *link, uint32_t stream, uint32_t bytes) {
    uint8_t payload[4];
    write_u32le(payload, bytes);
    link_send(link, FRAME_CREDIT, stream, payload, sizeof payload);
}

void link_send_error(struct link *link, uint32_t stream, const char *code, int error_number,
                     const char *message) {
    struct json_writer writer;
    json_begin(&writer);
    json_string(&writer, "code", code);
    json_string(&writer, "errno", error_number == 0 ? NULL : strerrorname_np(error_number));
    json_string(&writer, "message", message);
    json_end(&writer);
    link_send_json(link, FRAME_ERROR, stream, &writer);
}
