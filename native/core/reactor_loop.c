#include "reactor_state.h"

#include <stdlib.h>

#define EVENTS_PER_TURN 64
#define READS_PER_TURN 8
/* Kept memory goes back to the system when nothing moved for this long */
#define TRIM_AFTER_MS 2000

/* I/O thread, locked: starts, retries, times out, and frees abandoned connections. */
static void care_for(struct reactor *reactor, struct conn *conn, int64_t now_ms) {
    if (conn->is_abandoned) {
        reactor_discard(reactor, conn);
        return;
    }
    if (conn->failure != 0)
        conn_end(conn,
                 conn->state == CONN_OPEN ? CONN_END_CONNECTION_LOST : CONN_END_CONNECT_FAILED,
                 conn->failure, 0);
    const bool is_attempt = conn->state == CONN_CONNECTING || conn->state == CONN_SHAKING;
    if (is_attempt && now_ms >= conn->deadline_ms)
        conn_end(conn, CONN_END_HANDSHAKE_TIMEOUT, 0, 0);
    else if (conn->retry_ms != 0 && now_ms >= conn->retry_ms)
        conn_start(conn, now_ms);
    if (conn->state == CONN_CONNECTING || conn->state == CONN_SHAKING) {
        const int64_t due_ms = conn->retry_ms != 0 && conn->retry_ms < conn->deadline_ms
                                   ? conn->retry_ms
                                   : conn->deadline_ms;
        if (due_ms < reactor->next_due_ms)
            reactor->next_due_ms = due_ms;
    }
    reactor_settle(reactor, conn);
}

static void care_for_all(struct reactor *reactor) {
    const int64_t now_ms = reactor_clock_ms();
    if (!reactor->needs_care && now_ms < reactor->next_due_ms)
        return;
    reactor->needs_care = false;
    reactor->next_due_ms = INT64_MAX;
    for (uint32_t slot = 0; slot < reactor->slots_used; slot++)
        if (reactor->slots[slot] != NULL)
            care_for(reactor, reactor->slots[slot], now_ms);
}

/* I/O thread, not locked. While it is not locked nobody else frees or ends the connection. */
static void serve(struct reactor *reactor, struct poller_event event) {
    reactor_lock(reactor);
    struct conn *conn = reactor_find(reactor, event.tag);
    if (conn != NULL && conn->state != CONN_ENDED && (event.ready & POLLER_WRITE) != 0 &&
        (conn->watched & POLLER_WRITE) != 0)
        conn_on_writable(conn);
    bool reads = conn != NULL && conn->state != CONN_ENDED &&
                 (event.ready & conn->watched & POLLER_READ) != 0;
    if (conn != NULL)
        reactor_settle(reactor, conn);
    reactor_unlock(reactor);
    /* Several reads to one report, as long as there is more: waking the other thread costs more. */
    for (int read = 0; reads && read < READS_PER_TURN; read++) {
        bool is_emptied = false;
        const long result = conn_read(conn, reactor->scratch, &is_emptied);
        reactor_lock(reactor);
        if (!conn->is_abandoned)
            conn_digest(conn, reactor->scratch, result);
        reads = !is_emptied && !conn->is_abandoned && (conn->watched & POLLER_READ) != 0 &&
                conn->state == CONN_OPEN && read + 1 < READS_PER_TURN;
        if (!reads)
            reactor_settle(reactor, conn);
        reactor_unlock(reactor);
    }
}

static int wait_ms(const struct reactor *reactor) {
    if (reactor->needs_care)
        return 0;
    if (reactor->next_due_ms == INT64_MAX)
        return -1;
    const int64_t left_ms = reactor->next_due_ms - reactor_clock_ms();
    return left_ms < 0 ? 0 : left_ms > INT32_MAX ? INT32_MAX : (int)left_ms;
}

void *reactor_run(void *argument) {
    struct reactor *reactor = argument;
    struct poller_event events[EVENTS_PER_TURN];
    bool has_moved = false;
    for (;;) {
        reactor_lock(reactor);
        care_for_all(reactor);
        const bool is_stopping = reactor->is_stopping;
        const int due_ms = wait_ms(reactor);
        reactor_unlock(reactor);
        if (is_stopping)
            return NULL;
        const bool trims = has_moved && (due_ms < 0 || due_ms > TRIM_AFTER_MS);
        const int64_t trim_ms = reactor_clock_ms() + TRIM_AFTER_MS;
        const int count =
            poller_wait(&reactor->poller, events, EVENTS_PER_TURN, trims ? TRIM_AFTER_MS : due_ms);
        if (count < 0)
            abort(); /* only a bug of ours makes waiting fail */
        const bool is_idle = trims && count == 0 && reactor_clock_ms() >= trim_ms;
        if (is_idle)
            chunk_trim();
        has_moved = count > 0 || (has_moved && !is_idle);
        for (int at = 0; at < count; at++)
            serve(reactor, events[at]);
    }
}
