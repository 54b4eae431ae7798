// gtwall "MESSAGE": posts to the Town Wall of the flock this guest belongs to.
// Exit codes: 0 posted, 1 refused by the engine, 2 usage, 3 no engine to ask.
#include "post.h"
#include "request.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROXY_PORT = 3128, WAIT_S = 10, ANSWER_BYTES = 8192 };
enum { POSTED = 0, REFUSED = 1, USAGE = 2, NO_ENGINE = 3 };

static void on_alarm(int signal_number) {
    static const char line[] = "gtwall: the engine did not answer within 10 s; try again\n";
    (void)signal_number;
    ssize_t count = write(STDERR_FILENO, line, sizeof line - 1);
    (void)count; // without a stderr the exit code has to say it
    _exit(NO_ENGINE);
}

static int no_engine(const char *why) {
    fprintf(stderr,
            "gtwall: the message was not posted: no engine is reached at 127.0.0.1:%d (%s); the "
            "Town Wall is there in agents of a flock only\n",
            PROXY_PORT, why);
    return NO_ENGINE;
}

// GTWALL_PORT is for tests outside of a guest.
static uint16_t proxy_port(void) {
    const char *text = getenv("GTWALL_PORT");
    return (uint16_t)(text == NULL ? PROXY_PORT : strtoul(text, NULL, 10));
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fputs("usage: gtwall \"MESSAGE\"\nPosts one message to the Town Wall of this flock.\n",
              stderr);
        return USAGE;
    }
    const char *problem;
    char *request = request_make(argv[1], &problem);
    if (request == NULL) {
        fprintf(stderr, "gtwall: %s\n", problem);
        return USAGE;
    }
    static char answer[ANSWER_BYTES];
    signal(SIGALRM, on_alarm);
    alarm(WAIT_S);
    bool answered = post(proxy_port(), request, answer, sizeof answer);
    int error_number = errno;
    free(request);
    if (!answered)
        return no_engine(strerror(error_number));
    int status = request_status(answer);
    if (status == 0)
        return no_engine("what answers there is no engine");
    if (status >= 200 && status < 300)
        return POSTED;
    fprintf(stderr, "gtwall: the engine refused the message with status %d: %.300s\n", status,
            request_reason(answer));
    return REFUSED;
}
