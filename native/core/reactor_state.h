#pragma once
#include "conn.h"

#include <pthread.h>

/* What the I/O thread (reactor_loop.c) and the callers' side (reactor.c) share. */

#define REACTOR_SLOT_BITS 12u
#define REACTOR_SLOT_MASK (REACTOR_MAX_CONNECTIONS - 1)

struct reactor {
    pthread_mutex_t lock;
    pthread_t thread;
    struct poller poller;
    void (*notify)(void *context);
    void *context;
    /* notify was called and nothing was taken since */
    bool is_notified;
    /* notify is to be called when the lock is released */
    bool must_notify;
    bool is_stopping;
    /* A connection is new, abandoned or failed: the I/O thread is to look at all of them */
    bool needs_care;
    struct conn *first_listed, *last_listed;
    /* A connection's slot is the low bits of its id; the high bits count the slot's uses */
    struct conn *slots[REACTOR_MAX_CONNECTIONS];
    uint32_t uses[REACTOR_MAX_CONNECTIONS];
    uint32_t slots_used;
    /* When the first attempt times out or is tried again; INT64_MAX without one */
    int64_t next_due_ms;
    uint8_t scratch[CONN_SCRATCH_BYTES];
};

int64_t reactor_clock_ms(void);

void reactor_lock(struct reactor *reactor);

/* Notifies after unlocking, so that the thread it wakes does not find the lock taken. */
void reactor_unlock(struct reactor *reactor);

/* Locked: the connection, or NULL when it is unknown or abandoned. */
struct conn *reactor_find(struct reactor *reactor, uint32_t id);

/* Locked: lists a connection with something to report, and asks for care for a failed one. */
void reactor_settle(struct reactor *reactor, struct conn *conn);

/* Locked: frees a connection and its slot. */
void reactor_discard(struct reactor *reactor, struct conn *conn);

/* The I/O thread. `argument` is the reactor. */
void *reactor_run(void *argument);
