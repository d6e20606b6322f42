/* SPDX-License-Identifier: Apache-2.0 */
/* Reference files: recorded and read again. */
#include "golden_files.h"
#include "support.h"
#include "tree.h"

#include "base/output.h"
#include "gate/reference.h"

#include <errno.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#define GOLDEN "tests/golden/laya-demo"
#define FIXTURE_HEAD "{\"format\": \"laya-fixture\", \"version\": 1, \"cases\": ["

/* Cases whose rows and logits another implementation recorded: text, list and object states, all types. */
static const char *const golden_names[] = {"accents", "list_state", "dict_state", "many_questions"};
enum { GOLDEN_CASES = sizeof golden_names / sizeof *golden_names };

/* ------------------------------------------------------------------ a folder with a fixture */

typedef struct test_place {
    char folder[TEST_PATH_SIZE];
    char fixture[TEST_PATH_SIZE];
    char output[TEST_PATH_SIZE];
} test_place;

static void make_place(test_place *place, const char *fixture)
{
    test_make_folder(place->folder);
    test_write_file(test_join(place->fixture, place->folder, "fixture.json"), fixture, strlen(fixture));
    test_join(place->output, place->folder, "reference.json");
}

static void remove_place(test_place *place)
{
    test_remove_tree(place->folder);
}

static void record_with(const laya_model *model, const test_place *place, unsigned threads, const char *output)
{
    laya_error error;
    laya_reference_options options;
    laya_reference_options_init(&options);
    options.threads = threads;
    if (laya_reference_record(model, place->fixture, &options, output, &error) != LAYA_OK)
        fail_msg("%s", error.message);
}

static void open_reference(laya_reference *reference, const char *path)
{
    laya_error error;
    if (laya_reference_open(reference, path, NULL, &error) != LAYA_OK) fail_msg("%s", error.message);
}

/* A small fixture for tests that do not look at answers. */
static const char small_fixture[] = FIXTURE_HEAD
    "{\"name\": \"one\", \"state\": \"Refund me.\", \"questions\": {\"refund\": {\"type\": \"noul\", "
    "\"instructions\": \"Is a refund asked for?\"}, \"team\": {\"type\": \"choice\", \"instructions\": "
    "\"Who?\", \"criteria\": [\"billing\", \"sales\", \"other\"]}}}]}";

/* ------------------------------------------------------------------ against recorded values */

/* The golden cases as a fixture. Release with free(). */
static char *golden_fixture(const char *folder)
{
    laya_buffer text;
    laya_buffer_init(&text, NULL);
    laya_buffer_puts(&text, FIXTURE_HEAD);
    for (size_t at = 0; at < GOLDEN_CASES; at++) {
        golden_document document;
        laya_json_value root = golden_open(&document, folder, golden_names[at]);
        laya_buffer_printf(&text, "%s{\"name\": \"%s\", \"state\": ", at ? ", " : "", golden_names[at]);
        laya_json_write_python(&text, laya_json_get(root, "state"));
        laya_buffer_puts(&text, ", \"questions\": ");
        laya_json_write_python(&text, laya_json_get(root, "questions"));
        laya_buffer_puts(&text, "}");
        golden_close(&document);
    }
    laya_buffer_puts(&text, "]}");
    assert_false(text.failed);
    char *copy = malloc(text.size + 1);
    assert_non_null(copy);
    memcpy(copy, text.data, text.size + 1);
    laya_buffer_close(&text);
    return copy;
}

static void same_uints(laya_json_value list, const uint32_t *got, uint32_t count)
{
    uint32_t expected[2048];
    assert_int_equal(golden_uints(list, expected, 2048), count);
    assert_memory_equal(got, expected, count * sizeof *got);
}

static void near_numbers(laya_json_value list, const double *got, size_t count)
{
    size_t at = 0;
    assert_int_equal(laya_json_size(list), count);
    for (laya_json_iterator it = laya_json_first(list); laya_json_present(it.value); laya_json_next(&it), at++) {
        double expected;
        assert_true(laya_json_to_double(it.value, &expected));
        if (!(fabs(got[at] - expected) <= 1e-4)) fail_msg("number %zu: %.9g, expected %.9g", at, got[at], expected);
    }
}

