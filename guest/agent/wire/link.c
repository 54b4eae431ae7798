#include "link.h"
#include "../console.h"
#include "dispatch.h"
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    // One link may not keep the loop from the others for longer than this many bytes.
    READ_BYTES_PER_TURN = 2 * FRAME_MAX_LENGTH,
    WRITE_BYTES_PER_TURN = 4 * FRAME_MAX_LENGTH,
    // virtio_console takes no more per call.
    PORT_WRITE_BYTES = 32 * 1024,
    SILENCE_US = 1000000,
};

static struct link *links;

struct link *link_open(int fd, enum link_carrier carrier) {
    struct link *link = calloc(1, sizeof *link);
    uint8_t *out = malloc(LINK_OUT_BYTES);
    if (link == NULL || out == NULL ||
        !conn_init(&link->conn, carrier == LINK_PORT ? CONN_SEEKING : CONN_OPEN)) {
        console_error("no memory for a connection");
        free(out);
        free(link);
        close(fd);
        return NULL;
    }
    link->watch.fd = fd;
    link->carrier = carrier;
    link->out = out;
    link->next = links;
    links = link;
    return link;
}

size_t link_count(enum link_carrier carrier) {
    size_t count = 0;
    for (struct link *link = links; link != NULL; link = link->next)
        count += link->carrier == carrier;
    return count;
}

// The host is gone, or another one came: nothing of the old connection survives.
static void drop_connection(struct link *link) {
    for (size_t i = 0; i < LINK_MAX_STREAMS; i++) {
        struct stream *stream = link->streams[i];
        if (stream != NULL) {
            stream_detach(stream);
            stream->ops->abandon(stream);
        }
    }
    link->out_begin = link->out_end = 0;
    link->greeted = link->held = false;
    timer_stop(&link->silence);
}

static void close_link(struct link *link) {
    drop_connection(link);
    for (struct link **at = &links; *at != NULL; at = &(*at)->next) {
        if (*at == link) {
            *at = link->next;
            break;
        }
    }
    loop_unwatch(&link->watch);
    close(link->watch.fd);
    conn_free(&link->conn);
    free(link->out);
    free(link);
}

static bool is_full(const struct link *link) {
    return link->out_end - link->out_begin >= LINK_OUT_LIMIT_BYTES;
}

static void greet(struct link *link) {
    drop_connection(link);
    char line[32];
    int length = snprintf(line, sizeof line, "OK %u\n", ++link->connections);
    memcpy(link->out, line, (size_t)length);
    link->out_end = (size_t)length;
}

// False when the link must be closed.
static bool handle_events(struct link *link) {
    struct frame frame;
    while (!is_full(link)) {
        switch (conn_next(&link->conn, &frame)) {
        case CONN_NEED_MORE:
            return true;
        case CONN_CONNECTED:
            greet(link);
            break;
        case CONN_FRAME:
            dispatch_frame(link, &frame);
            break;
        case CONN_BROKEN:
            drop_connection(link);
            link_send_error(link, 0, "frame_invalid", 0, "a frame's length is out of bounds");
            if (link->carrier == LINK_SOCKET)
                return false;
            break;
        }
    }
    return true;
}

static void on_silence(struct timer *timer) {
    // SAFETY: the timer is embedded in its link.
    struct link *link = (struct link *)((char *)timer - offsetof(struct link, silence));
    if (!conn_ends_in_connect(&link->conn))
        return;
    conn_reset(&link->conn);
    greet(link);
    link->conn.state = CONN_OPEN;
}

// Whether a read of nothing means that the host has left. A port reads as ended until the kernel
// has handled the announcement of its host, which may come after the host's first bytes: what they
// asked for must not be thrown away.
static bool is_end_of_host(struct link *link) {
    bool ended = link->carrier == LINK_SOCKET || link->host_seen;
    link->host_seen = false;
    return ended;
}

enum io_result { IO_MORE, IO_WOULD_BLOCK, IO_CLOSED };

static enum io_result receive(struct link *link) {
    // What was left over while the link was full comes first.
    if (!handle_events(link))
        return IO_CLOSED;
    size_t total = 0;
    while (!is_full(link)) {
        if (total >= READ_BYTES_PER_TURN)
            return IO_MORE;
        size_t space;
        uint8_t *at = conn_space(&link->conn, &space);
        ssize_t count = read(link->watch.fd, at, space);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && errno == EAGAIN) {
            link->host_seen = true;
            return IO_WOULD_BLOCK;
        }
        if (count == 0 && !is_end_of_host(link))
            return IO_WOULD_BLOCK;
        if (count <= 0)
            return IO_CLOSED;
        timer_stop(&link->silence);
        conn_received(&link->conn, (size_t)count);
        total += (size_t)count;
        if (!handle_events(link))
            return IO_CLOSED;
        if (link->carrier == LINK_PORT && conn_ends_in_connect(&link->conn))
            timer_start(&link->silence, SILENCE_US, on_silence);
    }
    return IO_WOULD_BLOCK;
}

static enum io_result transmit(struct link *link) {
    size_t total = 0;
    while (link->out_begin < link->out_end) {
        if (total >= WRITE_BYTES_PER_TURN)
            return IO_MORE;
        size_t length = link->held ? link->sendable : link->out_end - link->out_begin;
        if (length == 0)
            return IO_WOULD_BLOCK;
        if (link->carrier == LINK_PORT && length > PORT_WRITE_BYTES)
            length = PORT_WRITE_BYTES;
        ssize_t count = write(link->watch.fd, link->out + link->out_begin, length);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && errno == EAGAIN)
            return IO_WOULD_BLOCK;
        if (count <= 0)
            return IO_CLOSED;
        link->out_begin += (size_t)count;
        link->sendable -= link->held ? (size_t)count : 0;
        total += (size_t)count;
    }
    // Small traffic keeps to the buffer's first pages.
    link->out_begin = link->out_end = 0;
    return IO_WOULD_BLOCK;
}

// Lets each stream add output, starting behind the one that filled the link last time.
static bool pump(struct link *link) {
    bool more = false;
    if (link->held)
        return false;
    for (size_t i = 0; i < LINK_MAX_STREAMS; i++) {
        size_t at = (link->cursor + i) % LINK_MAX_STREAMS;
        struct stream *stream = link->streams[at];
        if (stream == NULL)
            continue;
        if (!link_has_room(link)) {
            link->cursor = at;
            return true;
        }
        more |= stream->ops->pump(stream);
    }
    return more;
}

// True when there is more to do at once, without a new event.
static bool service(struct link *link) {
    enum io_result received = receive(link);
    if (received == IO_CLOSED) {
        if (link->carrier == LINK_SOCKET) {
            close_link(link);
            return false;
        }
        drop_connection(link);
        conn_reset(&link->conn);
        return false;
    }
    bool was_full = is_full(link);
    bool more = pump(link);
    enum io_result sent = transmit(link);
    if (sent == IO_CLOSED && link->carrier == LINK_SOCKET) {
        close_link(link);
        return false;
    }
    // While something is unsent, epoll says when to go on.
    bool drained = link->out_begin == link->out_end;
    return received == IO_MORE || sent == IO_MORE || (drained && (more || was_full));
}

bool link_service_all(void) {
    bool more = false;
    struct link *next;
    for (struct link *link = links; link != NULL; link = next) {
        next = link->next;
        more |= service(link);
    }
    return more;
}
