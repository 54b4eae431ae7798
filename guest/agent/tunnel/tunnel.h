// One TCP connection of the guest, carried over a stream.
#ifndef IGNITION_TUNNEL_H
#define IGNITION_TUNNEL_H

#include "../wire/link.h"
#include "inbox.h"
#include <sys/queue.h>

struct tunnels;

struct tunnel {
    struct watch watch;
    uint32_t id;
    struct tunnels *owner;
    struct inbox in;     // host → guest
    size_t credit;       // guest → host: what may still be sent
    bool connecting;     // OPEN is not answered yet
    bool may_have_bytes; // the socket did not say yet that there is nothing to read
    bool out_ended;      // the guest's side ended, and the host knows
    bool in_ended;       // the host's side ended, and the guest knows
    bool dismissed; // the host knows this stream no more: what the guest still sends is dropped
    bool is_ready;  // in the owner's list of those to pump
    struct timer deadline; // while connecting
    struct tunnel *next;   // of the same bucket
    TAILQ_ENTRY(tunnel) ready;
};

// Takes over a connected socket. NULL, with the socket reset, when there is no memory for it.
struct tunnel *tunnel_accepted(struct tunnels *owner, uint32_t id, int fd);

// Connects to a port of 127.0.0.1 and answers OK or ERROR on the stream, now or later.
void tunnel_open(struct tunnels *owner, uint32_t id, uint16_t port);

void tunnel_frame(struct tunnel *tunnel, const struct frame *frame);

// Sends one piece of what the guest wrote. True when there may be more that the host has room for.
// The tunnel may be gone afterwards.
bool tunnel_pump(struct tunnel *tunnel);

// Resets it in the guest and tells the host; then it is gone.
void tunnel_fail(struct tunnel *tunnel, const char *code, int error_number, const char *message);

// As tunnel_fail, without a word to the host.
void tunnel_abandon(struct tunnel *tunnel);

#endif
