// One output stream of a run: reads its pipe without end, keeps head and tail, spools what is more.
#ifndef IGNITION_OUTPUT_H
#define IGNITION_OUTPUT_H

#include "../loop.h"
#include "../wire/link.h"
#include "capture.h"
#include "last-line.h"
#include "spool.h"

struct output {
    struct watch watch; // fd -1: end of stream
    struct timer rest;  // until it runs out, the pipe fills
    const char *name;   // "stdout", "stderr"
    uint64_t run;
    struct capture capture;
    struct spool *spool;
    struct last_line *line; // the run's, kept up to date; NULL when nobody asks for it
    size_t line_stream;
    bool frozen;             // head and tail stand: later bytes only go to the spool
    bool busy;               // it filled its pipe, which has been larger since
    bool spool_refused;      // it was tried once and could not be created
    uint64_t reported_bytes; // bytes at the time of freezing
    void (*on_end)(struct output *output);
};

// Takes over `fd`, the read end of a pipe. False when it cannot be watched; then it is closed.
bool output_open(struct output *output, int fd, void (*on_end)(struct output *output));
void output_close(struct output *output);

// Puts the stream into its file from the first byte on.
void output_spool(struct output *output);

// The stream's file, NULL when there is none.
const char *output_path(const struct output *output);

// Nobody will hear of this stream again: no file is kept or begun. The pipe goes on being read.
void output_forget(struct output *output);

// Reads what is in the pipe now.
void output_drain(struct output *output);

// Nobody writes any more: what is in the pipe is all there is.
void output_end(struct output *output);

// The run ended. If the pipe is still open, its whole stream is in a file from now on.
void output_freeze(struct output *output);

// Sends more of the head (and of the tail once frozen) while the link has room. True when all that
// can be sent was sent.
bool output_send(struct output *output, struct link *link, uint8_t type, uint32_t stream);

#endif
