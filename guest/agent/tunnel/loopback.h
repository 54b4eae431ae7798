// TCP sockets on 127.0.0.1, all non-blocking and close-on-exec.
#ifndef IGNITION_LOOPBACK_H
#define IGNITION_LOOPBACK_H

#include <stdint.h>

// -1 with errno set.
int loopback_listen(uint16_t port);
// The same; with errno EINPROGRESS the descriptor is valid and connects.
int loopback_connect(uint16_t port);
int loopback_accept(int listener);

// Closes it with a RST: the other end sees that the connection broke, not that it ended.
void loopback_reset(int fd);

// The socket's pending error, 0 for none.
int loopback_error(int fd);

#endif
