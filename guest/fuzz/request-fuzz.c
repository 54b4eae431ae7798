// Arbitrary messages and answers of gtwall. The first byte says which.
#include "../gtwall/request.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition) {
    if (!condition)
        abort();
}

static void make(const char *message) {
    const char *problem;
    char *request = request_make(message, &problem);
    require((request == NULL) == (problem != NULL));
    if (request == NULL)
        return;
    const char *body = strstr(request, "\r\n\r\n");
    // No control character gets past the head: nothing in a message begins another request.
    require(body != NULL);
    for (const char *at = body + 4; *at != '\0'; at++)
        require((uint8_t)*at >= 0x20);
    free(request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    char *text = malloc(size);
    if (text == NULL)
        return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (data[0] % 2 == 0) {
        make(text);
    } else {
        int status = request_status(text);
        require(status == 0 || (status >= 100 && status <= 999));
        const char *reason = request_reason(text);
        require(strpbrk(reason, "\r\n\x1b\x7f") == NULL);
    }
    free(text);
    return 0;
}
