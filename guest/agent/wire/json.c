#include "json.h"
#include <string.h>

struct cursor {
    const uint8_t *at, *end;
    char *text; // where the next decoded string goes
};

static void skip_space(struct cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
        c->at++;
}

static bool take(struct cursor *c, char wanted) {
    skip_space(c);
    if (c->at == c->end || *c->at != (uint8_t)wanted)
        return false;
    c->at++;
    return true;
}

static bool take_word(struct cursor *c, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0)
        return false;
    c->at += length;
    return true;
}

static bool take_hex4(struct cursor *c, uint32_t *unit) {
    if (c->end - c->at < 4)
        return false;
    *unit = 0;
    for (int i = 0; i < 4; i++) {
        uint8_t digit = *c->at++;
        uint32_t value = digit >= '0' && digit <= '9'   ? (uint32_t)(digit - '0')
                         : digit >= 'a' && digit <= 'f' ? (uint32_t)(digit - 'a' + 10)
                         : digit >= 'A' && digit <= 'F' ? (uint32_t)(digit - 'A' + 10)
                                                        : 16;
        if (value == 16)
            return false;
        *unit = *unit << 4 | value;
    }
    return true;
}

static void put_utf8(struct cursor *c, uint32_t point) {
    if (point < 0x80) {
        *c->text++ = (char)point;
        return;
    }
    int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    *c->text++ = (char)(lead[more] | point >> (6 * more));
    while (more-- > 0)
        *c->text++ = (char)(0x80 | (point >> (6 * more) & 0x3f));
}

// Behind `\u`. A lone surrogate and U+0000 are refused: no path or name can hold them.
static bool take_unicode(struct cursor *c) {
    uint32_t point, low;
    if (!take_hex4(c, &point) || point == 0 || (point >= 0xdc00 && point <= 0xdfff))
        return false;
    if (point >= 0xd800 && point <= 0xdbff) {
        if (!take_word(c, "\\u") || !take_hex4(c, &low) || low < 0xdc00 || low > 0xdfff)
            return false;
        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
    }
    put_utf8(c, point);
    return true;
}

static bool take_escape(struct cursor *c) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (c->at == c->end)
        return false;
    uint8_t letter = *c->at++;
    if (letter == 'u')
        return take_unicode(c);
    const char *found = letter == 0 ? NULL : strchr(from, letter);
    if (found == NULL)
        return false;
    *c->text++ = to[found - from];
    return true;
}

// Decoded text is never longer than its source plus nothing for the two quotes, of which one pays
// for the NUL: `text` as large as the source is enough.
static bool take_string(struct cursor *c, const char **string) {
    if (!take(c, '"'))
        return false;
    *string = c->text;
    while (c->at < c->end && *c->at != '"') {
        if (*c->at < 0x20)
            return false;
        if (*c->at == '\\') {
            c->at++;
            if (!take_escape(c))
                return false;
        } else {
            *c->text++ = (char)*c->at++;
        }
    }
    *c->text++ = '\0';
    return take(c, '"');
}

static bool take_integer(struct cursor *c, int64_t *integer) {
    bool negative = take_word(c, "-");
    const uint8_t *first = c->at;
    uint64_t value = 0;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9') {
        if (c->at - first == 18)
            return false; // 18 digits always fit
        value = value * 10 + (uint64_t)(*c->at++ - '0');
    }
    if (c->at == first || (*first == '0' && c->at - first > 1))
        return false;
    *integer = negative ? -(int64_t)value : (int64_t)value;
    return true;
}

static bool take_value(struct cursor *c, struct json_member *member) {
    skip_space(c);
    if (c->at == c->end)
        return false;
    switch (*c->at) {
    case '"':
        member->kind = JSON_STRING;
        return take_string(c, &member->string);
    case 't':
        member->kind = JSON_BOOL;
        member->boolean = true;
        return take_word(c, "true");
    case 'f':
        member->kind = JSON_BOOL;
        return take_word(c, "false");
    case 'n':
        return take_word(c, "null");
    default:
        member->kind = JSON_INTEGER;
        return take_integer(c, &member->integer);
    }
}

bool json_parse(struct json_object *object, const uint8_t *bytes, size_t length) {
    object->count = 0;
    if (length > JSON_TEXT_BYTES)
        return false;
    struct cursor c = {.at = bytes, .end = bytes + length, .text = object->text};
    if (!take(&c, '{'))
        return false;
    if (!take(&c, '}')) {
        do {
            if (object->count == JSON_MAX_MEMBERS)
                return false;
            struct json_member *member = &object->members[object->count];
            *member = (struct json_member){.kind = JSON_NULL};
            if (!take_string(&c, &member->name) || !take(&c, ':') || !take_value(&c, member))
                return false;
            object->count++;
        } while (take(&c, ','));
        if (!take(&c, '}'))
            return false;
    }
    skip_space(&c);
    return c.at == c.end;
}

// NULL for an absent member and for null.
static const struct json_member *find(const struct json_object *object, const char *name) {
    for (size_t i = 0; i < object->count; i++) {
        const struct json_member *member = &object->members[i];
        if (strcmp(member->name, name) == 0)
            return member->kind == JSON_NULL ? NULL : member;
    }
    return NULL;
}

bool json_get_string(const struct json_object *object, const char *name, const char **value) {
    const struct json_member *member = find(object, name);
    if (member != NULL && member->kind == JSON_STRING)
        *value = member->string;
    return member == NULL || member->kind == JSON_STRING;
}

bool json_get_bool(const struct json_object *object, const char *name, bool *value) {
    const struct json_member *member = find(object, name);
    if (member != NULL && member->kind == JSON_BOOL)
        *value = member->boolean;
    return member == NULL || member->kind == JSON_BOOL;
}

bool json_get_integer(const struct json_object *object, const char *name, int64_t min, int64_t max,
                      int64_t *value) {
    const struct json_member *member = find(object, name);
    if (member == NULL)
        return true;
    if (member->kind != JSON_INTEGER || member->integer < min || member->integer > max)
        return false;
    *value = member->integer;
    return true;
}
