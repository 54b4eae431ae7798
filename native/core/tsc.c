#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* CLOCK_MONOTONIC_RAW */
#endif
#include "tsc.h"

#if defined(__x86_64__)
#include <time.h>
#include <x86intrin.h>

#define MEASURED_NS 30000000L
#define TRIES 8

struct instant {
    int64_t ns;
    uint64_t ticks;
};

/* Both clocks at once. Of several tries the one that was interrupted least counts. */
static struct instant read_both(void) {
    struct instant best = {0};
    uint64_t best_gap = UINT64_MAX;
    for (int try = 0; try < TRIES; try++) {
        struct timespec now;
        const uint64_t before = __rdtsc();
        if (clock_gettime(CLOCK_MONOTONIC_RAW, &now) != 0)
            return (struct instant){0};
        const uint64_t gap = __rdtsc() - before;
        if (gap >= best_gap)
            continue;
        best_gap = gap;
        best.ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
        best.ticks = before + gap / 2;
    }
    return best;
}

uint32_t tsc_khz(void) {
    const struct instant start = read_both();
    const struct timespec pause = {.tv_nsec = MEASURED_NS};
    /* A signal may shorten the sleep; the rate is taken from the clock, so that does no harm. */
    (void)nanosleep(&pause, NULL);
    const struct instant end = read_both();
    const int64_t elapsed_ns = end.ns - start.ns;
    if (elapsed_ns < MEASURED_NS / 10)
        return 0;
    return (uint32_t)((end.ticks - start.ticks) * 1000000 / (uint64_t)elapsed_ns);
}
#else
uint32_t tsc_khz(void) {
    return 0;
}
#endif
