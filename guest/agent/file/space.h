// What is left of the file system that everything in the guest is written to.
#ifndef IGNITION_SPACE_H
#define IGNITION_SPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/statvfs.h>

// Less than this is as good as nothing: the next write of a tool fails.
enum { SPACE_FULL_BYTES = 256 * 1024 };

uint64_t space_free_bytes(const struct statvfs *space);

// Also without inodes.
bool space_is_full(const struct statvfs *space);

#endif
