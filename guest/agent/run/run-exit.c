#include "run-exit.h"
#include <stdio.h>
#include <sys/wait.h>

static void describe_output(struct json_writer *writer, const struct output *output) {
    char name[64];
    snprintf(name, sizeof name, "%s_bytes", output->name);
    json_integer(writer, name, (int64_t)output->reported_bytes);
    snprintf(name, sizeof name, "%s_head_bytes", output->name);
    json_integer(writer, name, (int64_t)output->capture.head_bytes);
    snprintf(name, sizeof name, "%s_path", output->name);
    json_string(writer, name, output_path(output));
    snprintf(name, sizeof name, "%s_spool_complete", output->name);
    json_bool(writer, name, output->spool != NULL && spool_is_complete(output->spool));
}

void run_send_exit(const struct run *run) {
    bool exited = WIFEXITED(run->wait_status);
    struct json_writer writer;
    json_begin(&writer);
    if (exited) {
        json_integer(&writer, "exit_code", WEXITSTATUS(run->wait_status));
        json_null(&writer, "signal");
    } else {
        json_null(&writer, "exit_code");
        json_integer(&writer, "signal", WTERMSIG(run->wait_status));
    }
    json_bool(&writer, "timed_out", run->timed_out);
    json_bool(&writer, "killed", run->kill_requested && !exited && !run->timed_out);
    json_bool(&writer, "oom_killed", run->oom_killed);
    json_bool(&writer, "pids_exhausted", run->pids_exhausted);
    json_bool(&writer, "overlay_full", run->overlay_full);
    json_integer(&writer, "duration_us", (int64_t)(run->ended_us - run->started_us));
    json_integer(&writer, "background", (int64_t)run->background);
    describe_output(&writer, &run->out);
    describe_output(&writer, &run->err);
    json_end(&writer);
    link_send_json(run->stream.link, FRAME_EXIT, run->stream.id, &writer);
}
