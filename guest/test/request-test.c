#include "../gtwall/request.h"
#include "check.h"
#include <stdlib.h>
#include <string.h>

// Whether the request for `message` has exactly this body, and says how long that is.
static bool has_body(const char *message, const char *body) {
    const char *problem;
    char length[64], *request = request_make(message, &problem);
    if (request == NULL)
        return false;
    snprintf(length, sizeof length, "\r\nContent-Length: %zu\r\n", strlen(body));
    const char *found = strstr(request, "\r\n\r\n");
    bool same = found != NULL && strcmp(found + 4, body) == 0 && strstr(request, length) != NULL;
    free(request);
    return same;
}

static int messages_become_json(void) {
    CHECK(has_body("hi", "{\"body\":\"hi\"}"));
    CHECK(has_body("a \"b\" \\ \n\x01", "{\"body\":\"a \\\"b\\\" \\\\ \\u000a\\u0001\"}"));
    CHECK(has_body("\xed\x95\x9c\xea\xb8\x80", "{\"body\":\"\xed\x95\x9c\xea\xb8\x80\"}"));
    return 0;
}

static int what_cannot_be_sent_is_told(void) {
    const char *problem;
    CHECK(request_make("", &problem) == NULL && strcmp(problem, "the message is empty") == 0);
    CHECK(request_make("\xff", &problem) == NULL && strstr(problem, "UTF-8") != NULL);
    CHECK(request_make("\xed\xa0\x80", &problem) == NULL && strstr(problem, "UTF-8") != NULL);
    static char message[MESSAGE_MAX_BYTES + 2];
    memset(message, '\x01', MESSAGE_MAX_BYTES);
    char *request = request_make(message, &problem);
    CHECK(request != NULL);
    free(request);
    message[MESSAGE_MAX_BYTES] = 'x';
    CHECK(request_make(message, &problem) == NULL && strstr(problem, "64 KiB") != NULL);
    return 0;
}

static int answers_are_read(void) {
    char answer[] = "HTTP/1.1 403 Forbidden\r\nA: b\r\n\r\nno\x1b[1mflock\nmore";
    CHECK(request_status(answer) == 403);
    CHECK(strcmp(request_reason(answer), "no?[1mflock") == 0);
    char bare[] = "HTTP/1.0 200";
    CHECK(request_status(bare) == 200 && strcmp(request_reason(bare), "") == 0);
    CHECK(request_status("") == 0 && request_status("SSH-2.0") == 0);
    CHECK(request_status("HTTP/1.1 -12") == 0 && request_status("HTTP/1.1 x") == 0);
    return 0;
}

static const struct test tests[] = {
    {"messages become JSON", messages_become_json},
    {"what cannot be sent is told", what_cannot_be_sent_is_told},
    {"answers are read", answers_are_read},
};
const struct suite request_suite = SUITE("request", tests);
