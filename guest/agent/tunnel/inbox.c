#include "inbox.h"
#include <stdlib.h>
#include <string.h>

void inbox_init(struct inbox *inbox) {
    *inbox = (struct inbox){.credit = TUNNEL_WINDOW_BYTES};
}

void inbox_free(struct inbox *inbox) {
    free(inbox->bytes);
    inbox->bytes = NULL;
    inbox->begin = inbox->end = 0;
}

bool inbox_admit(struct inbox *inbox, size_t length) {
    if (inbox->ended || length > inbox->credit)
        return false;
    inbox->credit -= length;
    return true;
}

bool inbox_keep(struct inbox *inbox, const uint8_t *bytes, size_t length) {
    if (inbox->bytes == NULL && (inbox->bytes = malloc(TUNNEL_WINDOW_BYTES)) == NULL)
        return false;
    // Credit bounds what is kept, so after the move there is room.
    if (TUNNEL_WINDOW_BYTES - inbox->end < length) {
        memmove(inbox->bytes, inbox->bytes + inbox->begin, inbox->end - inbox->begin);
        inbox->end -= inbox->begin;
        inbox->begin = 0;
    }
    memcpy(inbox->bytes + inbox->end, bytes, length);
    inbox->end += length;
    return true;
}

size_t inbox_next(const struct inbox *inbox, const uint8_t **bytes) {
    if (inbox->bytes == NULL)
        return 0;
    *bytes = inbox->bytes + inbox->begin;
    return inbox->end - inbox->begin;
}

void inbox_drop(struct inbox *inbox, size_t length) {
    inbox->begin += length;
    // An idle tunnel holds no memory.
    if (inbox->begin == inbox->end)
        inbox_free(inbox);
}

uint32_t inbox_taken(struct inbox *inbox, size_t length) {
    inbox->to_grant += length;
    if (inbox->to_grant < TUNNEL_GRANT_BYTES || inbox->ended)
        return 0;
    uint32_t granted = (uint32_t)inbox->to_grant;
    inbox->credit += inbox->to_grant;
    inbox->to_grant = 0;
    return granted;
}
