/* SPDX-License-Identifier: Apache-2.0 */
/* Opening checkpoints: what is refused and how it is named, facts, warnings, language temperatures. */
#include "support.h"

#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Every block comes back, whatever the outcome. The model is closed here. */
static laya_status open_and_close(const char *directory, const char *languages, laya_error *error)
{
    test_memory memory;
    laya_model_options options;
    laya_model *model = (laya_model *)&options;
    test_memory_init(&memory);
    laya_model_options_init(&options);
    options.allocator = memory.hooks;
    options.lang_temperatures = languages;
    laya_status status = laya_model_open(directory, &options, &model, error);
    assert_int_equal(error->status, status);
    if (status != LAYA_OK) {
        assert_null(model);
        assert_true(error->message[0] != '\0');
    }
    laya_model_close(model);
    assert_int_equal(memory.live, 0);
    return status;
}

static void expect(const char *directory, laya_status status, const char *first, const char *second)
{
    laya_error error;
    if (open_and_close(directory, NULL, &error) != status)
        fail_msg("%s instead of %s: %s", laya_status_name(error.status), laya_status_name(status), error.message);
    assert_contains(error.message, first);
    assert_contains(error.message, second);
}

/* ------------------------------------------------------------------ arguments and missing files */

static void arguments(void **state)
{
    (void)state;
    laya_model *model;
    laya_error error;
    laya_model_options options;
    assert_int_equal(laya_model_open("x", NULL, NULL, &error), LAYA_ERROR_ARGUMENT);
    assert_int_equal(laya_model_open(NULL, NULL, &model, &error), LAYA_ERROR_ARGUMENT);
    assert_null(model);
    laya_model_options_init(&options);
    options.size++;
    assert_int_equal(laya_model_open("x", &options, &model, &error), LAYA_ERROR_ARGUMENT);
    assert_contains(error.message, "laya_model_options_init");
    assert_int_equal(laya_model_open("/does/not/exist", NULL, &model, NULL), LAYA_ERROR_IO);
    laya_model_close(NULL);
}

static void missing_files(void **state)
{
    (void)state;
    char message[TEST_PATH_SIZE + 100], path[TEST_PATH_SIZE];
    expect("/does/not/exist", LAYA_ERROR_IO,
           "Local model path not found: /does/not/exist. Check that the directory exists", "rl_agent_config.json");
    test_path(path, TEST_DEMO "/rl_agent_config.json");
    expect(path, LAYA_ERROR_IO, path, "found a file");

    char *directory = test_make_checkpoint();
    laya_error error;
    assert_int_equal(open_and_close(directory, NULL, &error), LAYA_OK);
    assert_string_equal(error.message, "");
    test_remove_checkpoint(directory);

    directory = test_make_checkpoint();
    test_change_file(directory, "rl_agent_config.json", NULL, 0);
    snprintf(message, sizeof message, "Incompatible model: %s does not contain 'rl_agent_config.json'.", directory);
    expect(directory, LAYA_ERROR_IO, message, "");
    test_remove_checkpoint(directory);

    directory = test_make_checkpoint();
    test_change_file(directory, "model.safetensors", NULL, 0);
    snprintf(message, sizeof message, "Incompatible model: 'model.safetensors' not found in %s.", directory);
    expect(directory, LAYA_ERROR_IO, message, "");
    test_remove_checkpoint(directory);

    static const char *const others[] = {"encoder/config.json", "tokenizer/tokenizer.json",
                                         "tokenizer/tokenizer_config.json"};
    for (size_t i = 0; i < 3; i++) {
        directory = test_make_checkpoint();
        test_change_file(directory, others[i], NULL, 0);
        snprintf(message, sizeof message, "%s/%s", directory, others[i]);
        expect(directory, LAYA_ERROR_IO, message, "no such file or directory");
        test_remove_checkpoint(directory);
    }
}

/* ------------------------------------------------------------------ malformed files */

static void malformed_json(void **state)
{
    (void)state;
    static const char *const names[] = {"rl_agent_config.json", "encoder/config.json", "tokenizer/tokenizer.json",
                                        "tokenizer/tokenizer_config.json"};
    for (size_t i = 0; i < 4; i++) {
        char path[TEST_PATH_SIZE + 64];
        char *directory = test_make_checkpoint();
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        test_change_file(directory, names[i], "{\n \"a\": 1,\n}", 12);
        expect(directory, LAYA_ERROR_FORMAT, path, "line 3, column 1: expected a key in double quotes");
        test_change_file(directory, names[i], "", 0);
        expect(directory, LAYA_ERROR_FORMAT, path, "the text ends");
        test_change_file(directory, names[i], "[1]", 3);
        expect(directory, LAYA_ERROR_FORMAT, path, "object");
        test_remove_checkpoint(directory);
    }
}

