#include "handshake.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

size_t handshake_request(char request[HANDSHAKE_REQUEST_BYTES], uint32_t port) {
    int length = snprintf(request, HANDSHAKE_REQUEST_BYTES, "CONNECT %" PRIu32 "\n", port);
    return (size_t)length; /* 10 to 19: always fits */
}

/* `OK ` and one to ten digits that make a u32, newline already cut off. */
static enum handshake_state judge(struct handshake *shake) {
    static const char prefix[] = "OK ";
    const size_t prefix_size = sizeof prefix - 1, digits = shake->used - prefix_size;
    if (shake->used <= prefix_size || digits > 10 || memcmp(shake->line, prefix, prefix_size) != 0)
        return HANDSHAKE_REJECTED;
    uint64_t number = 0;
    for (size_t at = prefix_size; at < shake->used; at++) {
        if (shake->line[at] < '0' || shake->line[at] > '9')
            return HANDSHAKE_REJECTED;
        number = number * 10 + (uint64_t)(shake->line[at] - '0');
    }
    if (number > UINT32_MAX)
        return HANDSHAKE_REJECTED;
    shake->number = (uint32_t)number;
    return HANDSHAKE_OK;
}

enum handshake_state handshake_push(struct handshake *shake, const uint8_t *bytes, size_t size,
                                    size_t *taken) {
    for (size_t at = 0; at < size; at++) {
        *taken = at + 1;
        if (bytes[at] == '\n')
            return judge(shake);
        shake->line[shake->used++] = bytes[at];
        if (shake->used == HANDSHAKE_LINE_BYTES)
            return HANDSHAKE_OVERSIZED;
    }
    *taken = size;
    return HANDSHAKE_MORE;
}
