#include "init.h"
#include "../console.h"
#include "../run/cgroup.h"
#include "modules.h"
#include "mounts.h"
#include "network.h"
#include <errno.h>
#include <fcntl.h>
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

// The last process the kernel may pick when memory runs out. It picks faster without writing down
// what it picks from.
static void protect_from_oom(void) {
    write_setting("/proc/self/oom_score_adj", "-1000");
    write_setting("/proc/sys/vm/oom_dump_tasks", "0");
}

// It has little to do, and what it does decides how long the host waits.
static void go_first(void) {
    if (setpriority(PRIO_PROCESS, 0, -20) != 0)
        console_error("setpriority");
}

static void set_default_hostname(void) {
    static const char name[] = "ignition";
    if (sethostname(name, strlen(name)) != 0)
        console_error("sethostname");
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
    protect_from_oom();
    go_first();
    set_default_hostname();
    network_up();
    if (!cgroup_setup("/sys/fs/cgroup/runs"))
        console_fatal("/sys/fs/cgroup/runs");
}