static void compare_with_golden(const laya_reference_case *recorded, const char *folder, const char *name)
{
    static const char *const types[] = {"choice", "score", "noul"};
    golden_document document;
    laya_json_value root = golden_open(&document, folder, name), tokens, expected;
    laya_json_value questions = laya_json_get(root, "questions");
    laya_json_iterator row = laya_json_first(laya_json_get(root, "rows"));
    assert_string_equal(recorded->input.name, name);
    assert_int_equal(recorded->input.count, laya_json_size(questions));
    for (size_t at = 0; at < recorded->input.count; at++, laya_json_next(&row)) {
        const laya_reference_item *item = &recorded->items[at];
        assert_true(laya_json_equals(laya_json_get(row.value, "qid"), item->id));
        same_uints(laya_json_get(row.value, "input_ids"), item->ids, item->count);
        same_uints(laya_json_get(row.value, "markers"), item->markers, item->options);
        near_numbers(laya_json_get(row.value, "logits"), item->logits, item->options);
        near_numbers(laya_json_get(row.value, "act_logits"), item->action_logits, item->actions);
        assert_true(laya_json_equals(laya_json_get(laya_json_get(questions, item->id), "type"), types[item->type]));
    }
    assert_false(laya_json_present(row.value));
    tokens = laya_json_get(recorded->usage, "input_tokens");
    expected = laya_json_get(laya_json_get(laya_json_get(root, "result"), "usage"), "input_tokens");
    uint32_t a = 0, b = 1;
    assert_true(laya_json_to_uint32(tokens, &a) && laya_json_to_uint32(expected, &b));
    assert_int_equal(a, b);
    golden_close(&document);
}

static void same_json(laya_json_value a, laya_json_value b)
{
    laya_buffer one, two;
    laya_buffer_init(&one, NULL);
    laya_buffer_init(&two, NULL);
    laya_json_write_python(&one, a);
    laya_json_write_python(&two, b);
    assert_string_equal(one.data, two.data);
    laya_buffer_close(&one);
    laya_buffer_close(&two);
}

/* The recorded result is what laya_predict gives, and the logits are all of its digits. */
static void compare_with_predict(laya_context *context, const laya_reference_case *recorded)
{
    const char *text;
    size_t size, at = 0;
    laya_json doc;
    laya_predict_options options;
    laya_predict_options_init(&options);
    const laya_fixture_case *input = &recorded->input;
    assert_int_equal(laya_predict(context, input->state, input->state_size, input->questions, input->questions_size,
                                  &options, &text, &size),
                     LAYA_OK);
    assert_int_equal(laya_json_parse(&doc, text, size, NULL, NULL), LAYA_OK);
    same_json(recorded->answers, laya_json_get(laya_json_root(&doc), "answers"));
    same_json(recorded->usage, laya_json_get(laya_json_root(&doc), "usage"));
    laya_json_close(&doc);

    options.flags = LAYA_PREDICT_RAW;
    assert_int_equal(laya_predict(context, input->state, input->state_size, input->questions, input->questions_size,
                                  &options, &text, &size),
                     LAYA_OK);
    assert_int_equal(laya_json_parse(&doc, text, size, NULL, NULL), LAYA_OK);
    laya_json_iterator it = laya_json_first(laya_json_get(laya_json_root(&doc), "answers"));
    for (; laya_json_present(it.value); laya_json_next(&it), at++) {
        laya_json_iterator logit = laya_json_first(laya_json_get(laya_json_get(it.value, "raw"), "logits"));
        for (size_t option = 0; option < recorded->items[at].options; option++, laya_json_next(&logit)) {
            double expected;
            assert_true(laya_json_to_double(logit.value, &expected)); /* nine digits: they name one float32 */
            assert_true(recorded->items[at].logits[option] == (double)(float)expected);
        }
    }
    laya_json_close(&doc);
}

