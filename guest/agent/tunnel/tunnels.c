#include "tunnels.h"
#include "../boot/network.h"
#include "listener.h"
#include "loopback.h"
#include <errno.h>
#include <stdlib.h>

// A guest that connects without end may not keep the loop from the others.
enum { ACCEPTED_PER_TURN = 64 };

static struct tunnels *all;

static struct tunnel **bucket_of(struct tunnels *tunnels, uint32_t id) {
    return &tunnels->buckets[id % TUNNELS_BUCKETS];
}

static struct tunnel *find(struct tunnels *tunnels, uint32_t id) {
    struct tunnel *tunnel = *bucket_of(tunnels, id);
    while (tunnel != NULL && tunnel->id != id)
        tunnel = tunnel->next;
    return tunnel;
}

void tunnels_add(struct tunnels *tunnels, struct tunnel *tunnel) {
    struct tunnel **bucket = bucket_of(tunnels, tunnel->id);
    tunnel->next = *bucket;
    *bucket = tunnel;
    tunnels->count++;
}

void tunnels_remove(struct tunnels *tunnels, struct tunnel *tunnel) {
    struct tunnel **at = bucket_of(tunnels, tunnel->id);
    while (*at != tunnel)
        at = &(*at)->next;
    *at = tunnel->next;
    tunnels->count--;
    if (tunnel->is_ready)
        TAILQ_REMOVE(&tunnels->ready, tunnel, ready);
}

void tunnels_ready(struct tunnels *tunnels, struct tunnel *tunnel) {
    if (!tunnel->is_ready)
        TAILQ_INSERT_TAIL(&tunnels->ready, tunnel, ready);
    tunnel->is_ready = true;
}

static void accept_some(struct tunnels *tunnels) {
    struct link *link = tunnels->stream.link;
    for (int turn = 0; turn < ACCEPTED_PER_TURN && link_has_room(link); turn++) {
        int fd = listener_accept(tunnels);
        if (fd < 0)
            return;
        uint32_t id = TUNNELS_FIRST_ID | tunnels->accepted;
        // After 2^31 connections a number comes again; one that still lives is passed over.
        if (tunnels->count >= TUNNELS_MAX || find(tunnels, id) != NULL)
            loopback_reset(fd);
        else if (tunnel_accepted(tunnels, id, fd) != NULL)
            link_send(link, FRAME_ACCEPTED, id, "{}", 2);
        tunnels->accepted = (tunnels->accepted + 1) & ~TUNNELS_FIRST_ID;
    }
}

// Each tunnel has one turn; what is left waits for the next round.
static bool tunnels_pump(struct stream *stream) {
    struct tunnels *tunnels = (struct tunnels *)stream;
    accept_some(tunnels);
    for (size_t turns = tunnels->count; turns > 0 && link_has_room(stream->link); turns--) {
        struct tunnel *tunnel = TAILQ_FIRST(&tunnels->ready);
        if (tunnel == NULL)
            break;
        TAILQ_REMOVE(&tunnels->ready, tunnel, ready);
        tunnel->is_ready = false;
        if (tunnel_pump(tunnel))
            tunnels_ready(tunnels, tunnel);
    }
    return !TAILQ_EMPTY(&tunnels->ready) || listener_is_ready(tunnels);
}

static void tunnels_frame(struct stream *stream, const struct frame *frame) {
    struct tunnel *tunnel = find((struct tunnels *)stream, frame->stream);
    if (tunnel != NULL)
        tunnel_frame(tunnel, frame);
}

static void each(struct tunnels *tunnels, void (*visit)(struct tunnel *tunnel)) {
    for (size_t i = 0; i < TUNNELS_BUCKETS; i++) {
        struct tunnel *next;
        for (struct tunnel *tunnel = tunnels->buckets[i]; tunnel != NULL; tunnel = next) {
            next = tunnel->next;
            visit(tunnel);
        }
    }
}

static void tunnels_abandon(struct stream *stream) {
    struct tunnels *tunnels = (struct tunnels *)stream;
    each(tunnels, tunnel_abandon);
    listener_close(tunnels);
    struct tunnels **at = &all;
    while (*at != tunnels)
        at = &(*at)->next;
    *at = tunnels->next;
    free(tunnels);
}

static const struct stream_ops tunnels_ops = {tunnels_frame, tunnels_pump, tunnels_abandon};

static struct tunnels *of_link(struct link *link) {
    return (struct tunnels *)link_find(link, 0);
}

bool tunnels_has(struct link *link, uint32_t id) {
    struct tunnels *tunnels = of_link(link);
    return tunnels != NULL && find(tunnels, id) != NULL;
}

// Those of the link, made when there were none; NULL after an ERROR on `stream`.
static struct tunnels *obtain(struct link *link, uint32_t stream) {
    struct tunnels *tunnels = of_link(link);
    if (tunnels != NULL)
        return tunnels;
    tunnels = calloc(1, sizeof *tunnels);
    if (tunnels == NULL || !stream_attach(&tunnels->stream, link, 0, &tunnels_ops)) {
        free(tunnels);
        link_send_error(link, stream, "too_many_streams", 0, "there is no place for tunnels");
        return NULL;
    }
    TAILQ_INIT(&tunnels->ready);
    tunnels->next = all;
    all = tunnels;
    network_loopback_up();
    return tunnels;
}

void tunnels_listen(struct link *link, uint32_t stream, const struct json_object *request) {
    bool on = true;
    if (!json_get_bool(request, "on", &on)) {
        link_send_error(link, stream, "bad_request", 0, "on is not a boolean");
        return;
    }
    struct tunnels *tunnels = obtain(link, stream);
    if (tunnels == NULL)
        return;
    if (!on) {
        listener_close(tunnels);
    } else if (!listener_open(tunnels)) {
        link_send_error(link, stream, "listen_failed", errno, "the proxy's port cannot be had");
        return;
    }
    struct json_writer writer;
    json_begin(&writer);
    json_integer(&writer, "port", listener_port());
    json_end(&writer);
    link_send_json(link, FRAME_OK, stream, &writer);
}

void tunnels_open(struct link *link, uint32_t stream, const struct json_object *request) {
    int64_t port = 0;
    if (!json_get_integer(request, "port", 1, UINT16_MAX, &port) || port == 0) {
        link_send_error(link, stream, "bad_request", 0, "port is not 1 to 65535");
        return;
    }
    struct tunnels *tunnels = obtain(link, stream);
    if (tunnels == NULL)
        return;
    if (tunnels->count >= TUNNELS_MAX)
        link_send_error(link, stream, "too_many_tunnels", 0, "1024 tunnels are open");
    else
        tunnel_open(tunnels, stream, (uint16_t)port);
}

static void reset(struct tunnel *tunnel) {
    tunnel_fail(tunnel, "reset", 0, "the guest was told that it is a clone");
}

void tunnels_reset_all(void) {
    for (struct tunnels *tunnels = all; tunnels != NULL; tunnels = tunnels->next)
        each(tunnels, reset);
}
