#include "put.h"
#include "path.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { WINDOW_BYTES = FRAME_MAX_LENGTH, GRANT_BYTES = WINDOW_BYTES / 4 };
#define PUT_MAX_BYTES ((int64_t)4 << 30)

struct put {
    struct stream stream;
    char target[PATH_MAX], temporary[PATH_MAX];
    int fd;
    int64_t bytes, written;
    int64_t credit;    // what the host may still send
    uint32_t to_grant; // written, not yet given back as credit
};

static uint64_t puts_started;

static void put_free(struct put *put, bool keep_file) {
    if (put->stream.link != NULL)
        stream_detach(&put->stream);
    if (put->fd >= 0)
        close(put->fd);
    if (!keep_file && put->temporary[0] != '\0')
        unlink(put->temporary);
    free(put);
}

static void put_fail(struct put *put, const char *code, int error_number, const char *message) {
    link_send_error(put->stream.link, put->stream.id, code, error_number, message);
    put_free(put, false);
}

static void put_fail_errno(struct put *put, const char *message) {
    put_fail(put, path_error_code(errno), errno, message);
}

static void put_finish(struct put *put) {
    if (close(put->fd) != 0) {
        put->fd = -1;
        put_fail_errno(put, "the file could not be completed");
        return;
    }
    put->fd = -1;
    if (rename(put->temporary, put->target) != 0) {
        put_fail_errno(put, "the file could not replace the target");
        return;
    }
    struct json_writer writer;
    json_begin(&writer);
    json_integer(&writer, "bytes", put->bytes);
    json_end(&writer);
    link_send_json(put->stream.link, FRAME_OK, put->stream.id, &writer);
    put_free(put, true);
}

static bool write_all(int fd, const uint8_t *bytes, size_t length) {
    while (length > 0) {
        ssize_t count = write(fd, bytes, length);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return false;
        bytes += count;
        length -= (size_t)count;
    }
    return true;
}

static void put_data(struct put *put, const struct frame *frame) {
    int64_t length = (int64_t)frame->payload_bytes;
    if (length > put->credit) {
        put_fail(put, "credit_exceeded", 0, "more DATA than granted");
        return;
    }
    if (length > put->bytes - put->written) {
        put_fail(put, "bad_request", 0, "more DATA than announced");
        return;
    }
    if (!write_all(put->fd, frame->payload, frame->payload_bytes)) {
        put_fail_errno(put, "the file could not be written");
        return;
    }
    put->written += length;
    put->credit -= length;
    put->to_grant += (uint32_t)length;
    if (put->written == put->bytes) {
        put_finish(put);
    } else if (put->to_grant >= GRANT_BYTES) {
        link_send_credit(put->stream.link, put->stream.id, put->to_grant);
        put->credit += put->to_grant;
        put->to_grant = 0;
    }
}

static void put_frame(struct stream *stream, const struct frame *frame) {
    struct put *put = (struct put *)stream;
    if (frame->type == FRAME_DATA)
        put_data(put, frame);
    else if (frame->type == FRAME_CANCEL)
        put_fail(put, "cancelled", 0, "cancelled by the host");
}

static bool put_pump(struct stream *stream) {
    (void)stream;
    return false;
}

static void put_abandon(struct stream *stream) {
    put_free((struct put *)stream, false);
}

static const struct stream_ops put_ops = {put_frame, put_pump, put_abandon};

// What stands at the target now decides the mode and whether it may be replaced. A symbolic link
// is followed, so that the file it names is replaced and not the link.
static const char *inspect_target(struct put *put, mode_t *mode) {
    char resolved[PATH_MAX];
    struct stat status;
    if (put->target[strlen(put->target) - 1] == '/') {
        errno = EISDIR;
        return "the path ends in a slash";
    }
    if (stat(put->target, &status) != 0)
        return errno == ENOENT ? NULL : "the target could not be examined";
    if (!S_ISREG(status.st_mode)) {
        errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
        return "the target is not a regular file";
    }
    *mode = status.st_mode & 07777;
    if (realpath(put->target, resolved) == NULL)
        return "the target could not be resolved";
    memcpy(put->target, resolved, sizeof resolved);
    return NULL;
}

static const char *create_temporary(struct put *put, mode_t mode) {
    char directory[PATH_MAX];
    memcpy(directory, put->target, sizeof directory);
    char *parent = dirname(directory);
    int length = snprintf(put->temporary, sizeof put->temporary, "%s/.ignition-put-%llu", parent,
                          (unsigned long long)++puts_started);
    if (length < 0 || (size_t)length >= sizeof put->temporary) {
        put->temporary[0] = '\0';
        errno = ENAMETOOLONG;
        return "the path is too long";
    }
    put->fd = open(put->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (put->fd < 0) {
        put->temporary[0] = '\0';
        return "the file could not be created";
    }
    struct statvfs space;
    if (fchmod(put->fd, mode) != 0 || fstatvfs(put->fd, &space) != 0)
        return "the file could not be prepared";
    if ((uint64_t)put->bytes > (uint64_t)space.f_bavail * space.f_frsize) {
        errno = ENOSPC;
        return "the file system has less free space than the file needs";
    }
    return NULL;
}

void put_open(struct link *link, uint32_t stream, const struct json_object *request) {
    struct put *put = calloc(1, sizeof *put);
    if (put == NULL || !stream_attach(&put->stream, link, stream, &put_ops)) {
        free(put);
        link_send_error(link, stream, "too_many_streams", 0,
                        "too many files are being transferred");
        return;
    }
    put->fd = -1;
    put->credit = WINDOW_BYTES;
    put->bytes = -1;
    const char *path = "";
    int64_t requested_mode = -1;
    mode_t mode = 0644;
    if (!json_get_string(request, "path", &path) ||
        !json_get_integer(request, "bytes", 0, PUT_MAX_BYTES, &put->bytes) || put->bytes < 0 ||
        !json_get_integer(request, "mode", 0, 07777, &requested_mode)) {
        put_fail(put, "bad_request", 0, "PUT has a missing or invalid member");
        return;
    }
    if (!path_resolve(put->target, path)) {
        put_fail(put, "bad_path", 0, "the path is empty or longer than 4095 bytes");
        return;
    }
    const char *failed = inspect_target(put, &mode);
    if (failed == NULL && !path_make_parents(put->target))
        failed = "a parent directory could not be created";
    if (failed == NULL)
        failed = create_temporary(put, requested_mode < 0 ? mode : (mode_t)requested_mode);
    if (failed != NULL)
        put_fail_errno(put, failed);
    else if (put->bytes == 0)
        put_finish(put);
}