static void test_recorded_values(void **state)
{
    (void)state;
    char folder[TEST_PATH_SIZE], path[TEST_PATH_SIZE], hex[65];
    uint64_t size;
    test_place place;
    laya_reference reference;
    laya_model *model = test_open_model(TEST_DEMO);
    laya_context *context = test_open_context(model, 2);
    char *fixture = golden_fixture(test_path(folder, GOLDEN));
    make_place(&place, fixture);
    record_with(model, &place, 2, place.output);
    open_reference(&reference, place.output);
    assert_string_equal(reference.class, "native fp32 engine");
    assert_int_equal(reference.count, 1);
    assert_int_equal(laya_hash_file(place.fixture, hex, &size, NULL, NULL), LAYA_OK);
    assert_string_equal(reference.fixture_sha256, hex);
    assert_int_equal(laya_hash_file(place.output, hex, &size, NULL, NULL), LAYA_OK);
    assert_string_equal(reference.sha256, hex);
    const laya_reference_model *recorded = &reference.models[0];
    assert_string_equal(recorded->name, "laya-demo");
    test_path(path, TEST_DEMO "/model.safetensors");
    assert_int_equal(laya_hash_file(path, hex, &size, NULL, NULL), LAYA_OK);
    assert_string_equal(recorded->weights_sha256, hex);
    assert_ptr_equal(laya_reference_find(&reference, hex), recorded);
    hex[0] = hex[0] == '0' ? '1' : '0';
    assert_null(laya_reference_find(&reference, hex));
    test_path(path, TEST_DEMO "/rl_agent_config.json");
    assert_int_equal(laya_hash_file(path, hex, &size, NULL, NULL), LAYA_OK);
    assert_string_equal(recorded->config_sha256, hex);
    assert_int_equal(recorded->count, GOLDEN_CASES);
    for (size_t at = 0; at < GOLDEN_CASES; at++) {
        compare_with_golden(&recorded->cases[at], folder, golden_names[at]);
        compare_with_predict(context, &recorded->cases[at]);
    }
    laya_reference_close(&reference);
    remove_place(&place);
    free(fixture);
    laya_context_close(context);
    laya_model_close(model);
}

/* All questions of the repository's fixture are accepted, and every row is there. */
static void test_whole_fixture(void **state)
{
    (void)state;
    test_place place;
    laya_reference reference;
    laya_model *model = test_open_model(TEST_TINY);
    make_place(&place, "");
    test_path(place.fixture, "fixtures/questions.json");
    record_with(model, &place, 0, place.output);
    open_reference(&reference, place.output);
    assert_int_equal(reference.models[0].count, 16);
    assert_int_equal(reference.models[0].questions, 63);
    assert_string_equal(reference.models[0].name, "laya-tiny-random");
    laya_model_info info;
    laya_model_get_info(model, &info);
    for (size_t at = 0; at < 16; at++) {
        const laya_reference_case *recorded = &reference.models[0].cases[at];
        bool fills = strcmp(recorded->input.name, "long") == 0;
        for (size_t item = 0; item < recorded->input.count && fills; item++)
            assert_int_equal(recorded->items[item].count, info.max_len);
    }
    laya_reference_close(&reference);
    remove_place(&place);
    laya_model_close(model);
}

/* The same bytes for any number of threads. */
static void test_threads(void **state)
{
    (void)state;
    test_place place;
    char other[TEST_PATH_SIZE];
    size_t size, other_size;
    laya_model *model = test_open_model(TEST_TINY);
    make_place(&place, small_fixture);
    record_with(model, &place, 1, place.output);
    record_with(model, &place, 3, test_join(other, place.folder, "made/deeper/other.json"));
    char *a = test_read_file(place.output, &size), *b = test_read_file(other, &other_size);
    assert_int_equal(size, other_size);
    assert_memory_equal(a, b, size);
    assert_int_equal(a[size - 1], '\n');
    free(a);
    free(b);
    remove_place(&place);
    laya_model_close(model);
}

/* ------------------------------------------------------------------ refused, stopped, reported */

static void expect_record(const laya_model *model, const test_place *place, const char *output, laya_status status,
                          const char *message)
{
    laya_error error;
    assert_int_equal(laya_reference_record(model, place->fixture, NULL, output, &error), status);
    assert_contains(error.message, message);
}

