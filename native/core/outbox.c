#include "outbox.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

#define PARTS_PER_SEND 16

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* macOS: the socket has SO_NOSIGPIPE instead */
#endif

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
    struct chunk *block =
        total - skipped > CHUNK_MAX_BYTES ? NULL : chunk_new((uint32_t)(total - skipped));
    if (block == NULL)
        return -ENOMEM;
    for (int at = 0; at < part_count; at++) {
        const size_t skip = skipped < parts[at].iov_len ? skipped : parts[at].iov_len;
        const size_t size = parts[at].iov_len - skip;
        skipped -= skip;
        if (size > 0)
            memcpy(block->bytes + block->used, (const uint8_t *)parts[at].iov_base + skip, size);
        block->used += (uint32_t)size;
    }
    if (box->last == NULL)
        box->first = block;
    else
        box->last->next = block;
    box->last = block;
    box->size += block->used;
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
    box->sent += sent;
    while (box->first != NULL && box->sent >= box->first->used) {
        struct chunk *next = box->first->next;
        box->sent -= box->first->used;
        chunk_free(box->first);
        box->first = next;
    }
    if (box->first == NULL)
        box->last = NULL;
}

int outbox_flush(struct outbox *box, int fd) {
    while (box->size > 0) {
        struct iovec parts[PARTS_PER_SEND];
        int part_count = 0;
        size_t skip = box->sent;
        for (struct chunk *block = box->first; block != NULL && part_count < PARTS_PER_SEND;
             block = block->next) {
            parts[part_count++] =
                (struct iovec){.iov_base = block->bytes + skip, .iov_len = block->used - skip};
            skip = 0;
        }
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
        struct chunk *next = box->first->next;
        chunk_free(box->first);
        box->first = next;
    }
    *box = (struct outbox){0};
}
