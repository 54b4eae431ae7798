// The last line of a run's output that is not blank, as text that can be shown. Pure.
#ifndef IGNITION_LAST_LINE_H
#define IGNITION_LAST_LINE_H

#include <stddef.h>
#include <stdint.h>

enum {
    LAST_LINE_BYTES = 200,
    // More than is shown, since control characters among them are left out.
    LAST_LINE_RAW_BYTES = 256,
    LAST_LINE_STREAMS = 2,
};

struct last_line {
    // How each stream's unfinished line begins, without leading white space.
    struct {
        uint8_t bytes[LAST_LINE_RAW_BYTES];
        size_t length;
    } open[LAST_LINE_STREAMS];
    char text[LAST_LINE_BYTES + 1]; // UTF-8, NUL-terminated; "" until there was a line
};

// What comes next on `stream`.
void last_line_add(struct last_line *line, size_t stream, const uint8_t *bytes, size_t length);

#endif
