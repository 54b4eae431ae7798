#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/un.h>

/* Fills `address`; -ENAMETOOLONG when `path` does not fit, -EINVAL when it is empty. */
int unix_address(struct sockaddr_un *address, const char *path);

/* A nonblocking, close-on-exec AF_UNIX stream socket, or a negative errno. */
int unix_socket(void);

/*
 * Starts to connect. Returns 0 when connected, -EINPROGRESS when the socket becomes writable at the
 * end of the attempt, -EAGAIN when the backlog is full (try again later), -ELOOP when a link lies
 * at the path, since whoever may write there could lead us to another's socket, or another negative
 * errno.
 */
int unix_connect(int fd, const struct sockaddr_un *address);

/* The result of an attempt that was in progress: 0 or a negative errno. */
int unix_connect_result(int fd);

/* Whether the process at the other end runs as us or as root. An unknown peer is not trusted. */
bool unix_peer_is_trusted(int fd);
