// EXIT: what the host learns at a run's end.
#ifndef IGNITION_RUN_EXIT_H
#define IGNITION_RUN_EXIT_H

#include "run.h"

void run_send_exit(const struct run *run);

#endif
