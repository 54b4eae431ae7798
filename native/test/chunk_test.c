#include "check.h"
#include "chunk.h"

#include <stddef.h>
#include <string.h>

static bool reuses_what_was_freed(void) {
    chunk_trim();
    struct chunk *first = chunk_new(65536);
    CHECK(first != NULL && first->capacity == 65536 && first->used == 0);
    memset(first->bytes, 1, first->capacity);
    first->used = 10;
    chunk_free(first);
    struct chunk *second = chunk_new(66000);
    CHECK(second == first && second->capacity == 66000 && second->used == 0);
    memset(second->bytes, 2, second->capacity);
    chunk_free(second);
    chunk_trim();
    return true;
}

static bool holds_every_size(void) {
    for (uint32_t size = 0; size <= CHUNK_MAX_BYTES; size = size * 2 + 1) {
        struct chunk *chunk = chunk_new(size);
        CHECK(chunk != NULL && chunk->capacity == size);
        memset(chunk->bytes, 3, size);
        chunk_free(chunk);
    }
    CHECK(chunk_new(CHUNK_MAX_BYTES + 1) == NULL);
    chunk_free(NULL);
    chunk_trim();
    return true;
}

static bool keeps_no_more_than_its_bound(void) {
    struct chunk *chunks[64], *again[64];
    for (size_t at = 0; at < 64; at++) {
        chunks[at] = chunk_new(1048576);
        CHECK(chunks[at] != NULL);
    }
    for (size_t at = 0; at < 64; at++)
        chunk_free(chunks[at]);
    /* What was freed last within the bound comes back first; the rest went to the system. */
    const size_t kept = CHUNK_KEPT_BYTES / (1048576 + 4096);
    for (size_t at = 0; at < kept; at++) {
        again[at] = chunk_new(1048576);
        CHECK(again[at] == chunks[kept - 1 - at]);
    }
    for (size_t at = 0; at < kept; at++)
        chunk_free(again[at]);
    chunk_trim();
    return true;
}

const struct test chunk_tests[] = {
    {"chunk: reuses what was freed", reuses_what_was_freed},
    {"chunk: holds every size", holds_every_size},
    {"chunk: keeps no more than its bound", keeps_no_more_than_its_bound},
    {0},
};
