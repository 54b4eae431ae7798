#include "run-start.h"
#include "../file/path.h"
#include "spawn.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t runs_started;

// A run's pipes: ours do not block, the shell's do. All are -1 or open.
struct pipes {
    int in[2], out[2], err[2];
};

void run_prepare(struct run *run) {
    run->cgroup.fd = -1;
    run->out.watch.fd = run->err.watch.fd = -1;
    run->out.name = "stdout";
    run->err.name = "stderr";
    input_init(&run->in, &run->stream);
}

const char *run_accept(struct run *run, const struct json_object *request) {
    int64_t command_bytes = 0, timeout_ms = 0, max_output_bytes = -1, report_ms = 0;
    const char *cwd = "/root";
    if (!json_get_integer(request, "command_bytes", 1, RUN_MAX_COMMAND_BYTES, &command_bytes) ||
        command_bytes == 0)
        return "command_bytes is not 1 to 1048576";
    if (!json_get_integer(request, "timeout_ms", 1, RUN_MAX_TIMEOUT_MS, &timeout_ms) ||
        timeout_ms == 0)
        return "timeout_ms is not 1 to 86400000";
    if (!json_get_integer(request, "max_output_bytes", 0, RUN_MAX_OUTPUT_BYTES,
                          &max_output_bytes) ||
        max_output_bytes < 0)
        return "max_output_bytes is not 0 to 1048576";
    if (!json_get_bool(request, "stdin", &run->wants_stdin))
        return "stdin is not a boolean";
    if (!json_get_bool(request, "spool", &run->wants_spool))
        return "spool is not a boolean";
    if (!json_get_integer(request, "report_ms", 0, REPORT_MAX_MS, &report_ms) ||
        (report_ms > 0 && report_ms < REPORT_MIN_MS))
        return "report_ms is not 0 or 50 to 60000";
    if (!json_get_string(request, "cwd", &cwd) || !path_resolve(run->cwd, cwd))
        return "cwd is not a path of 1 to 4095 bytes";
    run->command_bytes = (size_t)command_bytes;
    run->timeout_us = (uint64_t)timeout_ms * 1000;
    run->max_output_bytes = (size_t)max_output_bytes;
    report_init(&run->report, (uint64_t)report_ms * 1000, run->wants_spool);
    run->command = malloc(run->command_bytes + 1);
    if (run->command == NULL)
        return "there is no memory for the command";
    run->command[run->command_bytes] = '\0';
    return NULL;
}

static void close_one(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void close_pipes(struct pipes *pipes) {
    for (int end = 0; end < 2; end++) {
        close_one(&pipes->in[end]);
        close_one(&pipes->out[end]);
        close_one(&pipes->err[end]);
    }
}

static bool dont_block(int fd) {
    return fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

static bool open_pipes(struct pipes *pipes, bool wants_stdin) {
    *pipes = (struct pipes){{-1, -1}, {-1, -1}, {-1, -1}};
    bool opened = pipe2(pipes->out, O_CLOEXEC) == 0 && pipe2(pipes->err, O_CLOEXEC) == 0 &&
                  dont_block(pipes->out[0]) && dont_block(pipes->err[0]);
    if (wants_stdin)
        opened = opened && pipe2(pipes->in, O_CLOEXEC) == 0 && dont_block(pipes->in[1]);
    else
        opened = opened && (pipes->in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;
    if (opened)
        return true;
    int error_number = errno;
    close_pipes(pipes);
    errno = error_number;
    return false;
}

static bool spawn(struct run *run, const struct pipes *pipes, const char **code,
                  const char **message) {
    struct spawn_request request = {
        .command = run->command,
        .command_bytes = run->command_bytes,
        .cwd = run->cwd,
        .stdin_fd = pipes->in[0],
        .stdout_fd = pipes->out[1],
        .stderr_fd = pipes->err[1],
        .cgroup_fd = run->cgroup.fd,
    };
    enum spawn_step failed;
    run->pid = spawn_shell(&request, &failed);
    if (run->pid > 0)
        return true;
    run->pid = 0;
    *code = failed == SPAWN_CWD ? "bad_cwd" : "spawn_failed";
    *message = failed == SPAWN_CWD    ? "the working directory could not be entered"
               : failed == SPAWN_EXEC ? "/bin/sh could not be executed"
                                      : "the shell's process could not be created";
    return false;
}

// The agent's ends; the shell's are closed here as soon as it has them.
static void adopt_pipes(struct run *run, struct pipes *pipes) {
    close_one(&pipes->out[1]);
    close_one(&pipes->err[1]);
    close_one(&pipes->in[0]);
    capture_init(&run->out.capture, run->max_output_bytes);
    capture_init(&run->err.capture, run->max_output_bytes);
    run->out.run = run->err.run = run->number;
    if (run->report.interval_us > 0)
        run->out.line = run->err.line = &run->report.line;
    run->err.line_stream = 1;
    if (run->wants_spool) {
        output_spool(&run->out);
        output_spool(&run->err);
    }
    output_open(&run->out, pipes->out[0], run_stdout_ended);
    output_open(&run->err, pipes->err[0], run_stderr_ended);
    if (pipes->in[1] >= 0)
        input_open(&run->in, pipes->in[1]);
}

bool run_start(struct run *run, const char **code, const char **message) {
    struct pipes pipes;
    run->number = ++runs_started;
    *code = "spawn_failed";
    *message = "the run's pipes could not be created";
    if (!open_pipes(&pipes, run->wants_stdin))
        return false;
    *message = "the run's cgroup could not be created";
    run->started_us = monotonic_us();
    if (!cgroup_create(&run->cgroup, run->number) || !spawn(run, &pipes, code, message)) {
        int error_number = errno;
        close_pipes(&pipes);
        errno = error_number;
        return false;
    }
    run->cgroup.session = run->pid;
    run->state = RUN_RUNNING;
    free(run->command);
    run->command = NULL;
    adopt_pipes(run, &pipes);
    timer_start(&run->timer, run->timeout_us, run_deadline);
    return true;
}
