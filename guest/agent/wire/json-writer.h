// Writes one flat JSON object into a fixed buffer. What does not fit is left out as a whole member.
#ifndef IGNITION_JSON_WRITER_H
#define IGNITION_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_WRITER_BYTES = 2048 };

struct json_writer {
    char text[JSON_WRITER_BYTES];
    size_t used;
};

void json_begin(struct json_writer *writer);
// NULL writes null. Bytes outside printable ASCII are written as `?` unless they form UTF-8.
void json_string(struct json_writer *writer, const char *name, const char *value);
void json_integer(struct json_writer *writer, const char *name, int64_t value);
void json_bool(struct json_writer *writer, const char *name, bool value);
void json_null(struct json_writer *writer, const char *name);
void json_end(struct json_writer *writer);

#endif
