#include "warm.h"
#include "../console.h"
#include "../run/spawn.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const commands[] = {
    ":",
    "ls -la / && cat /etc/os-release && grep -r root /etc/passwd && sed -n 1p /etc/passwd && "
    "head -n1 /etc/passwd && tail -n1 /etc/passwd && wc -l /etc/passwd && sort /etc/passwd && "
    "find /etc -maxdepth 1 && mkdir -p /tmp/.warm && cp /etc/passwd /tmp/.warm/ && "
    "mv /tmp/.warm/passwd /tmp/.warm/x && rm -r /tmp/.warm && ps && bash -c :",
    "python3 -c 'import os, sys, json, re, subprocess, pathlib, collections, tempfile'",
    "git --version && mkdir /tmp/.warm && cd /tmp/.warm && git init -q . && echo x >x && "
    "git add x && git -c user.name=x -c user.email=x commit -qm x && git status && cd / && "
    "rm -rf /tmp/.warm",
    "cd /tmp && printf '#include <stdio.h>\\nint main(void) { return puts(\"hello\") < 0; }\\n' "
    ">.warm.c && gcc -O1 -o .warm .warm.c && ./.warm; rm -f .warm .warm.c",
};

static void warm(const char *command, int null_fd) {
    struct spawn_request request = {
        .command = command,
        .command_bytes = strlen(command),
        .cwd = "/root",
        .stdin_fd = null_fd,
        .stdout_fd = null_fd,
        .stderr_fd = null_fd,
        .cgroup_fd = -1,
    };
    enum spawn_step failed;
    int status = 0;
    pid_t pid = spawn_shell(&request, &failed);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        console_error("warming");
    else if (status != 0)
        console_log("warming ended with status %d: %.40s", status, command);
}

void warm_tools(void) {
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd < 0) {
        console_error("/dev/null");
        return;
    }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        warm(commands[i], null_fd);
    close(null_fd);
}
