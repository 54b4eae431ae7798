// One cgroup per run. Without cgroups (tests on a host) a run's processes are those of its session.
#ifndef IGNITION_CGROUP_H
#define IGNITION_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// The processes of one run.
struct cgroup {
    int fd; // the run's directory, -1 without cgroups
    uint64_t run;
    pid_t session; // the shell's pid
};

// Creates `directory` in a cgroup v2 tree, for all runs together, and limits them. False: no
// cgroups from now on.
bool cgroup_setup(const char *directory);

// False with errno set.
bool cgroup_create(struct cgroup *cgroup, uint64_t run);
// `shell` is 0 once it was reaped.
void cgroup_kill(const struct cgroup *cgroup, pid_t shell);
// Does nothing without cgroups.
void cgroup_freeze(const struct cgroup *cgroup, bool freeze);
void cgroup_signal(const struct cgroup *cgroup, int signal_number);
// Living processes, not counting zombies.
size_t cgroup_count(const struct cgroup *cgroup);
// By its own limit or the guest's.
bool cgroup_was_oom_killed(const struct cgroup *cgroup);
bool cgroup_ran_out_of_pids(const struct cgroup *cgroup);
// False while processes live in it. Afterwards the cgroup is gone.
bool cgroup_remove(struct cgroup *cgroup);

#endif
