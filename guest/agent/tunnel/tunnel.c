#include "tunnel.h"
#include "loopback.h"
#include "tunnels.h"
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CHUNK_BYTES = 32 * 1024, CONNECT_US = 10000000 };

static void on_ready(struct watch *watch, uint32_t events);

static struct link *link_of(const struct tunnel *tunnel) {
    return tunnel->owner->stream.link;
}

static struct tunnel *new_tunnel(struct tunnels *owner, uint32_t id, int fd) {
    struct tunnel *tunnel = calloc(1, sizeof *tunnel);
    if (tunnel == NULL)
        return NULL;
    tunnel->watch = (struct watch){.fd = fd, .ready = on_ready};
    tunnel->id = id;
    tunnel->owner = owner;
    tunnel->credit = TUNNEL_WINDOW_BYTES;
    inbox_init(&tunnel->in);
    // Edge-triggered: one that is idle, or that nobody has room for, wakes nobody.
    if (!loop_watch(&tunnel->watch, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)) {
        free(tunnel);
        return NULL;
    }
    tunnels_add(owner, tunnel);
    return tunnel;
}

// Everything but the socket, which the caller closes in its way.
static void forget(struct tunnel *tunnel) {
    timer_stop(&tunnel->deadline);
    loop_unwatch(&tunnel->watch);
    tunnels_remove(tunnel->owner, tunnel);
    inbox_free(&tunnel->in);
    free(tunnel);
}

void tunnel_abandon(struct tunnel *tunnel) {
    int fd = tunnel->watch.fd;
    forget(tunnel);
    loopback_reset(fd);
}

void tunnel_fail(struct tunnel *tunnel, const char *code, int error_number, const char *message) {
    if (!tunnel->dismissed)
        link_send_error(link_of(tunnel), tunnel->id, code, error_number, message);
    tunnel_abandon(tunnel);
}

static void fail_by_socket(struct tunnel *tunnel, int error_number) {
    tunnel_fail(tunnel, "reset", error_number, "the connection in the guest broke");
}

// True when both sides have ended, and with them the tunnel.
static bool finish_if_over(struct tunnel *tunnel) {
    if (!tunnel->out_ended || !tunnel->in_ended)
        return false;
    int fd = tunnel->watch.fd;
    forget(tunnel);
    close(fd);
    return true;
}

struct tunnel *tunnel_accepted(struct tunnels *owner, uint32_t id, int fd) {
    struct tunnel *tunnel = new_tunnel(owner, id, fd);
    if (tunnel == NULL)
        loopback_reset(fd);
    return tunnel;
}

static void connected(struct tunnel *tunnel) {
    tunnel->connecting = false;
    timer_stop(&tunnel->deadline);
    link_send(link_of(tunnel), FRAME_OK, tunnel->id, "{}", 2);
}

static void connect_failed(struct tunnel *tunnel, int error_number) {
    tunnel_fail(tunnel, "connect_failed", error_number, "nothing answers on this port");
}

static void on_deadline(struct timer *timer) {
    // SAFETY: the timer is embedded in its tunnel.
    connect_failed((struct tunnel *)((char *)timer - offsetof(struct tunnel, deadline)), ETIMEDOUT);
}

void tunnel_open(struct tunnels *owner, uint32_t id, uint16_t port) {
    int fd = loopback_connect(port);
    bool connecting = errno == EINPROGRESS;
    struct tunnel *tunnel = fd < 0 ? NULL : new_tunnel(owner, id, fd);
    if (tunnel == NULL) {
        link_send_error(owner->stream.link, id, "connect_failed", fd < 0 ? errno : ENOMEM,
                        "nothing answers on this port");
        if (fd >= 0)
            loopback_reset(fd);
        return;
    }
    tunnel->connecting = connecting;
    if (connecting)
        timer_start(&tunnel->deadline, CONNECT_US, on_deadline);
    else
        connected(tunnel);
}

// The bytes the socket took, or -1 when the tunnel is gone.
static ssize_t write_some(struct tunnel *tunnel, const uint8_t *bytes, size_t length) {
    size_t total = 0;
    while (total < length) {
        ssize_t count = send(tunnel->watch.fd, bytes + total, length - total, MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && errno == EAGAIN)
            break;
        if (count < 0) {
            fail_by_socket(tunnel, errno);
            return -1;
        }
        total += (size_t)count;
    }
    uint32_t granted = inbox_taken(&tunnel->in, total);
    if (granted > 0 && !tunnel->dismissed)
        link_send_credit(link_of(tunnel), tunnel->id, granted);
    return (ssize_t)total;
}

// Gives the guest what waits for it, and then the end if that came. False: the tunnel is gone.
static bool flush(struct tunnel *tunnel) {
    const uint8_t *bytes;
    size_t waiting = inbox_next(&tunnel->in, &bytes);
    if (waiting > 0) {
        ssize_t count = write_some(tunnel, bytes, waiting);
        if (count < 0)
            return false;
        inbox_drop(&tunnel->in, (size_t)count);
        if ((size_t)count < waiting)
            return true;
    }
    if (!tunnel->in.ended || tunnel->in_ended)
        return true;
    if (shutdown(tunnel->watch.fd, SHUT_WR) != 0) {
        fail_by_socket(tunnel, errno);
        return false;
    }
    tunnel->in_ended = true;
    return !finish_if_over(tunnel);
}

