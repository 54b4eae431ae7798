#include "run.h"
#include "../file/space.h"
#include "run-exit.h"
#include "run-start.h"
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DRAIN_US = 50000 };

static struct run *runs;
static bool held;

static void run_free(struct run *run) {
    for (struct run **at = &runs; *at != NULL; at = &(*at)->next) {
        if (*at == run) {
            *at = run->next;
            break;
        }
    }
    timer_stop(&run->timer);
    report_stop(&run->report);
    if (run->stream.link != NULL)
        stream_detach(&run->stream);
    output_close(&run->out);
    output_close(&run->err);
    input_close(&run->in);
    free(run->command);
    free(run);
}

static void kill_all(struct run *run) {
    run->cgroup_killed = true;
    cgroup_kill(&run->cgroup, run->pid);
}

// A run nobody waits for goes when its last pipe and its last process are gone.
static void free_if_over(struct run *run) {
    if (run->state == RUN_LINGERING && run->pid == 0 && run->out.watch.fd < 0 &&
        run->err.watch.fd < 0 && cgroup_remove(&run->cgroup))
        run_free(run);
}

static void on_lingering(struct timer *timer) {
    free_if_over((struct run *)((char *)timer - offsetof(struct run, timer)));
}

static void linger(struct run *run) {
    run->state = RUN_LINGERING;
    // Removing a cgroup takes longer than all that sends EXIT, so it waits until EXIT is on its
    // way.
    timer_start(&run->timer, 0, on_lingering);
    report_stop(&run->report);
    input_close(&run->in);
    run->out.frozen = run->err.frozen = true;
    // What was shown is not needed again; a spool goes on while its pipe is open.
    capture_free(&run->out.capture);
    capture_free(&run->err.capture);
    if (run->out.spool != NULL)
        spool_finish(run->out.spool);
    if (run->err.spool != NULL)
        spool_finish(run->err.spool);
}

// Also where the shell never started: its failed child may still be in the cgroup.
static void run_fail(struct run *run, const char *code, int error_number, const char *message) {
    link_send_error(run->stream.link, run->stream.id, code, error_number, message);
    stream_detach(&run->stream);
    linger(run);
}

// All that EXIT says is known from here on.
static void conclude(struct run *run) {
    if (run->state != RUN_DRAINING)
        return;
    timer_stop(&run->timer);
    run->state = RUN_SENDING;
    // Killed processes may take a moment to go, but none of them lives on or writes.
    void (*take_rest)(struct output *) = run->cgroup_killed ? output_end : output_drain;
    take_rest(&run->out);
    take_rest(&run->err);
    run->background = run->cgroup_killed ? 0 : cgroup_count(&run->cgroup);
    run->oom_killed = cgroup_was_oom_killed(&run->cgroup);
    run->pids_exhausted = cgroup_ran_out_of_pids(&run->cgroup);
    struct statvfs space;
    run->overlay_full = statvfs("/", &space) == 0 && space_is_full(&space);
    output_freeze(&run->out);
    output_freeze(&run->err);
    input_close(&run->in);
}

// SAFETY: both timers' and outputs' owners are found from their place in struct run.
static void on_drained(struct timer *timer) {
    conclude((struct run *)((char *)timer - offsetof(struct run, timer)));
}

static void on_output_end(struct run *run) {
    if (run->out.watch.fd < 0 && run->err.watch.fd < 0)
        conclude(run);
    free_if_over(run);
}

void run_stdout_ended(struct output *output) {
    on_output_end((struct run *)((char *)output - offsetof(struct run, out)));
}

void run_stderr_ended(struct output *output) {
    on_output_end((struct run *)((char *)output - offsetof(struct run, err)));
}

void run_deadline(struct timer *timer) {
    struct run *run = (struct run *)((char *)timer - offsetof(struct run, timer));
    run->timed_out = true;
    kill_all(run);
}

static void shell_ended(struct run *run, int wait_status) {
    run->pid = 0;
    run->wait_status = wait_status;
    run->ended_us = monotonic_us();
    if (run->state != RUN_RUNNING)
        return;
    run->state = RUN_DRAINING;
    output_drain(&run->out);
    output_drain(&run->err);
    bool ended = run->out.watch.fd < 0 && run->err.watch.fd < 0;
    // Without other processes nobody can write any more.
    if (ended || run->cgroup_killed || cgroup_count(&run->cgroup) == 0)
        conclude(run);
    else
        timer_start(&run->timer, DRAIN_US, on_drained);
}

void run_reaped(pid_t pid, int wait_status) {
    for (struct run *run = runs; run != NULL; run = run->next)
        if (run->pid == pid)
            shell_ended(run, wait_status);
}

void run_sweep(void) {
    struct run *next;
    for (struct run *run = runs; run != NULL; run = next) {
        next = run->next;
        free_if_over(run);
    }
}