static void configuration_fields(void **state)
{
    (void)state;
    static const struct {
        const char *file, *from, *to;
        laya_status status;
        const char *message;
    } cases[] = {
        {"rl_agent_config.json", "\"encoder\":", "\"x\":", LAYA_ERROR_FORMAT,
         "Incompatible model config: missing configuration keys ['encoder']"},
        {"rl_agent_config.json", "\"head_layers\": 2", "\"head_layers\": 3", LAYA_ERROR_FORMAT, "head.layers.2."},
        {"rl_agent_config.json", "\"head_layers\": 2", "\"head_layers\": 1", LAYA_ERROR_FORMAT, "head.layers.1."},
        {"rl_agent_config.json", "\"max_len\": 512", "\"max_len\": 2000", LAYA_ERROR_FORMAT,
         "'max_len' 2000 is above"},
        {"rl_agent_config.json", "\"escalate\": 0.5", "\"a\": 1, \"b\": 2", LAYA_ERROR_FORMAT, "act_head"},
        {"rl_agent_config.json", "\"head_layers\": 2", "\"head_layers\": 2, \"option_layout\": \"parallel\"",
         LAYA_ERROR_UNSUPPORTED, "option_layout"},
        {"rl_agent_config.json", "\"head_layers\": 2", "\"head_layers\": 2, \"residual_adapters\": {}",
         LAYA_ERROR_UNSUPPORTED, "residual_adapters"},
        {"rl_agent_config.json", "\"temperature\": [", "\"temperature\": [9, ", LAYA_ERROR_FORMAT,
         "temperature: expected a list of 3 numbers"},
        {"encoder/config.json", "\"vocab_size\": 4096", "\"vocab_size\": 4095", LAYA_ERROR_FORMAT, "tok_embeddings"},
        {"encoder/config.json", "\"modernbert\"", "\"bert\"", LAYA_ERROR_UNSUPPORTED, "model_type"},
        {"encoder/config.json", "\"rope_theta\"", "\"theta\"", LAYA_ERROR_UNSUPPORTED, "theta"},
        {"tokenizer/tokenizer.json", "\"BPE\"", "\"Unigram\"", LAYA_ERROR_UNSUPPORTED, "Unigram"},
        {"tokenizer/tokenizer_config.json", "\"mask_token\": \"<mask>\"", "\"mask_token\": \"[NONE]\"",
         LAYA_ERROR_FORMAT, "mask_token: the tokenizer has no token '[NONE]'"},
        {"tokenizer/tokenizer_config.json", "\"pad_token\"", "\"pad\"", LAYA_ERROR_FORMAT,
         "pad_token: expected the text of a token, found NoneType"},
        {"tokenizer/tokenizer_config.json", "\"pad_token\": \"<pad>\"", "\"pad_token\": 0", LAYA_ERROR_FORMAT,
         "pad_token: expected the text of a token, found int"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *directory = test_make_checkpoint();
        test_edit_file(directory, cases[i].file, cases[i].from, cases[i].to);
        expect(directory, cases[i].status, cases[i].message, directory);
        test_remove_checkpoint(directory);
    }
    /* a special token as an object, as AddedToken is saved, is the same */
    char *directory = test_make_checkpoint();
    laya_error error;
    test_edit_file(directory, "tokenizer/tokenizer_config.json", "\"mask_token\": \"<mask>\"",
                   "\"mask_token\": {\"content\": \"<mask>\", \"lstrip\": true}");
    assert_int_equal(open_and_close(directory, NULL, &error), LAYA_OK);
    test_remove_checkpoint(directory);
}

/* F62: more ids than rows of the table. Files of another checkpoint. */
static void files_that_do_not_belong_together(void **state)
{
    (void)state;
    char path[TEST_PATH_SIZE];
    size_t size;
    char *directory = test_make_checkpoint();
    test_edit_file(directory, "tokenizer/tokenizer.json", "\"added_tokens\":[",
                   "\"added_tokens\":[{\"id\":4096,\"content\":\"<new>\",\"single_word\":false,\"lstrip\":false,"
                   "\"rstrip\":false,"
                   "\"normalized\":false,\"special\":true},");
    expect(directory, LAYA_ERROR_FORMAT,
           "tokenizer.json: the tokenizer has 4097 ids, but the embedding table only 4096 rows", directory);
    test_remove_checkpoint(directory);

    directory = test_make_checkpoint();
    char *data = test_read_file(test_path(path, TEST_TINY "/model.safetensors"), &size);
    test_change_file(directory, "model.safetensors", data, size);
    free(data);
    expect(directory, LAYA_ERROR_FORMAT, "model.safetensors", "mismatch");
    test_remove_checkpoint(directory);

    directory = test_make_checkpoint();
    data = test_read_file(test_path(path, TEST_TINY "/tokenizer/tokenizer.json"), &size);
    test_change_file(directory, "tokenizer/tokenizer.json", data, size);
    free(data);
    expect(directory, LAYA_ERROR_FORMAT, "cls_token: the tokenizer has no token '<bos>'", "tokenizer_config.json");
    test_remove_checkpoint(directory);
}

static void damaged_weights(void **state)
{
    (void)state;
    char path[TEST_PATH_SIZE];
    size_t size;
    char *data = test_read_file(test_path(path, TEST_DEMO "/model.safetensors"), &size);
    const size_t cuts[] = {0, 7, 8, 100, size / 2, size - 1};
    char *directory = test_make_checkpoint();
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        test_change_file(directory, "model.safetensors", data, cuts[i]);
        expect(directory, LAYA_ERROR_FORMAT, "model.safetensors: ", directory);
    }
    char *name = NULL; /* a tensor by another name: one missing, one too many */
    for (size_t at = 8; at < 100000 && !name; at++) {
        if (memcmp(data + at, "scorer.3.bias", 13) == 0) name = data + at;
    }
    assert_non_null(name);
    memcpy(name, "scorer.9.bias", 13);
    test_change_file(directory, "model.safetensors", data, size);
    expect(directory, LAYA_ERROR_FORMAT, "model.safetensors: ", "scorer.");
    test_remove_checkpoint(directory);
    free(data);
}

