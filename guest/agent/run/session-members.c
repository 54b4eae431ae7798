#include "session-members.h"
#include "../console.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// pid (name) state ppid pgrp session ...; the name may hold anything, so the last `)` counts.
static bool lives_in_session(const char *pid, pid_t session) {
    char path[64], text[512], state;
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t count = read(fd, text, sizeof text - 1);
    close(fd);
    text[count < 0 ? 0 : count] = '\0';
    const char *fields = strrchr(text, ')');
    int found;
    return fields != NULL && sscanf(fields, ") %c %*d %*d %d", &state, &found) == 2 &&
           found == session && state != 'Z';
}

static size_t each(pid_t session, int signal_number) {
    size_t count = 0;
    DIR *processes = opendir("/proc");
    if (processes == NULL) {
        console_error("/proc");
        return 0;
    }
    for (struct dirent *entry; (entry = readdir(processes)) != NULL;) {
        long pid = strtol(entry->d_name, NULL, 10);
        if (pid <= 0 || !lives_in_session(entry->d_name, session))
            continue;
        count++;
        if (signal_number != 0 && kill((pid_t)pid, signal_number) != 0 && errno != ESRCH)
            console_error("kill");
    }
    closedir(processes);
    return count;
}

void session_signal(pid_t session, int signal_number) {
    if (session > 0)
        each(session, signal_number);
}

size_t session_count(pid_t session) {
    return session > 0 ? each(session, 0) : 0;
}
