/* Any answer to CONNECT is judged the same whole and split, within its bounds. The first byte says
 * where to split. */
#include "handshake.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    const size_t step = data[0] % 17u + 1;
    data++;
    size--;
    struct handshake whole = {0}, split = {0};
    size_t whole_taken = 0, split_taken = 0;
    const enum handshake_state expected = handshake_push(&whole, data, size, &whole_taken);
    enum handshake_state state = HANDSHAKE_MORE;
    for (size_t at = 0; at < size && state == HANDSHAKE_MORE; at += step) {
        size_t taken = 0;
        state = handshake_push(&split, data + at, size - at < step ? size - at : step, &taken);
        split_taken = at + taken;
    }
    if (state != expected || whole.number != split.number || whole_taken != split_taken)
        abort();
    if (whole_taken > size || whole.used > HANDSHAKE_LINE_BYTES)
        abort();
    return 0;
}
