#include "last-line.h"
#include "../wire/utf8.h"
#include <stdbool.h>
#include <string.h>

static const char replacement[] = "\xef\xbf\xbd";

static bool is_blank(uint8_t byte) {
    return byte <= ' ' || byte == 0x7f;
}

static size_t smaller(size_t one, size_t other) {
    return one < other ? one : other;
}

// C0, DEL, and C1, which is two bytes long.
static bool is_control(const uint8_t *at, size_t length) {
    return length == 1 ? *at < ' ' || *at == 0x7f : length == 2 && at[0] == 0xc2 && at[1] < 0xa0;
}

// Makes what can be shown of `raw`. False, with the line before left in place, when that is
// nothing.
static bool show(struct last_line *line, const uint8_t *raw, size_t length) {
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
        return false;
    memcpy(line->text, text, used);
    line->text[used] = '\0';
    return true;
}

static size_t leading_blanks(const uint8_t *bytes, size_t length) {
    size_t count = 0;
    while (count < length && is_blank(bytes[count]))
        count++;
    return count;
}

static void extend(struct last_line *line, size_t stream, const uint8_t *bytes, size_t length) {
    size_t *used = &line->open[stream].length;
    size_t skipped = *used == 0 ? leading_blanks(bytes, length) : 0;
    size_t taken = smaller(length - skipped, LAST_LINE_RAW_BYTES - *used);
    memcpy(line->open[stream].bytes + *used, bytes + skipped, taken);
    *used += taken;
}

// Where the line begins that `end` is in or right behind.
static size_t line_start(const uint8_t *bytes, size_t end) {
    const uint8_t *feed = memrchr(bytes, '\n', end);
    size_t start = feed == NULL ? 0 : (size_t)(feed - bytes) + 1;
    const uint8_t *carriage_return = memrchr(bytes + start, '\r', end - start);
    return carriage_return == NULL ? start : (size_t)(carriage_return - bytes) + 1;
}

// Shows the last line that began in `bytes`. Returns where the search ended: 0, or in what belongs
// to a line that began earlier.
static size_t show_newest(struct last_line *line, const uint8_t *bytes, size_t length) {
    for (size_t end = length, start; end > 0; end = start) {
        while (end > 0 && is_blank(bytes[end - 1]))
            end--;
        start = line_start(bytes, end);
        if (start == 0)
            return end;
        size_t from = start + leading_blanks(bytes + start, end - start);
        if (show(line, bytes + from, smaller(end - from, LAST_LINE_RAW_BYTES)))
            return 0;
    }
    return 0;
}

void last_line_add(struct last_line *line, size_t stream, const uint8_t *bytes, size_t length) {
    size_t open_from = line_start(bytes, length);
    size_t earlier = show_newest(line, bytes, length);
    extend(line, stream, bytes, earlier);
    if (earlier > 0)
        show(line, line->open[stream].bytes, line->open[stream].length);
    if (open_from > 0)
        line->open[stream].length = 0;
    else
        open_from = earlier;
    extend(line, stream, bytes + open_from, length - open_from);
}
