/* SPDX-License-Identifier: Apache-2.0 */
/* Activation energies, against what the interpreter's convolutions read when it runs the same rows. */
#include "bundles.h"

#include "base/error.h"
#include "gate/fixture.h"
#include "interpreter/interpreter.h"
#include "predict/context.h"
#include "runtime/bundle.h"
#include "screen/energy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH 256u
#define MAX_WEIGHTS 64u
#define MAX_CHANNELS 768u

/* Two cases, all three types of question, rows of different lengths. */
static const char questions[] =
    "{\"format\": \"laya-fixture\", \"version\": 1, \"cases\": ["
    "{\"name\": \"a\", \"state\": \"The lift has been stuck since Monday.\", \"questions\": {"
    "\"area\": {\"type\": \"choice\", \"instructions\": \"What broke?\", \"criteria\": {\"lift\": \"lift or hoist\", "
    "\"roof\": \"leaks\", \"heat\": \"radiators\"}}, "
    "\"impact\": {\"type\": \"score\", \"instructions\": \"How bad?\", \"criteria\": [\"none\", \"some\"]}}},"
    "{\"name\": \"b\", \"state\": \"Please send 2 pairs.\", \"questions\": {"
    "\"order\": {\"type\": \"noul\", \"instructions\": \"Something is ordered.\"}}}]}";

typedef struct folder {
    char path[TEST_PATH_SIZE];
    char fixture[TEST_PATH_SIZE];
    char bundle[TEST_PATH_SIZE];
} folder;

static void make_folder(folder *f, const char *model, laya_graph graph, laya_package_precision precision)
{
    char directory[TEST_PATH_SIZE];
    test_make_folder(f->path);
    test_join(f->fixture, f->path, "questions.json");
    test_join(f->bundle, f->path, "bundle");
    test_write_file(f->fixture, questions, sizeof questions - 1);
    test_export(test_path(directory, model), graph, precision, LENGTH, false, f->bundle);
}

static laya_energies *measure(const folder *f, unsigned threads)
{
    laya_energies *energies;
    laya_error error;
    if (laya_energies_measure(f->bundle, NULL, f->fixture, threads, NULL, NULL, NULL, &energies, &error) != LAYA_OK)
        fail_msg("%s", error.message);
    return energies;
}

/* ------------------------------------------------------------------ the interpreter's convolutions */

/* A convolution with a weight: its name, what it reads, squares summed over the columns that are real. */
typedef struct watched {
    const char *name;
    const laya_mil_value *input;
    uint64_t channels;
    double sums[MAX_CHANNELS];
    uint64_t columns;
} watched;

typedef struct watcher {
    watched *weights;
    size_t count;
    const laya_row *row;
    char last_layer[32]; /* of the decision head */
} watcher;

/*
 * Whether the engine has this column of a convolution's input: tokens of the row; after the last attention only those
 * that are read; options in the scorer.
 */
static bool is_real(const watcher *w, const watched *weight, uint32_t column)
{
    const laya_row *row = w->row;
    if (strncmp(weight->name, "scorer_in", 9) == 0 || strncmp(weight->name, "option_logits", 13) == 0)
        return column < row->options;
    if (strncmp(weight->name, w->last_layer, strlen(w->last_layer)) != 0 || strstr(weight->name, "qkv"))
        return column < row->count;
    bool read = column == 0;
    for (uint32_t at = 0; at < row->options; at++) read = read || row->markers[at] == column;
    return read;
}

static void see(void *user, const laya_mil_value *value, const laya_array *array)
{
    const watcher *w = user;
    for (size_t at = 0; at < w->count; at++) {
        watched *weight = &w->weights[at];
        if (weight->input != value) continue;
        uint32_t columns = (uint32_t)array->type.dims[3];
        for (uint32_t column = 0; column < columns; column++) {
            if (!is_real(w, weight, column)) continue;
            weight->columns++;
            for (uint64_t channel = 0; channel < weight->channels; channel++) {
                double x = (double)array->values[channel * columns + column];
                weight->sums[channel] += x * x;
            }
        }
    }
}

static void find_convolutions(watcher *w, const laya_mil_program *program)
{
    w->weights = calloc(MAX_WEIGHTS, sizeof *w->weights);
    assert_non_null(w->weights);
    for (const laya_mil_op *op = program->functions[0].body.first; op; op = op->next) {
        if (strcmp(op->type, "conv") != 0) continue;
        const laya_mil_value *weight = laya_mil_find_argument(op, "weight")->bindings[0].value;
        if (strcmp(weight->name, "rope_rotation") == 0) continue;
        assert_true(w->count < MAX_WEIGHTS);
        watched *entry = &w->weights[w->count++];
        entry->name = weight->name;
        entry->input = laya_mil_find_argument(op, "x")->bindings[0].value;
        entry->channels = (uint64_t)weight->type.dims[1];
        assert_true(entry->channels <= MAX_CHANNELS);
    }
}