/* ------------------------------------------------------------------ temperatures and the log */

typedef struct log_lines {
    int count;
    laya_log_level level;
    char text[LAYA_MESSAGE_SIZE];
} log_lines;

static void keep_line(void *user, laya_log_level level, const char *message)
{
    log_lines *lines = user;
    lines->count++;
    lines->level = level;
    snprintf(lines->text, sizeof lines->text, "%s", message);
}

/* The tiny checkpoint ships 1.5, true, "2.5" and buckets 0.1, 9.0, "1.75", 2: one warning lists what changed. */
static void one_warning(void **state)
{
    (void)state;
    char path[TEST_PATH_SIZE];
    log_lines lines = {0};
    laya_model *model;
    laya_model_options options;
    laya_model_options_init(&options);
    options.logger = (laya_logger){&lines, keep_line};
    assert_int_equal(laya_model_open(test_path(path, TEST_TINY), &options, &model, NULL), LAYA_OK);
    assert_int_equal(lines.count, 1);
    assert_int_equal(lines.level, LAYA_LOG_WARNING);
    assert_string_equal(
        lines.text,
        "laya: this checkpoint ships invalid temperatures or values outside [0.5, 5]; using "
        "temperature[score]=True -> 1.0, choice:2=0.1 -> 0.5, choice:3-5=9.0 -> 5.0. Treat confidence from "
        "the affected entries as uncalibrated.");
    laya_model_info info;
    laya_model_get_info(model, &info);
    assert_int_equal(info.actions, 3); /* F31: two entries of act_costs */
    laya_context *context = test_open_context(model, 1);
    laya_result result;
    laya_state text = {.text = "x", .size = 1};
    laya_question question = {.id = "q", .type = LAYA_NOUL, .instructions = "Is it?"};
    assert_int_equal(laya_decide(context, &text, &question, 1, NULL, &result), LAYA_OK);
    assert_int_equal(result.answers[0].action_count, 3);
    assert_true(result.answers[0].temperature == 2.5);
    laya_context_close(context);
    laya_model_close(model);
    lines.count = 0;
    assert_int_equal(laya_model_open(test_path(path, TEST_DEMO), &options, &model, NULL), LAYA_OK);
    assert_int_equal(lines.count, 0);
    laya_model_close(model);
}

