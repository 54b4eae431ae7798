// RUN: one command in a session, from request to EXIT and beyond, while processes of it live.
#ifndef IGNITION_RUN_H
#define IGNITION_RUN_H

#include "../wire/json.h"
#include "../wire/link.h"
#include "cgroup.h"
#include "input.h"
#include "output.h"
#include "report.h"
#include <sys/types.h>

enum {
    RUN_MAX_ACTIVE = 64,
    RUN_MAX_LINGERING = 512,
    RUN_MAX_COMMAND_BYTES = 1048576,
    RUN_MAX_TIMEOUT_MS = 86400000,
    RUN_MAX_OUTPUT_BYTES = 1048576,
};

enum run_state {
    RUN_RECEIVING, // the command is not complete
    RUN_RUNNING,
    RUN_DRAINING, // the shell ended, its output may still be in the pipes
    RUN_SENDING,  // all is known: the rest of the output and EXIT are on their way
    RUN_LINGERING // the host knows; processes left behind live on
};

struct run {
    struct stream stream;
    enum run_state state;
    uint64_t number;
    char *command; // NULL once started
    size_t command_bytes, command_received;
    bool wants_stdin, wants_spool;
    char cwd[4096];
    uint64_t timeout_us;
    size_t max_output_bytes;
    struct cgroup cgroup;
    struct output out, err;
    struct input in;
    struct report report;
    struct timer timer; // the deadline, then the end of draining
    pid_t pid;          // 0 once reaped
    int wait_status;
    uint64_t started_us, ended_us;
    bool timed_out, kill_requested, cgroup_killed;
    bool oom_killed, pids_exhausted, overlay_full; // known when it ended
    size_t background;
    struct run *next;
};

void run_open(struct link *link, uint32_t stream, const struct json_object *request);

// Freezes the processes of all runs. Until runs_release a connection's end does not end its runs:
// they live on without a deadline, and all they print is in their files.
void runs_hold(void);
void runs_release(void);

// A child of the agent ended.
void run_reaped(pid_t pid, int wait_status);

// Some children ended: forgets the runs of which nothing is left.
void run_sweep(void);

#endif
