// AF_VSOCK port 7000, where the guest has a vsock device. The VMM did the handshake.
#ifndef IGNITION_VSOCK_H
#define IGNITION_VSOCK_H

// Listens if there is a device; without one nothing happens.
void vsock_listen(void);

#endif
