#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* struct ucred, SOCK_CLOEXEC */
#endif
#include "unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __APPLE__
#include <sys/ucred.h>
#endif

int unix_address(struct sockaddr_un *address, const char *path) {
    const size_t length = strlen(path);
    if (length == 0)
        return -EINVAL;
    if (length >= sizeof address->sun_path)
        return -ENAMETOOLONG;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, path, length);
    return 0;
}

#ifdef __APPLE__
int unix_socket(void) {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0)
        return -errno;
    const int on = 1;
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on) == 0)
        return fd;
    const int error = -errno;
    close(fd);
    return error;
}
#else
int unix_socket(void) {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return fd < 0 ? -errno : fd;
}
#endif

static int connect_at(int fd, const struct sockaddr_un *address) {
    if (connect(fd, (const struct sockaddr *)address, sizeof *address) == 0)
        return 0;
    /* A nonblocking attempt that a signal interrupts goes on by itself. */
    return errno == EINTR ? -EINPROGRESS : -errno;
}

/* -ELOOP for a link. */
static int refuse_link(int result, const struct stat *found) {
    if (result != 0)
        return -errno;
    return S_ISLNK(found->st_mode) ? -ELOOP : 0;
}

#ifdef __APPLE__
int unix_connect(int fd, const struct sockaddr_un *address) {
    struct stat found;
    const int error = refuse_link(lstat(address->sun_path, &found), &found);
    return error != 0 ? error : connect_at(fd, address);
}
#else
/* Through the file that was looked at: another one may lie there by now. */
int unix_connect(int fd, const struct sockaddr_un *address) {
    const int file = open(address->sun_path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return -errno;
    struct stat found;
    int result = refuse_link(fstat(file, &found), &found);
    if (result == 0) {
        struct sockaddr_un direct = {.sun_family = AF_UNIX};
        snprintf(direct.sun_path, sizeof direct.sun_path, "/proc/self/fd/%d", file);
        result = connect_at(fd, &direct);
    }
    close(file);
    return result;
}
#endif

int unix_connect_result(int fd) {
    int result = 0;
    socklen_t size = sizeof result;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &result, &size) != 0)
        return -errno;
    return -result;
}

static bool is_trusted(uid_t peer) {
    return peer == 0 || peer == geteuid();
}

#ifdef __APPLE__
bool unix_peer_is_trusted(int fd) {
    struct xucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_LOCAL, LOCAL_PEERCRED, &peer, &size) == 0 &&
           peer.cr_version == XUCRED_VERSION && is_trusted(peer.cr_uid);
}
#else
bool unix_peer_is_trusted(int fd) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && is_trusted(peer.uid);
}
#endif
