// PROBE: shows that this guest can start a program and see its end.
#ifndef IGNITION_PROBE_H
#define IGNITION_PROBE_H

#include "wire/link.h"

// Makes the program, in memory: nobody in the guest removes or replaces it by mistake.
void probe_init(void);

// Answers once the program has ended, which takes microseconds.
void probe_answer(struct link *link, uint32_t stream);

#endif
