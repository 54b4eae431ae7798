// A test is a function in a table; a failed check ends it with the place and the condition.
#ifndef IGNITION_CHECK_H
#define IGNITION_CHECK_H

#include <stddef.h>
#include <stdio.h>

struct test {
    const char *name;
    int (*run)(void); // 0: passed
};

struct suite {
    const char *name;
    const struct test *tests;
    size_t count;
};

#define SUITE(name, tests)                                                                         \
    { name, tests, sizeof(tests) / sizeof((tests)[0]) }

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                                 \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

extern const struct suite frame_suite, conn_suite, json_suite, capture_suite, spool_suite,
    last_line_suite, space_suite, limits_suite, inbox_suite, request_suite;

#endif
