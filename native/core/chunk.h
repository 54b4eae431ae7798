#pragma once
#include <stddef.h>
#include <stdint.h>

/*
 * Memory for payloads. Freed chunks are kept for the next ones: fresh memory costs a page fault per
 * 4 KiB, more than receiving into it. Every function may be called from any thread.
 */
struct chunk {
    struct chunk *next;
    uint32_t capacity;
    uint32_t used;
    uint8_t bytes[];
};

#define CHUNK_MAX_BYTES 8388608u
/* What is kept at most */
#define CHUNK_KEPT_BYTES ((size_t)32 * 1048576)

/* A chunk with room for `capacity` bytes, at most CHUNK_MAX_BYTES; NULL without memory. */
struct chunk *chunk_new(uint32_t capacity);

/* Does nothing for NULL. */
void chunk_free(struct chunk *chunk);

/* Returns what is kept to the system. */
void chunk_trim(void);
