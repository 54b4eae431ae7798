// Arbitrary sizes and steps, held against a model: what waits is what was kept, in order, and the
// credit, what waits and what is not granted yet are the window, always.
#include "../agent/tunnel/inbox.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition)
        abort();
}

static uint8_t byte_at(uint64_t position) {
    return (uint8_t)(position * 31 + position / 253);
}

static void come(struct inbox *inbox, uint64_t *came, size_t length) {
    static uint8_t bytes[TUNNEL_WINDOW_BYTES];
    bool fits = !inbox->ended && length <= inbox->credit;
    require(inbox_admit(inbox, length) == fits);
    if (!fits || length == 0)
        return;
    for (size_t i = 0; i < length; i++)
        bytes[i] = byte_at(*came + i);
    require(inbox_keep(inbox, bytes, length));
    *came += length;
}

static void go(struct inbox *inbox, uint64_t *went, size_t length) {
    const uint8_t *bytes;
    size_t waiting = inbox_next(inbox, &bytes);
    size_t taken = length < waiting ? length : waiting;
    if (taken == 0)
        return;
    require(bytes[0] == byte_at(*went) && bytes[taken - 1] == byte_at(*went + taken - 1));
    inbox_drop(inbox, taken);
    uint32_t granted = inbox_taken(inbox, taken);
    require(granted == 0 || (granted >= TUNNEL_GRANT_BYTES && !inbox->ended));
    *went += taken;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct inbox inbox;
    uint64_t came = 0, went = 0;
    inbox_init(&inbox);
    for (size_t at = 0; at + 3 <= size; at += 3) {
        size_t length = (size_t)data[at + 1] << 8 | data[at + 2];
        if (data[at] % 16 == 15)
            inbox.ended = true;
        else if (data[at] % 2 == 0)
            come(&inbox, &came, length + data[at] / 128);
        else
            go(&inbox, &went, length);
        require(inbox.credit + inbox.to_grant + (came - went) == TUNNEL_WINDOW_BYTES);
        require((inbox.bytes == NULL) == (came == went));
    }
    inbox_free(&inbox);
    return 0;
}
