// The agent: PID 1 of the guest. It boots the system, warms the tools, and serves the host.
// On a host, for tests: agent --connect SOCKET [--cgroups DIRECTORY] [--spool DIRECTORY]
// [--proxy-port PORT].
#include "boot/init.h"
#include "boot/warm.h"
#include "console.h"
#include "loop.h"
#include "probe.h"
#include "reap.h"
#include "run/cgroup.h"
#include "run/spawn.h"
#include "run/spool.h"
#include "tunnel/listener.h"
#include "wire/link.h"
#include "wire/port.h"
#include "wire/vsock.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void serve_host(void) {
    init_system();
    spawn_init();
    probe_init();
    warm_tools();
    loop_init();
    reap_init();
    port_open();
    vsock_listen();
    console_marker("TOOLS_READY");
    loop_run(link_service_all);
}

static int usage(void) {
    fputs("usage: agent --connect SOCKET [--cgroups DIRECTORY] [--spool DIRECTORY] "
          "[--proxy-port PORT]\n",
          stderr);
    return 2;
}

// -1, after a line on stderr, when nobody listens there.
static int connect_unix(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    // SAFETY: every socket address starts as sockaddr does.
    if (strlen(path) < sizeof address.sun_path && fd >= 0 &&
        connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    console_error(path);
    return -1;
}

static int serve_test(int argc, char **argv) {
    int fd = -1;
    const char *cgroups = NULL;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--connect") == 0)
            fd = connect_unix(argv[i + 1]);
        else if (strcmp(argv[i], "--cgroups") == 0)
            cgroups = argv[i + 1];
        else if (strcmp(argv[i], "--spool") == 0)
            spool_set_root(argv[i + 1]);
        else if (strcmp(argv[i], "--proxy-port") == 0)
            listener_set_port((uint16_t)strtoul(argv[i + 1], NULL, 10));
        else
            return usage();
    }
    if (fd < 0 || argc % 2 == 0)
        return usage();
    // As PID 1 does, it inherits the processes that runs leave behind.
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        console_fatal("prctl");
    if (cgroups != NULL && !cgroup_setup(cgroups))
        console_fatal(cgroups);
    spawn_init();
    probe_init();
    loop_init();
    reap_init();
    if (!port_serve_test(fd))
        return 1;
    loop_run(link_service_all);
    return 0;
}

int main(int argc, char **argv) {
    if (getpid() == 1) {
        serve_host();
        return 1;
    }
    return serve_test(argc, argv);
}
