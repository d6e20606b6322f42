/* SPDX-License-Identifier: Apache-2.0 */
/* Palettes that are gated: weighted by activations, and with bits for each weight. */
#include "bundles.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "screen/energy.h"
#include "screen/gated.h"
#include "screen/stages.h"
#include "screen/steps.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define LENGTH 64u

/* Few questions: each test makes and validates several bundles. */
static const char questions[] =
    "{\"format\": \"laya-fixture\", \"version\": 1, \"cases\": ["
    "{\"name\": \"mail\", \"state\": \"The invoice was paid twice, please send the money back.\", \"questions\": {"
    "\"team\": {\"type\": \"choice\", \"instructions\": \"Which team?\", \"criteria\": {\"billing\": \"invoices\", "
    "\"delivery\": \"parcels\"}}, "
    "\"refund\": {\"type\": \"noul\", \"instructions\": \"The writer asks for money back.\"}}},"
    "{\"name\": \"lift\", \"state\": \"The lift has been stuck since Monday.\", \"questions\": {"
    "\"impact\": {\"type\": \"score\", \"instructions\": \"How bad is it?\", "
    "\"criteria\": [\"not at all\", \"somewhat\", \"strongly\"]}}}]}";

typedef struct folder {
    char path[TEST_PATH_SIZE];
    char fixture[TEST_PATH_SIZE];
    char bundle[TEST_PATH_SIZE];
    char output[TEST_PATH_SIZE]; /* in a folder of its own */
    char temporary[TEST_PATH_SIZE];
} folder;

static void make_folder(folder *f)
{
    char directory[TEST_PATH_SIZE];
    test_make_folder(f->path);
    test_join(f->fixture, f->path, "questions.json");
    test_join(f->bundle, f->path, "bundle");
    test_join(f->output, f->path, "made/output");
    test_join(f->temporary, f->path, "temporary");
    assert_int_equal(mkdir(f->temporary, 0700), 0);
    assert_int_equal(mkdir(test_join(directory, f->path, "made"), 0700), 0);
    assert_int_equal(setenv("TMPDIR", f->temporary, 1), 0);
    test_write_file(f->fixture, questions, sizeof questions - 1);
    test_export(test_path(directory, TEST_DEMO), LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP16, LENGTH, false, f->bundle);
}

static void expect_empty(const char *directory)
{
    char *entries = test_list_tree(directory);
    assert_string_equal(entries, "");
    free(entries);
}

/* Nothing temporary is left; the folder goes. */
static void remove_folder(folder *f)
{
    expect_empty(f->temporary);
    assert_int_equal(unsetenv("TMPDIR"), 0);
    test_remove_tree(f->path);
}

static laya_palettize_options options_of(const folder *f, laya_palette_mode mode, uint32_t bits)
{
    laya_palettize_options options;
    laya_palettize_options_init(&options);
    options.mode = mode;
    options.bits = bits;
    options.fixture = f->fixture;
    options.workers = 2;
    return options;
}

static void palettize(const folder *f, const laya_palettize_options *options, const char *output)
{
    laya_error error;
    if (laya_palettize(f->bundle, options, output, &error) != LAYA_OK) fail_msg("%s", error.message);
}

/* ------------------------------------------------------------------ manifests */

typedef struct manifest {
    char *text;
    laya_json doc;
    laya_json_value root, palette;
} manifest;

static void open_manifest(manifest *m, const char *bundle)
{
    char path[TEST_PATH_SIZE];
    size_t size;
    laya_error error;
    m->text = test_read_file(test_join(path, bundle, "manifest.json"), &size);
    assert_int_equal(laya_json_parse(&m->doc, m->text, size, NULL, &error), LAYA_OK);
    m->root = laya_json_root(&m->doc);
    m->palette = laya_json_get(m->root, "palette");
    assert_int_equal(laya_json_typeof(m->palette), LAYA_JSON_OBJECT);
}

static void close_manifest(manifest *m)
{
    laya_json_close(&m->doc);
    free(m->text);
}

