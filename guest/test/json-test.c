#include "../agent/wire/json-writer.h"
#include "../agent/wire/json.h"
#include "check.h"
#include <string.h>

static struct json_object object;

static bool parses(const char *text) {
    return json_parse(&object, (const uint8_t *)text, strlen(text));
}

static int every_kind(void) {
    CHECK(parses(" {\"s\" : \"a\\n\\u00e9\\ud83d\\ude00\", \"i\":-42,\"t\":true,\"f\":false,"
                 "\"n\":null}\n"));
    const char *string = NULL;
    int64_t integer = 0;
    bool yes = false, no = true;
    CHECK(json_get_string(&object, "s", &string));
    CHECK(strcmp(string, "a\n\xc3\xa9\xf0\x9f\x98\x80") == 0);
    CHECK(json_get_integer(&object, "i", -50, 0, &integer) && integer == -42);
    CHECK(json_get_bool(&object, "t", &yes) && yes);
    CHECK(json_get_bool(&object, "f", &no) && !no);
    return 0;
}

static int absent_and_null_keep_the_default(void) {
    CHECK(parses("{\"n\":null}"));
    int64_t integer = 7;
    const char *string = "default";
    CHECK(json_get_integer(&object, "n", 0, 1, &integer) && integer == 7);
    CHECK(json_get_string(&object, "missing", &string) && strcmp(string, "default") == 0);
    return 0;
}

static int wrong_kinds_and_ranges(void) {
    CHECK(parses("{\"s\":\"1\",\"i\":11,\"b\":true}"));
    int64_t integer = 0;
    bool boolean = false;
    const char *string = NULL;
    CHECK(!json_get_integer(&object, "s", 0, 10, &integer));
    CHECK(!json_get_integer(&object, "i", 0, 10, &integer));
    CHECK(!json_get_integer(&object, "b", 0, 10, &integer));
    CHECK(!json_get_string(&object, "i", &string));
    CHECK(!json_get_bool(&object, "i", &boolean));
    return 0;
}

static int refused_texts(void) {
    static const char *const texts[] = {
        "",
        "{",
        "[]",
        "null",
        "{}x",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{\"a\":[1]}",
        "{\"a\":{}}",
        "{\"a\":01}",
        "{\"a\":1.5}",
        "{\"a\":1e3}",
        "{\"a\":-}",
        "{\"a\":tru}",
        "{a:1}",
        "{\"a\":\"",
        "{\"a\":\"\\",
        "{\"a\":\"\\q\"}",
        "{\"a\":\"\n\"}",
        "{\"a\":\"\\u12\"}",
        "{\"a\":\"\\u0000\"}",
        "{\"a\":\"\\ud800\"}",
        "{\"a\":\"\\ud800\\u0041\"}",
        "{\"a\":\"\\udc00\"}",
        "{\"a\":1000000000000000000}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (parses(texts[i]))
            printf("accepted: %s\n", texts[i]);
        CHECK(!parses(texts[i]));
    }
    return 0;
}

static int raw_nul_is_refused(void) {
    CHECK(!json_parse(&object, (const uint8_t *)"{\"a\":\"x\0y\"}", 11));
    return 0;
}

static int too_many_members(void) {
    char text[1024] = "{";
    for (int i = 0; i <= JSON_MAX_MEMBERS; i++) {
        char member[16];
        snprintf(member, sizeof member, "%s\"m%d\":%d", i == 0 ? "" : ",", i, i);
        strcat(text, member);
        if (i == JSON_MAX_MEMBERS - 1) {
            char whole[1024];
            snprintf(whole, sizeof whole, "%.1000s}", text);
            CHECK(parses(whole));
        }
    }
    strcat(text, "}");
    CHECK(!parses(text));
    return 0;
}

static int writer_escapes(void) {
    struct json_writer writer;
    json_begin(&writer);
    json_string(&writer, "s", "q\"b\\n\n\xc3\xa9\xff\xed\xa0\x80\xc0\x80");
    json_integer(&writer, "i", INT64_MIN);
    json_bool(&writer, "b", true);
    json_string(&writer, "n", NULL);
    json_end(&writer);
    const char *expected = "{\"s\":\"q\\\"b\\\\n\\u000a\xc3\xa9??????\",\"i\":-9223372036854775808,"
                           "\"b\":true,\"n\":null}";
    CHECK(writer.used == strlen(expected) && memcmp(writer.text, expected, writer.used) == 0);
    return 0;
}

static int writer_leaves_out_what_does_not_fit(void) {
    static char longest[2 * JSON_WRITER_BYTES];
    struct json_writer writer;
    memset(longest, 'x', sizeof longest - 1);
    json_begin(&writer);
    json_integer(&writer, "a", 1);
    json_string(&writer, "b", longest);
    json_integer(&writer, "c", 2);
    json_end(&writer);
    CHECK(writer.used == strlen("{\"a\":1,\"c\":2}"));
    CHECK(memcmp(writer.text, "{\"a\":1,\"c\":2}", writer.used) == 0);
    return 0;
}

static const struct test tests[] = {
    {"every kind of member is read", every_kind},
    {"absent and null members keep the default", absent_and_null_keep_the_default},
    {"wrong kinds and numbers out of range are refused", wrong_kinds_and_ranges},
    {"what is not a flat object is refused", refused_texts},
    {"a NUL byte is refused", raw_nul_is_refused},
    {"32 members are the limit", too_many_members},
    {"the writer escapes, and replaces what is not UTF-8", writer_escapes},
    {"the writer leaves out a member that does not fit", writer_leaves_out_what_does_not_fit},
};
const struct suite json_suite = SUITE("json", tests);
