// A run's standard input: what the host sent and the process has not read yet, under credit.
#ifndef IGNITION_INPUT_H
#define IGNITION_INPUT_H

#include "../loop.h"
#include "../wire/link.h"

enum { INPUT_WINDOW_BYTES = FRAME_MAX_LENGTH };

struct input {
    struct watch watch; // fd -1: the process cannot read (yet, or any more)
    bool watched;
    bool ended;     // STDIN_EOF came
    bool refused;   // the process closed its end: what follows is thrown away
    uint8_t *bytes; // INPUT_WINDOW_BYTES, owned; NULL until needed
    size_t begin, end;
    uint64_t credit;
    uint32_t to_grant;
    struct stream *stream; // where credit is granted
};

void input_init(struct input *input, struct stream *stream);
// Takes over `fd`, the non-blocking write end of a pipe.
void input_open(struct input *input, int fd);
void input_close(struct input *input);

// False when more came than was granted, or there is no memory for it.
bool input_add(struct input *input, const uint8_t *bytes, size_t length);
void input_end(struct input *input);

#endif