static double number(laya_json_value object, const char *name)
{
    double value;
    if (!laya_json_to_double(laya_json_get(object, name), &value)) fail_msg("%s: no number", name);
    return value;
}

static void expect_text(laya_json_value object, const char *name, const char *text)
{
    if (!laya_json_equals(laya_json_get(object, name), text)) fail_msg("%s: not '%s'", name, text);
}

static void expect_bool(laya_json_value object, const char *name, bool value)
{
    assert_int_equal(laya_json_typeof(laya_json_get(object, name)), value ? LAYA_JSON_TRUE : LAYA_JSON_FALSE);
}

/* A hash of the file, as text. */
static void hash_of(const char *path, char hex[65])
{
    size_t size;
    laya_error error;
    char *data = test_read_file(path, &size);
    assert_int_equal(laya_sha256(data, size, hex, &error), LAYA_OK);
    free(data);
}

/* ------------------------------------------------------------------ steps */

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

/* The least sum of errors of any choice of points with at most so many bytes. */
static double least_error(const uint64_t *before, const laya_bit_point *points, uint32_t count, uint64_t most)
{
    double least = INFINITY;
    uint32_t choices = 1;
    for (uint32_t at = 0; at < count; at++) choices *= LAYA_BIT_LEVELS + 1;
    for (uint32_t choice = 0; choice < choices; choice++) {
        uint64_t bytes = 0;
        double sum = 0;
        bool possible = true;
        for (uint32_t at = 0, rest = choice; at < count; at++, rest /= LAYA_BIT_LEVELS + 1) {
            uint32_t level = rest % (LAYA_BIT_LEVELS + 1);
            const laya_bit_point *point = level ? &points[at * LAYA_BIT_LEVELS + level - 1] : NULL;
            if (point && point->bits == 0) possible = false;
            bytes += point ? point->bytes : before[at];
            sum += point ? point->error : 0;
        }
        if (possible && bytes <= most && sum < least) least = sum;
    }
    return least;
}

/* Every prefix of the steps is a choice that nothing as small undercuts. Whole numbers, so that sums are exact. */
static void test_steps_are_optimal(void **state)
{
    (void)state;
    enum { WEIGHTS = 3, ROUNDS = 200 };
    static const unsigned bits[LAYA_BIT_LEVELS] = {8, 6, 4, 3, 2};
    uint32_t random = 7;
    size_t all = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t before[WEIGHTS];
        laya_bit_point points[WEIGHTS * LAYA_BIT_LEVELS];
        laya_bit_step steps[WEIGHTS * LAYA_BIT_LEVELS];
        for (uint32_t at = 0; at < WEIGHTS; at++) {
            uint64_t bytes = before[at] = 20 + next_random(&random) % 8;
            double error = 0;
            for (uint32_t level = 0; level < LAYA_BIT_LEVELS; level++) {
                bytes -= next_random(&random) % 4; /* 0: a point that is no smaller */
                error += next_random(&random) % 6;
                points[at * LAYA_BIT_LEVELS + level] = (laya_bit_point){next_random(&random) % 8 ? bits[level] : 0,
                                                                        bytes, error};
            }
        }
        size_t count = laya_bit_steps(before, points, WEIGHTS, steps);
        uint64_t bytes[WEIGHTS], total = 0;
        double errors[WEIGHTS] = {0}, sum = 0;
        uint32_t orders[WEIGHTS] = {0};
        for (uint32_t at = 0; at < WEIGHTS; at++) total += bytes[at] = before[at];
        for (size_t at = 0; at < count; at++) {
            uint32_t weight = steps[at].weight;
            assert_int_equal(steps[at].order, orders[weight]++);
            const laya_bit_point *point = &points[weight * LAYA_BIT_LEVELS];
            while (point->bits != steps[at].bits) point++;
            assert_true(point->bytes < bytes[weight]);
            total = total - bytes[weight] + point->bytes;
            sum = sum - errors[weight] + point->error;
            bytes[weight] = point->bytes;
            errors[weight] = point->error;
            assert_true(sum == least_error(before, points, WEIGHTS, total));
        }
        all += count;
    }
    assert_true(all > ROUNDS * WEIGHTS);
}

