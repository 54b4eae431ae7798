#include "loop.h"
#include "console.h"
#include <errno.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

enum { BATCH = 32, LONGEST_WAIT_MS = 60000 };

static int epoll_fd = -1;
static bool stopped;
static struct timer *timers;
static struct epoll_event batch[BATCH];
static int batch_count;

void loop_init(void) {
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0)
        console_fatal("epoll_create1");
}

static bool control(int operation, struct watch *watch, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = watch};
    if (epoll_ctl(epoll_fd, operation, watch->fd, &event) == 0)
        return true;
    console_error("epoll_ctl");
    return false;
}

bool loop_watch(struct watch *watch, uint32_t events) {
    return control(EPOLL_CTL_ADD, watch, events);
}

bool loop_change(struct watch *watch, uint32_t events) {
    return control(EPOLL_CTL_MOD, watch, events);
}

void loop_unwatch(struct watch *watch) {
    control(EPOLL_CTL_DEL, watch, 0);
    for (int i = 0; i < batch_count; i++)
        if (batch[i].data.ptr == watch)
            batch[i].data.ptr = NULL;
}

uint64_t monotonic_us(void) {
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0)
        console_fatal("clock_gettime");
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void timer_start(struct timer *timer, uint64_t delay_us, void (*fire)(struct timer *timer)) {
    timer_stop(timer);
    timer->due_us = monotonic_us() + delay_us;
    timer->fire = fire;
    timer->next = timers;
    timer->slot = &timers;
    if (timers != NULL)
        timers->slot = &timer->next;
    timers = timer;
}

void timer_stop(struct timer *timer) {
    if (timer->slot == NULL)
        return;
    *timer->slot = timer->next;
    if (timer->next != NULL)
        timer->next->slot = timer->slot;
    timer->slot = NULL;
}

// -1, for ever, when no timer runs: an idle agent does not wake.
static int wait_ms(void) {
    if (timers == NULL)
        return -1;
    uint64_t now = monotonic_us(), wait = (uint64_t)LONGEST_WAIT_MS * 1000;
    for (struct timer *timer = timers; timer != NULL; timer = timer->next) {
        uint64_t left = timer->due_us > now ? timer->due_us - now : 0;
        if (left < wait)
            wait = left;
    }
    return (int)((wait + 999) / 1000);
}

// One at a time from the start: what a timer does may stop or start others.
static void fire_due(void) {
    uint64_t now = monotonic_us();
    struct timer *timer = timers;
    while (timer != NULL) {
        if (timer->due_us > now) {
            timer = timer->next;
            continue;
        }
        timer_stop(timer);
        timer->fire(timer);
        timer = timers;
    }
}

void loop_run(bool (*after_events)(void)) {
    bool more = false;
    while (!stopped) {
        int count = epoll_wait(epoll_fd, batch, BATCH, more ? 0 : wait_ms());
        if (count < 0 && errno != EINTR)
            console_fatal("epoll_wait");
        batch_count = count < 0 ? 0 : count;
        for (int i = 0; i < batch_count; i++) {
            struct watch *watch = batch[i].data.ptr;
            if (watch != NULL)
                watch->ready(watch, batch[i].events);
        }
        batch_count = 0;
        fire_due();
        more = after_events();
    }
}

void loop_stop(void) {
    stopped = true;
}
