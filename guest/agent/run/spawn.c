#include "spawn.h"
#include "../console.h"
#include "environment.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    // The kernel's MAX_ARG_STRLEN, which counts the NUL.
    LONGEST_ARGUMENT_BYTES = 128 * 1024 - 1,
    // Where a longer command is found by the shell, which closes it before it runs the rest.
    COMMAND_FD = 9,
    AGENT_DESCRIPTORS = 8192,
};

static const char script_prefix[] = "exec 9<&-; ";
static const char source_script[] = ". /dev/fd/9";

// Written by the child, read by the parent; shared even where the child is a real fork.
struct spawn_report {
    volatile int step, error_number;
};

static struct spawn_report *report;
static struct rlimit child_descriptors;

void spawn_init(void) {
    report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (report == MAP_FAILED)
        console_fatal("mmap");
    if (getrlimit(RLIMIT_NOFILE, &child_descriptors) != 0)
        console_fatal("getrlimit");
    struct rlimit ours = {AGENT_DESCRIPTORS, AGENT_DESCRIPTORS};
    if (child_descriptors.rlim_max > ours.rlim_max)
        ours.rlim_max = child_descriptors.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &ours) != 0)
        console_error("setrlimit");
}

// An address sanitizer's shadow memory does not survive a child that runs on the same stack.
#if defined(__SANITIZE_ADDRESS__)
#define SHARE_MEMORY 0
#else
#define SHARE_MEMORY CLONE_VM
#endif

// JUSTIFICATION: with CLONE_VM and no stack of its own the child returns on the parent's stack. A
// system call made through a function would have its return address overwritten by the child, so
// the instruction stands inline in the caller, whose frame both use.
__attribute__((always_inline)) static inline long clone3(struct clone_args *arguments) {
#if defined(__x86_64__)
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(SYS_clone3), "D"(arguments), "S"(sizeof *arguments)
                     : "rcx", "r11", "memory");
    return result;
#elif defined(__aarch64__)
    register long number __asm__("x8") = SYS_clone3;
    register long first __asm__("x0") = (long)arguments;
    register long second __asm__("x1") = sizeof *arguments;
    __asm__ volatile("svc #0" : "+r"(first) : "r"(number), "r"(second) : "memory");
    return first;
#else
#error "spawn.c knows x86_64 and aarch64"
#endif
}

noreturn static void child_fail(enum spawn_step step) {
    report->step = step;
    report->error_number = errno;
    _exit(127);
}

static void child_descriptors_setup(const struct spawn_request *request, int command_fd) {
    if (dup2(request->stdin_fd, 0) < 0 || dup2(request->stdout_fd, 1) < 0 ||
        dup2(request->stderr_fd, 2) < 0)
        child_fail(SPAWN_PREPARE);
    unsigned first = 3;
    if (command_fd >= 0) {
        if (command_fd == COMMAND_FD ? fcntl(command_fd, F_SETFD, 0) != 0
                                     : dup2(command_fd, COMMAND_FD) < 0)
            child_fail(SPAWN_PREPARE);
        if (close_range(3, COMMAND_FD - 1, 0) != 0)
            child_fail(SPAWN_PREPARE);
        first = COMMAND_FD + 1;
    }
    if (close_range(first, ~0U, 0) != 0 || setrlimit(RLIMIT_NOFILE, &child_descriptors) != 0)
        child_fail(SPAWN_PREPARE);
}

noreturn static void child_main(const struct spawn_request *request, int command_fd) {
    sigset_t none;
    sigemptyset(&none);
    signal(SIGPIPE, SIG_DFL);
    if (sigprocmask(SIG_SETMASK, &none, NULL) != 0 || setsid() < 0)
        child_fail(SPAWN_PREPARE);
    umask(022);
    child_descriptors_setup(request, command_fd);
    if (chdir(request->cwd) != 0)
        child_fail(SPAWN_CWD);
    const char *script = command_fd >= 0 ? source_script : request->command;
    // SAFETY: execve does not write to its arguments.
    char *const arguments[] = {"sh", "-c", (char *)(uintptr_t)script, NULL};
    execve("/bin/sh", arguments, environment_now());
    child_fail(SPAWN_EXEC);
}

// -1 with errno set.
static int command_file(const struct spawn_request *request) {
    int fd = memfd_create("command", MFD_CLOEXEC);
    size_t prefix = strlen(script_prefix);
    if (fd < 0)
        return -1;
    // A memfd takes all of it or fails.
    if (write(fd, script_prefix, prefix) != (ssize_t)prefix ||
        write(fd, request->command, request->command_bytes) != (ssize_t)request->command_bytes) {
        close(fd);
        errno = ENOSPC;
        return -1;
    }
    return fd;
}

__attribute__((noinline)) static long start(const struct spawn_request *request, int command_fd) {
    struct clone_args arguments = {.flags = CLONE_VFORK, .exit_signal = SIGCHLD};
    arguments.flags |= SHARE_MEMORY;
    if (request->cgroup_fd >= 0) {
        arguments.flags |= CLONE_INTO_CGROUP;
        arguments.cgroup = (__u64)request->cgroup_fd;
    }
    long pid = clone3(&arguments);
    if (pid == 0)
        child_main(request, command_fd);
    return pid;
}

pid_t spawn_shell(const struct spawn_request *request, enum spawn_step *failed) {
    int command_fd = -1;
    *failed = SPAWN_PREPARE;
    if (request->command_bytes > LONGEST_ARGUMENT_BYTES && (command_fd = command_file(request)) < 0)
        return -1;
    report->step = SPAWN_NONE;
    long pid = start(request, command_fd);
    int error_number = pid < 0 ? (int)-pid : report->error_number;
    if (command_fd >= 0)
        close(command_fd);
    if (pid > 0 && report->step == SPAWN_NONE)
        return (pid_t)pid;
    // The child that could not become a shell is reaped with all others.
    if (pid > 0)
        *failed = (enum spawn_step)report->step;
    errno = error_number;
    return -1;
}
