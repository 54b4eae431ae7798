// LISTEN and OPEN: the tunnels of one link. They share one place among the link's streams, under
// the number 0, so that a thousand of them cost the others nothing.
#ifndef IGNITION_TUNNELS_H
#define IGNITION_TUNNELS_H

#include "../wire/json.h"
#include "../wire/link.h"
#include "tunnel.h"

enum {
    TUNNELS_MAX = 1024,
    TUNNELS_BUCKETS = 256,
};
// Numbers from here on are the agent's to give.
#define TUNNELS_FIRST_ID 0x80000000u

struct tunnels {
    struct stream stream;
    struct tunnel *buckets[TUNNELS_BUCKETS];
    size_t count;
    uint32_t accepted; // ever, which numbers them
    TAILQ_HEAD(, tunnel) ready;
    struct tunnels *next;
};

// Requests of the host, answered on their stream.
void tunnels_listen(struct link *link, uint32_t stream, const struct json_object *request);
void tunnels_open(struct link *link, uint32_t stream, const struct json_object *request);

bool tunnels_has(struct link *link, uint32_t id);

// Resets the tunnels of all links: this guest is another one from now on.
void tunnels_reset_all(void);

// For tunnel.c.
void tunnels_add(struct tunnels *tunnels, struct tunnel *tunnel);
void tunnels_remove(struct tunnels *tunnels, struct tunnel *tunnel);
// Has it pumped in the next round.
void tunnels_ready(struct tunnels *tunnels, struct tunnel *tunnel);

#endif
