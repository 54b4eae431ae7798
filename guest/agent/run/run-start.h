// From a RUN request to a running shell.
#ifndef IGNITION_RUN_START_H
#define IGNITION_RUN_START_H

#include "run.h"

// Everything closed and empty. The stream stays as it is.
void run_prepare(struct run *run);

// Takes the request's members over; NULL, or what is wrong with them.
const char *run_accept(struct run *run, const struct json_object *request);

// Starts the shell. False with the wire's error code, errno and a sentence.
bool run_start(struct run *run, const char **code, const char **message);

// Called by what run_start sets up; run.c has them.
void run_stdout_ended(struct output *output);
void run_stderr_ended(struct output *output);
void run_deadline(struct timer *timer);

#endif
