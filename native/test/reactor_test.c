#include "check.h"
#include "reactor.h"
#include "reactor_stage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool opens_and_carries_frames_both_ways(void) {
    struct stage b;
    CHECK(stage_open(&b) && stage_shake(&b, "OK 1\n"));
    CHECK(stage_wait(&b) && b.report.opened && b.report.end == CONN_END_NONE);
    CHECK(reactor_send(b.reactor, b.id, "head", 4, "payload", 7) == 0);
    char got[12] = {0};
    CHECK(read(b.peer, got, 11) == 11 && strcmp(got, "headpayload") == 0);
    CHECK(stage_push_frames(&b, 1, 3));
    reactor_set_paused(b.reactor, b.id, false);
    CHECK(stage_collect(&b, 3));
    close(b.peer);
    CHECK(stage_wait(&b) && b.report.end == CONN_END_CONNECTION_LOST && b.report.end_detail == 0);
    CHECK(reactor_send(b.reactor, b.id, "x", 1, NULL, 0) == -ENOTCONN);
    CHECK(!reactor_close(b.reactor, b.id));
    stage_close(&b);
    return true;
}

static bool reports_each_failed_handshake(void) {
    static const struct {
        const char *answer;
        enum conn_end end;
    } cases[] = {{"NO\n", CONN_END_HANDSHAKE_REJECTED}, {"OK", CONN_END_HANDSHAKE_CLOSED}};
    for (size_t at = 0; at < sizeof cases / sizeof cases[0]; at++) {
        struct stage b;
        CHECK(stage_open(&b) && stage_shake(&b, cases[at].answer));
        close(b.peer);
        CHECK(stage_wait(&b) && !b.report.opened && b.report.end == cases[at].end);
        stage_close(&b);
    }
    return true;
}

static bool reports_a_missing_socket(void) {
    struct stage b;
    CHECK(stage_open(&b));
    int error = 0;
    CHECK(reactor_connect(b.reactor, "", 1, 1000, 1000, &error) == 0 && error == EINVAL);
    const uint32_t id = reactor_connect(b.reactor, "/nonexistent/socket", 1, 1000, 1000, &error);
    CHECK(id != 0 && stage_wait(&b) && b.report.id == id);
    CHECK(b.report.end == CONN_END_CONNECT_FAILED && b.report.end_errno == ENOENT);
    stage_close(&b);
    return true;
}

static bool times_out_a_silent_peer_and_a_full_backlog(void) {
    struct stage b;
    CHECK(stage_open(&b));
    unsigned failed = 0, started = 0;
    int error = 0;
    /* The backlog takes two; nobody accepts, so the others are tried again until their deadline. */
    for (; started < 6; started++)
        CHECK(reactor_connect(b.reactor, b.path, 1, 30, 1000, &error) != 0);
    while (failed < started) {
        CHECK(stage_wait(&b) && b.report.end == CONN_END_HANDSHAKE_TIMEOUT);
        failed++;
    }
    stage_close(&b);
    return true;
}

static bool stops_reading_above_the_high_water_mark(void) {
    struct stage b;
    CHECK(stage_open(&b) && stage_shake(&b, "OK 1\n") && stage_wait(&b) && b.report.opened);
    /* Paused: the stage's mark of 64 KiB and the kernel's buffer bound what the peer gets rid of.
     */
    unsigned pushed = 0;
    while (pushed < 10000 && stage_push_frames(&b, pushed, 1))
        pushed++;
    CHECK(pushed > 64 && pushed < 2000);
    reactor_set_paused(b.reactor, b.id, false);
    CHECK(stage_collect(&b, pushed));
    stage_close(&b);
    return true;
}

static bool says_when_a_long_queue_is_empty(void) {
    struct stage b;
    CHECK(stage_open(&b) && stage_shake(&b, "OK 1\n") && stage_wait(&b) && b.report.opened);
    const size_t size = 5u * 1048576u;
    char *bytes = calloc(1, size);
    CHECK(bytes != NULL);
    CHECK(reactor_send(b.reactor, b.id, bytes, size, NULL, 0) >
          (int64_t)REACTOR_SEND_HIGH_WATER_BYTES);
    size_t received = 0;
    while (received < size) {
        const ssize_t got = read(b.peer, bytes, size);
        CHECK(got > 0);
        received += (size_t)got;
    }
    CHECK(stage_wait(&b) && b.report.drained && reactor_pending(b.reactor, b.id) == 0);
    free(bytes);
    stage_close(&b);
    return true;
}

static bool closes_without_a_report_in_any_state(void) {
    struct stage b;
    CHECK(stage_open(&b) && stage_shake(&b, "OK 1\n") && stage_wait(&b) && b.report.opened);
    const uint32_t first = b.id;
    CHECK(stage_push_frames(&b, 0, 5) && reactor_close(b.reactor, first));
    char byte;
    ssize_t got = read(b.peer, &byte, 1);
    CHECK(got == 0 || (got < 0 && errno == ECONNRESET));
    CHECK(!reactor_close(b.reactor, first) && reactor_pending(b.reactor, first) == 0);
    int error = 0;
    const uint32_t second = reactor_connect(b.reactor, b.path, 1, 10000, 1000, &error);
    CHECK(second != 0 && second != first && reactor_close(b.reactor, second));
    CHECK(reactor_take(b.reactor, &b.report, 1) == 0);
    stage_close(&b);
    return true;
}

static bool takes_reports_in_small_portions(void) {
    struct stage b;
    CHECK(stage_open(&b));
    int error = 0;
    for (int at = 0; at < 50; at++)
        CHECK(reactor_connect(b.reactor, "/nonexistent/socket", 1, 1000, 1000, &error) != 0);
    for (int at = 0; at < 50; at++)
        CHECK(stage_wait(&b) && b.report.end == CONN_END_CONNECT_FAILED);
    CHECK(reactor_take(b.reactor, &b.report, 1) == 0);
    stage_close(&b);
    return true;
}

static bool bounds_the_number_of_connections(void) {
    struct stage b;
    CHECK(stage_open(&b));
    int error = 0;
    unsigned count = 0;
    while (count <= REACTOR_MAX_CONNECTIONS &&
           reactor_connect(b.reactor, "/nonexistent/socket", 1, 1000, 1000, &error) != 0)
        count++;
    CHECK(count == REACTOR_MAX_CONNECTIONS && error == EMFILE);
    stage_close(&b);
    return true;
}

const struct test reactor_tests[] = {
    {"reactor: opens and carries frames both ways", opens_and_carries_frames_both_ways},
    {"reactor: reports each failed handshake", reports_each_failed_handshake},
    {"reactor: reports a missing socket", reports_a_missing_socket},
    {"reactor: times out", times_out_a_silent_peer_and_a_full_backlog},
    {"reactor: stops reading above the mark", stops_reading_above_the_high_water_mark},
    {"reactor: says when a long queue is empty", says_when_a_long_queue_is_empty},
    {"reactor: closes without a report in any state", closes_without_a_report_in_any_state},
    {"reactor: takes reports in small portions", takes_reports_in_small_portions},
    {"reactor: bounds the number of connections", bounds_the_number_of_connections},
    {0},
};
