#include "init.h"
#include "../cloned.h"
#include "../console.h"
#include "../run/cgroup.h"
#include "modules.h"
#include "mounts.h"
#include "network.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

// The agent's own standard streams: pipes of runs must never get the numbers 0 to 2.
static void occupy_standard_streams(void) {
    int fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd < 2)
        fd = open("/dev/null", O_RDWR);
    if (fd > 2)
        close(fd);
}

static void write_setting(const char *path, const char *value) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, value, strlen(value)) != (ssize_t)strlen(value))
        console_error(path);
    if (fd >= 0)
        close(fd);
}

// PID 1 is never picked when memory runs out. The kernel picks faster without writing down what it
// picks from.
static void shorten_oom(void) {
    write_setting("/proc/sys/vm/oom_dump_tasks", "0");
}

// It has little to do, and what it does decides how long the host waits. Its runs are like any
// other process.
static void go_first(void) {
    struct sched_param none = {0};
    if (setpriority(PRIO_PROCESS, 0, -20) != 0 ||
        sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none) != 0)
        console_error("the agent's priority");
}

void init_system(void) {
    umask(022);
    mount_early();
    console_open();
    occupy_standard_streams();
    console_marker("ignition-agent: up");
    modules_load();
    mount_root();
    mount_late();
    shorten_oom();
    go_first();
    cloned_name_base();
    network_up();
    if (!cgroup_setup("/sys/fs/cgroup/runs"))
        console_fatal("/sys/fs/cgroup/runs");
}