/* A hull by hand: 100 bytes without error, then (50, 1), (40, 3), (30, 3.5), (25, 20). (40, 3) lies above the line. */
static void test_steps_by_hand(void **state)
{
    (void)state;
    const uint64_t before[] = {100, 100};
    const laya_bit_point points[2 * LAYA_BIT_LEVELS] = {{8, 50, 1},  {6, 40, 3}, {4, 30, 3.5}, {3, 0, 0},
                                                        {2, 25, 20}, {8, 50, 2}, {6, 120, 0.5}};
    laya_bit_step steps[2 * LAYA_BIT_LEVELS];
    laya_bit_point mine[2 * LAYA_BIT_LEVELS];
    memcpy(mine, points, sizeof mine);
    mine[3].bits = 0; /* no such level */
    assert_int_equal(laya_bit_steps(before, mine, 2, steps), 4);
    const struct {
        uint32_t weight;
        unsigned bits;
        double slope;
    } expected[] = {{0, 8, 1.0 / 50}, {1, 8, 2.0 / 50}, {0, 4, 2.5 / 20}, {0, 2, 16.5 / 5}};
    for (size_t at = 0; at < 4; at++) {
        assert_int_equal(steps[at].weight, expected[at].weight);
        assert_int_equal(steps[at].bits, expected[at].bits);
        assert_true(steps[at].slope == expected[at].slope);
    }
}

/* ------------------------------------------------------------------ progress of several steps */

typedef struct hooks {
    uint64_t calls, done, total;
    uint64_t asked, stop_at; /* 0: never */
} hooks;

