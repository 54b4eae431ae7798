#include "../agent/tunnel/inbox.h"
#include "check.h"
#include <string.h>

static uint8_t window[TUNNEL_WINDOW_BYTES];

static int credit_bounds_what_comes(void) {
    struct inbox inbox;
    inbox_init(&inbox);
    CHECK(!inbox_admit(&inbox, TUNNEL_WINDOW_BYTES + 1));
    CHECK(inbox_admit(&inbox, TUNNEL_WINDOW_BYTES));
    CHECK(!inbox_admit(&inbox, 1));
    CHECK(inbox_taken(&inbox, TUNNEL_WINDOW_BYTES) == TUNNEL_WINDOW_BYTES);
    CHECK(inbox_admit(&inbox, 1));
    return 0;
}

static int grants_come_in_large_pieces(void) {
    struct inbox inbox;
    inbox_init(&inbox);
    CHECK(inbox_admit(&inbox, TUNNEL_WINDOW_BYTES));
    CHECK(inbox_taken(&inbox, TUNNEL_GRANT_BYTES - 1) == 0);
    CHECK(inbox_taken(&inbox, 1) == TUNNEL_GRANT_BYTES);
    CHECK(inbox_taken(&inbox, 1) == 0);
    return 0;
}

static int nothing_comes_behind_the_end(void) {
    struct inbox inbox;
    inbox_init(&inbox);
    inbox.ended = true;
    CHECK(!inbox_admit(&inbox, 1));
    CHECK(inbox_taken(&inbox, TUNNEL_WINDOW_BYTES) == 0);
    return 0;
}

static int bytes_keep_their_order_and_cost_nothing_once_taken(void) {
    struct inbox inbox;
    const uint8_t *bytes;
    inbox_init(&inbox);
    for (size_t i = 0; i < sizeof window; i++)
        window[i] = (uint8_t)(i * 7);
    CHECK(inbox_next(&inbox, &bytes) == 0);
    CHECK(inbox_keep(&inbox, window, sizeof window));
    CHECK(inbox_next(&inbox, &bytes) == sizeof window && memcmp(bytes, window, sizeof window) == 0);
    inbox_drop(&inbox, 40000);
    // Only with a move does the rest of the window have room.
    CHECK(inbox_keep(&inbox, window, 30000));
    CHECK(inbox_next(&inbox, &bytes) == sizeof window - 10000);
    CHECK(memcmp(bytes, window + 40000, sizeof window - 40000) == 0);
    CHECK(memcmp(bytes + sizeof window - 40000, window, 30000) == 0);
    inbox_drop(&inbox, sizeof window - 10000);
    CHECK(inbox.bytes == NULL && inbox_next(&inbox, &bytes) == 0);
    inbox_free(&inbox);
    return 0;
}

static const struct test tests[] = {
    {"credit bounds what comes", credit_bounds_what_comes},
    {"grants come in large pieces", grants_come_in_large_pieces},
    {"nothing comes behind the end", nothing_comes_behind_the_end},
    {"bytes keep their order and cost nothing once taken",
     bytes_keep_their_order_and_cost_nothing_once_taken},
};
const struct suite inbox_suite = SUITE("inbox", tests);
