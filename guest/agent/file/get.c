#include "get.h"
#include "path.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WINDOW_BYTES = FRAME_MAX_LENGTH, CHUNK_BYTES = 256 * 1024 };

struct get {
    struct stream stream;
    int fd;
    int64_t offset, left; // `left` INT64_MAX: to the end
    int64_t sent, credit;
};

static void get_free(struct get *get) {
    if (get->stream.link != NULL)
        stream_detach(&get->stream);
    if (get->fd >= 0)
        close(get->fd);
    free(get);
}

static void get_fail(struct get *get, const char *code, int error_number, const char *message) {
    link_send_error(get->stream.link, get->stream.id, code, error_number, message);
    get_free(get);
}

static void get_frame(struct stream *stream, const struct frame *frame) {
    struct get *get = (struct get *)stream;
    if (frame->type == FRAME_CREDIT && frame->payload_bytes == 4 &&
        get->credit <= INT64_MAX - UINT32_MAX)
        get->credit += read_u32le(frame->payload);
    else if (frame->type == FRAME_CANCEL)
        get_fail(get, "cancelled", 0, "cancelled by the host");
}

static void get_finish(struct get *get) {
    struct stat status;
    if (fstat(get->fd, &status) != 0) {
        get_fail(get, "io_failed", errno, "the file could not be examined");
        return;
    }
    // Files of /proc and /sys have no size; what was read is all there is to know.
    struct json_writer writer;
    json_begin(&writer);
    json_integer(&writer, "bytes", get->sent);
    json_integer(&writer, "file_bytes",
                 status.st_size == 0 && get->sent > 0 ? get->offset : status.st_size);
    json_end(&writer);
    link_send_json(get->stream.link, FRAME_OK, get->stream.id, &writer);
    get_free(get);
}

static bool get_pump(struct stream *stream) {
    struct get *get = (struct get *)stream;
    int64_t wanted = CHUNK_BYTES;
    if (get->left < wanted)
        wanted = get->left;
    if (wanted == 0) {
        get_finish(get);
        return false;
    }
    if (get->credit < wanted)
        wanted = get->credit;
    if (wanted == 0)
        return false;
    uint8_t *at = link_reserve(stream->link, (size_t)wanted);
    if (at == NULL)
        return true;
    ssize_t count = pread(get->fd, at, (size_t)wanted, get->offset);
    if (count < 0) {
        get_fail(get, path_error_code(errno), errno, "the file could not be read");
        return false;
    }
    if (count == 0) {
        get_finish(get);
        return false;
    }
    link_commit(stream->link, FRAME_DATA, stream->id, (size_t)count);
    get->offset += count;
    get->sent += count;
    get->left -= count;
    get->credit -= count;
    return true;
}

static void get_abandon(struct stream *stream) {
    get_free((struct get *)stream);
}

static const struct stream_ops get_ops = {get_frame, get_pump, get_abandon};

// Opens a regular file; a FIFO or a terminal is never waited for.
static const char *open_regular(struct get *get, const char *path) {
    struct stat status;
    get->fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (get->fd < 0 || fstat(get->fd, &status) != 0)
        return "the file could not be opened";
    if (S_ISREG(status.st_mode))
        return NULL;
    errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
    return "the path is not a regular file";
}

void get_open(struct link *link, uint32_t stream, const struct json_object *request) {
    struct get *get = calloc(1, sizeof *get);
    if (get == NULL || !stream_attach(&get->stream, link, stream, &get_ops)) {
        free(get);
        link_send_error(link, stream, "too_many_streams", 0,
                        "too many files are being transferred");
        return;
    }
    get->fd = -1;
    get->credit = WINDOW_BYTES;
    get->left = INT64_MAX;
    const char *path = "";
    char absolute[PATH_MAX];
    if (!json_get_string(request, "path", &path) ||
        !json_get_integer(request, "offset", 0, INT64_MAX, &get->offset) ||
        !json_get_integer(request, "bytes", 0, INT64_MAX, &get->left)) {
        get_fail(get, "bad_request", 0, "GET has a missing or invalid member");
        return;
    }
    if (!path_resolve(absolute, path)) {
        get_fail(get, "bad_path", 0, "the path is empty or longer than 4095 bytes");
        return;
    }
    const char *failed = open_regular(get, absolute);
    if (failed != NULL)
        get_fail(get, path_error_code(errno), errno, failed);
}
