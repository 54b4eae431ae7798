#include "loopback.h"
#include "../console.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    BACKLOG = 128,
    // Of the kernel's buffers, which would grow to some MiB per socket otherwise. It doubles this.
    BUFFER_BYTES = 64 * 1024,
};

static struct sockaddr_in address_of(uint16_t port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static bool set(int fd, int level, int name, int value) {
    return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

// -1 with errno set. What is set on a listener is inherited by what it accepts.
static int new_socket(void) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || (set(fd, SOL_SOCKET, SO_SNDBUF, BUFFER_BYTES) &&
                   set(fd, SOL_SOCKET, SO_RCVBUF, BUFFER_BYTES) &&
                   set(fd, IPPROTO_TCP, TCP_NODELAY, 1) && set(fd, SOL_SOCKET, SO_REUSEADDR, 1)))
        return fd;
    int error_number = errno;
    close(fd);
    errno = error_number;
    return -1;
}

int loopback_listen(uint16_t port) {
    struct sockaddr_in address = address_of(port);
    int fd = new_socket();
    // SAFETY: every socket address starts as sockaddr does.
    if (fd < 0 || (bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
                   listen(fd, BACKLOG) == 0))
        return fd;
    int error_number = errno;
    close(fd);
    errno = error_number;
    return -1;
}

int loopback_connect(uint16_t port) {
    struct sockaddr_in address = address_of(port);
    int fd = new_socket();
    if (fd < 0)
        return -1;
    errno = 0;
    // SAFETY: as above.
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 || errno == EINPROGRESS)
        return fd;
    int error_number = errno;
    close(fd);
    errno = error_number;
    return -1;
}

int loopback_accept(int listener) {
    return accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

void loopback_reset(int fd) {
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once) != 0)
        console_error("SO_LINGER");
    close(fd);
}

int loopback_error(int fd) {
    int error_number = 0;
    socklen_t size = sizeof error_number;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error_number, &size) == 0 ? error_number : errno;
}
