#include "outbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

#define PARTS_PER_SEND 16

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* macOS: the socket has SO_NOSIGPIPE instead */
#endif

struct outbox_block {
    struct outbox_block *next;
    size_t size, sent;
    unsigned char bytes[];
};

/* Returns the bytes sent, 0 when the kernel takes none now, or a negative errno. */
static ssize_t send_parts(int fd, struct iovec *parts, int part_count) {
    for (;;) {
        struct msghdr message = {.msg_iov = parts};
        message.msg_iovlen = (__typeof__(message.msg_iovlen))part_count;
        const ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0)
            return sent;
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return 0;
        if (errno != EINTR)
            return -errno;
    }
}

/* Queues what `parts` hold behind their first `skipped` bytes, as one block. */
static int queue_rest(struct outbox *box, const struct iovec *parts, int part_count,
                      size_t skipped) {
    size_t total = 0;
    for (int at = 0; at < part_count; at++)
        total += parts[at].iov_len;
    if (total == skipped)
        return 0;
    struct outbox_block *block = malloc(sizeof *block + (total - skipped));
    if (block == NULL)
        return -ENOMEM;
    *block = (struct outbox_block){.size = total - skipped};
    size_t used = 0;
    for (int at = 0; at < part_count; at++) {
        const size_t skip = skipped < parts[at].iov_len ? skipped : parts[at].iov_len;
        const size_t size = parts[at].iov_len - skip;
        skipped -= skip;
        if (size > 0)
            memcpy(block->bytes + used, (const unsigned char *)parts[at].iov_base + skip, size);
        used += size;
    }
    if (box->last == NULL)
        box->first = block;
    else
        box->last->next = block;
    box->last = block;
    box->size += block->size;
    return 0;
}

int outbox_send(struct outbox *box, int fd, const struct iovec *parts, int part_count) {
    struct iovec sending[2] = {parts[0], part_count > 1 ? parts[1] : (struct iovec){0}};
    const ssize_t sent = box->size > 0 ? 0 : send_parts(fd, sending, part_count);
    const int error = sent < 0 ? (int)sent : queue_rest(box, parts, part_count, (size_t)sent);
    if (error != 0)
        outbox_clear(box);
    return error;
}

static void drop_sent(struct outbox *box, size_t sent) {
    box->size -= sent;
    while (sent > 0) {
        struct outbox_block *block = box->first;
        const size_t rest = block->size - block->sent;
        if (sent < rest) {
            block->sent += sent;
            return;
        }
        sent -= rest;
        box->first = block->next;
        free(block);
    }
    if (box->first == NULL)
        box->last = NULL;
}

int outbox_flush(struct outbox *box, int fd) {
    while (box->size > 0) {
        struct iovec parts[PARTS_PER_SEND];
        int part_count = 0;
        for (struct outbox_block *block = box->first; block != NULL && part_count < PARTS_PER_SEND;
             block = block->next)
            parts[part_count++] = (struct iovec){.iov_base = block->bytes + block->sent,
                                                 .iov_len = block->size - block->sent};
        const ssize_t sent = send_parts(fd, parts, part_count);
        if (sent < 0) {
            outbox_clear(box);
            return (int)sent;
        }
        if (sent == 0)
            return 0;
        drop_sent(box, (size_t)sent);
    }
    return 0;
}

void outbox_clear(struct outbox *box) {
    while (box->first != NULL) {
        struct outbox_block *next = box->first->next;
        free(box->first);
        box->first = next;
    }
    *box = (struct outbox){0};
}
