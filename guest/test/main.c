// Runs every suite; the last line is `N passed, N failed`.
#include "check.h"

int main(void) {
    const struct suite *const suites[] = {
        &frame_suite,     &conn_suite,  &json_suite,   &capture_suite, &spool_suite,
        &last_line_suite, &space_suite, &limits_suite, &inbox_suite,   &request_suite};
    int passed = 0, failed = 0;
    for (size_t s = 0; s < sizeof suites / sizeof suites[0]; s++) {
        for (size_t t = 0; t < suites[s]->count; t++) {
            int result = suites[s]->tests[t].run();
            printf("%s: %s: %s\n", result == 0 ? "ok" : "FAILED", suites[s]->name,
                   suites[s]->tests[t].name);
            *(result == 0 ? &passed : &failed) += 1;
        }
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