static void receive_command(struct run *run, const struct frame *frame) {
    if (run->state != RUN_RECEIVING ||
        frame->payload_bytes > run->command_bytes - run->command_received) {
        if (run->state == RUN_RECEIVING)
            run_fail(run, "bad_request", 0, "more COMMAND bytes than announced");
        return;
    }
    memcpy(run->command + run->command_received, frame->payload, frame->payload_bytes);
    run->command_received += frame->payload_bytes;
    if (run->command_received < run->command_bytes)
        return;
    if (memchr(run->command, '\0', run->command_bytes) != NULL) {
        run_fail(run, "bad_request", 0, "the command holds a NUL byte");
        return;
    }
    const char *code, *message;
    if (!run_start(run, &code, &message))
        run_fail(run, code, errno, message);
}

// What the shell left behind: whoever sends this does not know yet that the shell ended.
static void kill_rest(struct run *run) {
    kill_all(run);
    run->background = 0;
    conclude(run);
}

static void receive_kill(struct run *run, int signal_number) {
    if (run->state == RUN_RECEIVING) {
        run_fail(run, "cancelled", 0, "cancelled before the command was complete");
    } else if (run->state == RUN_RUNNING) {
        run->kill_requested = true;
        if (signal_number == SIGKILL)
            kill_all(run);
        else
            cgroup_signal(&run->cgroup, signal_number);
    } else if (signal_number == SIGKILL) {
        kill_rest(run);
    }
}

static void receive_kill_request(struct run *run, const struct frame *frame) {
    static struct json_object request;
    int64_t signal_number = 0;
    // A KILL that cannot be understood must not end the run's stream.
    if (frame->payload_bytes <= FRAME_MAX_CONTROL_PAYLOAD &&
        json_parse(&request, frame->payload, frame->payload_bytes) &&
        json_get_integer(&request, "signal", 1, 64, &signal_number) && signal_number != 0)
        receive_kill(run, (int)signal_number);
}

// More than was granted: the sender is broken, and so is its run.
static void refuse_input(struct run *run) {
    kill_all(run);
    run_fail(run, "credit_exceeded", 0, "more STDIN than granted");
}

static void run_frame(struct stream *stream, const struct frame *frame) {
    struct run *run = (struct run *)stream;
    switch (frame->type) {
    case FRAME_COMMAND:
        receive_command(run, frame);
        break;
    case FRAME_STDIN:
        if (run->wants_stdin && !input_add(&run->in, frame->payload, frame->payload_bytes))
            refuse_input(run);
        break;
    case FRAME_STDIN_EOF:
        input_end(&run->in);
        break;
    case FRAME_KILL:
        receive_kill_request(run, frame);
        break;
    case FRAME_CANCEL:
        receive_kill(run, SIGKILL);
        break;
    default:
        break;
    }
}

static bool run_pump(struct stream *stream) {
    struct run *run = (struct run *)stream;
    bool all_sent = output_send(&run->out, stream->link, FRAME_STDOUT, stream->id);
    all_sent &= output_send(&run->err, stream->link, FRAME_STDERR, stream->id);
    if (run->state != RUN_RECEIVING)
        all_sent &= report_send(&run->report, &run->out, &run->err, stream->link, stream->id);
    if (run->state != RUN_SENDING || !all_sent)
        return !all_sent;
    run_send_exit(run);
    stream_detach(stream);
    linger(run);
    return false;
}

static void run_abandon(struct stream *stream) {
    struct run *run = (struct run *)stream;
    if (held && run->state != RUN_RECEIVING) {
        output_spool(&run->out);
        output_spool(&run->err);
    } else {
        if (run->state == RUN_RUNNING || run->state == RUN_DRAINING)
            kill_all(run);
        output_forget(&run->out);
        output_forget(&run->err);
    }
    linger(run);
}

static void hold(bool on) {
    held = on;
    for (struct run *run = runs; run != NULL; run = run->next)
        cgroup_freeze(&run->cgroup, on);
}

void runs_hold(void) {
    hold(true);
}

void runs_release(void) {
    hold(false);
}

static const struct stream_ops run_ops = {run_frame, run_pump, run_abandon};

static size_t count_runs(bool lingering) {
    size_t count = 0;
    for (struct run *run = runs; run != NULL; run = run->next)
        count += (run->state == RUN_LINGERING) == lingering;
    return count;
}

void run_open(struct link *link, uint32_t stream, const struct json_object *request) {
    struct run *run = NULL;
    if (count_runs(false) >= RUN_MAX_ACTIVE || count_runs(true) >= RUN_MAX_LINGERING ||
        (run = calloc(1, sizeof *run)) == NULL ||
        !stream_attach(&run->stream, link, stream, &run_ops)) {
        free(run);
        link_send_error(link, stream, "too_many_runs", 0,
                        "64 runs are active, or 512 have left processes behind");
        return;
    }
    run_prepare(run);
    run->next = runs;
    runs = run;
    const char *message = run_accept(run, request);
    if (message != NULL)
        run_fail(run, "bad_request", 0, message);
}
