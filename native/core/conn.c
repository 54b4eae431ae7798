#include "conn.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* Behind a partial payload at least this large only little is read ahead, because the next frame
 * is likely as large and shall be read in place too. */
#define DIRECT_READ_BYTES 16384u
#define READ_AHEAD_BYTES 4096u
#define BACKLOG_RETRY_MS 5

static void shake_hands(struct conn *conn) {
    if (!unix_peer_is_trusted(conn->fd)) {
        conn_end(conn, CONN_END_PEER_REFUSED, 0, 0);
        return;
    }
    char request[HANDSHAKE_REQUEST_BYTES];
    const struct iovec part = {.iov_base = request,
                               .iov_len = handshake_request(request, conn->port)};
    conn->state = CONN_SHAKING;
    conn->retry_ms = 0;
    conn_send(conn, &part, 1);
}

void conn_start(struct conn *conn, int64_t now_ms) {
    if (conn->fd < 0) {
        const int fd = unix_socket();
        if (fd < 0) {
            conn_end(conn, CONN_END_CONNECT_FAILED, -fd, 0);
            return;
        }
        conn->fd = fd;
    }
    const int error = unix_connect(conn->fd, &conn->address);
    conn->retry_ms = error == -EAGAIN ? now_ms + BACKLOG_RETRY_MS : 0;
    if (error == 0)
        shake_hands(conn);
    else if (error == -EINPROGRESS)
        conn_watch(conn);
    else if (error != -EAGAIN)
        conn_end(conn, CONN_END_CONNECT_FAILED, -error, 0);
}

long conn_read(struct conn *conn, uint8_t scratch[CONN_SCRATCH_BYTES], bool *is_emptied) {
    size_t room = 0;
    uint8_t *target = frame_decoder_target(&conn->decoder, &room);
    const struct chunk *partial = conn->decoder.partial;
    const bool is_direct = partial != NULL && partial->capacity >= DIRECT_READ_BYTES;
    struct iovec parts[2] = {
        {.iov_base = target, .iov_len = room},
        {.iov_base = scratch, .iov_len = is_direct ? READ_AHEAD_BYTES : CONN_SCRATCH_BYTES},
    };
    const ssize_t got = room > 0 ? readv(conn->fd, parts, 2) : readv(conn->fd, parts + 1, 1);
    *is_emptied = got < (ssize_t)(room + parts[1].iov_len);
    return got < 0 ? -errno : (long)got;
}

static void lose(struct conn *conn, int error) {
    const uint32_t is_mid_frame = frame_decoder_is_mid_frame(&conn->decoder) ? 1 : 0;
    const bool is_open = conn->state == CONN_OPEN;
    conn_end(conn, is_open ? CONN_END_CONNECTION_LOST : CONN_END_HANDSHAKE_CLOSED, error,
             is_mid_frame);
}

/* Decodes what was read: first into the partial payload, then from the scratch. */
static void digest_frames(struct conn *conn, const uint8_t *scratch, size_t size) {
    size_t room = 0;
    (void)frame_decoder_target(&conn->decoder, &room);
    const size_t in_place = size < room ? size : room;
    int error = frame_decoder_filled(&conn->decoder, &conn->inbox, in_place);
    if (error == 0)
        error = frame_decoder_push(&conn->decoder, &conn->inbox, scratch, size - in_place);
    if (error == -EBADMSG)
        conn_end(conn, CONN_END_FRAME_INVALID, 0, conn->decoder.invalid_length);
    else if (error != 0)
        conn_end(conn, CONN_END_CONNECTION_LOST, -error, 0);
    else
        conn_watch(conn);
}

static void digest_answer(struct conn *conn, const uint8_t *scratch, size_t size) {
    size_t taken = 0;
    switch (handshake_push(&conn->shake, scratch, size, &taken)) {
    case HANDSHAKE_MORE:
        return;
    case HANDSHAKE_OVERSIZED:
        conn_end(conn, CONN_END_HANDSHAKE_OVERSIZED, 0, 0);
        return;
    case HANDSHAKE_REJECTED:
        conn_end(conn, CONN_END_HANDSHAKE_REJECTED, 0, 0);
        return;
    case HANDSHAKE_OK:
        conn->state = CONN_OPEN;
        conn->reports_opened = true;
        digest_frames(conn, scratch + taken, size - taken);
        return;
    }
}

