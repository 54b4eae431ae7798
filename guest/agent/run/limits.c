#include "limits.h"
#include "../console.h"
#include <stdio.h>
#include <sys/sysinfo.h>

enum {
    MIB = 1024 * 1024,
    // What the kernel has of its own, the agent's buffers and some of the spool's files.
    LEAST_RESERVE = 32 * MIB,
    MOST_RESERVE = 256 * MIB,
    RESERVED_SHARE = 8,
    // Where the kernel does not say: what it allows in 128 MiB.
    FEWEST_THREADS = 800,
};

static uint64_t smaller(uint64_t one, uint64_t other) {
    return one < other ? one : other;
}

struct limits limits_for(uint64_t memory_bytes, uint64_t threads) {
    uint64_t reserve = smaller(memory_bytes / RESERVED_SHARE, MOST_RESERVE);
    if (reserve < LEAST_RESERVE)
        reserve = smaller(LEAST_RESERVE, memory_bytes / 2);
    return (struct limits){
        .memory_bytes = memory_bytes - reserve,
        .run_memory_bytes = memory_bytes - reserve - reserve / 2,
        .pids = threads - threads / 8,
        .run_pids = smaller(threads / 2, LIMITS_MOST_PIDS),
    };
}

static uint64_t most_threads(void) {
    unsigned long long threads = 0;
    FILE *file = fopen("/proc/sys/kernel/threads-max", "re");
    if (file == NULL || fscanf(file, "%llu", &threads) != 1)
        console_error("threads-max");
    if (file != NULL)
        fclose(file);
    return threads == 0 ? FEWEST_THREADS : threads;
}

struct limits limits_here(void) {
    struct sysinfo system;
    if (sysinfo(&system) != 0)
        console_fatal("sysinfo");
    return limits_for((uint64_t)system.totalram * system.mem_unit, most_threads());
}
