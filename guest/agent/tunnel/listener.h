// The guest's proxy: 127.0.0.1:3128, whose connections become tunnels of the link that asked for
// it.
#ifndef IGNITION_LISTENER_H
#define IGNITION_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

struct tunnels;

// 3128 unless set.
void listener_set_port(uint16_t port);
uint16_t listener_port(void);

// Listens for `owner`, also where it did for another one. False with errno set.
bool listener_open(struct tunnels *owner);
// Does nothing when it listens for another one, or not at all.
void listener_close(const struct tunnels *owner);

// A connection for `owner`, or -1 when none waits.
int listener_accept(const struct tunnels *owner);
// Whether one may wait.
bool listener_is_ready(const struct tunnels *owner);

#endif
