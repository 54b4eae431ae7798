// REPORT: how far a run is, while it goes on.
#ifndef IGNITION_REPORT_H
#define IGNITION_REPORT_H

#include "../loop.h"
#include "../wire/link.h"
#include "last-line.h"
#include "output.h"

enum { REPORT_MIN_MS = 50, REPORT_MAX_MS = 60000 };

struct report {
    uint64_t interval_us; // 0: none are sent
    bool owed;            // one is to be sent although nothing was printed
    uint64_t next_us;     // no sooner than this
    uint64_t told_bytes;  // of both streams together, in the last one
    struct timer timer;   // wakes the loop at next_us
    struct last_line line;
};

// The first one is owed at once where the host waits for the files' paths.
void report_init(struct report *report, uint64_t interval_us, bool owed);

// Sends one if it is time. False when it is but the link has no room.
bool report_send(struct report *report, const struct output *out, const struct output *err,
                 struct link *link, uint32_t stream);

// No more of them.
void report_stop(struct report *report);

#endif
