// The request that posts to the wall, and what the first line of its answer says. Pure.
#ifndef IGNITION_REQUEST_H
#define IGNITION_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

enum { MESSAGE_MAX_BYTES = 64 * 1024 };

// An HTTP/1.1 request to a proxy, on the heap. NULL, with `problem` set to a sentence, when
// `message` is empty, longer than MESSAGE_MAX_BYTES or not UTF-8, or there is no memory.
char *request_make(const char *message, const char **problem);

// The status of an HTTP answer that begins with `answer`; 0 when it is none.
int request_status(const char *answer);

// What follows the answer's head, up to the end of its first line, with `?` for control characters;
// "" when there is none. Changes `answer`.
const char *request_reason(char *answer);

#endif