static void take_data(struct tunnel *tunnel, const struct frame *frame) {
    const uint8_t *bytes = frame->payload;
    size_t length = frame->payload_bytes;
    if (!inbox_admit(&tunnel->in, length)) {
        tunnel_fail(tunnel, "credit_exceeded", 0, "more DATA than granted, or behind EOF");
        return;
    }
    ssize_t count = 0;
    const uint8_t *waiting;
    if (inbox_next(&tunnel->in, &waiting) == 0 && (count = write_some(tunnel, bytes, length)) < 0)
        return;
    size_t rest = length - (size_t)count;
    if (rest > 0 && !inbox_keep(&tunnel->in, bytes + count, rest))
        tunnel_fail(tunnel, "reset", ENOMEM, "there is no memory for what came");
}

static void take_credit(struct tunnel *tunnel, const struct frame *frame) {
    uint32_t bytes = frame->payload_bytes == 4 ? read_u32le(frame->payload) : UINT32_MAX;
    if (bytes > TUNNEL_WINDOW_BYTES - tunnel->credit) {
        tunnel_fail(tunnel, "bad_request", 0, "CREDIT is not one u32 within the window");
        return;
    }
    tunnel->credit += bytes;
    if (tunnel->may_have_bytes)
        tunnels_ready(tunnel->owner, tunnel);
}

static void take_cancel(struct tunnel *tunnel) {
    if (!tunnel->in.ended) {
        tunnel_abandon(tunnel);
        return;
    }
    // What was sent before still gets there; a RST would take it away.
    tunnel->dismissed = true;
    if (tunnel->may_have_bytes)
        tunnels_ready(tunnel->owner, tunnel);
}

void tunnel_frame(struct tunnel *tunnel, const struct frame *frame) {
    if (tunnel->dismissed)
        return;
    if (tunnel->connecting && frame->type != FRAME_CANCEL) {
        tunnel_fail(tunnel, "bad_request", 0, "the tunnel is not open yet");
        return;
    }
    switch (frame->type) {
    case FRAME_DATA:
        take_data(tunnel, frame);
        break;
    case FRAME_EOF:
        tunnel->in.ended = true;
        flush(tunnel);
        break;
    case FRAME_CREDIT:
        take_credit(tunnel, frame);
        break;
    case FRAME_CANCEL:
        take_cancel(tunnel);
        break;
    default:
        break;
    }
}

// The guest's side said all it has to say.
static bool end_out(struct tunnel *tunnel) {
    tunnel->may_have_bytes = false;
    tunnel->out_ended = true;
    if (!tunnel->dismissed)
        link_send(link_of(tunnel), FRAME_EOF, tunnel->id, NULL, 0);
    finish_if_over(tunnel);
    return false;
}

bool tunnel_pump(struct tunnel *tunnel) {
    static uint8_t dropped[CHUNK_BYTES];
    size_t wanted =
        tunnel->dismissed || tunnel->credit > CHUNK_BYTES ? CHUNK_BYTES : tunnel->credit;
    if (wanted == 0 || tunnel->out_ended || tunnel->connecting)
        return false;
    uint8_t *at = tunnel->dismissed ? dropped : link_reserve(link_of(tunnel), wanted);
    if (at == NULL)
        return true;
    ssize_t count = recv(tunnel->watch.fd, at, wanted, 0);
    if (count < 0 && errno == EINTR)
        return true;
    if (count < 0 && errno == EAGAIN) {
        tunnel->may_have_bytes = false;
        return false;
    }
    if (count < 0) {
        fail_by_socket(tunnel, errno);
        return false;
    }
    if (count == 0)
        return end_out(tunnel);
    if (!tunnel->dismissed) {
        link_commit(link_of(tunnel), FRAME_DATA, tunnel->id, (size_t)count);
        tunnel->credit -= (size_t)count;
    }
    return tunnel->dismissed || tunnel->credit > 0;
}

static void on_ready(struct watch *watch, uint32_t events) {
    struct tunnel *tunnel = (struct tunnel *)watch;
    int error_number = events & EPOLLERR ? loopback_error(watch->fd) : 0;
    if (tunnel->connecting && (error_number != 0 || events & EPOLLHUP)) {
        connect_failed(tunnel, error_number != 0 ? error_number : ECONNREFUSED);
        return;
    }
    if (tunnel->connecting && events & EPOLLOUT)
        connected(tunnel);
    if (error_number != 0) {
        fail_by_socket(tunnel, error_number);
        return;
    }
    if (events & EPOLLOUT && !tunnel->connecting && !flush(tunnel))
        return;
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP) && !tunnel->out_ended) {
        tunnel->may_have_bytes = true;
        tunnels_ready(tunnel->owner, tunnel);
    }
}
