#include "dispatch.h"
#include "../cloned.h"
#include "../file/get.h"
#include "../file/put.h"
#include "../probe.h"
#include "../run/run.h"
#include "../tunnel/tunnels.h"
#include "json.h"
#include <errno.h>
#include <string.h>
#include <sys/utsname.h>

static const char features[] = "run put get cloned stdin spool report hold tcp probe";

// One request is parsed at a time, on one thread.
static struct json_object request;

static bool parse_request(struct link *link, const struct frame *frame) {
    if (frame->payload_bytes <= FRAME_MAX_CONTROL_PAYLOAD &&
        json_parse(&request, frame->payload, frame->payload_bytes))
        return true;
    link_send_error(link, frame->stream, "bad_request", 0,
                    "the payload is not a flat JSON object of at most 64 KiB");
    return false;
}

static void hello(struct link *link, uint32_t stream) {
    const char *nonce = "";
    if (!json_get_string(&request, "nonce", &nonce) || strlen(nonce) != 32 ||
        strspn(nonce, "0123456789abcdef") != 32) {
        link_send_error(link, stream, "bad_request", 0, "nonce is not 32 hex digits");
        return;
    }
    struct utsname system;
    struct json_writer writer;
    json_begin(&writer);
    json_integer(&writer, "protocol", AGENT_PROTOCOL);
    json_string(&writer, "nonce", nonce);
    json_string(&writer, "build", AGENT_BUILD);
    json_string(&writer, "kernel", uname(&system) == 0 ? system.release : "");
    json_string(&writer, "features", features);
    json_end(&writer);
    link->greeted = true;
    link_send_json(link, FRAME_OK, stream, &writer);
}

static void ping(struct link *link, uint32_t stream) {
    struct json_writer writer;
    json_begin(&writer);
    json_integer(&writer, "monotonic_us", (int64_t)monotonic_us());
    json_end(&writer);
    link_send_json(link, FRAME_OK, stream, &writer);
}

// RUN, PUT, GET and OPEN open the stream they come on.
static void open_stream(struct link *link, const struct frame *frame) {
    if (frame->stream == 0 || frame->stream >= TUNNELS_FIRST_ID ||
        link_find(link, frame->stream) != NULL || tunnels_has(link, frame->stream)) {
        link_send_error(link, frame->stream, "bad_request", 0,
                        "this stream is in use, or not the host's to open");
        return;
    }
    if (frame->type == FRAME_RUN)
        run_open(link, frame->stream, &request);
    else if (frame->type == FRAME_PUT)
        put_open(link, frame->stream, &request);
    else if (frame->type == FRAME_OPEN)
        tunnels_open(link, frame->stream, &request);
    else
        get_open(link, frame->stream, &request);
}

static void dispatch_request(struct link *link, const struct frame *frame) {
    switch (frame->type) {
    case FRAME_HELLO:
        hello(link, frame->stream);
        break;
    case FRAME_CLONED:
        cloned_answer(link, frame->stream, &request);
        break;
    case FRAME_PING:
        ping(link, frame->stream);
        break;
    case FRAME_HOLD:
        runs_hold();
        link_send(link, FRAME_OK, frame->stream, "{}", 2);
        link_hold(link);
        break;
    case FRAME_RELEASE:
        link_release(link);
        release_answer(link, frame->stream, &request);
        break;
    case FRAME_PROBE:
        probe_answer(link, frame->stream);
        break;
    case FRAME_LISTEN:
        tunnels_listen(link, frame->stream, &request);
        break;
    default:
        open_stream(link, frame);
    }
}

// A stream that just ended may still be spoken to: that is no error.
static void dispatch_to_stream(struct link *link, const struct frame *frame) {
    struct stream *stream = link_find(link, frame->stream);
    // All tunnels are behind one stream, see tunnels.h.
    if (stream == NULL)
        stream = link_find(link, 0);
    if (stream != NULL)
        stream->ops->frame(stream, frame);
}

void dispatch_frame(struct link *link, const struct frame *frame) {
    if (!link->greeted && frame->type != FRAME_HELLO) {
        link_send_error(link, frame->stream, "no_hello", 0, "HELLO must be the first frame");
        return;
    }
    switch (frame->type) {
    case FRAME_HELLO:
    case FRAME_CLONED:
    case FRAME_PING:
    case FRAME_HOLD:
    case FRAME_RELEASE:
    case FRAME_PROBE:
    case FRAME_RUN:
    case FRAME_PUT:
    case FRAME_GET:
    case FRAME_LISTEN:
    case FRAME_OPEN:
        if (parse_request(link, frame))
            dispatch_request(link, frame);
        break;
    case FRAME_COMMAND:
    case FRAME_STDIN:
    case FRAME_STDIN_EOF:
    case FRAME_KILL:
    case FRAME_DATA:
    case FRAME_EOF:
    case FRAME_CREDIT:
    case FRAME_CANCEL:
        dispatch_to_stream(link, frame);
        break;
    default:
        link_send_error(link, frame->stream, "unknown_type", 0,
                        "this agent does not know the frame's type");
    }
}
