/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of the repository, and the reader of fixtures. */
#include "support.h"
#include "tree.h"

#include "base/output.h"
#include "gate/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIXTURE "fixtures/questions.json"

/* Table S51 of the study: 16 cases, 63 questions. */
static const struct {
    const char *name;
    size_t questions;
    laya_json_type state;
} expected_cases[] = {{"email", 3, LAYA_JSON_STRING},
                      {"en", 3, LAYA_JSON_STRING},
                      {"zh", 3, LAYA_JSON_STRING},
                      {"de", 3, LAYA_JSON_STRING},
                      {"fr", 3, LAYA_JSON_STRING},
                      {"es", 3, LAYA_JSON_STRING},
                      {"hi", 3, LAYA_JSON_STRING},
                      {"ja", 3, LAYA_JSON_STRING},
                      {"ru", 3, LAYA_JSON_STRING},
                      {"empty_state", 3, LAYA_JSON_STRING},
                      {"conversation", 3, LAYA_JSON_ARRAY},
                      {"mask_literals", 3, LAYA_JSON_STRING},
                      {"long", 3, LAYA_JSON_STRING},
                      {"structured", 3, LAYA_JSON_OBJECT},
                      {"many_questions", 20, LAYA_JSON_STRING},
                      {"twenty_options", 1, LAYA_JSON_STRING}};
enum { CASES = sizeof expected_cases / sizeof *expected_cases };

/* The types of a case as bits; of the last question, the number of options. */
static unsigned types_of(const laya_fixture_case *input, size_t *options)
{
    static const char *const names[] = {"choice", "score", "noul"};
    unsigned bits = 0;
    laya_json doc;
    assert_int_equal(laya_json_parse(&doc, input->questions, input->questions_size, NULL, NULL), LAYA_OK);
    laya_json_value questions = laya_json_root(&doc);
    assert_int_equal(laya_json_size(questions), input->count);
    for (laya_json_iterator it = laya_json_first(questions); laya_json_present(it.value); laya_json_next(&it)) {
        for (unsigned type = 0; type < 3; type++) {
            if (laya_json_equals(laya_json_get(it.value, "type"), names[type])) bits |= 1u << type;
        }
        *options = laya_json_size(laya_json_get(it.value, "criteria"));
    }
    laya_json_close(&doc);
    return bits;
}

static laya_json_type state_type(const laya_fixture_case *input)
{
    laya_json doc;
    assert_int_equal(laya_json_parse(&doc, input->state, input->state_size, NULL, NULL), LAYA_OK);
    laya_json_type type = laya_json_typeof(laya_json_root(&doc));
    laya_json_close(&doc);
    return type;
}

static void test_repository_fixture(void **state)
{
    (void)state;
    char path[TEST_PATH_SIZE], hex[65];
    uint64_t size;
    size_t options = 0;
    laya_fixture fixture;
    laya_error error;
    test_path(path, FIXTURE);
    if (laya_fixture_open(&fixture, path, NULL, &error) != LAYA_OK) fail_msg("%s", error.message);
    assert_int_equal(fixture.count, CASES);
    assert_int_equal(fixture.questions, 63);
    for (size_t at = 0; at < CASES; at++) {
        const laya_fixture_case *input = &fixture.cases[at];
        assert_string_equal(input->name, expected_cases[at].name);
        assert_int_equal(input->count, expected_cases[at].questions);
        assert_int_equal(state_type(input), expected_cases[at].state);
        assert_int_equal(types_of(input, &options), input->count == 1 ? 1 : 7);
    }
    assert_int_equal(options, 20); /* the one question of the last case */
    assert_string_equal(fixture.cases[9].state, "\"\"");
    assert_contains(fixture.cases[11].state, "<mask>");
    assert_contains(fixture.cases[11].state, "[MASK]");
    assert_contains(fixture.cases[11].state, "<bos>");
    assert_int_equal(laya_hash_file(path, hex, &size, NULL, NULL), LAYA_OK);
    assert_string_equal(fixture.sha256, hex);
    laya_fixture_close(&fixture);
}

/* ------------------------------------------------------------------ the reader */

#define HEAD "{\"format\": \"laya-fixture\", \"version\": 1, \"cases\": ["
#define NOUL "{\"type\": \"noul\", \"instructions\": \"x\"}"

static laya_status open_text(laya_fixture *fixture, const char *text, size_t size, const laya_allocator *allocator,
                             laya_error *error)
{
    char folder[TEST_PATH_SIZE], path[TEST_PATH_SIZE];
    test_make_folder(folder);
    test_write_file(test_join(path, folder, "fixture.json"), text, size);
    laya_status status = laya_fixture_open(fixture, path, allocator, error);
    test_remove_tree(folder);
    return status;
}

