#include "reap.h"
#include "console.h"
#include "loop.h"
#include "run/run.h"
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

// A run that makes orphans without end may not keep the loop from the others.
enum { REAPED_PER_TURN = 64 };

static void on_child(struct watch *watch, uint32_t events) {
    (void)events;
    struct signalfd_siginfo info;
    // One signal may stand for many children.
    while (read(watch->fd, &info, sizeof info) == (ssize_t)sizeof info)
        ;
    int status, reaped = 0;
    pid_t pid;
    while (reaped < REAPED_PER_TURN && (pid = waitpid(-1, &status, WNOHANG)) > 0) {
        run_reaped(pid, status);
        reaped++;
    }
    run_sweep();
    // Blocked, the signal waits until the loop comes by again.
    if (reaped == REAPED_PER_TURN && kill(getpid(), SIGCHLD) != 0)
        console_error("kill");
}

void reap_init(void) {
    static struct watch watch;
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &child, NULL) != 0)
        console_fatal("sigprocmask");
    // Writing to a host or a process that is gone is an error to handle, not a death.
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
        console_fatal("signal");
    watch.fd = signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
    watch.ready = on_child;
    if (watch.fd < 0 || !loop_watch(&watch, EPOLLIN))
        console_fatal("signalfd");
}
