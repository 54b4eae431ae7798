// Every process that loses its parent becomes the agent's child; all are reaped here.
#ifndef IGNITION_REAP_H
#define IGNITION_REAP_H

// Blocks SIGCHLD and watches for it on the loop.
void reap_init(void);

#endif