void conn_digest(struct conn *conn, const uint8_t *scratch, long result) {
    if (result == -EAGAIN || result == -EINTR)
        return;
    if (result <= 0)
        lose(conn, (int)-result);
    else if (conn->state == CONN_SHAKING)
        digest_answer(conn, scratch, (size_t)result);
    else
        digest_frames(conn, scratch, (size_t)result);
}

/* After a send: a broken stream is not the end yet, what the peer sent before it is still to be
 * read. */
static void after_send(struct conn *conn, int error) {
    if (error == -ENOMEM)
        conn->failure = ENOMEM;
    if (conn->outbox.size > REACTOR_SEND_HIGH_WATER_BYTES)
        conn->owes_drain = true;
    if (conn->outbox.size == 0 && conn->owes_drain) {
        conn->owes_drain = false;
        conn->reports_drained = true;
    }
    conn_watch(conn);
}

void conn_send(struct conn *conn, const struct iovec *parts, int part_count) {
    after_send(conn, outbox_send(&conn->outbox, conn->fd, parts, part_count));
}

void conn_on_writable(struct conn *conn) {
    if (conn->state != CONN_CONNECTING) {
        after_send(conn, outbox_flush(&conn->outbox, conn->fd));
        return;
    }
    const int error = unix_connect_result(conn->fd);
    if (error == 0)
        shake_hands(conn);
    else
        conn_end(conn, CONN_END_CONNECT_FAILED, -error, 0);
}

void conn_watch(struct conn *conn) {
    if (conn->state == CONN_ENDED || conn->fd < 0)
        return;
    if (conn->inbox.weight >= conn->high_water)
        conn->is_full = true;
    else if (conn->inbox.weight < conn->high_water / 2)
        conn->is_full = false;
    unsigned wanted = 0;
    if (conn->state == CONN_CONNECTING || conn->outbox.size > 0)
        wanted |= POLLER_WRITE;
    if (conn->state != CONN_CONNECTING && !conn->is_full)
        wanted |= POLLER_READ;
    const int error = poller_set(conn->poller, conn->fd, conn->id, conn->watched, wanted);
    if (error != 0)
        conn->failure = -error;
    else
        conn->watched = wanted;
}

void conn_end(struct conn *conn, enum conn_end end, int error, uint32_t detail) {
    if (conn->state == CONN_ENDED)
        return;
    conn->state = CONN_ENDED;
    conn->end = end;
    conn->end_errno = (uint32_t)error;
    conn->end_detail = detail;
    conn->retry_ms = 0;
    if (conn->fd >= 0) {
        /* Closing would do on Linux; saying so first keeps the poller's books straight everywhere.
         */
        (void)poller_set(conn->poller, conn->fd, conn->id, conn->watched, 0);
        close(conn->fd);
        conn->fd = -1;
    }
    outbox_clear(&conn->outbox);
    frame_decoder_clear(&conn->decoder);
}

/* An attempt that fails is reported at once; what an open connection brings waits while it is
 * paused. */
static bool delivers(const struct conn *conn) {
    const bool was_open = conn->state == CONN_OPEN || conn->end >= CONN_END_FRAME_INVALID;
    return !(conn->is_paused && was_open);
}

bool conn_has_report(const struct conn *conn) {
    if (conn->is_abandoned)
        return false;
    if (conn->reports_opened || conn->reports_drained)
        return true;
    return delivers(conn) && (conn->inbox.frame_count > 0 || conn->state == CONN_ENDED);
}

void conn_take(struct conn *conn, struct conn_report *report) {
    *report = (struct conn_report){
        .id = conn->id,
        .opened = conn->reports_opened,
        .drained = conn->reports_drained,
    };
    conn->reports_opened = false;
    conn->reports_drained = false;
    if (!delivers(conn))
        return;
    report->frames = conn->inbox;
    conn->inbox = (struct frame_batch){0};
    report->end = conn->end;
    report->end_errno = conn->end_errno;
    report->end_detail = conn->end_detail;
    conn_watch(conn);
}

void conn_free(struct conn *conn) {
    conn_end(conn, CONN_END_CONNECTION_LOST, 0, 0);
    frame_batch_clear(&conn->inbox);
    free(conn);
}
