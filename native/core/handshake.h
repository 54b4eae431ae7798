#pragma once
#include <stddef.h>
#include <stdint.h>

/* Reads the peer's answer to CONNECT from pieces of any size. Rules: docs/wire/handshake.md. */

#define HANDSHAKE_LINE_BYTES 128u

enum handshake_state {
    HANDSHAKE_MORE,
    HANDSHAKE_OK,
    HANDSHAKE_OVERSIZED,
    HANDSHAKE_REJECTED,
};

struct handshake {
    uint8_t line[HANDSHAKE_LINE_BYTES];
    size_t used;
    /* The number of an `OK` line, which means nothing to us */
    uint32_t number;
};

/* Room for `CONNECT <u32>\n` and a NUL */
#define HANDSHAKE_REQUEST_BYTES 24u

/* Writes the request line for `port` and returns its length without the NUL. */
size_t handshake_request(char request[HANDSHAKE_REQUEST_BYTES], uint32_t port);

/*
 * Takes `size` bytes. `*taken` is how many belong to the line; after HANDSHAKE_OK the others are
 * the start of the first frame. Not to be called again after anything but HANDSHAKE_MORE.
 */
enum handshake_state handshake_push(struct handshake *shake, const uint8_t *bytes, size_t size,
                                    size_t *taken);