/* Gemma's family: bos and eos do the work of cls and sep; the substitution is said. */
static void bos_and_eos_where_cls_and_sep_are_missing(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *warning;
    } cases[] = {
        {"\"cls_token\"", "\"x\"", "tokenizer/tokenizer_config.json has no cls_token; using its bos_token"},
        {"\"sep_token\"", "\"x\"", "tokenizer/tokenizer_config.json has no sep_token; using its eos_token"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *directory = test_make_checkpoint(), *json;
        log_lines lines = {0};
        laya_model *model;
        laya_model_options options;
        laya_model_options_init(&options);
        options.logger = (laya_logger){&lines, keep_line};
        test_edit_file(directory, "tokenizer/tokenizer_config.json", cases[i].from, cases[i].to);
        assert_int_equal(laya_model_open(directory, &options, &model, NULL), LAYA_OK);
        assert_int_equal(lines.count, 1);
        assert_int_equal(lines.level, LAYA_LOG_WARNING);
        assert_string_equal(lines.text, cases[i].warning);
        assert_int_equal(laya_model_describe(model, 0, &json, NULL), LAYA_OK);
        assert_contains(json, "\"cls\": {\n      \"id\": 2,");
        assert_contains(json, "\"sep\": {\n      \"id\": 1,");
        laya_model_release(model, json);
        laya_model_close(model);
        test_remove_checkpoint(directory);
    }
}

static void language_temperatures(void **state)
{
    (void)state;
    char path[TEST_PATH_SIZE];
    laya_error error;
    test_path(path, TEST_DEMO);
    assert_int_equal(open_and_close(path, "[]", &error), LAYA_ERROR_INPUT);
    assert_contains(error.message, "lang_temperatures must be a mapping");
    assert_int_equal(open_and_close(path, "{", &error), LAYA_ERROR_INPUT);
    assert_contains(error.message, "lang_temperatures: line 1, column 2");
    assert_int_equal(open_and_close(path, "{\"de\": {\"temperature\": [1]}}", &error), LAYA_ERROR_INPUT);
    assert_contains(error.message, "Language override 'de' temperature must be a list of 3 floats");

    laya_model *model;
    laya_model_options options;
    laya_model_options_init(&options);
    char languages[] = "{\"de\": {\"temperature\": [1, 2, 3]}}";
    options.lang_temperatures = languages;
    assert_int_equal(laya_model_open(path, &options, &model, &error), LAYA_OK);
    memset(languages, 'x', sizeof languages - 1); /* it was read during the call only */
    laya_context *context = test_open_context(model, 1);
    laya_result result;
    laya_predict_options how;
    laya_predict_options_init(&how);
    laya_state text = {.text = "x", .size = 1};
    laya_question question = {.id = "q", .type = LAYA_NOUL, .instructions = "Is it?"};
    assert_int_equal(laya_decide(context, &text, &question, 1, &how, &result), LAYA_OK);
    assert_true(result.answers[0].temperature == 2.7197935581207275);
    double logit = result.answers[0].logits[0];
    how.lang = "de-AT";
    assert_int_equal(laya_decide(context, &text, &question, 1, &how, &result), LAYA_OK);
    assert_true(result.answers[0].temperature == 3);
    assert_true(result.answers[0].logits[0] == logit);
    how.lang = "fr";
    assert_int_equal(laya_decide(context, &text, &question, 1, &how, &result), LAYA_OK);
    assert_true(result.answers[0].temperature == 2.7197935581207275);
    laya_context_close(context);
    laya_model_close(model);
}

/* ------------------------------------------------------------------ facts */

