#include "cgroup.h"
#include "../console.h"
#include "limits.h"
#include "session-members.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HIGHEST_CPU_WEIGHT = 10000 };

static int root_fd = -1;
static struct limits limits;

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
    // With cpu the runs share with each other and with the agent, not their processes.
    static const char *const controllers[] = {"+memory", "+pids", "+cpu"};
    for (size_t i = 0; i < sizeof controllers / sizeof controllers[0]; i++)
        if (!write_at(directory, "cgroup.subtree_control", controllers[i]))
            console_log("no cgroup controller: %s", controllers[i] + 1);
}

// Fails without the limit's controller, which was logged at the start.
static void limit(int directory, const char *name, uint64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    write_at(directory, name, text);
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
    limits = limits_here();
    limit(root_fd, "memory.max", limits.memory_bytes);
    limit(root_fd, "pids.max", limits.pids);
    return true;
}

static void run_name(char name[32], uint64_t run) {
    snprintf(name, 32, "%llu", (unsigned long long)run);
}

bool cgroup_create(struct cgroup *cgroup, uint64_t run) {
    *cgroup = (struct cgroup){.fd = -1, .run = run};
    if (root_fd < 0)
        return true;
    char name[32];
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
    limit(cgroup->fd, "memory.max", limits.run_memory_bytes);
    limit(cgroup->fd, "pids.max", limits.run_pids);
    return true;
}

// Calls `visit` for each process; returns how many there are.
static size_t each_process(const struct cgroup *cgroup, void (*visit)(pid_t pid, int argument),
                           int argument) {
    static char pids[LIMITS_MOST_PIDS * 8];
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

// Dying takes processor time: the run goes before the others, and its shell, whose end the host
// waits for, before the rest of it.
static void hurry(const struct cgroup *cgroup, pid_t shell) {
    limit(cgroup->fd, "cpu.weight", HIGHEST_CPU_WEIGHT);
    if (shell > 0 && setpriority(PRIO_PROCESS, (id_t)shell, -20) != 0)
        console_error("setpriority");
}

void cgroup_kill(const struct cgroup *cgroup, pid_t shell) {
    if (cgroup->fd < 0) {
        session_signal(cgroup->session, SIGKILL);
        return;
    }
    hurry(cgroup, shell);
    if (!write_at(cgroup->fd, "cgroup.kill", "1"))
        each_process(cgroup, signal_one, SIGKILL);
}

void cgroup_freeze(const struct cgroup *cgroup, bool freeze) {
    if (cgroup->fd >= 0 && !write_at(cgroup->fd, "cgroup.freeze", freeze ? "1" : "0"))
        console_error("cgroup.freeze");
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

// Whether the counter `name` of an events file is above zero.
static bool counted(const struct cgroup *cgroup, const char *file, const char *name) {
    char events[512];
    if (cgroup->fd < 0)
        return false;
    read_at(cgroup->fd, file, events, sizeof events);
    char *rest = events;
    for (char *line = strtok_r(events, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        size_t length = strlen(name);
        if (strncmp(line, name, length) == 0 && line[length] == ' ')
            return strtoull(line + length, NULL, 10) > 0;
    }
    return false;
}

bool cgroup_was_oom_killed(const struct cgroup *cgroup) {
    return counted(cgroup, "memory.events", "oom_kill");
}

bool cgroup_ran_out_of_pids(const struct cgroup *cgroup) {
    return counted(cgroup, "pids.events", "max");
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
