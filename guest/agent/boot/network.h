// The loopback, and eth0 with QEMU's user-mode addresses where there is a card.
#ifndef IGNITION_NETWORK_H
#define IGNITION_NETWORK_H

void network_up(void);

// The loopback alone, where something took it down.
void network_loopback_up(void);

#endif
