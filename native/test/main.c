#include "check.h"

#include <stddef.h>

int main(void) {
    const struct test *suites[] = {chunk_tests, handshake_tests, frame_codec_tests, outbox_tests,
                                   reactor_tests};
    int passed = 0, failed = 0;
    for (size_t suite = 0; suite < sizeof suites / sizeof suites[0]; suite++) {
        for (const struct test *test = suites[suite]; test->name != NULL; test++) {
            if (test->run()) {
                passed++;
            } else {
                fprintf(stderr, "failed: %s\n", test->name);
                failed++;
            }
        }
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}