static void test_refused_outputs(void **state)
{
    (void)state;
    test_place place;
    char link[TEST_PATH_SIZE];
    laya_model *model = test_open_model(TEST_TINY);
    make_place(&place, small_fixture);
    test_write_file(place.output, "mine", 4);
    expect_record(model, &place, place.output, LAYA_ERROR_IO,
                  "reference.json: exists already and is not overwritten");
    expect_record(model, &place, place.folder, LAYA_ERROR_IO, "exists already");
    assert_int_equal(symlink("nowhere", test_join(link, place.folder, "link")), 0);
    expect_record(model, &place, link, LAYA_ERROR_IO, "link: exists already");
    expect_record(model, &place, "", LAYA_ERROR_IO, "empty name");
    expect_record(model, &place, "/dev/null/a/reference.json", LAYA_ERROR_IO, "/dev/null");
    char *text = test_read_file(place.output, NULL);
    assert_string_equal(text, "mine");
    free(text);
    char *tree = test_list_tree(place.folder);
    assert_string_equal(tree, "fixture.json\nlink\nreference.json\n");
    free(tree);
    remove_place(&place);
    laya_model_close(model);
}

static void test_arguments(void **state)
{
    (void)state;
    test_place place;
    laya_error error;
    laya_reference_options options = {0};
    laya_model *model = test_open_model(TEST_TINY);
    make_place(&place, small_fixture);
    assert_int_equal(laya_reference_record(NULL, "a", NULL, "b", &error), LAYA_ERROR_ARGUMENT);
    assert_contains(error.message, "model must not be NULL");
    assert_int_equal(laya_reference_record(model, NULL, NULL, "b", &error), LAYA_ERROR_ARGUMENT);
    assert_contains(error.message, "fixture must not be NULL");
    assert_int_equal(laya_reference_record(model, "a", NULL, NULL, &error), LAYA_ERROR_ARGUMENT);
    assert_contains(error.message, "output must not be NULL");
    assert_int_equal(laya_reference_record(model, place.fixture, &options, place.output, &error),
                     LAYA_ERROR_ARGUMENT);
    assert_contains(error.message, "call laya_reference_options_init first");
    laya_reference_options_init(&options);
    options.threads = 100000;
    assert_int_equal(laya_reference_record(model, place.fixture, &options, place.output, &error),
                     LAYA_ERROR_ARGUMENT);
    assert_int_equal(laya_reference_record(model, "/nonexistent", NULL, place.output, &error), LAYA_ERROR_IO);
    assert_false(laya_path_exists(place.output));
    remove_place(&place);
    laya_model_close(model);
}

/* A question that laya_predict refuses: the case is named and nothing is left behind. */
static void test_refused_question(void **state)
{
    (void)state;
    test_place place;
    laya_model *model = test_open_model(TEST_TINY);
    make_place(&place, FIXTURE_HEAD "{\"name\": \"broken\", \"state\": \"x\", \"questions\": {\"q\": {\"type\": "
                                    "\"guess\"}}}]}");
    expect_record(model, &place, place.output, LAYA_ERROR_INPUT, "case 'broken': question 'q': unknown type 'guess'");
    char *tree = test_list_tree(place.folder);
    assert_string_equal(tree, "fixture.json\n");
    free(tree);
    remove_place(&place);
    laya_model_close(model);
}

/* Says yes when it is asked for the last time that `left` allows. */
typedef struct countdown {
    unsigned left, asked;
} countdown;

static int count_down(void *user)
{
    countdown *c = user;
    c->asked++;
    return c->asked > c->left;
}

static void test_interrupt(void **state)
{
    (void)state;
    test_place place;
    char output[TEST_PATH_SIZE];
    laya_error error;
    laya_reference_options options;
    laya_model *model = test_open_model(TEST_TINY);
    make_place(&place, small_fixture);
    test_join(output, place.folder, "made/reference.json");
    laya_reference_options_init(&options);
    countdown counter = {1000, 0};
    options.interrupt = (laya_interrupt){.user = &counter, .requested = count_down};
    assert_int_equal(laya_reference_record(model, place.fixture, &options, place.output, &error), LAYA_OK);
    unsigned asked = counter.asked;
    assert_true(asked >= 3); /* both hashes and the case */
    for (unsigned left = 0; left < asked; left++) {
        counter = (countdown){left, 0};
        assert_int_equal(laya_reference_record(model, place.fixture, &options, output, &error), LAYA_ERROR_STOPPED);
    }
    char *tree = test_list_tree(place.folder);
    assert_string_equal(tree, "fixture.json\nreference.json\n");
    free(tree);
    remove_place(&place);
    laya_model_close(model);
}

