#include "reactor_state.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

int64_t reactor_clock_ms(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void reactor_lock(struct reactor *reactor) {
    (void)pthread_mutex_lock(&reactor->lock); /* a plain mutex, never taken twice: cannot fail */
}

void reactor_unlock(struct reactor *reactor) {
    const bool must_notify = reactor->must_notify;
    reactor->must_notify = false;
    (void)pthread_mutex_unlock(&reactor->lock);
    if (must_notify)
        reactor->notify(reactor->context);
}

struct conn *reactor_find(struct reactor *reactor, uint32_t id) {
    struct conn *conn = reactor->slots[id & REACTOR_SLOT_MASK];
    return conn != NULL && conn->id == id && !conn->is_abandoned ? conn : NULL;
}

void reactor_settle(struct reactor *reactor, struct conn *conn) {
    if (conn->failure != 0 && conn->state != CONN_ENDED && !reactor->needs_care) {
        reactor->needs_care = true;
        poller_wake(&reactor->poller);
    }
    if (conn->is_listed || !conn_has_report(conn))
        return;
    conn->is_listed = true;
    conn->next_listed = NULL;
    if (reactor->first_listed == NULL)
        reactor->first_listed = conn;
    else
        reactor->last_listed->next_listed = conn;
    reactor->last_listed = conn;
    if (!reactor->is_notified)
        reactor->is_notified = reactor->must_notify = true;
}

static void unlist(struct reactor *reactor, struct conn *conn) {
    if (!conn->is_listed)
        return;
    struct conn *before = NULL;
    for (struct conn *at = reactor->first_listed; at != conn; at = at->next_listed)
        before = at;
    if (before == NULL)
        reactor->first_listed = conn->next_listed;
    else
        before->next_listed = conn->next_listed;
    if (reactor->last_listed == conn)
        reactor->last_listed = before;
    conn->is_listed = false;
}

void reactor_discard(struct reactor *reactor, struct conn *conn) {
    unlist(reactor, conn);
    reactor->slots[conn->id & REACTOR_SLOT_MASK] = NULL;
    conn_free(conn);
}

/* Signals are for the process's other threads. */
static int start_thread(struct reactor *reactor) {
    sigset_t all, before;
    (void)sigfillset(&all);
    int error = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (error != 0)
        return error;
    error = pthread_create(&reactor->thread, NULL, reactor_run, reactor);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

struct reactor *reactor_start(void (*notify)(void *context), void *context, int *error) {
    struct reactor *reactor = calloc(1, sizeof *reactor);
    *error = ENOMEM;
    if (reactor == NULL)
        return NULL;
    reactor->notify = notify;
    reactor->context = context;
    reactor->next_due_ms = INT64_MAX;
    *error = -poller_open(&reactor->poller);
    if (*error != 0) {
        free(reactor);
        return NULL;
    }
    *error = pthread_mutex_init(&reactor->lock, NULL);
    if (*error == 0) {
        *error = start_thread(reactor);
        if (*error == 0)
            return reactor;
        (void)pthread_mutex_destroy(&reactor->lock);
    }
    poller_close(&reactor->poller);
    free(reactor);
    return NULL;
}

void reactor_stop(struct reactor *reactor) {
    reactor_lock(reactor);
    reactor->is_stopping = true;
    reactor_unlock(reactor);
    poller_wake(&reactor->poller);
    (void)pthread_join(reactor->thread, NULL);
    for (uint32_t slot = 0; slot < reactor->slots_used; slot++)
        if (reactor->slots[slot] != NULL)
            conn_free(reactor->slots[slot]);
    (void)pthread_mutex_destroy(&reactor->lock);
    poller_close(&reactor->poller);
    free(reactor);
}

/* Locked: a free slot, or REACTOR_MAX_CONNECTIONS. */
static uint32_t free_slot(struct reactor *reactor) {
    for (uint32_t slot = 0; slot < reactor->slots_used; slot++)
        if (reactor->slots[slot] == NULL)
            return slot;
    if (reactor->slots_used < REACTOR_MAX_CONNECTIONS)
        return reactor->slots_used++;
    return REACTOR_MAX_CONNECTIONS;
}

static uint32_t register_conn(struct reactor *reactor, struct conn *conn) {
    const uint32_t slot = free_slot(reactor);
    if (slot == REACTOR_MAX_CONNECTIONS)
        return 0;
    /* Never 0, so that no id is. */
    uint32_t use = (reactor->uses[slot] + 1) & (UINT32_MAX >> REACTOR_SLOT_BITS);
    if (use == 0)
        use = 1;
    reactor->uses[slot] = use;
    reactor->slots[slot] = conn;
    conn->id = use << REACTOR_SLOT_BITS | slot;
    reactor->needs_care = true;
    return conn->id;
}

uint32_t reactor_connect(struct reactor *reactor, const char *path, uint32_t port,
                         uint32_t deadline_ms, uint32_t high_water, int *error) {
    struct sockaddr_un address;
    *error = -unix_address(&address, path);
    if (*error != 0)
        return 0;
    struct conn *conn = calloc(1, sizeof *conn);
    *error = ENOMEM;
    if (conn == NULL)
        return 0;
    const int64_t now_ms = reactor_clock_ms();
    conn->fd = -1;
    conn->poller = &reactor->poller;
    conn->address = address;
    conn->port = port;
    conn->deadline_ms = now_ms + deadline_ms;
    conn->retry_ms = now_ms;
    conn->high_water = high_water;
    conn->is_paused = true;
    reactor_lock(reactor);
    const uint32_t id = register_conn(reactor, conn);
    reactor_unlock(reactor);
    *error = EMFILE;
    if (id == 0)
        free(conn);
    else
        poller_wake(&reactor->poller);
    return id;
}

int64_t reactor_send(struct reactor *reactor, uint32_t id, const void *head, size_t head_size,
                     const void *payload, size_t payload_size) {
    /* sendmsg does not write to what it sends; struct iovec just cannot say so. */
    const struct iovec parts[2] = {{.iov_base = (void *)head, .iov_len = head_size},
                                   {.iov_base = (void *)payload, .iov_len = payload_size}};
    int64_t pending = -ENOTCONN;
    reactor_lock(reactor);
    struct conn *conn = reactor_find(reactor, id);
    if (conn != NULL && conn->state == CONN_OPEN) {
        conn_send(conn, parts, payload_size > 0 ? 2 : 1);
        pending = (int64_t)conn->outbox.size;
        reactor_settle(reactor, conn);
    }
    reactor_unlock(reactor);
    return pending;
}

int64_t reactor_pending(struct reactor *reactor, uint32_t id) {
    reactor_lock(reactor);
    const struct conn *conn = reactor_find(reactor, id);
    const int64_t pending = conn == NULL ? 0 : (int64_t)conn->outbox.size;
    reactor_unlock(reactor);
    return pending;
}

void reactor_set_paused(struct reactor *reactor, uint32_t id, bool paused) {
    reactor_lock(reactor);
    struct conn *conn = reactor_find(reactor, id);
    if (conn != NULL) {
        conn->is_paused = paused;
        reactor_settle(reactor, conn);
    }
    reactor_unlock(reactor);
}

bool reactor_close(struct reactor *reactor, uint32_t id) {
    reactor_lock(reactor);
    struct conn *conn = reactor_find(reactor, id);
    if (conn != NULL && conn->state == CONN_ENDED) {
        reactor_discard(reactor, conn);
    } else if (conn != NULL) {
        conn->is_abandoned = true;
        reactor->needs_care = true;
        poller_wake(&reactor->poller);
    }
    reactor_unlock(reactor);
    return conn != NULL;
}

size_t reactor_take(struct reactor *reactor, struct conn_report *reports, size_t capacity) {
    size_t count = 0;
    reactor_lock(reactor);
    while (reactor->first_listed != NULL && count < capacity) {
        struct conn *conn = reactor->first_listed;
        reactor->first_listed = conn->next_listed;
        conn->is_listed = false;
        if (!conn_has_report(conn))
            continue;
        conn_take(conn, &reports[count]);
        if (reports[count].end != CONN_END_NONE)
            reactor_discard(reactor, conn);
        else
            reactor_settle(reactor, conn);
        count++;
    }
    reactor->is_notified = reactor->must_notify = reactor->first_listed != NULL;
    reactor_unlock(reactor);
    return count;
}
