#pragma once
#include "chunk.h"

#include <stddef.h>
#include <sys/uio.h>

/* Bytes the kernel did not take yet, in order. Bounded by the sender, who is told how many there
 * are. */

struct outbox {
    struct chunk *first, *last;
    /* How much of the first chunk is sent */
    size_t sent;
    /* All that is not */
    size_t size;
};

/*
 * Sends what `parts` hold, at most two of 4 MiB each, and keeps a copy of what the kernel does not
 * take. Returns 0, or a negative errno after which the stream is broken and the outbox empty.
 */
int outbox_send(struct outbox *box, int fd, const struct iovec *parts, int part_count);

/* Sends queued bytes as far as the kernel takes them. Returns as outbox_send does. */
int outbox_flush(struct outbox *box, int fd);

void outbox_clear(struct outbox *box);
