#include "space.h"

uint64_t space_free_bytes(const struct statvfs *space) {
    return (uint64_t)space->f_bavail * space->f_frsize;
}

bool space_is_full(const struct statvfs *space) {
    // A file system that has no fixed number of inodes says that it has none at all.
    bool no_inodes = space->f_files > 0 && space->f_favail == 0;
    return no_inodes || space_free_bytes(space) < SPACE_FULL_BYTES;
}
