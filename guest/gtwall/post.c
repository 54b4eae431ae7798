#include "post.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int connect_to(uint16_t port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    // SAFETY: every socket address starts as sockaddr does.
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    int error_number = errno;
    close(fd);
    errno = error_number;
    return -1;
}

static bool send_all(int fd, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t count = send(fd, bytes, length, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return false;
        bytes += count;
        length -= (size_t)count;
    }
    return true;
}

// A connection that breaks behind the answer's first bytes has answered.
static bool receive(int fd, char *answer, size_t size) {
    size_t used = 0;
    while (used < size - 1) {
        ssize_t count = recv(fd, answer + used, size - 1 - used, 0);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && used == 0)
            return false;
        if (count <= 0)
            break;
        used += (size_t)count;
    }
    answer[used] = '\0';
    return true;
}

bool post(uint16_t port, const char *request, char *answer, size_t size) {
    int fd = connect_to(port);
    if (fd < 0)
        return false;
    bool done = send_all(fd, request, strlen(request)) && receive(fd, answer, size);
    int error_number = errno;
    close(fd);
    errno = error_number;
    return done;
}
