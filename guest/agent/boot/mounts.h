// From the initramfs to the root every run sees: the read-only image under a memory overlay.
#ifndef IGNITION_MOUNTS_H
#define IGNITION_MOUNTS_H

// /proc, /sys, /dev of the initramfs. Exits when one cannot be mounted.
void mount_early(void);

// Mounts the image and the overlay and makes them /; frees the initramfs.
void mount_root(void);

// What programs expect besides the root: /dev/pts, /dev/shm, /run, cgroups.
void mount_late(void);

#endif
