#include "poller.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define EVENTS_PER_WAIT 64
#define WAKE_TAG 0u

int poller_open(struct poller *poller) {
    poller->fd = epoll_create1(EPOLL_CLOEXEC);
    if (poller->fd < 0)
        return -errno;
    poller->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data = {.u32 = WAKE_TAG}};
    if (poller->wake_fd >= 0 && epoll_ctl(poller->fd, EPOLL_CTL_ADD, poller->wake_fd, &event) == 0)
        return 0;
    const int error = -errno;
    poller_close(poller);
    return error;
}

void poller_close(struct poller *poller) {
    if (poller->wake_fd >= 0)
        close(poller->wake_fd);
    close(poller->fd);
}

int poller_set(struct poller *poller, int fd, uint32_t tag, unsigned before, unsigned after) {
    if (before == after)
        return 0;
    struct epoll_event event = {.data = {.u32 = tag}};
    if (after & POLLER_READ)
        event.events |= EPOLLIN;
    if (after & POLLER_WRITE)
        event.events |= EPOLLOUT;
    /* Deleted rather than emptied: epoll reports a hang-up for an empty set too, again and again.
     */
    const int change = after == 0 ? EPOLL_CTL_DEL : before == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    return epoll_ctl(poller->fd, change, fd, &event) == 0 ? 0 : -errno;
}

int poller_wait(struct poller *poller, struct poller_event *events, int capacity, int timeout_ms) {
    struct epoll_event found[EVENTS_PER_WAIT];
    const int room = capacity < EVENTS_PER_WAIT ? capacity : EVENTS_PER_WAIT;
    const int found_count = epoll_wait(poller->fd, found, room, timeout_ms);
    if (found_count < 0)
        return errno == EINTR ? 0 : -errno;
    int event_count = 0;
    for (int at = 0; at < found_count; at++) {
        if (found[at].data.u32 == WAKE_TAG) {
            uint64_t wakes;
            /* Nonblocking: fails only when another wait already took the wake-up. */
            (void)!read(poller->wake_fd, &wakes, sizeof wakes);
            continue;
        }
        unsigned ready = 0;
        if (found[at].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
            ready |= POLLER_READ;
        if (found[at].events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
            ready |= POLLER_WRITE;
        events[event_count++] = (struct poller_event){.tag = found[at].data.u32, .ready = ready};
    }
    return event_count;
}

void poller_wake(struct poller *poller) {
    const uint64_t one = 1;
    /* Fails only when the counter is full, and then the wake-up is pending anyway. */
    (void)!write(poller->wake_fd, &one, sizeof one);
}
