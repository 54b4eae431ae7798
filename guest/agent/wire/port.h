// The virtio-serial port named `ignition.agent`, and the vsock listener.
#ifndef IGNITION_PORT_H
#define IGNITION_PORT_H

#include <stdbool.h>

// Opens the port as a link. False, after a line on the console, when there is none.
bool port_open(void);

// Serves an open socket as if it were the port, until its peer is gone: for tests on a host.
bool port_serve_test(int fd);

#endif
