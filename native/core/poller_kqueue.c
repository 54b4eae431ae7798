/* UNTESTED: written for macOS, compiled only there. */
#include "poller.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/event.h>
#include <sys/time.h>
#include <unistd.h>

#define EVENTS_PER_WAIT 64
#define WAKE_IDENT 0

static int change_filter(int queue, uintptr_t ident, int16_t filter, uint16_t flags,
                         uint32_t fflags, uint32_t tag) {
    struct kevent change;
    EV_SET(&change, ident, filter, flags, fflags, 0, (void *)(uintptr_t)tag);
    return kevent(queue, &change, 1, NULL, 0, NULL) == 0 ? 0 : -errno;
}

int poller_open(struct poller *poller) {
    poller->fd = kqueue();
    if (poller->fd < 0)
        return -errno;
    poller->wake_fd = poller->fd;
    int error = fcntl(poller->fd, F_SETFD, FD_CLOEXEC) == 0 ? 0 : -errno;
    if (error == 0)
        error = change_filter(poller->fd, WAKE_IDENT, EVFILT_USER, EV_ADD | EV_CLEAR, 0, 0);
    if (error != 0)
        poller_close(poller);
    return error;
}

void poller_close(struct poller *poller) {
    close(poller->fd);
}

int poller_set(struct poller *poller, int fd, uint32_t tag, unsigned before, unsigned after) {
    const struct {
        unsigned bit;
        int16_t filter;
    } sides[] = {{POLLER_READ, EVFILT_READ}, {POLLER_WRITE, EVFILT_WRITE}};
    for (size_t at = 0; at < sizeof sides / sizeof sides[0]; at++) {
        if (((before ^ after) & sides[at].bit) == 0)
            continue;
        const uint16_t flags = after & sides[at].bit ? EV_ADD : EV_DELETE;
        const int error = change_filter(poller->fd, (uintptr_t)fd, sides[at].filter, flags, 0, tag);
        if (error != 0)
            return error;
    }
    return 0;
}

int poller_wait(struct poller *poller, struct poller_event *events, int capacity, int timeout_ms) {
    struct kevent found[EVENTS_PER_WAIT];
    const int room = capacity < EVENTS_PER_WAIT ? capacity : EVENTS_PER_WAIT;
    const struct timespec timeout = {.tv_sec = timeout_ms / 1000,
                                     .tv_nsec = (long)(timeout_ms % 1000) * 1000000L};
    const int found_count =
        kevent(poller->fd, NULL, 0, found, room, timeout_ms < 0 ? NULL : &timeout);
    if (found_count < 0)
        return errno == EINTR ? 0 : -errno;
    int event_count = 0;
    for (int at = 0; at < found_count; at++) {
        if (found[at].filter == EVFILT_USER)
            continue;
        unsigned ready = found[at].filter == EVFILT_READ ? POLLER_READ : POLLER_WRITE;
        if (found[at].flags & (EV_EOF | EV_ERROR))
            ready = POLLER_READ | POLLER_WRITE;
        events[event_count++] =
            (struct poller_event){.tag = (uint32_t)(uintptr_t)found[at].udata, .ready = ready};
    }
    return event_count;
}

void poller_wake(struct poller *poller) {
    /* Fails only for an unknown ident, and poller_open registered it. */
    (void)change_filter(poller->fd, WAKE_IDENT, EVFILT_USER, 0, NOTE_TRIGGER, 0);
}
