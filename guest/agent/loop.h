// The event loop: one thread, epoll, timers. Nothing it calls may block.
#ifndef IGNITION_LOOP_H
#define IGNITION_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

// Embedded in what owns the descriptor. `ready` gets the epoll events.
struct watch {
    int fd;
    void (*ready)(struct watch *watch, uint32_t events);
};

// Embedded in its owner; zeroed means not armed.
struct timer {
    uint64_t due_us;
    void (*fire)(struct timer *timer);
    struct timer *next, **slot;
};

void loop_init(void);

// Both log and return false when the kernel refuses.
bool loop_watch(struct watch *watch, uint32_t events);
bool loop_change(struct watch *watch, uint32_t events);
// No event of `watch` is delivered afterwards. The descriptor stays open.
void loop_unwatch(struct watch *watch);

void timer_start(struct timer *timer, uint64_t delay_us, void (*fire)(struct timer *timer));
void timer_stop(struct timer *timer);

uint64_t monotonic_us(void);

// Runs until loop_stop. `after_events` is called after each batch and returns true when it has more
// to do at once.
void loop_run(bool (*after_events)(void));
void loop_stop(void);

#endif
