#include "output.h"
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

enum {
    CHUNK_BYTES = 256 * 1024,
    // A run may not keep the loop from the others for longer than this.
    BYTES_PER_TURN = 256 * 1024,
    // What a pipe holds at first; a run that fills it gets a larger one.
    SMALL_PIPE_BYTES = 64 * 1024,
    LARGE_PIPE_BYTES = 1024 * 1024,
    // Otherwise the agent would wake for each of the run's writes, and interrupt it.
    REST_US = 1000,
    // Everything a pipe can hold, whatever size its owner gave it.
    BYTES_PER_DRAIN = 2 * 1024 * 1024,
    FRAME_BYTES = 64 * 1024,
};

static uint8_t chunk[CHUNK_BYTES];

// The stream becomes more than can be shown: everything so far goes to the file first.
static void start_spool(struct output *output) {
    if (output->spool != NULL || output->spool_refused)
        return;
    output->spool = spool_create(output->run, output->name);
    if (output->spool == NULL) {
        output->spool_refused = true;
        return;
    }
    struct capture_piece pieces[3];
    size_t count = capture_pieces(&output->capture, pieces);
    for (size_t i = 0; i < count; i++)
        spool_write(output->spool, pieces[i].bytes, pieces[i].length);
}

void output_spool(struct output *output) {
    start_spool(output);
}

const char *output_path(const struct output *output) {
    return output->spool == NULL ? NULL : spool_path(output->spool);
}

static void keep(struct output *output, const uint8_t *bytes, size_t length) {
    if (!output->frozen && capture_would_lose(&output->capture, length))
        start_spool(output);
    if (output->spool != NULL)
        spool_write(output->spool, bytes, length);
    if (!output->frozen)
        capture_add(&output->capture, bytes, length);
    if (!output->frozen && output->line != NULL)
        last_line_add(output->line, output->line_stream, bytes, length);
}

static void close_pipe(struct output *output) {
    if (output->watch.fd < 0)
        return;
    timer_stop(&output->rest);
    loop_unwatch(&output->watch);
    close(output->watch.fd);
    output->watch.fd = -1;
}

// A pipe that cannot grow stays as it is.
static void widen(struct output *output) {
    if (!output->busy)
        fcntl(output->watch.fd, F_SETPIPE_SZ, LARGE_PIPE_BYTES);
    output->busy = true;
}

// False when there is nothing more to read.
static bool read_up_to(struct output *output, size_t most) {
    for (size_t total = 0; total < most;) {
        ssize_t count = read(output->watch.fd, chunk, sizeof chunk);
        if (count < 0 && errno == EAGAIN)
            return false;
        if (count <= 0) {
            close_pipe(output);
            return false;
        }
        if (count >= SMALL_PIPE_BYTES)
            widen(output);
        keep(output, chunk, (size_t)count);
        total += (size_t)count;
    }
    return true;
}

static void on_rested(struct timer *timer) {
    // SAFETY: the timer is embedded in its output.
    struct output *output = (struct output *)((char *)timer - offsetof(struct output, rest));
    loop_change(&output->watch, EPOLLIN);
}

static void on_ready(struct watch *watch, uint32_t events) {
    (void)events;
    struct output *output = (struct output *)watch;
    bool has_more = read_up_to(output, BYTES_PER_TURN);
    if (output->watch.fd < 0) {
        output->on_end(output);
    } else if (output->busy && !has_more) {
        // Its end is still told.
        loop_change(watch, 0);
        timer_start(&output->rest, REST_US, on_rested);
    }
}

bool output_open(struct output *output, int fd, void (*on_end)(struct output *output)) {
    output->watch = (struct watch){.fd = fd, .ready = on_ready};
    output->on_end = on_end;
    if (loop_watch(&output->watch, EPOLLIN))
        return true;
    close(fd);
    output->watch.fd = -1;
    return false;
}

void output_close(struct output *output) {
    close_pipe(output);
    if (output->spool != NULL)
        spool_close(output->spool);
    output->spool = NULL;
    capture_free(&output->capture);
}

void output_forget(struct output *output) {
    output->frozen = true;
    output->spool_refused = true;
    if (output->spool != NULL)
        spool_discard(output->spool);
    output->spool = NULL;
}

void output_drain(struct output *output) {
    if (output->watch.fd >= 0)
        read_up_to(output, BYTES_PER_DRAIN);
}

void output_end(struct output *output) {
    output_drain(output);
    close_pipe(output);
}

void output_freeze(struct output *output) {
    output->frozen = true;
    output->reported_bytes = output->capture.total;
    if (output->watch.fd >= 0)
        start_spool(output);
}

static bool send_piece(struct output *output, struct link *link, uint8_t type, uint32_t stream,
                       bool tail) {
    const uint8_t *bytes = NULL;
    size_t length = tail ? capture_next_tail(&output->capture, &bytes)
                         : capture_next_head(&output->capture, &bytes);
    if (length == 0)
        return false;
    if (length > FRAME_BYTES)
        length = FRAME_BYTES;
    link_send(link, type, stream, bytes, length);
    *(tail ? &output->capture.tail_sent : &output->capture.head_sent) += length;
    return true;
}

bool output_send(struct output *output, struct link *link, uint8_t type, uint32_t stream) {
    while (link_has_room(link)) {
        if (send_piece(output, link, type, stream, false))
            continue;
        if (!output->frozen || !send_piece(output, link, type, stream, true))
            return true;
    }
    return false;
}
