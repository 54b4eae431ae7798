#pragma once
#include "reactor.h"

#include <semaphore.h>

/* A reactor with one connection to a listener in the same process. */
struct stage {
    struct reactor *reactor;
    sem_t notified;
    char path[64];
    int listener;
    /* The accepted side of the connection, blocking reads, 5 s at most */
    int peer;
    uint32_t id;
    /* The last report taken; its frames belong to the stage */
    struct conn_report report;
    /* Frames collected so far */
    unsigned frame_count;
};

bool stage_open(struct stage *stage);
void stage_close(struct stage *stage);

/* Connects with a high-water mark of 64 KiB, reads the request, sends `answer`. */
bool stage_shake(struct stage *stage, const char *answer);

/* Waits at most 5 s for the next report. */
bool stage_wait(struct stage *stage);

/* The peer sends frames of 1000 bytes for streams from `first` on; false when it has to wait 50 ms.
 */
bool stage_push_frames(struct stage *stage, unsigned first, unsigned count);

/* Takes reports until `count` frames of consecutive streams came. */
bool stage_collect(struct stage *stage, unsigned count);
