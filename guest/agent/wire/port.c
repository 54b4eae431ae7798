#include "port.h"
#include "../console.h"
#include "link.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char port_name[] = "ignition.agent";
static const char ports_directory[] = "/sys/class/virtio-ports";
enum { APPEAR_MS = 5000, STEP_MS = 10 };

// The loop serves every link after each batch of events; a wake-up is all that is needed.
static void on_ready(struct watch *watch, uint32_t events) {
    (void)watch;
    (void)events;
}

static void on_test_ready(struct watch *watch, uint32_t events) {
    (void)watch;
    if (events & EPOLLHUP)
        loop_stop();
}

static bool serve(int fd, void (*ready)(struct watch *watch, uint32_t events)) {
    if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
        console_error("fcntl");
        return false;
    }
    struct link *link = link_open(fd, LINK_PORT);
    if (link == NULL)
        return false;
    link->watch.ready = ready;
    // Edge-triggered: a port without a host is in a state that would wake us for ever.
    return loop_watch(&link->watch, EPOLLIN | EPOLLOUT | EPOLLET);
}

bool port_serve_test(int fd) {
    return serve(fd, on_test_ready);
}

// The port's device, e.g. "vport0p1".
static bool find_port(char device[256]) {
    char path[512], name[64];
    DIR *ports = opendir(ports_directory);
    bool found = false;
    for (struct dirent *entry; ports != NULL && !found && (entry = readdir(ports)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s/name", ports_directory, entry->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        ssize_t count = read(fd, name, sizeof name - 1);
        close(fd);
        name[count < 0 ? 0 : count] = '\0';
        name[strcspn(name, "\n")] = '\0';
        found = strcmp(name, port_name) == 0;
        if (found)
            snprintf(device, 256, "/dev/%.200s", entry->d_name);
    }
    if (ports != NULL)
        closedir(ports);
    return found;
}

bool port_open(void) {
    char device[256];
    // The device announces its ports some time after it appears itself.
    for (int waited = 0; !find_port(device); waited += STEP_MS) {
        if (waited >= APPEAR_MS) {
            console_log("no virtio-serial port named %s", port_name);
            return false;
        }
        nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000}, NULL);
    }
    int fd = open(device, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        console_error(device);
        return false;
    }
    return serve(fd, on_ready);
}
