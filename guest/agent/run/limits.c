#include "limits.h"
#include "../console.h"
#include <sys/sysinfo.h>

enum {
    MIB = 1024 * 1024,
    // What the kernel has of its own, the agent's buffers and some of the spool's files.
    LEAST_RESERVE = 32 * MIB,
    MOST_RESERVE = 256 * MIB,
    RESERVED_SHARE = 8,
    // More than one costs the kernel, so a fork bomb ends before the memory does; and few enough
    // to stay below the kernel's own limit, which the agent would feel too.
    BYTES_PER_PROCESS = 256 * 1024,
};

static uint64_t smaller(uint64_t one, uint64_t other) {
    return one < other ? one : other;
}

struct limits limits_for(uint64_t memory_bytes) {
    uint64_t reserve = smaller(memory_bytes / RESERVED_SHARE, MOST_RESERVE);
    if (reserve < LEAST_RESERVE)
        reserve = smaller(LEAST_RESERVE, memory_bytes / 2);
    uint64_t pids = memory_bytes / BYTES_PER_PROCESS;
    return (struct limits){
        .memory_bytes = memory_bytes - reserve,
        .run_memory_bytes = memory_bytes - reserve - reserve / 2,
        .pids = pids,
        .run_pids = smaller(pids / 2, LIMITS_MOST_PIDS),
    };
}

struct limits limits_here(void) {
    struct sysinfo system;
    if (sysinfo(&system) != 0)
        console_fatal("sysinfo");
    return limits_for((uint64_t)system.totalram * system.mem_unit);
}
