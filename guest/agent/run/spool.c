#include "spool.h"
#include "../console.h"
#include "../file/path.h"
#include "free-memory.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    QUOTA_BYTES = 64 << 20,
    FREE_MEMORY_SHARE = 4,
    ASK_EACH_BYTES = 1 << 20,
    MAX_FILES = 512,
    SPOOL_PATH_BYTES = 256,
};

struct spool {
    char path[SPOOL_PATH_BYTES];
    int fd; // -1 when closed
    uint64_t bytes;
    bool complete, finished, evicted;
    struct spool *next; // younger
};

static const char *root = "/run/ignition/runs";
static struct spool *oldest;
static uint64_t total_bytes;
static size_t file_count;

void spool_set_root(const char *directory) {
    root = directory;
}

static uint64_t quota_bytes = QUOTA_BYTES;

void spool_set_quota(uint64_t bytes) {
    quota_bytes = bytes;
}

// The answer takes the kernel as long as writing many bytes: it holds until some more were written,
// or a file begins.
static uint64_t memory_share, asked_at_bytes;

static void ask_memory(void) {
    memory_share = free_memory_bytes() / FREE_MEMORY_SHARE;
    asked_at_bytes = total_bytes;
}

static uint64_t quota(void) {
    if (total_bytes < asked_at_bytes || total_bytes - asked_at_bytes >= ASK_EACH_BYTES)
        ask_memory();
    return memory_share < quota_bytes ? memory_share : quota_bytes;
}

static void unlist(struct spool *spool) {
    for (struct spool **at = &oldest; *at != NULL; at = &(*at)->next) {
        if (*at == spool) {
            *at = spool->next;
            break;
        }
    }
    total_bytes -= spool->bytes;
    file_count--;
}

// Removes the file; its writer, if there still is one, learns it by `evicted`.
static void evict(struct spool *spool) {
    char directory[SPOOL_PATH_BYTES];
    if (unlink(spool->path) != 0 && errno != ENOENT)
        console_error("a spool file could not be removed");
    memcpy(directory, spool->path, sizeof directory);
    // Fails while the run's other stream has its file there.
    rmdir(dirname(directory));
    unlist(spool);
    if (spool->fd < 0) {
        free(spool);
        return;
    }
    close(spool->fd);
    spool->fd = -1;
    spool->evicted = true;
    spool->complete = false;
}

static bool evict_oldest_finished(const struct spool *except) {
    for (struct spool *spool = oldest; spool != NULL; spool = spool->next) {
        if (spool->finished && spool != except) {
            evict(spool);
            return true;
        }
    }
    return false;
}

struct spool *spool_create(uint64_t run, const char *name) {
    if (file_count >= MAX_FILES && !evict_oldest_finished(NULL))
        return NULL;
    struct spool *spool = calloc(1, sizeof *spool);
    if (spool == NULL)
        return NULL;
    snprintf(spool->path, sizeof spool->path, "%s/%llu/%s", root, (unsigned long long)run, name);
    if (!path_make_parents(spool->path) ||
        (spool->fd = open(spool->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) < 0) {
        console_error("a spool file could not be created");
        free(spool);
        return NULL;
    }
    ask_memory();
    spool->complete = true;
    struct spool **end = &oldest;
    while (*end != NULL)
        end = &(*end)->next;
    *end = spool;
    file_count++;
    return spool;
}

void spool_write(struct spool *spool, const uint8_t *bytes, size_t length) {
    if (!spool->complete)
        return;
    uint64_t limit = quota();
    while (total_bytes + length > limit && evict_oldest_finished(spool))
        ;
    if (total_bytes + length > limit)
        spool->complete = false;
    while (spool->complete && length > 0) {
        ssize_t count = write(spool->fd, bytes, length);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0) {
            spool->complete = false;
            break;
        }
        bytes += count;
        length -= (size_t)count;
        spool->bytes += (uint64_t)count;
        total_bytes += (uint64_t)count;
    }
}

const char *spool_path(const struct spool *spool) {
    return spool->evicted ? NULL : spool->path;
}

bool spool_is_complete(const struct spool *spool) {
    return spool->complete;
}

void spool_finish(struct spool *spool) {
    spool->finished = true;
}

void spool_close(struct spool *spool) {
    if (spool->evicted) {
        free(spool);
        return;
    }
    close(spool->fd);
    spool->fd = -1;
    spool->finished = true;
}

void spool_discard(struct spool *spool) {
    bool listed = !spool->evicted;
    spool_close(spool);
    if (listed)
        evict(spool);
}
