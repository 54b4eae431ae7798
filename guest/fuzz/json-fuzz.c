// Arbitrary bytes as a control payload. What parses must survive being written and parsed again.
#include "../agent/wire/json-writer.h"
#include "../agent/wire/json.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct json_object object, again;

static void write_member(struct json_writer *writer, const struct json_member *member) {
    switch (member->kind) {
    case JSON_NULL:
        json_null(writer, "m");
        break;
    case JSON_BOOL:
        json_bool(writer, "m", member->boolean);
        break;
    case JSON_INTEGER:
        json_integer(writer, "m", member->integer);
        break;
    case JSON_STRING:
        json_string(writer, "m", member->string);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!json_parse(&object, data, size))
        return 0;
    for (size_t i = 0; i < object.count; i++) {
        const struct json_member *member = &object.members[i];
        struct json_writer writer;
        json_begin(&writer);
        write_member(&writer, member);
        json_end(&writer);
        if (!json_parse(&again, (const uint8_t *)writer.text, writer.used) || again.count > 1)
            abort();
        if (again.count == 1 && again.members[0].kind != member->kind)
            abort();
        if (member->kind == JSON_INTEGER && again.members[0].integer != member->integer)
            abort();
    }
    return 0;
}
