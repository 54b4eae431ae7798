#include "vsock.h"
#include "../console.h"
#include "link.h"
#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

enum { AGENT_PORT = 7000, MAX_CONNECTIONS = 8 };

static void on_connection_ready(struct watch *watch, uint32_t events) {
    (void)watch;
    (void)events;
}

static void on_connect(struct watch *watch, uint32_t events) {
    (void)events;
    int fd = accept4(watch->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (link_count(LINK_SOCKET) >= MAX_CONNECTIONS) {
        close(fd);
        return;
    }
    struct link *link = link_open(fd, LINK_SOCKET);
    if (link == NULL)
        return;
    link->watch.ready = on_connection_ready;
    loop_watch(&link->watch, EPOLLIN | EPOLLOUT | EPOLLET);
}

void vsock_listen(void) {
    static struct watch listener = {.ready = on_connect};
    if (access("/dev/vsock", F_OK) != 0)
        return;
    struct sockaddr_vm address = {
        .svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_ANY, .svm_port = AGENT_PORT};
    listener.fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (listener.fd < 0)
        return;
    // SAFETY: every socket address starts as sockaddr does.
    if (bind(listener.fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener.fd, MAX_CONNECTIONS) != 0 || !loop_watch(&listener, EPOLLIN)) {
        console_error("vsock");
        close(listener.fd);
    }
}
