// Kernel modules of the initramfs.
#ifndef IGNITION_MODULES_H
#define IGNITION_MODULES_H

// Loads the uncompressed modules named in /modules/order, one per line, in that order. One that
// cannot be loaded is logged and skipped: what needs it will say so.
void modules_load(void);

#endif
