#include "listener.h"
#include "../console.h"
#include "../loop.h"
#include "../run/environment.h"
#include "loopback.h"
#include <errno.h>
#include <stddef.h>
#include <unistd.h>

enum { PROXY_PORT = 3128, RETRY_US = 100000 };

static uint16_t port = PROXY_PORT;
static struct watch watch = {.fd = -1};
static const struct tunnels *owner;
static bool ready;
static struct timer retry;

void listener_set_port(uint16_t wanted) {
    port = wanted;
}

uint16_t listener_port(void) {
    return port;
}

static void on_connection(struct watch *listener, uint32_t events) {
    (void)listener;
    (void)events;
    ready = true;
}

static void on_retry(struct timer *timer) {
    (void)timer;
    ready = true;
}

bool listener_open(struct tunnels *wanted) {
    if (watch.fd < 0) {
        int fd = loopback_listen(port);
        if (fd < 0)
            return false;
        watch = (struct watch){.fd = fd, .ready = on_connection};
        // Edge-triggered: while the host has no room, connections wait in the kernel.
        if (!loop_watch(&watch, EPOLLIN | EPOLLET)) {
            watch.fd = -1;
            close(fd);
            errno = ENOMEM;
            return false;
        }
        environment_set_proxy(port);
    }
    owner = wanted;
    return true;
}

void listener_close(const struct tunnels *of) {
    if (owner != of || watch.fd < 0)
        return;
    environment_set_proxy(0);
    timer_stop(&retry);
    loop_unwatch(&watch);
    close(watch.fd);
    watch.fd = -1;
    owner = NULL;
    ready = false;
}

bool listener_is_ready(const struct tunnels *of) {
    return ready && owner == of;
}

int listener_accept(const struct tunnels *of) {
    while (listener_is_ready(of)) {
        int fd = loopback_accept(watch.fd);
        if (fd >= 0)
            return fd;
        if (errno == EINTR || errno == ECONNABORTED)
            continue;
        ready = false;
        if (errno != EAGAIN) {
            // Out of descriptors or memory: what waits makes no new event.
            console_error("accept");
            timer_start(&retry, RETRY_US, on_retry);
        }
    }
    return -1;
}