typedef struct progress {
    uint64_t done, total;
    unsigned reports;
} progress;

static void see_progress(void *user, uint64_t done, uint64_t total)
{
    progress *seen = user;
    assert_true(done >= seen->done && done <= total);
    assert_true(seen->total == 0 || seen->total == total);
    *seen = (progress){done, total, seen->reports + 1};
}

static void test_progress(void **state)
{
    (void)state;
    test_place place;
    laya_error error;
    progress seen = {0, 0, 0};
    laya_reference_options options;
    laya_model *model = test_open_model(TEST_DEMO);
    char folder[TEST_PATH_SIZE];
    char *fixture = golden_fixture(test_path(folder, GOLDEN));
    make_place(&place, fixture);
    laya_reference_options_init(&options);
    options.progress = (laya_progress){.user = &seen, .report = see_progress};
    assert_int_equal(laya_reference_record(model, place.fixture, &options, place.output, &error), LAYA_OK);
    assert_true(seen.reports > GOLDEN_CASES);
    assert_int_equal(seen.done, seen.total);
    free(fixture);
    remove_place(&place);
    laya_model_close(model);
}

/* ------------------------------------------------------------------ the reader */

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* Two models, two questions; the numbers are made up. */
static const char good[] =
    "{\"format\": \"laya-reference\", \"version\": 1, \"class\": \"upstream PyTorch fp32\", \"tool\": {\"name\": "
    "\"laya\"}, "
    "\"fixture_sha256\": \"" HEX "\", \"models\": {\"m\": {\"source_weights_sha256\": \"" HEX "\", \"cases\": [{"
    "\"name\": \"c\", \"state\": {\"a\": 1}, \"questions\": {\"p\": {\"type\": \"score\"}, \"q\": {\"type\": "
    "\"noul\"}}, "
    "\"items\": [{\"id\": \"p\", \"ids\": [5, 6, 7, 8], \"markers\": [0, 3], \"qtype\": 1}, "
    "{\"id\": \"q\", \"ids\": [9], \"markers\": [0], \"qtype\": 2}], "
    "\"logits\": [[1.5, -2], [1e-3]], \"action_logits\": [[7, 8], [9.25, 10]], "
    "\"result\": {\"answers\": {\"p\": {\"score\": 0.25}, \"q\": {}}, \"usage\": {\"input_tokens\": 5}}}]}}}";

static laya_status read_text(laya_reference *reference, const char *text, const laya_allocator *allocator,
                             laya_error *error)
{
    char folder[TEST_PATH_SIZE], path[TEST_PATH_SIZE];
    test_make_folder(folder);
    test_write_file(test_join(path, folder, "r.json"), text, strlen(text));
    laya_status status = laya_reference_open(reference, path, allocator, error);
    test_remove_tree(folder); /* a mapped file stays readable */
    return status;
}

static void test_reader(void **state)
{
    (void)state;
    laya_reference reference;
    laya_error error;
    double score;
    if (read_text(&reference, good, NULL, &error) != LAYA_OK) fail_msg("%s", error.message);
    assert_string_equal(reference.class, "upstream PyTorch fp32");
    const laya_reference_model *model = laya_reference_find(&reference, HEX);
    assert_non_null(model);
    assert_string_equal(model->name, "m");
    assert_string_equal(model->config_sha256, "");
    assert_int_equal(model->count, 1);
    assert_int_equal(model->questions, 2);
    const laya_reference_case *c = &model->cases[0];
    assert_string_equal(c->input.name, "c");
    assert_string_equal(c->input.state, "{\"a\": 1}");
    const laya_reference_item *p = &c->items[0], *q = &c->items[1];
    assert_string_equal(p->id, "p");
    assert_int_equal(p->type, LAYA_SCORE);
    assert_int_equal(p->count, 4);
    assert_int_equal(p->ids[3], 8);
    assert_int_equal(p->options, 2);
    assert_int_equal(p->markers[1], 3);
    assert_true(p->logits[0] == 1.5 && p->logits[1] == -2 && p->action_logits[1] == 8);
    assert_int_equal(q->type, LAYA_NOUL);
    assert_int_equal(q->actions, 2);
    assert_true(q->logits[0] == 1e-3 && q->action_logits[0] == 9.25);
    assert_true(laya_json_to_double(laya_json_get(laya_json_get(c->answers, "p"), "score"), &score) && score == 0.25);
    laya_reference_close(&reference);
    laya_reference_close(&reference); /* nothing happens */
}

