#include "../agent/file/space.h"
#include "check.h"

static int full_to_the_byte(void) {
    struct statvfs space = {.f_frsize = 4096, .f_bavail = 64, .f_files = 100, .f_favail = 1};
    CHECK(space_free_bytes(&space) == 262144 && !space_is_full(&space));
    space.f_bavail = 63;
    CHECK(space_is_full(&space));
    return 0;
}

static int full_of_inodes(void) {
    struct statvfs space = {.f_frsize = 4096, .f_bavail = 1000, .f_files = 100, .f_favail = 0};
    CHECK(space_is_full(&space));
    space.f_files = 0;
    CHECK(!space_is_full(&space));
    return 0;
}

static const struct test tests[] = {
    {"is full below 256 KiB", full_to_the_byte},
    {"is full without inodes, where they are counted", full_of_inodes},
};
const struct suite space_suite = SUITE("space", tests);