static void report(void *user, uint64_t done, uint64_t total)
{
    hooks *h = user;
    if (done < h->done || done > total || (h->calls && total != h->total))
        fail_msg("%llu of %llu after %llu of %llu", (unsigned long long)done, (unsigned long long)total,
                 (unsigned long long)h->done, (unsigned long long)h->total);
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

static void test_stages(void **state)
{
    (void)state;
    hooks h = {0};
    laya_stages stages = {.to = {&h, report}, .total = 10};
    laya_progress step = laya_stages_next(&stages, 4);
    step.report(step.user, 1, 2);
    assert_true(h.total > 0 && h.done * 5 == h.total);
    step.report(step.user, 1, 4); /* not backwards */
    assert_true(h.done * 5 == h.total);
    step = laya_stages_next(&stages, 1);
    assert_true(h.done * 10 == h.total * 4);
    step.report(step.user, 3, 3);
    assert_true(h.done * 2 == h.total);
    step.report(step.user, 4, 3); /* no further than its part */
    step.report(step.user, 0, 0);
    assert_true(h.done * 2 == h.total);
    laya_stages_end(&stages);
    assert_int_equal(h.done, h.total);
    laya_stages silent = {.total = 3};
    assert_null(laya_stages_next(&silent, 1).report);
    laya_stages_end(&silent);
}

/* ------------------------------------------------------------------ gates */

static laya_status run_gate(const folder *f, const char *bundle, laya_gate_result *result)
{
    laya_error error;
    laya_validate_options options;
    laya_validate_options_init(&options);
    options.fixture = f->fixture;
    options.repeats = 2;
    laya_status status = laya_gate_run(bundle, &options, result, &error);
    if (status != LAYA_OK) fail_msg("%s", error.message);
    return status;
}

/* The figures are those of the report, found by other code. */
static void expect_figures(const laya_gate_result *result)
{
    laya_json doc;
    laya_error error;
    size_t size;
    const char *text = laya_report_json(result->report, &size);
    assert_int_equal(laya_json_parse(&doc, text, size, NULL, &error), LAYA_OK);
    laya_json_value root = laya_json_root(&doc), counts = laya_json_get(root, "counts");
    double probability = 0, action = 0;
    uint32_t changes = 0, evaluated = 0;
    laya_json_value cases = laya_json_get(root, "cases");
    for (laya_json_iterator it = laya_json_first(cases); laya_json_present(it.value); laya_json_next(&it)) {
        laya_json_value answers = laya_json_get(it.value, "answers");
        for (laya_json_iterator q = laya_json_first(answers); laya_json_present(q.value); laya_json_next(&q)) {
            probability = fmax(probability, number(q.value, "probability_error"));
            action = fmax(action, number(q.value, "action_logit_error"));
            changes += laya_json_typeof(laya_json_get(q.value, "argmax_equal")) == LAYA_JSON_FALSE;
            evaluated++;
        }
    }
    assert_int_equal(result->gate.passed, laya_report_passed(result->report) != 0);
    assert_true(result->gate.probability_error == probability);
    assert_true(result->gate.action_logit_error == action);
    assert_int_equal(result->argmax_changes, changes);
    assert_int_equal(result->gate.evaluated, evaluated);
    assert_int_equal(result->gate.unvalidated, 0);
    assert_int_equal(result->gate.repeats, 2);
    assert_true(result->near_ties == number(counts, "near_ties"));
    assert_string_equal(result->gate.executor, "interpreter fp16");
    assert_string_equal(result->gate.class, "executed by the interpreter");
    expect_text(laya_json_get(root, "reference"), "sha256", result->gate.reference_sha256);
    laya_json_close(&doc);
}

static void test_gate_figures(void **state)
{
    (void)state;
    folder f;
    laya_gate_result result;
    char coarse[TEST_PATH_SIZE];
    make_folder(&f);
    run_gate(&f, f.bundle, &result);
    expect_figures(&result);
    assert_true(result.gate.passed && result.stable && result.other_gates);
    assert_true(result.gate.probability_error < 0.02);
    laya_report_close(result.report);
    /* One bit a weight is too coarse for any model. */
    laya_palettize_options options = options_of(&f, LAYA_PALETTE_KMEANS, 1);
    options.group_size = 0;
    palettize(&f, &options, test_join(coarse, f.path, "coarse"));
    run_gate(&f, coarse, &result);
    expect_figures(&result);
    assert_true(!result.gate.passed && result.stable);
    assert_true(result.gate.probability_error > 0.02);
    laya_report_close(result.report);
    remove_folder(&f);
}

static void test_gate_errors(void **state)
{
    (void)state;
    folder f;
    laya_error error;
    laya_gate_result result;
    laya_validate_options options;
    make_folder(&f);
    laya_validate_options_init(&options);
    options.reference = f.fixture; /* no reference */
    assert_int_equal(laya_gate_run(f.bundle, &options, &result, &error), LAYA_ERROR_FORMAT);
    assert_null(result.report);
    options.reference = NULL;
    assert_int_equal(laya_gate_run(f.bundle, &options, &result, &error), LAYA_ERROR_ARGUMENT);
    assert_null(result.report);
    remove_folder(&f);
}

static void test_references(void **state)
{
    (void)state;
    folder f;
    laya_error error;
    laya_gate_reference made;
    laya_validate_options options;
    char path[TEST_PATH_SIZE], expected[65], found[65];
    make_folder(&f);
    laya_validate_options_init(&options);
    /* Given: used as it is, and left alone. */
    options.reference = "/some/reference.json";
    assert_int_equal(laya_gate_reference_open(&made, f.bundle, &options, &error), LAYA_OK);
    assert_string_equal(made.path, "/some/reference.json");
    laya_gate_reference_close(&made);
    /* Recorded: the bytes of laya_reference_record, in a temporary folder. */
    options.reference = NULL;
    options.fixture = f.fixture;
    assert_int_equal(laya_gate_reference_open(&made, f.bundle, &options, &error), LAYA_OK);
    assert_memory_equal(made.path, f.temporary, strlen(f.temporary));
    laya_model *model = test_open_model(TEST_DEMO);
    test_join(path, f.path, "reference.json");
    assert_int_equal(laya_reference_record(model, f.fixture, NULL, path, &error), LAYA_OK);
    laya_model_close(model);
    hash_of(path, expected);
    hash_of(made.path, found);
    assert_string_equal(found, expected);
    laya_gate_reference_close(&made);
    expect_empty(f.temporary);
    /* Not recorded: nothing is left. */
    options.fixture = NULL;
    assert_int_equal(laya_gate_reference_open(&made, f.bundle, &options, &error), LAYA_ERROR_ARGUMENT);
    options.fixture = f.bundle;
    assert_int_equal(laya_gate_reference_open(&made, f.bundle, &options, &error), LAYA_ERROR_IO);
    options.fixture = f.fixture;
    assert_int_equal(laya_gate_reference_open(&made, f.path, &options, &error), LAYA_OK); /* a folder of one bundle */
    laya_gate_reference_close(&made);
    assert_int_equal(laya_gate_reference_open(&made, f.temporary, &options, &error), LAYA_ERROR_FORMAT);
    remove_folder(&f);
}

/* ------------------------------------------------------------------ weighted */

static void test_weighted_bundle(void **state)
{
    (void)state;
    folder f;
    manifest m;
    laya_gate_result result;
    char hex[65];
    hooks h = {0};
    make_folder(&f);
    laya_palettize_options options = options_of(&f, LAYA_PALETTE_WEIGHTED, 6);
    options.progress = (laya_progress){&h, report};
    palettize(&f, &options, f.output);
    assert_true(h.calls > 10 && h.calls < 400 && h.done == h.total);
    open_manifest(&m, f.output);
    expect_text(m.palette, "mode", "weighted");
    laya_json_value energy = laya_json_get(m.palette, "energy"), gate = laya_json_get(m.palette, "gate");
    hash_of(f.fixture, hex);
    expect_text(energy, "fixture_sha256", hex);
    expect_text(energy, "class", "native fp32 engine");
    assert_true(number(energy, "cases") == 2 && number(energy, "questions") == 3);
    assert_true(number(energy, "tokens") > 30);
    run_gate(&f, f.output, &result);
    expect_bool(gate, "passed", result.gate.passed);
    assert_true(number(gate, "probability_error") == result.gate.probability_error);
    assert_true(number(gate, "action_logit_error") == result.gate.action_logit_error);
    assert_true(number(gate, "evaluated_questions") == 3 && number(gate, "unvalidated_questions") == 0 &&
                number(gate, "repeats") == 2);
    expect_text(gate, "reference_sha256", result.gate.reference_sha256);
    expect_text(gate, "executor", "interpreter fp16");
    laya_report_close(result.report);
    close_manifest(&m);
    remove_folder(&f);
}

/* A gate that fails is no error: the bundle is there and says so. */
static void test_failing_gate(void **state)
{
    (void)state;
    folder f;
    manifest m;
    make_folder(&f);
    laya_palettize_options options = options_of(&f, LAYA_PALETTE_WEIGHTED, 1);
    options.group_size = 0;
    palettize(&f, &options, f.output);
    open_manifest(&m, f.output);
    laya_json_value gate = laya_json_get(m.palette, "gate");
    expect_bool(gate, "passed", false);
    assert_true(number(gate, "probability_error") > 0.02);
    close_manifest(&m);
    remove_folder(&f);
}

static void measure(const folder *f, laya_palette_mode mode, unsigned bits, laya_energies *energies,
                    laya_palette_figures *figures)
{
    laya_error error;
    const laya_palette_job job = {.parent = f->bundle,
                                  .mode = mode,
                                  .bits = bits,
                                  .group_size = 32,
                                  .choice = {.user = energies, .energy = laya_energies_find},
                                  .energy = laya_energies_facts(energies),
                                  .workers = 2,
                                  .allocator = laya_allocator_or_default(NULL)};
    if (laya_palette_measure(&job, figures, &error) != LAYA_OK) fail_msg("%s", error.message);
}

/*
 * Each of two optima is the better one by its own measure, on every weight. Entries are rounded to fp16, which the
 * theorem knows nothing of: a millionth is allowed for it.
 */
static void test_both_optima(void **state)
{
    (void)state;
    folder f;
    laya_error error;
    laya_energies *energies;
    laya_palette_figures plain, weighted;
    make_folder(&f);
    if (laya_energies_measure(f.bundle, NULL, f.fixture, 2, NULL, NULL, NULL, &energies, &error) != LAYA_OK)
        fail_msg("%s", error.message);
    measure(&f, LAYA_PALETTE_KMEANS, 4, energies, &plain);
    measure(&f, LAYA_PALETTE_WEIGHTED, 4, energies, &weighted);
    assert_int_equal(plain.count, weighted.count);
    assert_true(plain.count >= 25); /* 4 a layer of 4 + 2, and one of the scorer */
    size_t differ = 0;
    for (uint32_t at = 0; at < plain.count; at++) {
        const laya_palette_error *a = &plain.weights[at].errors, *b = &weighted.weights[at].errors;
        assert_string_equal(plain.weights[at].name, weighted.weights[at].name);
        assert_true(a->energy == b->energy && a->weighted_energy == b->weighted_energy);
        if (b->weighted_sse > a->weighted_sse * (1 + 1e-6))
            fail_msg("%s: weighted error %g, k-means %g", plain.weights[at].name, b->weighted_sse, a->weighted_sse);
        if (b->sse < a->sse * (1 - 1e-6))
            fail_msg("%s: plain error %g, k-means %g", plain.weights[at].name, b->sse, a->sse);
        differ += b->weighted_sse < 0.999 * a->weighted_sse && b->sse > 1.001 * a->sse;
    }
    assert_true(differ > plain.count / 2);
    laya_palette_figures_close(&plain);
    laya_palette_figures_close(&weighted);
    laya_energies_close(energies);
    remove_folder(&f);
}

/* ------------------------------------------------------------------ bits for each weight */

/* The target is met by a run of our own, with fewer bytes than all weights at 8 bits. */
static void check_target(laya_palette_mode mode, uint32_t group_size, double target)
{
    folder f;
    manifest m, wide;
    laya_gate_result result;
    char other[TEST_PATH_SIZE];
    hooks h = {0};
    make_folder(&f);
    laya_palettize_options options = options_of(&f, mode, 8);
    options.target_error = target;
    options.group_size = group_size;
    options.progress = (laya_progress){&h, report};
    palettize(&f, &options, f.output);
    assert_int_equal(h.done, h.total);
    open_manifest(&m, f.output);
    assert_true(number(m.palette, "target_error") == target);
    expect_text(m.palette, "bits", "per weight");
    expect_bool(laya_json_get(m.palette, "gate"), "passed", true);
    run_gate(&f, f.output, &result);
    assert_true(result.gate.passed && result.gate.probability_error <= target);
    assert_true(number(laya_json_get(m.palette, "gate"), "probability_error") == result.gate.probability_error);
    laya_report_close(result.report);
    /* Two kinds of widths, at least. */
    laya_json_value weights = laya_json_get(m.palette, "weights");
    double first = 0;
    bool several = false;
    for (laya_json_iterator it = laya_json_first(weights); laya_json_present(it.value); laya_json_next(&it)) {
        double bits = number(it.value, "bits");
        several = several || (first > 0 && bits != first);
        first = bits;
    }
    assert_true(several);
    laya_palettize_options eight = options_of(&f, LAYA_PALETTE_KMEANS, 8);
    eight.group_size = group_size;
    palettize(&f, &eight, test_join(other, f.path, "eight"));
    open_manifest(&wide, other);
    assert_true(number(m.palette, "weight_bytes_after") < number(wide.palette, "weight_bytes_after"));
    close_manifest(&wide);
    close_manifest(&m);
    remove_folder(&f);
}

static void test_target(void **state)
{
    (void)state;
    check_target(LAYA_PALETTE_KMEANS, 0, 0.01);
}

static void test_weighted_target(void **state)
{
    (void)state;
    check_target(LAYA_PALETTE_WEIGHTED, 64, 0.02);
}

/* The same package for any number of workers, and from a reference as from its fixture. */
static void test_target_workers(void **state)
{
    (void)state;
    folder f;
    manifest a, b;
    laya_error error;
    char other[TEST_PATH_SIZE], reference[TEST_PATH_SIZE];
    make_folder(&f);
    laya_palettize_options options = options_of(&f, LAYA_PALETTE_UNIFORM, 8);
    options.target_error = 0.015;
    options.group_size = 0;
    options.workers = 1;
    palettize(&f, &options, f.output);
    laya_model *model = test_open_model(TEST_DEMO);
    test_join(reference, f.path, "reference.json");
    assert_int_equal(laya_reference_record(model, f.fixture, NULL, reference, &error), LAYA_OK);
    laya_model_close(model);
    options.workers = 3;
    options.fixture = NULL;
    options.reference = reference;
    palettize(&f, &options, test_join(other, f.path, "other"));
    open_manifest(&a, f.output);
    open_manifest(&b, other);
    size_t size;
    const char *hash = laya_json_text(laya_json_get(a.root, "package_sha256"), &size);
    assert_int_equal(size, 64);
    char hex[65] = "";
    memcpy(hex, hash, 64);
    expect_text(b.root, "package_sha256", hex);
    expect_text(a.root, "opset", "CoreML6"); /* one table a tensor, and never 3 bits */
    close_manifest(&a);
    close_manifest(&b);
    remove_folder(&f);
}

static void expect_failure(const folder *f, const laya_palettize_options *options, laya_status status,
                           const char *message)
{
    laya_error error;
    char made[TEST_PATH_SIZE];
    laya_status found = laya_palettize(f->bundle, options, f->output, &error);
    if (found != status) fail_msg("expected \"%s\", got %s: %s", message, laya_status_name(found), error.message);
    assert_int_equal(error.status, status);
    assert_contains(error.message, message);
    expect_empty(test_join(made, f->path, "made"));
    expect_empty(f->temporary);
}

static void test_targets_out_of_reach(void **state)
{
    (void)state;
    folder f;
    make_folder(&f);
    laya_palettize_options options = options_of(&f, LAYA_PALETTE_KMEANS, 8);
    options.target_error = 1e-12;
    options.group_size = 0;
    expect_failure(&f, &options, LAYA_ERROR_UNSUPPORTED, "without palettes already");
    remove_folder(&f);
}

/* ------------------------------------------------------------------ options, interrupts */

static void test_options(void **state)
{
    (void)state;
    folder f;
    laya_error error;
    make_folder(&f);
    const laya_palettize_options good = options_of(&f, LAYA_PALETTE_KMEANS, 8);
    laya_palettize_options o;
#define REFUSED(message, ...)                                                                                        \
    do {                                                                                                             \
        o = good;                                                                                                    \
        __VA_ARGS__;                                                                                                 \
        expect_failure(&f, &o, LAYA_ERROR_ARGUMENT, message);                                                        \
    } while (0)
    REFUSED("call laya_palettize_options_init first", o.size = 1);
    REFUSED("mode: 9 is none", o.mode = (laya_palette_mode)9);
    REFUSED("bits: expected 1, 2, 3, 4, 6 or 8, found 5", o.bits = 5);
    REFUSED("bits: expected 1, 2, 3, 4, 6 or 8, found 0", o.bits = 0);
    REFUSED("workers: expected at most 1024, found 1025", o.workers = 1025);
    REFUSED("target_error: expected a probability below 1, or 0 for none, found 1", o.target_error = 1);
    REFUSED("found -0.1", o.target_error = -0.1);
    REFUSED("nan", o.target_error = NAN);
    REFUSED("mode unique", o.mode = LAYA_PALETTE_UNIQUE, o.target_error = 0.02);
    REFUSED("fixture: expected questions, whose activations", o.mode = LAYA_PALETTE_WEIGHTED, o.fixture = NULL);
    REFUSED("fixture: expected questions, or a reference", o.target_error = 0.02, o.fixture = NULL);
    assert_int_equal(laya_palettize(NULL, &good, f.output, &error), LAYA_ERROR_ARGUMENT);
    assert_contains(error.message, "package");
    assert_int_equal(laya_palettize(f.bundle, &good, NULL, &error), LAYA_ERROR_ARGUMENT);
    assert_int_equal(laya_palettize(f.bundle, &good, "", &error), LAYA_ERROR_ARGUMENT);
    assert_contains(error.message, "output");
    assert_int_equal(laya_palettize(f.bundle, &good, f.bundle, &error), LAYA_ERROR_IO);
    assert_contains(error.message, "exists already");
    /* Defaults. */
    laya_palettize_options_init(&o);
    assert_true(o.size == sizeof o && o.mode == LAYA_PALETTE_KMEANS && o.bits == 8 && o.group_size == 32);
    assert_int_equal(laya_palettize(f.bundle, NULL, f.output, &error), LAYA_OK);
    remove_folder(&f);
}

/* Palettes are made once, from the weights of a checkpoint. */
static void test_palettized_parent(void **state)
{
    (void)state;
    folder f;
    make_folder(&f);
    laya_palettize_options options = options_of(&f, LAYA_PALETTE_KMEANS, 8);
    char first[TEST_PATH_SIZE];
    palettize(&f, &options, test_join(first, f.path, "first"));
    snprintf(f.bundle, sizeof f.bundle, "%s", first);
    options.mode = LAYA_PALETTE_WEIGHTED;
    expect_failure(&f, &options, LAYA_ERROR_UNSUPPORTED, "palette");
    options.mode = LAYA_PALETTE_KMEANS;
    options.target_error = 0.02;
    expect_failure(&f, &options, LAYA_ERROR_UNSUPPORTED, "palette");
    remove_folder(&f);
}

/* `parts` of ten, of the times that a whole run asks; 0: at once. */
static void check_interrupts(laya_palettize_options options, const folder *f, const uint64_t *parts, size_t count)
{
    laya_error error;
    hooks whole = {0};
    options.interrupt = (laya_interrupt){&whole, requested};
    assert_int_equal(laya_palettize(f->bundle, &options, f->output, &error), LAYA_OK);
    test_remove_tree(f->output);
    for (size_t at = 0; at < count; at++) {
        hooks stopped = {.stop_at = whole.asked * parts[at] / 10 + 1};
        options.interrupt.user = &stopped;
        expect_failure(f, &options, LAYA_ERROR_STOPPED, "was interrupted; nothing was written");
    }
}

static void test_interrupts(void **state)
{
    (void)state;
    folder f;
    make_folder(&f);
    laya_palettize_options options = options_of(&f, LAYA_PALETTE_WEIGHTED, 2);
    options.workers = 1; /* the hook counts without a lock */
    const uint64_t parts[] = {0, 1, 3, 5, 7, 9};
    check_interrupts(options, &f, parts, sizeof parts / sizeof *parts);
    options.mode = LAYA_PALETTE_UNIFORM;
    options.group_size = 0;
    options.target_error = 0.02;
    check_interrupts(options, &f, parts + 2, TEST_SANITIZED ? 1 : 3);
    remove_folder(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_are_optimal),
        cmocka_unit_test(test_steps_by_hand),
        cmocka_unit_test(test_stages),
        cmocka_unit_test(test_gate_figures),
        cmocka_unit_test(test_gate_errors),
        cmocka_unit_test(test_references),
        cmocka_unit_test(test_weighted_bundle),
        cmocka_unit_test(test_failing_gate),
        cmocka_unit_test(test_both_optima),
        cmocka_unit_test(test_target),
        cmocka_unit_test(test_weighted_target),
        cmocka_unit_test(test_target_workers),
        cmocka_unit_test(test_targets_out_of_reach),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_palettized_parent),
        cmocka_unit_test(test_interrupts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
