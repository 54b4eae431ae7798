#pragma once
#include "frame_batch.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * All connections of a process on one I/O thread. The caller's thread connects, sends and takes
 * reports; `notify` tells it, once, that there is something to take. Every function may be called
 * from any thread but only from one at a time.
 */
struct reactor;

#define REACTOR_MAX_CONNECTIONS 4096u
/* Queued bytes above which a sender is to wait for `drained` */
#define REACTOR_SEND_HIGH_WATER_BYTES ((size_t)4 * 1048576)

enum conn_end {
    CONN_END_NONE,
    CONN_END_CONNECT_FAILED,
    CONN_END_HANDSHAKE_TIMEOUT,
    CONN_END_HANDSHAKE_CLOSED,
    CONN_END_HANDSHAKE_OVERSIZED,
    CONN_END_HANDSHAKE_REJECTED,
    CONN_END_PEER_REFUSED,
    CONN_END_FRAME_INVALID,
    CONN_END_CONNECTION_LOST,
};

/* What happened to one connection since its last report, in this order. */
struct conn_report {
    uint32_t id;
    /* The handshake succeeded */
    bool opened;
    /* All bytes of a send that went above the high-water mark left for the kernel */
    bool drained;
    /* The receiver of the report owns the batch */
    struct frame_batch frames;
    /* Not CONN_END_NONE: the last report, and the id is free */
    enum conn_end end;
    /* errno behind the end, or 0 */
    uint32_t end_errno;
    /* CONN_END_FRAME_INVALID: the length. CONN_END_CONNECTION_LOST: 1 inside a frame, else 0 */
    uint32_t end_detail;
};

/* Starts the thread. `notify` is called on either thread and must not call back. NULL sets
 * `*error`. */
struct reactor *reactor_start(void (*notify)(void *context), void *context, int *error);

/* Ends all connections without reports, joins the thread, frees everything. */
void reactor_stop(struct reactor *reactor);

/*
 * Connects to `path` and shakes hands within `deadline_ms`. Delivery is paused at first. Reading
 * stops while more than `high_water` bytes wait to be taken. Returns the connection's id, or 0 and
 * `*error`.
 */
uint32_t reactor_connect(struct reactor *reactor, const char *path, uint32_t port,
                         uint32_t deadline_ms, uint32_t high_water, int *error);

/* Sends both parts, `payload` may be empty. Returns the bytes now queued, or -ENOTCONN. */
int64_t reactor_send(struct reactor *reactor, uint32_t id, const void *head, size_t head_size,
                     const void *payload, size_t payload_size);

/* Bytes queued, 0 for an unknown id. */
int64_t reactor_pending(struct reactor *reactor, uint32_t id);

/* While paused, frames and the end of an open connection are not reported. */
void reactor_set_paused(struct reactor *reactor, uint32_t id, bool paused);

/* Ends the connection at once, or the attempt; no report follows. Returns false for an unknown id.
 */
bool reactor_close(struct reactor *reactor, uint32_t id);

/* Takes at most `capacity` reports; if there are more, `notify` is called again. */
size_t reactor_take(struct reactor *reactor, struct conn_report *reports, size_t capacity);
