// Starts a shell, vfork-style: nothing of the agent's memory is copied.
#ifndef IGNITION_SPAWN_H
#define IGNITION_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct spawn_request {
    const char *command; // NUL-terminated, holds no NUL itself
    size_t command_bytes;
    const char *cwd;
    int stdin_fd, stdout_fd, stderr_fd; // above 2, close-on-exec
    int cgroup_fd;                      // -1: stay in the agent's
};

enum spawn_step { SPAWN_NONE, SPAWN_PREPARE, SPAWN_CWD, SPAWN_EXEC };

// Once, before the first spawn. Raises the agent's own descriptor limit.
void spawn_init(void);

// The shell's pid, leader of a new session; -1 with `failed` and errno set.
pid_t spawn_shell(const struct spawn_request *request, enum spawn_step *failed);

#endif
