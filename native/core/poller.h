#pragma once
#include <stdint.h>

/* Waits for sockets and for a wake-up call. Linux: poller_epoll.c. macOS: poller_kqueue.c. */

#define POLLER_READ 1u
#define POLLER_WRITE 2u

struct poller {
    int fd;
    /* What poller_wake writes to; on macOS the poller itself */
    int wake_fd;
};

struct poller_event {
    /* As given to poller_set */
    uint32_t tag;
    /* POLLER_READ, POLLER_WRITE; an error or the end of the stream sets both */
    unsigned ready;
};

/* Returns 0 or a negative errno. */
int poller_open(struct poller *poller);
void poller_close(struct poller *poller);

/*
 * Changes what to wait for on `fd` from `before` to `after`, sets of POLLER_READ and POLLER_WRITE.
 * With an empty set the socket is not watched at all, not even for its end. `tag` is not 0.
 * Any thread may call it, also during poller_wait. Returns 0 or a negative errno.
 */
int poller_set(struct poller *poller, int fd, uint32_t tag, unsigned before, unsigned after);

/* Waits at most `timeout_ms` (-1: for ever) and returns the number of events, or a negative errno.
 */
int poller_wait(struct poller *poller, struct poller_event *events, int capacity, int timeout_ms);

/* Makes poller_wait return. Any thread may call it. */
void poller_wake(struct poller *poller);
