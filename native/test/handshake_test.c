#include "check.h"
#include "handshake.h"

#include <string.h>

static enum handshake_state read_all(const char *text, size_t size, struct handshake *shake,
                                     size_t *taken) {
    *shake = (struct handshake){0};
    return handshake_push(shake, (const uint8_t *)text, size, taken);
}

/* The verdict on the text, the same whole and byte by byte; MORE and a complaint when they differ.
 */
static enum handshake_state verdict(const char *text) {
    struct handshake whole, split = {0};
    size_t taken = 0;
    const enum handshake_state expected = read_all(text, strlen(text), &whole, &taken);
    enum handshake_state state = HANDSHAKE_MORE;
    for (size_t at = 0; at < taken && state == HANDSHAKE_MORE; at++) {
        size_t one = 0;
        state = handshake_push(&split, (const uint8_t *)text + at, 1, &one);
        if (one != 1)
            return HANDSHAKE_MORE;
    }
    return state == expected && whole.number == split.number ? state : HANDSHAKE_MORE;
}

static bool writes_the_request(void) {
    char request[HANDSHAKE_REQUEST_BYTES];
    CHECK(handshake_request(request, 7000) == 13 && strcmp(request, "CONNECT 7000\n") == 0);
    CHECK(handshake_request(request, UINT32_MAX) == 19);
    CHECK(strcmp(request, "CONNECT 4294967295\n") == 0);
    return true;
}

static bool accepts_any_u32(void) {
    struct handshake shake;
    size_t taken = 0;
    CHECK(read_all("OK 4294967295\nrest", 18, &shake, &taken) == HANDSHAKE_OK);
    CHECK(shake.number == UINT32_MAX && taken == 14);
    CHECK(verdict("OK 0\n") == HANDSHAKE_OK);
    CHECK(verdict("OK 0000000007\n") == HANDSHAKE_OK);
    return true;
}

static bool rejects_other_lines(void) {
    static const char *const lines[] = {
        "\n",      "OK\n",     "OK \n",     "OK -1\n",         "OK +1\n",
        "OK  1\n", "OK 1 \n",  "ok 1\n",    "OK 4294967296\n", "OK 00000000001\n",
        "OK x\n",  "OK 1\r\n", "NO 12345\n"};
    for (size_t at = 0; at < sizeof lines / sizeof lines[0]; at++)
        CHECK(verdict(lines[at]) == HANDSHAKE_REJECTED);
    struct handshake shake;
    size_t taken = 0;
    CHECK(read_all("OK 1\0\n", 6, &shake, &taken) == HANDSHAKE_REJECTED);
    return true;
}

static bool bounds_the_line(void) {
    char line[HANDSHAKE_LINE_BYTES + 1];
    struct handshake shake;
    size_t taken = 0;
    memset(line, 'x', sizeof line);
    CHECK(read_all(line, HANDSHAKE_LINE_BYTES - 1, &shake, &taken) == HANDSHAKE_MORE);
    CHECK(read_all(line, sizeof line, &shake, &taken) == HANDSHAKE_OVERSIZED);
    CHECK(taken == HANDSHAKE_LINE_BYTES);
    line[HANDSHAKE_LINE_BYTES - 1] = '\n';
    CHECK(read_all(line, sizeof line, &shake, &taken) == HANDSHAKE_REJECTED);
    return true;
}

const struct test handshake_tests[] = {
    {"handshake: writes the request", writes_the_request},
    {"handshake: accepts any u32", accepts_any_u32},
    {"handshake: rejects other lines", rejects_other_lines},
    {"handshake: bounds the line", bounds_the_line},
    {0},
};
