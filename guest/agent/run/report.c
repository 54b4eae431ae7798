#include "report.h"

void report_init(struct report *report, uint64_t interval_us, bool owed) {
    report->interval_us = interval_us;
    report->owed = owed && interval_us > 0;
}

// The loop looks after every stream whenever it wakes.
static void on_time(struct timer *timer) {
    (void)timer;
}

static void send(const struct report *report, const struct output *out, const struct output *err,
                 struct link *link, uint32_t stream) {
    struct json_writer writer;
    json_begin(&writer);
    json_integer(&writer, "stdout_bytes", (int64_t)out->capture.total);
    json_integer(&writer, "stderr_bytes", (int64_t)err->capture.total);
    json_string(&writer, "last_line", report->line.text);
    json_string(&writer, "stdout_path", output_path(out));
    json_string(&writer, "stderr_path", output_path(err));
    json_end(&writer);
    link_send_json(link, FRAME_REPORT, stream, &writer);
}

bool report_send(struct report *report, const struct output *out, const struct output *err,
                 struct link *link, uint32_t stream) {
    uint64_t bytes = out->capture.total + err->capture.total;
    if (report->interval_us == 0 || (!report->owed && bytes == report->told_bytes))
        return true;
    uint64_t now = monotonic_us();
    if (now < report->next_us) {
        if (report->timer.slot == NULL)
            timer_start(&report->timer, report->next_us - now, on_time);
        return true;
    }
    if (!link_has_room(link))
        return false;
    send(report, out, err, link, stream);
    report->owed = false;
    report->told_bytes = bytes;
    report->next_us = now + report->interval_us;
    return true;
}

void report_stop(struct report *report) {
    report->interval_us = 0;
    timer_stop(&report->timer);
}
