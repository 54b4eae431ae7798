#include "../agent/run/spool.h"
#include "check.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/ignition-spool-XXXXXX";

// Every test starts in a directory of its own, with a quota of 1000 bytes.
static int prepare(void) {
    memcpy(root + strlen(root) - 6, "XXXXXX", 6);
    CHECK(mkdtemp(root) != NULL);
    spool_set_root(root);
    spool_set_quota(1000);
    return 0;
}

static off_t size_of(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 ? status.st_size : -1;
}

static void write_bytes(struct spool *spool, size_t count) {
    uint8_t bytes[2000] = {0};
    spool_write(spool, bytes, count);
}

static int clean(void) {
    // Only empty run directories may be left: every test discards its spools.
    char command[64];
    snprintf(command, sizeof command, "find %s -type f | grep -q .", root);
    CHECK(system(command) != 0);
    snprintf(command, sizeof command, "rm -r %s", root);
    CHECK(system(command) == 0);
    return 0;
}

static int file_holds_what_was_written(void) {
    CHECK(prepare() == 0);
    struct spool *spool = spool_create(1, "stdout");
    CHECK(spool != NULL);
    write_bytes(spool, 400);
    write_bytes(spool, 600);
    CHECK(spool_is_complete(spool) && size_of(spool_path(spool)) == 1000);
    spool_discard(spool);
    return clean();
}

static int over_the_quota_nothing_more_is_kept(void) {
    CHECK(prepare() == 0);
    struct spool *spool = spool_create(1, "stdout");
    write_bytes(spool, 900);
    write_bytes(spool, 101);
    write_bytes(spool, 1);
    CHECK(!spool_is_complete(spool) && size_of(spool_path(spool)) == 900);
    spool_discard(spool);
    return clean();
}

static int oldest_finished_goes_first(void) {
    CHECK(prepare() == 0);
    char first_path[128], second_path[128];
    struct spool *first = spool_create(1, "stdout"), *second = spool_create(2, "stdout");
    struct spool *running = spool_create(3, "stdout");
    CHECK(first != NULL && second != NULL && running != NULL);
    snprintf(first_path, sizeof first_path, "%s", spool_path(first));
    snprintf(second_path, sizeof second_path, "%s", spool_path(second));
    write_bytes(running, 300);
    write_bytes(first, 300);
    write_bytes(second, 300);
    spool_close(first);
    spool_close(second);
    write_bytes(running, 200);
    CHECK(size_of(first_path) == -1 && size_of(second_path) == 300);
    CHECK(spool_is_complete(running) && size_of(spool_path(running)) == 500);
    write_bytes(running, 500);
    CHECK(size_of(second_path) == -1 && spool_is_complete(running));
    spool_discard(running);
    return clean();
}

static int evicted_while_open(void) {
    CHECK(prepare() == 0);
    struct spool *background = spool_create(1, "stdout"), *running = spool_create(2, "stdout");
    write_bytes(background, 600);
    spool_finish(background);
    write_bytes(running, 600);
    CHECK(spool_path(background) == NULL && !spool_is_complete(background));
    write_bytes(background, 10);
    spool_close(background);
    CHECK(spool_is_complete(running));
    spool_discard(running);
    return clean();
}

static const struct test tests[] = {
    {"the file holds what was written", file_holds_what_was_written},
    {"over the quota nothing more is kept", over_the_quota_nothing_more_is_kept},
    {"the oldest finished run's file goes first", oldest_finished_goes_first},
    {"a file still being written can be removed", evicted_while_open},
};
const struct suite spool_suite = SUITE("spool", tests);
