#include "chunk.h"

#include <pthread.h>
#include <stdlib.h>

/* Kept are six sizes, from 32 KiB to 1 MiB and each with a bit for headers: the last holds any
 * frame. */
#define FIRST_CLASS_BITS 15u
#define CLASS_COUNT 6u
#define HEADER_ROOM_BYTES 4096u

static struct {
    pthread_mutex_t lock;
    struct chunk *kept[CLASS_COUNT];
    size_t kept_bytes;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t class_bytes(unsigned class) {
    return ((size_t)1 << (FIRST_CLASS_BITS + class)) + HEADER_ROOM_BYTES;
}

/* The smallest class that holds `capacity` bytes, or CLASS_COUNT where keeping does not pay. */
static unsigned class_of(uint32_t capacity) {
    if (capacity <= 1u << (FIRST_CLASS_BITS - 1))
        return CLASS_COUNT;
    unsigned class = 0;
    while (class < CLASS_COUNT && capacity > class_bytes(class))
        class ++;
    return class;
}

static struct chunk *take_kept(unsigned class) {
    (void)pthread_mutex_lock(&pool.lock); /* a plain mutex, never taken twice: cannot fail */
    struct chunk *chunk = pool.kept[class];
    if (chunk != NULL) {
        pool.kept[class] = chunk->next;
        pool.kept_bytes -= class_bytes(class);
    }
    (void)pthread_mutex_unlock(&pool.lock);
    return chunk;
}

struct chunk *chunk_new(uint32_t capacity) {
    if (capacity > CHUNK_MAX_BYTES)
        return NULL;
    const unsigned class = class_of(capacity);
    struct chunk *chunk = class < CLASS_COUNT ? take_kept(class) : NULL;
    if (chunk == NULL)
        chunk = malloc(sizeof *chunk + (class < CLASS_COUNT ? class_bytes(class) : capacity));
    if (chunk != NULL)
        *chunk = (struct chunk){.capacity = capacity};
    return chunk;
}

void chunk_free(struct chunk *chunk) {
    if (chunk == NULL)
        return;
    const unsigned class = class_of(chunk->capacity);
    if (class < CLASS_COUNT) {
        (void)pthread_mutex_lock(&pool.lock);
        if (pool.kept_bytes + class_bytes(class) <= CHUNK_KEPT_BYTES) {
            chunk->next = pool.kept[class];
            pool.kept[class] = chunk;
            pool.kept_bytes += class_bytes(class);
            chunk = NULL;
        }
        (void)pthread_mutex_unlock(&pool.lock);
    }
    free(chunk);
}

void chunk_trim(void) {
    for (unsigned class = 0; class < CLASS_COUNT; class ++)
        for (struct chunk *chunk = take_kept(class); chunk != NULL; chunk = take_kept(class))
            free(chunk);
}
