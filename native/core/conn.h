#pragma once
#include "frame_codec.h"
#include "handshake.h"
#include "outbox.h"
#include "poller.h"
#include "reactor.h"
#include "unix_socket.h"

/*
 * One connection: connecting -> shaking -> open -> ended, any of them -> ended.
 * Everything is guarded by the reactor's lock, except that the I/O thread reads from the socket
 * into `decoder.partial` without it: only that thread changes `fd`, `decoder` and `state`.
 */
enum conn_state { CONN_CONNECTING, CONN_SHAKING, CONN_OPEN, CONN_ENDED };

struct conn {
    uint32_t id;
    enum conn_state state;
    int fd;
    struct poller *poller;
    /* What the poller watches: POLLER_READ, POLLER_WRITE */
    unsigned watched;
    struct sockaddr_un address;
    uint32_t port;
    /* CLOCK_MONOTONIC; the attempt ends at `deadline_ms`, and is tried again at `retry_ms` when not
     * 0 */
    int64_t deadline_ms, retry_ms;
    struct handshake shake;
    struct frame_decoder decoder;
    struct frame_batch inbox;
    struct outbox outbox;
    uint32_t high_water;
    bool is_paused;
    /* Above the high-water mark, until below half of it */
    bool is_full;
    bool owes_drain;
    /* The caller closed it: the I/O thread frees it */
    bool is_abandoned;
    /* Watching or sending failed on the caller's thread: the I/O thread ends it with this errno */
    int failure;
    /* In the reactor's list of connections with something to report */
    bool is_listed;
    struct conn *next_listed;
    bool reports_opened, reports_drained;
    enum conn_end end;
    uint32_t end_errno, end_detail;
};

#define CONN_SCRATCH_BYTES 65536u

/* I/O thread, locked: makes the socket and tries to connect. */
void conn_start(struct conn *conn, int64_t now_ms);

/* I/O thread, not locked: reads once. Returns bytes read, 0 at the end of the stream, or a negative
 * errno. `*is_emptied`: it was less than asked for, so nothing is likely to be left. */
long conn_read(struct conn *conn, uint8_t scratch[CONN_SCRATCH_BYTES], bool *is_emptied);

/* I/O thread, locked: digests what conn_read returned. */
void conn_digest(struct conn *conn, const uint8_t *scratch, long result);

/* I/O thread, locked: the socket is writable, or the attempt to connect is decided. */
void conn_on_writable(struct conn *conn);

/* Locked: watches what the state asks for. */
void conn_watch(struct conn *conn);

/* Locked, any thread: see reactor_send. */
void conn_send(struct conn *conn, const struct iovec *parts, int part_count);

/* I/O thread, locked: closes the socket. The first end wins. */
void conn_end(struct conn *conn, enum conn_end end, int error, uint32_t detail);

/* Locked: whether there is something to take now. */
bool conn_has_report(const struct conn *conn);

/* Locked: moves what there is to take into `report`. */
void conn_take(struct conn *conn, struct conn_report *report);

/* Locked: frees an ended connection's memory, or closes and frees a live one (I/O thread only). */
void conn_free(struct conn *conn);
