#include "json-writer.h"
#include "utf8.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// One byte is kept for the closing brace.
static size_t space(const struct json_writer *writer) {
    return sizeof writer->text - writer->used - 1;
}

__attribute__((format(printf, 2, 3))) static bool append(struct json_writer *writer,
                                                         const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(writer->text + writer->used, space(writer), format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= space(writer))
        return false;
    writer->used += (size_t)length;
    return true;
}

static const char *separator(const struct json_writer *writer) {
    return writer->used == 1 ? "" : ",";
}

void json_begin(struct json_writer *writer) {
    writer->text[0] = '{';
    writer->used = 1;
}

void json_integer(struct json_writer *writer, const char *name, int64_t value) {
    append(writer, "%s\"%s\":%lld", separator(writer), name, (long long)value);
}

void json_bool(struct json_writer *writer, const char *name, bool value) {
    append(writer, "%s\"%s\":%s", separator(writer), name, value ? "true" : "false");
}

void json_null(struct json_writer *writer, const char *name) {
    append(writer, "%s\"%s\":null", separator(writer), name);
}

static bool append_text(struct json_writer *writer, const char *value) {
    const uint8_t *at = (const uint8_t *)value;
    for (const uint8_t *end = at + strlen(value); at < end;) {
        size_t length = utf8_length(at, (size_t)(end - at));
        bool fits;
        if (length == 0)
            fits = append(writer, "?");
        else if (*at == '"' || *at == '\\')
            fits = append(writer, "\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f)
            fits = append(writer, "\\u%04x", (unsigned)*at);
        else
            fits = append(writer, "%.*s", (int)length, (const char *)at);
        if (!fits)
            return false;
        at += length == 0 ? 1 : length;
    }
    return true;
}

void json_string(struct json_writer *writer, const char *name, const char *value) {
    if (value == NULL) {
        json_null(writer, name);
        return;
    }
    size_t before = writer->used;
    if (!append(writer, "%s\"%s\":\"", separator(writer), name) || !append_text(writer, value) ||
        !append(writer, "\""))
        writer->used = before;
}

void json_end(struct json_writer *writer) {
    writer->text[writer->used++] = '}';
}
