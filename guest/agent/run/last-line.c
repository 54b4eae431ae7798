#include "last-line.h"
#include "../wire/utf8.h"
#include <stdbool.h>
#include <string.h>

static const char replacement[] = "\xef\xbf\xbd";

static bool is_blank(uint8_t byte) {
    return byte <= ' ' || byte == 0x7f;
}

static bool is_break(uint8_t byte) {
    return byte == '\n' || byte == '\r';
}

// C0, DEL, and C1, which is two bytes long.
static bool is_control(const uint8_t *at, size_t length) {
    return length == 1 ? *at < ' ' || *at == 0x7f : length == 2 && at[0] == 0xc2 && at[1] < 0xa0;
}

// Makes what can be shown of `raw`; the line before stays where that is nothing.
static void show(struct last_line *line, const uint8_t *raw, size_t length) {
    char text[LAST_LINE_BYTES + 1];
    size_t used = 0;
    for (size_t at = 0; at < length;) {
        size_t left = length - at, taken = utf8_length(raw + at, left);
        // A character whose end is cut off, here or still to come, is none yet.
        if (taken == 0 && utf8_announced(raw[at]) > left)
            break;
        const char *shown = taken == 0 ? replacement : (const char *)raw + at;
        size_t width = taken == 0 ? strlen(replacement) : taken;
        if (taken != 0 && is_control(raw + at, taken)) {
            shown = " ";
            width = raw[at] == '\t';
        }
        if (used + width > LAST_LINE_BYTES)
            break;
        memcpy(text + used, shown, width);
        used += width;
        at += taken == 0 ? 1 : taken;
    }
    while (used > 0 && text[used - 1] == ' ')
        used--;
    if (used == 0)
        return;
    memcpy(line->text, text, used);
    line->text[used] = '\0';
}

static void extend(struct last_line *line, size_t stream, const uint8_t *bytes, size_t length) {
    size_t *used = &line->open[stream].length;
    while (*used == 0 && length > 0 && is_blank(*bytes)) {
        bytes++;
        length--;
    }
    size_t space = LAST_LINE_RAW_BYTES - *used;
    size_t taken = length < space ? length : space;
    memcpy(line->open[stream].bytes + *used, bytes, taken);
    *used += taken;
}

// Where the line begins that `end` is in or right behind.
static size_t line_start(const uint8_t *bytes, size_t end) {
    const uint8_t *feed = memrchr(bytes, '\n', end);
    size_t start = feed == NULL ? 0 : (size_t)(feed - bytes) + 1;
    const uint8_t *carriage_return = memrchr(bytes + start, '\r', end - start);
    return carriage_return == NULL ? start : (size_t)(carriage_return - bytes) + 1;
}

void last_line_add(struct last_line *line, size_t stream, const uint8_t *bytes, size_t length) {
    size_t visible_end = length;
    while (visible_end > 0 && is_blank(bytes[visible_end - 1]))
        visible_end--;
    // Without anything visible here, only a line that began earlier can have an end here.
    size_t start = visible_end == 0 ? 0 : line_start(bytes, visible_end);
    if (start > 0)
        line->open[stream].length = 0;
    extend(line, stream, bytes + start, visible_end - start);
    if (visible_end > 0)
        show(line, line->open[stream].bytes, line->open[stream].length);
    for (size_t at = visible_end; at < length; at++) {
        if (is_break(bytes[at])) {
            line->open[stream].length = 0;
            return;
        }
    }
    extend(line, stream, bytes + visible_end, length - visible_end);
}
