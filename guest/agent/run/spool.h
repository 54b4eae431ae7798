// Files that hold a run's whole output once it is more than can be shown, under one quota.
#ifndef IGNITION_SPOOL_H
#define IGNITION_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spool;

// Where spool files go; created when needed. The default is /run/ignition/runs.
void spool_set_root(const char *directory);

// 64 MiB unless set.
void spool_set_quota(uint64_t bytes);

// `<root>/<run>/<name>`. NULL, after a line on the console, when it cannot be created.
struct spool *spool_create(uint64_t run, const char *name);

// Appends. Over the quota (64 MiB over all runs, or a quarter of the free memory) the files of
// the oldest finished runs are removed; when there are none the bytes are dropped and the spool is
// no longer complete.
void spool_write(struct spool *spool, const uint8_t *bytes, size_t length);

const char *spool_path(const struct spool *spool);
bool spool_is_complete(const struct spool *spool);

// The run's end was reported: from now on the file may be removed to make room.
void spool_finish(struct spool *spool);

// No more output comes. The file stays; the pointer is no longer valid.
void spool_close(struct spool *spool);

// Closes and removes a file nobody was told about.
void spool_discard(struct spool *spool);

#endif
