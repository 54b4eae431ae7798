// Which block device holds the image.
#ifndef IGNITION_ROOT_DEVICE_H
#define IGNITION_ROOT_DEVICE_H

#include <stdbool.h>

// The first virtio disk with an ext4 superblock; waits a few seconds for it to appear.
bool root_device_find(char device[64]);

#endif
