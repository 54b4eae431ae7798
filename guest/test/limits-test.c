#include "../agent/run/limits.h"
#include "check.h"

static const uint64_t mib = 1024 * 1024;

static int memory_is_kept_back(void) {
    CHECK(limits_for(464 * mib, 3634).memory_bytes == 406 * mib);
    CHECK(limits_for(100 * mib, 800).memory_bytes == 68 * mib);
    CHECK(limits_for(40 * mib, 800).memory_bytes == 20 * mib);
    CHECK(limits_for(40 * mib, 800).run_memory_bytes == 10 * mib);
    CHECK(limits_for(464 * mib, 3634).run_memory_bytes == 377 * mib);
    CHECK(limits_for(65536 * mib, 500000).memory_bytes == 65280 * mib);
    return 0;
}

static int threads_are_kept_back(void) {
    struct limits small = limits_for(464 * mib, 3634), large = limits_for(65536 * mib, 500000);
    CHECK(small.run_pids == 1817 && small.pids == 3180);
    CHECK(large.run_pids == 4096 && large.pids == 437500);
    return 0;
}

static const struct test tests[] = {
    {"keep some memory back", memory_is_kept_back},
    {"keep some threads back", threads_are_kept_back},
};
const struct suite limits_suite = SUITE("limits", tests);
