#include "cgroup.h"
#include "../console.h"
#include "session-members.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

enum { BYTES_PER_PROCESS = 256 * 1024 };

static int root_fd = -1;
static uint64_t pids_per_run = CGROUP_MAX_PIDS;

static bool write_at(int directory, const char *name, const char *text) {
    int fd = openat(directory, name, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    size_t length = strlen(text);
    bool done = write(fd, text, length) == (ssize_t)length;
    close(fd);
    return done;
}

// Returns how many bytes were read, NUL-terminated.
static size_t read_at(int directory, const char *name, char *text, size_t size) {
    size_t used = 0;
    int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && used < size - 1) {
        ssize_t count = read(fd, text + used, size - 1 - used);
        if (count <= 0)
            break;
        used += (size_t)count;
    }
    if (fd >= 0)
        close(fd);
    text[used] = '\0';
    return used;
}

// A controller that is missing (tests on a host) costs its limit, not the runs.
static void enable_controllers(int directory) {
    if (!write_at(directory, "cgroup.subtree_control", "+memory"))
        console_error("no memory controller");
    if (!write_at(directory, "cgroup.subtree_control", "+pids"))
        console_error("no pids controller");
}

// All runs together leave the agent and the kernel an eighth of the memory, so a run that takes too
// much is killed in its cgroup while the agent goes on; a process costs about 170 KiB of the
// kernel's memory, so a fork bomb ends before the memory does.
static void limit_all_runs(int directory) {
    struct sysinfo system;
    char limit[32];
    if (sysinfo(&system) != 0)
        return;
    uint64_t total = (uint64_t)system.totalram * system.mem_unit;
    snprintf(limit, sizeof limit, "%llu", (unsigned long long)(total - total / 8));
    bool limited = write_at(directory, "memory.max", limit);
    uint64_t pids = total / BYTES_PER_PROCESS;
    if (pids / 2 < pids_per_run)
        pids_per_run = pids / 2; // one run cannot keep the others from starting
    snprintf(limit, sizeof limit, "%llu", (unsigned long long)pids);
    if (!write_at(directory, "pids.max", limit) || !limited)
        console_error("runs have no common limit");
}

bool cgroup_setup(const char *directory) {
    char parent[PATH_MAX];
    snprintf(parent, sizeof parent, "%s/..", directory);
    if (mkdir(directory, 0755) != 0 && errno != EEXIST)
        return false;
    int parent_fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent_fd >= 0) {
        enable_controllers(parent_fd);
        close(parent_fd);
    }
    root_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0)
        return false;
    enable_controllers(root_fd);
    limit_all_runs(root_fd);
    return true;
}

static void run_name(char name[32], uint64_t run) {
    snprintf(name, 32, "%llu", (unsigned long long)run);
}

bool cgroup_create(struct cgroup *cgroup, uint64_t run) {
    *cgroup = (struct cgroup){.fd = -1, .run = run};
    if (root_fd < 0)
        return true;
    char name[32], limit[32];
    run_name(name, run);
    if (mkdirat(root_fd, name, 0755) != 0)
        return false;
    cgroup->fd = openat(root_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (cgroup->fd < 0) {
        int error_number = errno;
        unlinkat(root_fd, name, AT_REMOVEDIR);
        errno = error_number;
        return false;
    }
    snprintf(limit, sizeof limit, "%llu", (unsigned long long)pids_per_run);
    // Fails without the pids controller, which was logged at the start.
    write_at(cgroup->fd, "pids.max", limit);
    return true;
}

// Calls `visit` for each process; returns how many there are.
static size_t each_process(const struct cgroup *cgroup, void (*visit)(pid_t pid, int argument),
                           int argument) {
    static char pids[CGROUP_MAX_PIDS * 8];
    size_t count = 0;
    read_at(cgroup->fd, "cgroup.procs", pids, sizeof pids);
    char *rest = pids;
    for (char *line = strtok_r(pids, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        long pid = strtol(line, NULL, 10);
        // 0 stands for a process of another pid namespace.
        if (pid > 0 && visit != NULL)
            visit((pid_t)pid, argument);
        count++;
    }
    return count;
}

static void signal_one(pid_t pid, int signal_number) {
    // It may have ended since it was listed.
    if (kill(pid, signal_number) != 0 && errno != ESRCH)
        console_error("kill");
}

void cgroup_kill(const struct cgroup *cgroup) {
    if (cgroup->fd < 0)
        session_signal(cgroup->session, SIGKILL);
    else if (!write_at(cgroup->fd, "cgroup.kill", "1"))
        each_process(cgroup, signal_one, SIGKILL);
}

void cgroup_signal(const struct cgroup *cgroup, int signal_number) {
    if (cgroup->fd < 0)
        session_signal(cgroup->session, signal_number);
    else
        each_process(cgroup, signal_one, signal_number);
}

size_t cgroup_count(const struct cgroup *cgroup) {
    return cgroup->fd < 0 ? session_count(cgroup->session) : each_process(cgroup, NULL, 0);
}

bool cgroup_was_oom_killed(const struct cgroup *cgroup) {
    char events[512];
    if (cgroup->fd < 0 || read_at(cgroup->fd, "memory.events", events, sizeof events) == 0)
        return false;
    const char *line = strstr(events, "oom_kill ");
    return line != NULL && strtol(line + strlen("oom_kill "), NULL, 10) > 0;
}

bool cgroup_remove(struct cgroup *cgroup) {
    if (cgroup->fd < 0)
        return true;
    char name[32];
    run_name(name, cgroup->run);
    if (unlinkat(root_fd, name, AT_REMOVEDIR) != 0 && errno == EBUSY)
        return false;
    close(cgroup->fd);
    cgroup->fd = -1;
    return true;
}