static void facts(void **state)
{
    (void)state;
    char path[TEST_PATH_SIZE];
    laya_model *model = test_open_model(TEST_DEMO);
    laya_model_info info;
    laya_model_get_info(model, &info);
    assert_string_equal(info.directory, test_path(path, TEST_DEMO));
    assert_string_equal(info.name, "laya-demo");
    assert_string_equal(info.encoder, "laya-demo");
    assert_int_equal(info.vocab_size, 4096);
    assert_int_equal(info.hidden_size, 192);
    assert_int_equal(info.encoder_layers, 4);
    assert_int_equal(info.attention_heads, 3);
    assert_int_equal(info.head_size, 64);
    assert_int_equal(info.intermediate_size, 256);
    assert_int_equal(info.local_attention, 32);
    assert_int_equal(info.max_positions, 1024);
    assert_int_equal(info.head_layers, 2);
    assert_int_equal(info.actions, 2);
    assert_int_equal(info.max_len, 512);
    assert_int_equal(info.head_max_len, 192);
    assert_true(info.global_rope_theta == 20000 && info.local_rope_theta == 1000);
    assert_int_equal(info.weight_bytes, 5899290);
    assert_int_equal(laya_tokenizer_vocab_size(laya_model_tokenizer(model)), 4096);

    char *json;
    laya_json doc;
    laya_error error;
    assert_int_equal(laya_model_describe(model, 0, NULL, &error), LAYA_ERROR_ARGUMENT);
    assert_int_equal(laya_model_describe(NULL, 0, &json, &error), LAYA_ERROR_ARGUMENT);
    assert_null(json);
    assert_int_equal(laya_model_describe(model, 1, &json, &error), LAYA_OK);
    assert_int_equal(laya_json_parse(&doc, json, strlen(json), NULL, NULL), LAYA_OK);
    laya_json_value root = laya_json_root(&doc), shape = laya_json_get(root, "encoder_shape");
    assert_true(laya_json_equals(laya_json_get(root, "model_name"), "laya-demo"));
    double value;
    assert_true(laya_json_to_double(laya_json_get(shape, "local_rope_theta"), &value) && value == 1000);
    assert_true(laya_json_to_double(laya_json_get(laya_json_get(root, "temperature"), "choice:3-5"), &value));
    assert_true(value == 1.6051925420761108);
    assert_false(laya_json_present(laya_json_get(laya_json_get(root, "temperature"), "choice:11+")));
    assert_contains(
        json, "\"layer_kinds\": [\n      \"global\",\n      \"local\",\n      \"local\",\n      \"global\"\n    ]");
    assert_true(laya_json_to_double(laya_json_get(laya_json_get(root, "weights"), "parameters"), &value));
    assert_true(value == (double)info.parameters);
    laya_json_value mask = laya_json_get(laya_json_get(root, "tokenizer"), "mask");
    assert_true(laya_json_equals(laya_json_get(mask, "text"), "<mask>"));
    assert_int_equal(laya_json_size(laya_json_get(root, "sha256")), 5);
    laya_json_close(&doc);
    laya_model_release(model, json);
    assert_int_equal(laya_model_describe(model, 0, &json, NULL), LAYA_OK);
    assert_false(test_contains(json, "sha256"));
    laya_model_release(model, json);
    laya_model_release(model, NULL);
    laya_model_release(NULL, NULL);
    laya_model_close(model);
}

/* A file that vanished after the model was opened is an error of describe, nothing else. */
/* The description stays JSON whatever bytes the path has. */
static void a_path_that_is_not_text(void **state)
{
    (void)state;
    char path[TEST_PATH_SIZE], link[TEST_PATH_SIZE], *json, *directory = test_make_checkpoint();
    laya_model *model;
    laya_json doc;
    snprintf(link, sizeof link, "%s/\xff", directory);
    if (symlink(test_path(path, TEST_DEMO), link) != 0) {
        test_remove_checkpoint(directory);
        skip(); /* a file system that takes UTF-8 names only */
    }
    assert_int_equal(laya_model_open(link, NULL, &model, NULL), LAYA_OK);
    assert_int_equal(laya_model_describe(model, 0, &json, NULL), LAYA_OK);
    assert_int_equal(laya_json_parse(&doc, json, strlen(json), NULL, NULL), LAYA_OK);
    laya_json_value named = laya_json_get(laya_json_root(&doc), "directory");
    assert_true(laya_json_present(named));
    assert_int_equal(laya_json_typeof(named), LAYA_JSON_NULL);
    laya_json_close(&doc);
    laya_model_release(model, json);
    laya_model_close(model);
    assert_int_equal(unlink(link), 0);
    test_remove_checkpoint(directory);
}

static void hashes_of_a_vanished_file(void **state)
{
    (void)state;
    char *directory = test_make_checkpoint(), *json = directory;
    laya_model *model;
    laya_error error;
    assert_int_equal(laya_model_open(directory, NULL, &model, &error), LAYA_OK);
    test_change_file(directory, "tokenizer/tokenizer_config.json", NULL, 0);
    assert_int_equal(laya_model_describe(model, 1, &json, &error), LAYA_ERROR_IO);
    assert_null(json);
    assert_contains(error.message, "tokenizer_config.json");
    assert_int_equal(laya_model_describe(model, 0, &json, &error), LAYA_OK);
    laya_model_release(model, json);
    laya_model_close(model);
    test_remove_checkpoint(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments),
        cmocka_unit_test(missing_files),
        cmocka_unit_test(malformed_json),
        cmocka_unit_test(configuration_fields),
        cmocka_unit_test(files_that_do_not_belong_together),
        cmocka_unit_test(damaged_weights),
        cmocka_unit_test(one_warning),
        cmocka_unit_test(bos_and_eos_where_cls_and_sep_are_missing),
        cmocka_unit_test(language_temperatures),
        cmocka_unit_test(facts),
        cmocka_unit_test(a_path_that_is_not_text),
        cmocka_unit_test(hashes_of_a_vanished_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