static void run_row(laya_interpreter *interpreter, const laya_model *model, const laya_body_shape *shape,
                    const laya_row *row)
{
    float *inputs[LAYA_BODY_INPUTS] = {NULL};
    laya_arena arena;
    laya_error error;
    laya_arena_init(&arena, NULL);
    for (uint32_t at = 0; at < laya_interpreter_input_count(interpreter); at++) {
        const char *name;
        laya_array *array = laya_interpreter_input(interpreter, at, &name);
        for (size_t i = 0; i < LAYA_BODY_INPUTS; i++) {
            if (strcmp(name, shape->inputs[i].name) == 0) inputs[i] = array->values;
        }
    }
    for (size_t i = 0; i < LAYA_BODY_INPUTS; i++) assert_non_null(inputs[i]);
    if (laya_adapter_fill(model, row, shape, inputs, &arena, &error) != LAYA_OK) fail_msg("%s", error.message);
    if (laya_interpreter_run(interpreter, &error) != LAYA_OK) fail_msg("%s", error.message);
    laya_arena_close(&arena);
}

/* Run the rows of all cases. Returns their tokens. */
static uint64_t run_cases(watcher *w, laya_interpreter *interpreter, const laya_model *model)
{
    laya_fixture fixture;
    laya_error error;
    laya_body_shape shape;
    uint64_t tokens = 0;
    laya_context *context = test_open_context(model, 1);
    laya_body_shape_init(&shape, model->config.hidden_size, LENGTH, 32);
    assert_int_equal(laya_fixture_parse(&fixture, questions, sizeof questions - 1, NULL, &error), LAYA_OK);
    for (size_t at = 0; at < fixture.count; at++) {
        const laya_fixture_case *input = &fixture.cases[at];
        const char *text;
        assert_int_equal(laya_predict(context, input->state, input->state_size, input->questions,
                                      input->questions_size, NULL, &text, NULL),
                         LAYA_OK);
        for (size_t i = 0; i < context->row_count; i++) {
            w->row = &context->rows[i];
            assert_true(w->row->count < LENGTH); /* padding shows whether it is left out */
            run_row(interpreter, model, &shape, w->row);
            tokens += w->row->count;
        }
    }
    laya_fixture_close(&fixture);
    laya_context_close(context);
    return tokens;
}

static void expect_energies(const watcher *w, laya_energies *energies)
{
    for (size_t at = 0; at < w->count; at++) {
        const watched *weight = &w->weights[at];
        const float *found = laya_energies_find(energies, weight->name, weight->channels);
        if (!found) fail_msg("%s: no energies", weight->name);
        assert_true(weight->columns > 0);
        double mean = 0;
        for (uint64_t c = 0; c < weight->channels; c++) mean += weight->sums[c] / (double)weight->columns;
        mean /= (double)weight->channels;
        for (uint64_t c = 0; c < weight->channels; c++) {
            double expected = weight->sums[c] / (double)weight->columns;
            if (fabs((double)found[c] - expected) > 1e-4 * (expected + 0.01 * mean))
                fail_msg("%s, channel %u: %g, the interpreter's convolution reads %g", weight->name, (unsigned)c,
                         (double)found[c], expected);
        }
        assert_null(laya_energies_find(energies, weight->name, weight->channels + 1));
    }
    assert_null(laya_energies_find(energies, "rope_rotation", 64));
}

