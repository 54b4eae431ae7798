#include "../agent/run/limits.h"
#include "check.h"

static const uint64_t mib = 1024 * 1024;

static int memory_is_kept_back(void) {
    CHECK(limits_for(464 * mib).memory_bytes == 406 * mib);
    CHECK(limits_for(100 * mib).memory_bytes == 68 * mib);
    CHECK(limits_for(40 * mib).memory_bytes == 20 * mib);
    CHECK(limits_for(40 * mib).run_memory_bytes == 10 * mib);
    CHECK(limits_for(464 * mib).run_memory_bytes == 377 * mib);
    CHECK(limits_for(65536 * mib).memory_bytes == 65280 * mib);
    return 0;
}

static int processes_follow_memory(void) {
    struct limits small = limits_for(464 * mib), large = limits_for(65536 * mib);
    CHECK(small.run_pids == 928 && small.pids == 1856);
    CHECK(large.run_pids == 4096 && large.pids == 262144);
    return 0;
}

static const struct test tests[] = {
    {"keep some memory back", memory_is_kept_back},
    {"allow processes by the memory", processes_follow_memory},
};
const struct suite limits_suite = SUITE("limits", tests);
