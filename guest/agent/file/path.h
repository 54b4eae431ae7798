// Paths as they come from the host.
#ifndef IGNITION_PATH_H
#define IGNITION_PATH_H

#include <limits.h>
#include <stdbool.h>

// Absolute form of `path`, relative ones being under /root; false when it is empty or too long.
bool path_resolve(char absolute[PATH_MAX], const char *path);

// Creates the missing directories above the last component (0755). False with errno set.
bool path_make_parents(const char *absolute);

// The wire's error code for what a system call on a file said.
const char *path_error_code(int error_number);

#endif
