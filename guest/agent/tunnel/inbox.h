// What the host sent through one tunnel and the guest's socket has not taken yet, under credit.
// Pure: memory only.
#ifndef IGNITION_INBOX_H
#define IGNITION_INBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TUNNEL_WINDOW_BYTES = 64 * 1024, TUNNEL_GRANT_BYTES = TUNNEL_WINDOW_BYTES / 4 };

struct inbox {
    uint8_t *bytes; // TUNNEL_WINDOW_BYTES, owned; NULL while nothing waits
    size_t begin, end;
    size_t credit;   // what the host may still send
    size_t to_grant; // taken by the socket, not yet given back as credit
    bool ended;      // EOF came
};

void inbox_init(struct inbox *inbox);
void inbox_free(struct inbox *inbox);

// Counts what just came. False when it is more than was granted, or comes behind the EOF.
bool inbox_admit(struct inbox *inbox, size_t length);
// Keeps admitted bytes for later. False when there is no memory.
bool inbox_keep(struct inbox *inbox, const uint8_t *bytes, size_t length);
// The kept bytes; 0 when there are none.
size_t inbox_next(const struct inbox *inbox, const uint8_t **bytes);
void inbox_drop(struct inbox *inbox, size_t length);
// The socket took admitted bytes, kept or not. Returns how many to grant now, 0 for none.
uint32_t inbox_taken(struct inbox *inbox, size_t length);

#endif