static void check_graph(const char *model_name, laya_graph graph)
{
    folder f;
    watcher w = {0};
    laya_package *package;
    laya_interpreter *interpreter;
    laya_pool *pool;
    laya_error error;
    make_folder(&f, model_name, graph, LAYA_PACKAGE_FP32);
    laya_energies *energies = measure(&f, 2);
    laya_model *model = test_open_model(model_name);
    assert_int_equal(laya_pool_open(2, NULL, &pool, &error), LAYA_OK);
    assert_int_equal(laya_package_open(f.bundle, NULL, &package, &error), LAYA_OK);
    assert_int_equal(
        laya_interpreter_open(&package->program, NULL, LAYA_NUMERICS_FP32, pool, NULL, &interpreter, &error),
        LAYA_OK);
    find_convolutions(&w, &package->program);
    /* 4 dense weights a layer, two of the scorer. */
    const laya_config *config = &model->config;
    assert_int_equal(w.count, 4 * config->encoder_layers + 4 * config->head_layers + 2);
    snprintf(w.last_layer, sizeof w.last_layer, "head_layers_%u_", config->head_layers - 1);
    const laya_interpreter_trace trace = {&w, see};
    laya_interpreter_set_trace(interpreter, &trace);
    uint64_t tokens = run_cases(&w, interpreter, model);
    expect_energies(&w, energies);
    laya_energy_facts facts = laya_energies_facts(energies);
    char hex[65];
    assert_int_equal(laya_sha256(questions, sizeof questions - 1, hex, &error), LAYA_OK);
    assert_string_equal(facts.fixture_sha256, hex);
    assert_int_equal(facts.cases, 2);
    assert_int_equal(facts.questions, 3);
    assert_int_equal(facts.tokens, tokens);
    laya_interpreter_close(interpreter);
    laya_package_close(package);
    laya_pool_close(pool);
    laya_model_close(model);
    laya_energies_close(energies);
    free(w.weights);
    test_remove_tree(f.path);
}

static void test_per_head_graph(void **state)
{
    (void)state;
    check_graph(TEST_TINY, LAYA_GRAPH_PER_HEAD);
}

static void test_lean_graph(void **state)
{
    (void)state;
    check_graph(TEST_TINY, LAYA_GRAPH_LEAN);
}

/* Two head layers: the first one sees all tokens. */
static void test_two_head_layers(void **state)
{
    (void)state;
    check_graph(TEST_DEMO, LAYA_GRAPH_LEAN);
}

/* ------------------------------------------------------------------ order of columns */

/* Column c * heads + h of the lean graph's output projection is channel c of head h: column h * size + c as stored. */
static void test_lean_columns(void **state)
{
    (void)state;
    folder plain, lean;
    const size_t heads = 3, size = 64, d = heads * size;
    make_folder(&plain, TEST_DEMO, LAYA_GRAPH_PER_HEAD, LAYA_PACKAGE_FP16);
    make_folder(&lean, TEST_DEMO, LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP16);
    laya_energies *stored = measure(&plain, 1), *ordered = measure(&lean, 1);
    const float *a = laya_energies_find(stored, "layers_1_attn_out_weight", d);
    const float *b = laya_energies_find(ordered, "layers_1_attn_out_weight", d);
    assert_non_null(a);
    assert_non_null(b);
    size_t moved = 0;
    for (size_t h = 0; h < heads; h++) {
        for (size_t c = 0; c < size; c++) {
            assert_true(b[c * heads + h] == a[h * size + c]);
            moved += a[c * heads + h] != b[c * heads + h];
        }
    }
    assert_true(moved > d / 2); /* the order makes a difference */
    const float *in_a = laya_energies_find(stored, "layers_1_attn_qkv_weight", d);
    const float *in_b = laya_energies_find(ordered, "layers_1_attn_qkv_weight", d);
    assert_memory_equal(in_a, in_b, d * sizeof *in_a);
    laya_energies_close(stored);
    laya_energies_close(ordered);
    test_remove_tree(plain.path);
    test_remove_tree(lean.path);
}

/* ------------------------------------------------------------------ threads */

static void test_threads(void **state)
{
    (void)state;
    static const char *const names[] = {"layers_0_attn_qkv_weight", "layers_4_mlp_out_weight",
                                        "head_layers_0_linear2_weight", "scorer_in_weight"};
    static const uint64_t rows[] = {128, 80, 512, 128};
    folder f;
    make_folder(&f, TEST_TINY, LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP16);
    laya_energies *one = measure(&f, 1);
    for (unsigned threads = 2; threads <= 3; threads++) {
        laya_energies *many = measure(&f, threads);
        for (size_t at = 0; at < 4; at++) {
            const float *a = laya_energies_find(one, names[at], rows[at]);
            const float *b = laya_energies_find(many, names[at], rows[at]);
            if (!a || !b) fail_msg("%s: no energies", names[at]);
            assert_memory_equal(a, b, rows[at] * sizeof *a);
        }
        laya_energies_close(many);
    }
    laya_energies_close(one);
    test_remove_tree(f.path);
}

/* ------------------------------------------------------------------ progress, errors */

typedef struct hooks {
    uint64_t calls, done, total;
    uint64_t asked, stop_at; /* 0: never */
} hooks;

