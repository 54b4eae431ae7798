#pragma once
#include <stdbool.h>
#include <stdio.h>

/* A test returns true when it passed. CHECK ends it at the first condition that does not hold. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

struct test {
    const char *name;
    bool (*run)(void);
};

/* Each file's tests, closed by an entry without a name */
extern const struct test chunk_tests[];
extern const struct test handshake_tests[];
extern const struct test frame_codec_tests[];
extern const struct test outbox_tests[];
extern const struct test reactor_tests[];