static void test_malformed(void **state)
{
    (void)state;
    /* `from` is replaced by `to` in the good text. */
    static const struct {
        const char *from, *to, *message;
    } changes[] = {
        {"laya-reference", "laya-fixture", "r.json: expected an object with \"format\": \"laya-reference\""},
        {"\"version\": 1", "\"version\": 3", "version: expected 1"},
        {"}]}}}", "}]}}", "r.json: "},
        {"upstream PyTorch fp32", "Core ML", "class: expected \"native fp32 engine\" or"},
        {"fixture_sha256", "fixture", "r.json: fixture_sha256: expected a string, found nothing"},
        {"\"models\": {\"m\"", "\"models\": {}, \"x\": {\"m\"", "models: expected at least one model"},
        {"\"models\"", "\"mods\"", "models: expected an object, found nothing"},
        {"{\"m\": {", "{\"a\\u0000b\": {", "models.a: expected a name without NUL"},
        {"{\"m\": {", "{\"m\": {\"source_config_sha256\": \"AB\", ",
         "models.m.source_config_sha256: expected a SHA-256"},
        {"\"source_weights_sha256\": \"0", "\"source_weights_sha256\": \"A",
         "models.m.source_weights_sha256: expected a"},
        {"\"cases\": [", "\"cases\": [], \"x\": [", "models.m.cases: expected 1 to 1024 cases, found 0"},
        {"\"state\": {\"a\": 1}", "\"state\": null",
         "models.m.cases[0].state: expected a JSON value other than null"},
        {"\"items\": [", "\"items\": [{}, ",
         "models.m.cases[0].items: expected one element for each of 2 questions, found 3"},
        {"\"logits\": [", "\"logits\": [[], ", "models.m.cases[0].logits: expected one element for each of 2"},
        {"\"action_logits\"", "\"act_logits\"", "models.m.cases[0].action_logits: expected a list, found nothing"},
        {"\"id\": \"p\"", "\"id\": \"x\"", "models.m.cases[0].items[0].id: 'x' is not the question at this place"},
        {"[5, 6", "[-5, 6", "models.m.cases[0].items[0].ids[0]: expected an integer below"},
        {"[5, 6", "[5, 6.0", "models.m.cases[0].items[0].ids[1]: expected an integer below"},
        {"\"ids\": [9]", "\"ids\": []", "models.m.cases[0].items[1].ids: expected at least one number"},
        {"[0, 3]", "[0, 4]", "items[0].markers[1]: expected an integer below 4"},
        {"[0, 3]", "[3, 3]", "items[0].markers[1]: expected more than 3, found 3"},
        {"\"markers\": [0, 3]", "\"markers\": []", "items[0].markers: expected at least one number"},
        {"\"qtype\": 1", "\"qtype\": 3", "items[0].qtype: expected 0 (choice), 1 (score) or 2 (noul)"},
        {"\"qtype\": 1", "\"qtype\": 0", "items[0].qtype: 0 (choice) is not the type of the question"},
        {"[1.5, -2]", "[1.5]", "items[0]: logits: expected a list of 2 numbers, found list of 1"},
        {"[1.5, -2]", "\"x\"", "items[0]: logits: expected a list of 2 numbers, found str"},
        {"1.5", "NaN", "items[0]: logits[0]: expected a finite number"},
        {"1.5", "1e999", "items[0]: logits[0]: expected a finite number"},
        {"1.5", "true", "items[0]: logits[0]: expected a finite number"},
        {"[9.25, 10]", "[9.25]", "items[1]: 1 action logits, but 2 in the first item"},
        {"[9.25, 10]", "[]", "items[1].action_logits: expected at least one number"},
        {"\"result\"", "\"results\"", "models.m.cases[0].result: expected an object, found nothing"},
        {"\"q\": {}}, \"usage\"", "\"x\": {}}, \"usage\"", "result.answers: expected the object 'q' at place 1"},
        {"\"q\": {}}, \"usage\"", "\"q\": 1}, \"usage\"", "result.answers: expected the object 'q' at place 1"},
        {", \"q\": {}}, \"usage\"", "}, \"usage\"", "result.answers: expected 2 answers, found 1"},
        {"\"usage\"", "\"use\"", "result.usage: expected an object, found nothing"},
        {"\"input_tokens\": 5", "\"input_tokens\": 6",
         "usage.input_tokens: expected the sum of the lengths of the rows"}};
    for (size_t at = 0; at < sizeof changes / sizeof *changes; at++) {
        laya_buffer text;
        laya_reference reference;
        laya_error error;
        const char *found = strstr(good, changes[at].from);
        assert_non_null(found);
        laya_buffer_init(&text, NULL);
        laya_buffer_append(&text, good, (size_t)(found - good));
        laya_buffer_puts(&text, changes[at].to);
        laya_buffer_puts(&text, found + strlen(changes[at].from));
        assert_int_equal(read_text(&reference, text.data, NULL, &error), LAYA_ERROR_FORMAT);
        assert_int_equal(error.status, LAYA_ERROR_FORMAT);
        assert_contains(error.message, changes[at].message);
        assert_int_equal(reference.count, 0);
        laya_buffer_close(&text);
    }
}