/* Texts are what Python's json.dumps(value, ensure_ascii=False) gives, and outlive the file. */
static void test_texts(void **state)
{
    (void)state;
    static const char text[] = HEAD
        "{\"name\":\"a\",\"state\":[1,2.50,{\"k\":\"\\u00e9\\n\"}],\"questions\":{\"q\":" NOUL
        "}},{\"questions\":{\"z\":1,\"y\":[]},\"state\":false,\"name\":\"\\u65e5\"}]}\n";
    laya_fixture fixture;
    laya_error error;
    if (open_text(&fixture, text, sizeof text - 1, NULL, &error) != LAYA_OK) fail_msg("%s", error.message);
    assert_int_equal(fixture.count, 2);
    assert_int_equal(fixture.questions, 3);
    assert_string_equal(fixture.cases[0].name, "a");
    assert_string_equal(fixture.cases[0].state, "[1, 2.5, {\"k\": \"\303\251\\n\"}]");
    assert_int_equal(fixture.cases[0].state_size, strlen(fixture.cases[0].state));
    assert_string_equal(fixture.cases[0].questions, "{\"q\": {\"type\": \"noul\", \"instructions\": \"x\"}}");
    assert_int_equal(fixture.cases[0].questions_size, strlen(fixture.cases[0].questions));
    assert_string_equal(fixture.cases[1].name, "\346\227\245");
    assert_string_equal(fixture.cases[1].state, "false");
    assert_string_equal(fixture.cases[1].questions, "{\"z\": 1, \"y\": []}");
    laya_fixture_close(&fixture);
    laya_fixture_close(&fixture); /* nothing happens */
}

static void test_malformed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"", "fixture.json: "},
        {"[1, 2", "fixture.json: "},
        {"[]", "expected an object with \"format\": \"laya-fixture\""},
        {"{\"format\": \"laya-reference\", \"version\": 1}", "this is another file"},
        {"{\"format\": \"laya-fixture\", \"version\": 2}", "version: expected 1"},
        {"{\"format\": \"laya-fixture\", \"version\": 1.0}", "version: expected 1"},
        {"{\"format\": \"laya-fixture\", \"version\": 1}", "cases: expected a list, found nothing"},
        {"{\"format\": \"laya-fixture\", \"version\": 1, \"cases\": {}}", "cases: expected a list, found dict"},
        {HEAD "]}", "cases: expected 1 to 1024 cases, found 0"},
        {HEAD "7]}", "cases[0].name: expected a string, found nothing"},
        {HEAD "{\"name\": 7}]}", "cases[0].name: expected a string, found int"},
        {HEAD "{\"name\": \"\"}]}", "cases[0].name: expected a name that is not empty"},
        {HEAD "{\"name\": \"a\\u0000b\"}]}", "cases[0].name: expected a string without NUL"},
        {HEAD "{\"name\": \"a\"}]}", "cases[0].state: expected a JSON value other than null, found nothing"},
        {HEAD "{\"name\": \"a\", \"state\": null}]}", "cases[0].state: expected a JSON value other than null"},
        {HEAD "{\"name\": \"a\", \"state\": 1}]}", "cases[0].questions: expected an object, found nothing"},
        {HEAD "{\"name\": \"a\", \"state\": 1, \"questions\": []}]}",
         "cases[0].questions: expected an object, found list"},
        {HEAD "{\"name\": \"a\", \"state\": 1, \"questions\": {}}]}",
         "cases[0].questions: expected an object with at"},
        {HEAD "{\"name\": \"a\", \"state\": 1, \"questions\": {\"\\u0000\": " NOUL "}}]}", "names without NUL"},
        {HEAD
         "{\"name\": \"a\", \"state\": 1, \"questions\": {\"q\": 1}}, {\"name\": \"a\", \"state\": 1, \"questions\": "
         "{\"q\": 1}}]}",
         "cases[1].name: 'a' is the name of an earlier case"}};
    for (size_t at = 0; at < sizeof bad / sizeof *bad; at++) {
        laya_fixture fixture;
        laya_error error;
        assert_int_equal(open_text(&fixture, bad[at].text, strlen(bad[at].text), NULL, &error), LAYA_ERROR_FORMAT);
        assert_int_equal(error.status, LAYA_ERROR_FORMAT);
        assert_contains(error.message, bad[at].message);
        assert_int_equal(fixture.count, 0);
    }
}

static void test_too_many(void **state)
{
    (void)state;
    laya_buffer text;
    laya_fixture fixture;
    laya_error error;
    laya_buffer_init(&text, NULL);
    laya_buffer_puts(&text, HEAD "0");
    for (unsigned at = 0; at < LAYA_FIXTURE_MAX_CASES; at++) laya_buffer_puts(&text, ",0");
    laya_buffer_puts(&text, "]}");
    assert_int_equal(open_text(&fixture, text.data, text.size, NULL, &error), LAYA_ERROR_FORMAT);
    assert_contains(error.message, "found 1025");
    laya_buffer_close(&text);
}

static void test_missing(void **state)
{
    (void)state;
    laya_fixture fixture;
    laya_error error;
    assert_int_equal(laya_fixture_open(&fixture, "/nonexistent/f.json", NULL, &error), LAYA_ERROR_IO);
    assert_contains(error.message, "/nonexistent/f.json: ");
    assert_int_equal(laya_fixture_open(&fixture, "/nonexistent/f.json", NULL, NULL), LAYA_ERROR_IO);
}

static void test_memory_failures(void **state)
{
    (void)state;
    char path[TEST_PATH_SIZE];
    test_memory memory;
    laya_fixture fixture;
    laya_error error;
    test_path(path, FIXTURE);
    test_memory_init(&memory);
    size_t fail = 1;
    for (;; fail++) {
        test_memory_arm(&memory, fail);
        laya_status status = laya_fixture_open(&fixture, path, &memory.hooks, &error);
        if (!memory.failed) break;
        assert_int_equal(status, LAYA_ERROR_MEMORY);
        assert_int_equal(memory.live, 0);
    }
    assert_true(fail > 10);
    assert_int_equal(fixture.questions, 63);
    laya_fixture_close(&fixture);
    assert_int_equal(memory.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_repository_fixture),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_memory_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
