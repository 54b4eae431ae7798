// How much memory the guest could still give.
#ifndef IGNITION_FREE_MEMORY_H
#define IGNITION_FREE_MEMORY_H

#include <stdint.h>

// The kernel's estimate, caches that can go included. 0, after a line on the console, when it does
// not say.
uint64_t free_memory_bytes(void);

#endif
