#include "check.h"
#include "outbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE_BYTES 100000u

static bool make_pair(int pair[2]) {
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    CHECK(fcntl(pair[0], F_SETFL, O_NONBLOCK) == 0 && fcntl(pair[1], F_SETFL, O_NONBLOCK) == 0);
    return true;
}

/* Queues pieces whose bytes count up over the whole stream. */
static bool fill(struct outbox *box, int fd, unsigned piece_count) {
    unsigned char *piece = malloc(PIECE_BYTES);
    CHECK(piece != NULL);
    for (unsigned at = 0; at < piece_count; at++) {
        for (unsigned byte = 0; byte < PIECE_BYTES; byte++)
            piece[byte] = (unsigned char)((at * PIECE_BYTES + byte) % 251);
        const struct iovec parts[2] = {{.iov_base = piece, .iov_len = 10},
                                       {.iov_base = piece + 10, .iov_len = PIECE_BYTES - 10}};
        CHECK(outbox_send(box, fd, parts, 2) == 0);
    }
    free(piece);
    return true;
}

static bool keeps_order_across_a_full_kernel(void) {
    int pair[2];
    struct outbox box = {0};
    CHECK(make_pair(pair) && fill(&box, pair[0], 40));
    CHECK(box.size > 0 && box.size < 40 * PIECE_BYTES);
    size_t received = 0;
    while (received < 40 * PIECE_BYTES) {
        unsigned char bytes[7777];
        const ssize_t got = read(pair[1], bytes, sizeof bytes);
        CHECK(got > 0);
        for (ssize_t at = 0; at < got; at++)
            CHECK(bytes[at] == (received + (size_t)at) % 251);
        received += (size_t)got;
        CHECK(outbox_flush(&box, pair[0]) == 0);
    }
    CHECK(box.size == 0 && box.first == NULL && box.last == NULL);
    close(pair[0]);
    close(pair[1]);
    return true;
}

static bool is_empty_after_the_stream_broke(void) {
    int pair[2];
    struct outbox box = {0};
    CHECK(make_pair(pair) && fill(&box, pair[0], 20));
    close(pair[1]);
    CHECK(box.size > 0 && outbox_flush(&box, pair[0]) == -EPIPE && box.size == 0);
    const struct iovec part = {.iov_base = &box, .iov_len = 1};
    CHECK(outbox_send(&box, pair[0], &part, 1) == -EPIPE && box.size == 0);
    close(pair[0]);
    return true;
}

const struct test outbox_tests[] = {
    {"outbox: keeps order across a full kernel", keeps_order_across_a_full_kernel},
    {"outbox: is empty after the stream broke", is_empty_after_the_stream_broke},
    {0},
};
