#include "utf8.h"
#include <stdbool.h>

size_t utf8_announced(uint8_t first) {
    return first < 0x80                   ? 1
           : first < 0xc2 || first > 0xf4 ? 0
           : first < 0xe0                 ? 2
           : first < 0xf0                 ? 3
                                          : 4;
}

size_t utf8_length(const uint8_t *at, size_t left) {
    size_t length = left == 0 ? 0 : utf8_announced(at[0]);
    if (length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
    bool outside = (at[0] == 0xed && at[1] > 0x9f) || (at[0] == 0xf4 && at[1] > 0x8f);
    return length > 1 && (overlong || outside) ? 0 : length;
}
