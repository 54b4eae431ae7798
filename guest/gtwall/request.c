#include "request.h"
#include "../agent/wire/utf8.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A byte of the message is at most six of JSON (\u0001).
enum { MOST_ESCAPED_BYTES = 6, AROUND_BYTES = 512 };

static const char head[] = "POST http://ignition.internal/townwall/post HTTP/1.1\r\n"
                           "Host: ignition.internal\r\n"
                           "Content-Type: application/json\r\n"
                           "Content-Length: %zu\r\n"
                           "Connection: close\r\n\r\n";

// False when it is not UTF-8.
static bool write_json(char *to, const char *message) {
    const uint8_t *at = (const uint8_t *)message, *end = at + strlen(message);
    to += sprintf(to, "{\"body\":\"");
    while (at < end) {
        size_t length = utf8_length(at, (size_t)(end - at));
        if (length == 0)
            return false;
        if (*at == '"' || *at == '\\')
            *to++ = '\\';
        if (*at < 0x20)
            to += sprintf(to, "\\u%04x", (unsigned)*at);
        else
            to = (char *)memcpy(to, at, length) + length;
        at += length;
    }
    strcpy(to, "\"}");
    return true;
}

char *request_make(const char *message, const char **problem) {
    size_t length = strlen(message);
    *problem = length == 0                  ? "the message is empty"
               : length > MESSAGE_MAX_BYTES ? "the message is longer than 64 KiB"
                                            : NULL;
    if (*problem != NULL)
        return NULL;
    size_t size = length * MOST_ESCAPED_BYTES + AROUND_BYTES;
    char *body = malloc(size), *request = malloc(2 * size);
    if (body == NULL || request == NULL)
        *problem = "there is no memory for the message";
    else if (!write_json(body, message))
        *problem = "the message is not UTF-8 text";
    else
        strcpy(request + sprintf(request, head, strlen(body)), body);
    free(body);
    if (*problem == NULL)
        return request;
    free(request);
    return NULL;
}

int request_status(const char *answer) {
    int minor, status;
    if (sscanf(answer, "HTTP/1.%1d %3d", &minor, &status) != 2 || status < 100)
        return 0;
    return status;
}

const char *request_reason(char *answer) {
    char *body = strstr(answer, "\r\n\r\n");
    if (body == NULL)
        return "";
    body += 4;
    body[strcspn(body, "\r\n")] = '\0';
    for (char *at = body; *at != '\0'; at++)
        if ((uint8_t)*at < 0x20 || *at == 0x7f)
            *at = '?';
    return body;
}
