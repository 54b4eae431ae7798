#include "reactor_stage.h"
#include "check.h"
#include "unix_socket.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define PAYLOAD_BYTES 1000u
#define FRAME_BYTES (9u + PAYLOAD_BYTES)

static void on_notify(void *context) {
    (void)sem_post(&((struct stage *)context)->notified);
}

bool stage_open(struct stage *stage) {
    *stage = (struct stage){.peer = -1};
    int error = 0;
    CHECK(sem_init(&stage->notified, 0, 0) == 0);
    stage->reactor = reactor_start(on_notify, stage, &error);
    CHECK(stage->reactor != NULL);
    (void)snprintf(stage->path, sizeof stage->path, "/tmp/reactor-test-%ld.sock", (long)getpid());
    (void)unlink(stage->path);
    struct sockaddr_un address;
    CHECK(unix_address(&address, stage->path) == 0);
    stage->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(stage->listener, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(stage->listener, 1) == 0);
    return true;
}

void stage_close(struct stage *stage) {
    reactor_stop(stage->reactor);
    frame_batch_clear(&stage->report.frames);
    close(stage->listener);
    if (stage->peer >= 0)
        close(stage->peer);
    (void)unlink(stage->path);
    (void)sem_destroy(&stage->notified);
}

bool stage_shake(struct stage *stage, const char *answer) {
    int error = 0;
    stage->id = reactor_connect(stage->reactor, stage->path, 7000, 60000, 65536, &error);
    CHECK(stage->id != 0);
    stage->peer = accept(stage->listener, NULL, NULL);
    const struct timeval limit = {.tv_sec = 60};
    CHECK(setsockopt(stage->peer, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
    char request[13];
    CHECK(recv(stage->peer, request, sizeof request, MSG_WAITALL) == sizeof request);
    CHECK(memcmp(request, "CONNECT 7000\n", sizeof request) == 0);
    CHECK(write(stage->peer, answer, strlen(answer)) == (ssize_t)strlen(answer));
    return true;
}

bool stage_wait(struct stage *stage) {
    frame_batch_clear(&stage->report.frames);
    struct timespec limit;
    CHECK(clock_gettime(CLOCK_REALTIME, &limit) == 0);
    limit.tv_sec += 60;
    while (reactor_take(stage->reactor, &stage->report, 1) == 0)
        CHECK(sem_timedwait(&stage->notified, &limit) == 0 || errno == EINTR);
    return true;
}

bool stage_push_frames(struct stage *stage, unsigned first, unsigned count) {
    for (unsigned stream = first; stream < first + count; stream++) {
        struct pollfd writable = {.fd = stage->peer, .events = POLLOUT};
        uint8_t frame[FRAME_BYTES] = {0};
        const uint32_t length = FRAME_BYTES - 4;
        for (size_t at = 0; at < 4; at++) {
            frame[at] = (uint8_t)(length >> (8 * at));
            frame[5 + at] = (uint8_t)(stream >> (8 * at));
        }
        memset(frame + 9, (int)(stream & 0xff), PAYLOAD_BYTES);
        if (poll(&writable, 1, 50) != 1 || write(stage->peer, frame, sizeof frame) != sizeof frame)
            return false;
    }
    return true;
}

bool stage_collect(struct stage *stage, unsigned count) {
    const unsigned wanted = stage->frame_count + count;
    while (stage->frame_count < wanted) {
        CHECK(stage_wait(stage));
        const struct frame_batch *batch = &stage->report.frames;
        const uint32_t first = batch->frame_count > 0 ? batch->frames[0].stream : 0;
        for (size_t at = 0; at < batch->frame_count; at++) {
            const struct frame *frame = &batch->frames[at];
            CHECK(frame->stream == first + at && frame->size == PAYLOAD_BYTES);
            CHECK(batch->chunks[frame->chunk]->bytes[frame->offset + 999] ==
                  (frame->stream & 0xff));
        }
        stage->frame_count += (unsigned)batch->frame_count;
    }
    return true;
}
