// What PID 1 does before it serves.
#ifndef IGNITION_INIT_H
#define IGNITION_INIT_H

// From the kernel's hand-over to a complete system; exits (and so ends the VM) when it cannot.
void init_system(void);

#endif
