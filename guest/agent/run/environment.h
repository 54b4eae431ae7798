// The environment every run starts with.
#ifndef IGNITION_ENVIRONMENT_H
#define IGNITION_ENVIRONMENT_H

#include <stdint.h>

// Runs that start from now on have a proxy at 127.0.0.1:`port`; 0: none.
void environment_set_proxy(uint16_t port);

// NULL-terminated, as execve takes it.
char *const *environment_now(void);

#endif