static void report(void *user, uint64_t done, uint64_t total)
{
    hooks *h = user;
    assert_true(done >= h->done && done <= total);
    assert_true(h->calls == 0 || total == h->total);
    h->done = done;
    h->total = total;
    h->calls++;
}

static int requested(void *user)
{
    hooks *h = user;
    h->asked++;
    return h->stop_at && h->asked >= h->stop_at;
}

static laya_status measure_hooked(const folder *f, hooks *h, laya_error *error)
{
    laya_energies *energies;
    const laya_progress progress = {h, report};
    const laya_interrupt interrupt = {h, requested};
    laya_status status = laya_energies_measure(f->bundle, NULL, f->fixture, 2, NULL, &progress, &interrupt, &energies,
                                               error);
    assert_true((energies != NULL) == (status == LAYA_OK));
    laya_energies_close(energies);
    return status;
}

static void test_hooks(void **state)
{
    (void)state;
    folder f;
    laya_error error;
    hooks whole = {0};
    make_folder(&f, TEST_TINY, LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP16);
    assert_int_equal(measure_hooked(&f, &whole, &error), LAYA_OK);
    assert_true(whole.calls > 2 && whole.done == whole.total);
    const uint64_t moments[] = {1, whole.asked / 2, whole.asked};
    for (size_t at = 0; at < 3; at++) {
        hooks stopped = {.stop_at = moments[at]};
        assert_int_equal(measure_hooked(&f, &stopped, &error), LAYA_ERROR_STOPPED);
        assert_int_equal(stopped.asked, moments[at]);
    }
    test_remove_tree(f.path);
}

static void expect_failure(const folder *f, const char *model, laya_status status, const char *message)
{
    laya_energies *energies;
    laya_error error;
    laya_status found = laya_energies_measure(f->bundle, model, f->fixture, 1, NULL, NULL, NULL, &energies, &error);
    if (found != status) fail_msg("expected %s, got %s: %s", message, laya_status_name(found), error.message);
    assert_null(energies);
    assert_contains(error.message, message);
}

static void test_errors(void **state)
{
    (void)state;
    folder f, bad;
    char path[TEST_PATH_SIZE];
    make_folder(&f, TEST_TINY, LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP16);
    expect_failure(&f, test_path(path, TEST_DEMO), LAYA_ERROR_FORMAT, "belongs to another checkpoint");
    expect_failure(&f, "/nonexistent", LAYA_ERROR_IO, "--model DIR");
    bad = f;
    test_join(bad.fixture, f.path, "absent.json");
    expect_failure(&bad, NULL, LAYA_ERROR_IO, "absent.json");
    test_join(bad.fixture, f.path, "broken.json");
    test_write_file(bad.fixture, "{", 1);
    expect_failure(&bad, NULL, LAYA_ERROR_FORMAT, "broken.json");
    bad = f;
    snprintf(bad.bundle, sizeof bad.bundle, "%s", f.path); /* a directory of bundles, with one: that one */
    laya_energies *energies = measure(&bad, 1);
    laya_energies_close(energies);
    /* A graph that the package does not have: its columns would be taken for others. */
    char copy[TEST_PATH_SIZE];
    test_join(copy, f.path, "bundle");
    test_edit_file(copy, "manifest.json", "\"lean\"", "\"per-head\"");
    expect_failure(&f, NULL, LAYA_ERROR_FORMAT, "not the package that this version exports");
    test_remove_tree(f.path);
}

/* Every early allocation, and some of the many later ones. */
static void test_memory_failures(void **state)
{
    (void)state;
    folder f;
    test_memory memory;
    make_folder(&f, TEST_TINY, LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP16);
    test_memory_init(&memory);
    for (size_t at = 1, step = 1;; at += step, step += step / 8 + 1) {
        laya_energies *energies;
        laya_error error;
        test_memory_arm(&memory, at);
        laya_status status = laya_energies_measure(f.bundle, NULL, f.fixture, 1, &memory.hooks, NULL, NULL, &energies,
                                                   &error);
        laya_energies_close(energies);
        assert_int_equal(memory.live, 0);
        if (!memory.failed) {
            assert_int_equal(status, LAYA_OK);
            break;
        }
        assert_int_equal(status, LAYA_ERROR_MEMORY);
    }
    test_remove_tree(f.path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_per_head_graph),  cmocka_unit_test(test_lean_graph),
        cmocka_unit_test(test_two_head_layers), cmocka_unit_test(test_lean_columns),
        cmocka_unit_test(test_threads),         cmocka_unit_test(test_hooks),
        cmocka_unit_test(test_errors),          cmocka_unit_test(test_memory_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