/* Two cases of one name. */
static void test_same_names(void **state)
{
    (void)state;
    laya_buffer text;
    laya_reference reference;
    laya_error error;
    const char *start = strstr(good, "[{\"name\"") + 1, *end = strstr(good, "]}}}");
    laya_buffer_init(&text, NULL);
    laya_buffer_append(&text, good, (size_t)(end - good));
    laya_buffer_puts(&text, ", ");
    laya_buffer_append(&text, start, (size_t)(end - start));
    laya_buffer_puts(&text, end);
    assert_int_equal(read_text(&reference, text.data, NULL, &error), LAYA_ERROR_FORMAT);
    assert_contains(error.message, "models.m.cases[1].name: 'c' is the name of an earlier case");
    laya_buffer_close(&text);
}

/* ------------------------------------------------------------------ memory */

static void test_reader_memory(void **state)
{
    (void)state;
    test_memory memory;
    laya_reference reference;
    laya_error error;
    test_memory_init(&memory);
    size_t fail = 1;
    for (;; fail++) {
        test_memory_arm(&memory, fail);
        laya_status status = read_text(&reference, good, &memory.hooks, &error);
        if (!memory.failed) break;
        assert_int_equal(status, LAYA_ERROR_MEMORY);
        assert_int_equal(memory.live, 0);
    }
    assert_true(fail > 3);
    laya_reference_close(&reference);
    assert_int_equal(memory.live, 0);
}

static void test_writer_memory(void **state)
{
    (void)state;
    test_place place;
    char directory[TEST_PATH_SIZE];
    test_memory memory;
    laya_error error;
    laya_model *model;
    laya_model_options options;
    laya_reference_options settings;
    make_place(&place, small_fixture);
    test_memory_init(&memory);
    laya_model_options_init(&options);
    options.allocator = memory.hooks;
    assert_int_equal(laya_model_open(test_path(directory, TEST_TINY), &options, &model, &error), LAYA_OK);
    size_t before = memory.live, fail = 1;
    laya_reference_options_init(&settings);
    settings.threads = 1;
    for (;; fail++) {
        test_memory_arm(&memory, fail);
        laya_status status = laya_reference_record(model, place.fixture, &settings, place.output, &error);
        if (!memory.failed) break;
        assert_int_equal(status, LAYA_ERROR_MEMORY);
        assert_int_equal(memory.live, before);
        assert_false(laya_path_exists(place.output));
    }
    assert_true(fail > 10);
    assert_int_equal(memory.live, before);
    char *tree = test_list_tree(place.folder);
    assert_string_equal(tree, "fixture.json\nreference.json\n");
    free(tree);
    laya_model_close(model);
    remove_place(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded_values), cmocka_unit_test(test_whole_fixture),
        cmocka_unit_test(test_threads),         cmocka_unit_test(test_refused_outputs),
        cmocka_unit_test(test_arguments),       cmocka_unit_test(test_refused_question),
        cmocka_unit_test(test_interrupt),       cmocka_unit_test(test_progress),
        cmocka_unit_test(test_reader),          cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_same_names),      cmocka_unit_test(test_reader_memory),
        cmocka_unit_test(test_writer_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
