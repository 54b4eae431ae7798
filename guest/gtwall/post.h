// One request over the guest's proxy.
#ifndef IGNITION_POST_H
#define IGNITION_POST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Sends `request` to 127.0.0.1:`port` and reads the beginning of the answer, NUL-terminated. False
// with errno set when there is no connection, or none that takes the request.
bool post(uint16_t port, const char *request, char *answer, size_t size);

#endif
