#include "../agent/run/last-line.h"
#include "check.h"
#include <string.h>

static struct last_line line;

static void start(void) {
    line = (struct last_line){0};
}

static void add(size_t stream, const char *text) {
    last_line_add(&line, stream, (const uint8_t *)text, strlen(text));
}

static int shows(const char *text) {
    if (strcmp(line.text, text) == 0)
        return 1;
    printf("shown: \"%s\", not \"%s\"\n", line.text, text);
    return 0;
}

static int the_last_that_is_not_blank(void) {
    start();
    CHECK(shows(""));
    add(0, "\n \t\r\n");
    CHECK(shows(""));
    add(0, "one\ntwo\n\n  \n");
    CHECK(shows("two"));
    add(1, "three");
    CHECK(shows("three"));
    add(0, "  four  \r\n");
    CHECK(shows("four"));
    add(1, " and more");
    CHECK(shows("three and more"));
    add(1, "\n");
    add(1, "five");
    CHECK(shows("five"));
    return 0;
}

static int the_same_in_any_pieces(void) {
    static const char text[] =
        "10%\r 20%\r\nd\xc3\xa9j\xc3\xa0 vu \xe2\x82\xac \xf0\x9f\x98\x80 end";
    for (size_t piece = 1; piece < sizeof text; piece++) {
        start();
        for (size_t at = 0; at < sizeof text - 1; at += piece) {
            size_t left = sizeof text - 1 - at;
            last_line_add(&line, 1, (const uint8_t *)text + at, left < piece ? left : piece);
        }
        CHECK(shows(strchr(text, '\n') + 1));
    }
    return 0;
}

static int a_line_in_progress(void) {
    start();
    add(0, "10%\r20%\r");
    CHECK(shows("20%"));
    add(0, "30");
    CHECK(shows("30"));
    add(0, "%\rcaf\xc3");
    CHECK(shows("caf"));
    add(0, "\xa9");
    CHECK(shows("caf\xc3\xa9"));
    return 0;
}

static int what_cannot_be_shown(void) {
    start();
    add(0, "a\x1b[31mb\tc\x7f\x01\xc2\x9b"
           "d\xff\xc0\x80"
           "e\xed\xa0\x80!\n");
    CHECK(shows("a[31mb cd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
                "e\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd!"));
    add(0, "\xc2\x80\n");
    CHECK(strlen(line.text) > 2);
    return 0;
}

static int long_lines(void) {
    uint8_t bytes[1000];
    start();
    memset(bytes, 'x', sizeof bytes);
    last_line_add(&line, 0, bytes, sizeof bytes);
    CHECK(strlen(line.text) == LAST_LINE_BYTES);
    last_line_add(&line, 0, bytes, sizeof bytes);
    CHECK(strlen(line.text) == LAST_LINE_BYTES);
    add(0, "\n");
    // Characters of three bytes do not fill 200: none is cut in two.
    for (size_t i = 0; i < 999; i += 3)
        memcpy(bytes + i, "\xe2\x82\xac", 3);
    last_line_add(&line, 0, bytes, 999);
    CHECK(strlen(line.text) == 198 && memcmp(line.text, bytes, 198) == 0);
    memset(bytes, 0xff, sizeof bytes);
    add(0, "\n");
    last_line_add(&line, 0, bytes, sizeof bytes);
    CHECK(strlen(line.text) == 198);
    // Nothing visible is no line, however much of it there is.
    start();
    memset(bytes, 0, sizeof bytes);
    last_line_add(&line, 0, bytes, sizeof bytes);
    CHECK(shows(""));
    add(0, "seen");
    CHECK(shows("seen"));
    return 0;
}

static const struct test tests[] = {
    {"is the last that is not blank, of either stream", the_last_that_is_not_blank},
    {"is the same in any pieces", the_same_in_any_pieces},
    {"may be unfinished", a_line_in_progress},
    {"holds nothing that cannot be shown", what_cannot_be_shown},
    {"is cut between characters", long_lines},
};
const struct suite last_line_suite = SUITE("last line", tests);
