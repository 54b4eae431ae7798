// How much of the guest the runs may have, so that the kernel and the agent always have the rest.
#ifndef IGNITION_LIMITS_H
#define IGNITION_LIMITS_H

#include <stdint.h>

// No run may have more processes than this, however large the guest is.
enum { LIMITS_MOST_PIDS = 4096 };

struct limits {
    uint64_t memory_bytes;     // all runs together, with what they wrote to memory file systems
    uint64_t run_memory_bytes; // each run: what it leaves is enough for a small one beside it
    uint64_t pids;             // all runs together
    uint64_t run_pids;         // each run
};

// For a guest with `memory_bytes`. Pure.
struct limits limits_for(uint64_t memory_bytes);

// For this guest.
struct limits limits_here(void);

#endif
