#include "input.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GRANT_BYTES = INPUT_WINDOW_BYTES / 4 };

void input_init(struct input *input, struct stream *stream) {
    *input = (struct input){.watch.fd = -1, .credit = INPUT_WINDOW_BYTES, .stream = stream};
}

static void close_pipe(struct input *input) {
    if (input->watched)
        loop_unwatch(&input->watch);
    input->watched = false;
    if (input->watch.fd >= 0)
        close(input->watch.fd);
    input->watch.fd = -1;
}

void input_close(struct input *input) {
    close_pipe(input);
    free(input->bytes);
    input->bytes = NULL;
    input->begin = input->end = 0;
    input->refused = true;
}

static void consumed(struct input *input, size_t length) {
    input->to_grant += (uint32_t)length;
    if (input->to_grant < GRANT_BYTES || input->ended || input->stream->link == NULL)
        return;
    link_send_credit(input->stream->link, input->stream->id, input->to_grant);
    input->credit += input->to_grant;
    input->to_grant = 0;
}

static void refuse(struct input *input) {
    size_t dropped = input->end - input->begin;
    input_close(input);
    consumed(input, dropped);
}

// Gives the process what its pipe takes.
static void flush(struct input *input) {
    while (input->begin < input->end) {
        ssize_t count =
            write(input->watch.fd, input->bytes + input->begin, input->end - input->begin);
        if (count < 0 && errno == EAGAIN) {
            if (!input->watched)
                input->watched = loop_watch(&input->watch, EPOLLOUT);
            return;
        }
        if (count < 0) {
            refuse(input);
            return;
        }
        input->begin += (size_t)count;
        consumed(input, (size_t)count);
    }
    input->begin = input->end = 0;
    if (input->watched)
        loop_unwatch(&input->watch);
    input->watched = false;
    if (input->ended)
        close_pipe(input);
}

static void on_ready(struct watch *watch, uint32_t events) {
    (void)events;
    flush((struct input *)watch);
}

void input_open(struct input *input, int fd) {
    input->watch = (struct watch){.fd = fd, .ready = on_ready};
    flush(input);
}

bool input_add(struct input *input, const uint8_t *bytes, size_t length) {
    if (length > input->credit)
        return false;
    input->credit -= length;
    if (input->ended || input->refused) {
        consumed(input, length);
        return true;
    }
    if (input->bytes == NULL && (input->bytes = malloc(INPUT_WINDOW_BYTES)) == NULL)
        return false;
    // Credit bounds what is held, so after the move there is room.
    if (INPUT_WINDOW_BYTES - input->end < length) {
        memmove(input->bytes, input->bytes + input->begin, input->end - input->begin);
        input->end -= input->begin;
        input->begin = 0;
    }
    memcpy(input->bytes + input->end, bytes, length);
    input->end += length;
    if (input->watch.fd >= 0)
        flush(input);
    return true;
}

void input_end(struct input *input) {
    input->ended = true;
    if (input->watch.fd >= 0)
        flush(input);
}
