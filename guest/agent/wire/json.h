// Control payloads: one flat JSON object with strings, integers, booleans and null. Pure.
#ifndef IGNITION_JSON_H
#define IGNITION_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_MAX_MEMBERS = 32, JSON_TEXT_BYTES = 65536 };

enum json_kind { JSON_NULL, JSON_BOOL, JSON_INTEGER, JSON_STRING };

struct json_member {
    const char *name; // NUL-terminated, in `text`
    enum json_kind kind;
    bool boolean;
    int64_t integer;
    const char *string; // NUL-terminated, in `text`; never holds a NUL itself
};

struct json_object {
    struct json_member members[JSON_MAX_MEMBERS];
    size_t count;
    char text[JSON_TEXT_BYTES];
};

// False when `bytes` is anything else, or larger than the limits. Of equal names the first counts.
bool json_parse(struct json_object *object, const uint8_t *bytes, size_t length);

// Each getter is false when the member has another kind; an absent member and null leave `value`
// as it is.
bool json_get_string(const struct json_object *object, const char *name, const char **value);
bool json_get_bool(const struct json_object *object, const char *name, bool *value);
// Also false outside min..max.
bool json_get_integer(const struct json_object *object, const char *name, int64_t min, int64_t max,
                      int64_t *value);

#endif
