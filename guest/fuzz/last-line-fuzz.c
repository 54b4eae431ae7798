// Arbitrary output in arbitrary pieces shows the same line as in one piece, and only what can be
// shown.
#include "../agent/run/last-line.h"
#include "../agent/wire/utf8.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition)
        abort();
}

static void check_text(const char *text) {
    size_t length = strlen(text);
    require(length <= LAST_LINE_BYTES);
    for (size_t at = 0; at < length;) {
        const uint8_t *here = (const uint8_t *)text + at;
        size_t taken = utf8_length(here, length - at);
        require(taken > 0 && *here >= ' ' && *here != 0x7f);
        require(taken != 2 || here[0] != 0xc2 || here[1] >= 0xa0);
        at += taken;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct last_line whole, pieces;
    if (size == 0)
        return 0;
    memset(&whole, 0, sizeof whole);
    memset(&pieces, 0, sizeof pieces);
    size_t piece = (size_t)data[0] + 1, length = size - 1;
    last_line_add(&whole, 0, data + 1, length);
    for (size_t at = 0; at < length; at += piece) {
        last_line_add(&pieces, 0, data + 1 + at, piece < length - at ? piece : length - at);
        check_text(pieces.text);
    }
    check_text(whole.text);
    require(strcmp(whole.text, pieces.text) == 0);
    return 0;
}
