/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network against recorded PyTorch outputs, the float32 engine against the float64 reference, and the promise of
 * the same bits for any number of threads, any company in a batch, any previous contents of the working memory, and
 * any stored type that holds the same values.
 */
#include "support.h"

#include "golden_files.h"
#include "kernels/kernels.h"
#include "model/engine.h"
#include "model/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_ROWS 128
#define MAX_OPTIONS 128
#define MAX_TOKENS 2048

/* What is slow runs on the short rows only. */
#if TEST_SANITIZED
#define SHORT_ROW 38
#define LONG_ROW 130
#else
#define SHORT_ROW 100
#define LONG_ROW 2048
#endif

/* ------------------------------------------------------------------ files */

/* A recorded row and what the engine said about it. */
typedef struct golden_row {
    uint32_t ids[MAX_TOKENS];
    uint32_t markers[MAX_OPTIONS];
    double expected[MAX_OPTIONS], expected_action[LAYA_MAX_ACTIONS];
    double logits[MAX_OPTIONS], action_logits[LAYA_MAX_ACTIONS];
    laya_row row;
} golden_row;

typedef struct suite {
    laya_model *model;
    laya_network network;
    const char *golden;
    golden_row *storage;        /* [MAX_ROWS] */
    golden_row *rows[MAX_ROWS]; /* shortest first */
    size_t row_count;
    size_t short_count; /* rows of up to SHORT_ROW tokens; what is slow runs on these only */
    size_t long_count;  /* rows of up to LONG_ROW tokens */
    double logit_bound;
} suite;

static suite demo = {.golden = "tests/golden/laya-demo", .logit_bound = 2e-5};
static suite tiny = {.golden = "tests/golden/laya-tiny-random", .logit_bound = 2e-4};

static void check(laya_status status, const laya_error *error)
{
    if (status != LAYA_OK) fail_msg("%s: %s", laya_status_name(status), error->message);
}

static uint32_t type_number(laya_json_value question)
{
    laya_json_value type = laya_json_get(question, "type");
    return laya_json_equals(type, "choice") ? 0 : laya_json_equals(type, "score") ? 1 : 2;
}

static void read_case(suite *s, const char *folder, const char *name)
{
    golden_document document;
    laya_json_value root = golden_open(&document, folder, name);
    laya_json_value rows = laya_json_get(root, "rows");
    for (laya_json_iterator it = laya_json_first(rows); laya_json_present(it.value); laya_json_next(&it)) {
        assert_true(s->row_count < MAX_ROWS);
        golden_row *g = &s->storage[s->row_count];
        s->rows[s->row_count++] = g;
        size_t size;
        char qid[128];
        const char *text = laya_json_text(laya_json_get(it.value, "qid"), &size);
        snprintf(qid, sizeof qid, "%.*s", (int)size, text);
        g->row.type = type_number(laya_json_get(laya_json_get(root, "questions"), qid));
        g->row.count = (uint32_t)golden_uints(laya_json_get(it.value, "input_ids"), g->ids, MAX_TOKENS);
        g->row.options = (uint32_t)golden_uints(laya_json_get(it.value, "markers"), g->markers, MAX_OPTIONS);
        assert_int_equal(golden_doubles(laya_json_get(it.value, "logits"), g->expected, MAX_OPTIONS), g->row.options);
        assert_int_equal(golden_doubles(laya_json_get(it.value, "act_logits"), g->expected_action, LAYA_MAX_ACTIONS),
                         s->model->config.actions);
        g->row.ids = g->ids;
        g->row.markers = g->markers;
        g->row.logits = g->logits;
        g->row.action_logits = g->action_logits;
    }
    golden_close(&document);
}

static int by_length(const void *a, const void *b)
{
    const golden_row *x = *(golden_row *const *)a, *y = *(golden_row *const *)b;
    return x->row.count < y->row.count ? -1 : x->row.count > y->row.count;
}

static void open_suite(suite *s, const char *directory)
{
    char folder[TEST_PATH_SIZE];
    golden_list list;
    s->model = test_open_model(directory);
    s->network = (laya_network){.config = &s->model->config, .weights = &s->model->weights};
    s->storage = calloc(MAX_ROWS, sizeof *s->storage);
    assert_non_null(s->storage);
    golden_find(&list, test_path(folder, s->golden));
    for (size_t at = 0; at < list.count; at++) read_case(s, folder, list.names[at]);
    assert_true(s->row_count > 20);
    qsort(s->rows, s->row_count, sizeof *s->rows, by_length);
    while (s->short_count < s->row_count && s->rows[s->short_count]->row.count <= SHORT_ROW) s->short_count++;
    while (s->long_count < s->row_count && s->rows[s->long_count]->row.count <= LONG_ROW) s->long_count++;
}

static int open_all(void **unused)
{
    (void)unused;
    open_suite(&demo, TEST_DEMO);
    open_suite(&tiny, TEST_TINY);
    return 0;
}

static int close_all(void **unused)
{
    (void)unused;
    laya_model_close(demo.model);
    laya_model_close(tiny.model);
    free(demo.storage);
    free(tiny.storage);
    return 0;
}

/* ------------------------------------------------------------------ running */

/* The rows first .. first + count - 1 in one call. Results are set to NaN before. */
static void run_rows(suite *s, const laya_network *network, size_t first, size_t count, unsigned threads,
                     laya_arena *arena)
{
    laya_error error;
    laya_pool *pool;
    laya_row rows[MAX_ROWS];
    for (size_t i = 0; i < count; i++) {
        golden_row *g = s->rows[first + i];
        for (size_t o = 0; o < MAX_OPTIONS; o++) g->logits[o] = NAN;
        for (size_t a = 0; a < LAYA_MAX_ACTIONS; a++) g->action_logits[a] = NAN;
        rows[i] = g->row;
    }
    check(laya_pool_open(threads, NULL, &pool, &error), &error);
    check(laya_engine_run(network, rows, count, pool, arena, NULL, &error), &error);
    laya_pool_close(pool);
}

/* Largest error of the logits, and of the action logits relative to max(1, |x|). */
static void measure(const suite *s, size_t count, double *logits, double *actions)
{
    *logits = *actions = 0;
    for (size_t r = 0; r < count; r++) {
        const golden_row *g = s->rows[r];
        for (uint32_t o = 0; o < g->row.options; o++) {
            double gap = fabs(g->logits[o] - g->expected[o]);
            *logits = gap <= *logits ? *logits : gap; /* a NaN counts */
        }
        for (uint32_t a = 0; a < s->model->config.actions; a++) {
            double size = fabs(g->expected_action[a]);
            double gap = fabs(g->action_logits[a] - g->expected_action[a]) / (size > 1 ? size : 1);
            *actions = gap <= *actions ? *actions : gap;
        }
    }
}

static void check_bounds(const suite *s, size_t count, const char *what)
{
    double logits, actions;
    measure(s, count, &logits, &actions);
    print_message("%-28s %-16s against PyTorch, %zu rows: logits %.2e, actions %.2e relative\n", s->golden, what,
                  count, logits, actions);
    assert_true(logits <= s->logit_bound);
    assert_true(actions <= 1e-4);
}

/* The best kernels on the long rows too; the others and the reference on the short ones. */
static void check_golden(suite *s)
{
    laya_arena arena;
    size_t index = 0;
    for (const laya_kernels *kernels; (kernels = test_next_kernels(&index)) != NULL;) {
        laya_network network = s->network;
        network.kernels = kernels;
        size_t count = kernels == laya_kernels_select(LAYA_CPU_ALL) ? s->long_count : s->short_count;
        laya_arena_init(&arena, NULL);
        for (size_t r = 0; r < count; r++) {
            run_rows(s, &network, r, 1, 2, &arena);
            laya_arena_reset(&arena);
        }
        laya_arena_close(&arena);
        check_bounds(s, count, kernels->name);
    }
    laya_arena_init(&arena, NULL);
    for (size_t r = 0; r < s->short_count; r++) {
        laya_error error;
        check(laya_reference_run(&s->network, &s->rows[r]->row, 1, &arena, NULL, &error), &error);
        laya_arena_reset(&arena);
    }
    laya_arena_close(&arena);
    check_bounds(s, s->short_count, "float64");
}

static void test_golden_demo(void **unused)
{
    (void)unused;
    check_golden(&demo);
}

static void test_golden_tiny(void **unused)
{
    (void)unused;
    check_golden(&tiny);
}

/* ------------------------------------------------------------------ traces */

typedef struct trace_check {
    const laya_safetensors *expected;
    size_t seen;
    double worst;
} trace_check;

/* Relative error: largest difference over the largest magnitude of the tensor. */
static void compare_trace(void *user, const char *name, const double *values, size_t rows, size_t cols)
{
    trace_check *t = user;
    const laya_tensor_entry *entry = laya_safetensors_find(t->expected, name);
    if (!entry) fail_msg("the golden trace has no %s", name);
    assert_int_equal(entry->tensor.rows, rows);
    assert_int_equal(entry->tensor.cols, cols);
    double largest = 0, gap = 0;
    for (size_t i = 0; i < rows * cols; i++) {
        float value;
        laya_tensor_widen(&entry->tensor, i, 1, &value);
        if (fabs((double)value) > largest) largest = fabs((double)value);
        double difference = fabs((double)value - values[i]);
        gap = difference <= gap ? gap : difference;
    }
    double relative = gap / largest;
    if (!(relative <= 1e-4)) print_error("%s: relative difference %g\n", name, relative);
    t->worst = relative <= t->worst ? t->worst : relative;
    t->seen++;
}

static uint32_t to_integers(const laya_safetensors *tensors, const char *name, uint32_t *out)
{
    const laya_tensor_entry *entry = laya_safetensors_find(tensors, name);
    assert_non_null(entry);
    for (uint32_t i = 0; i < entry->tensor.cols; i++) {
        float value;
        laya_tensor_widen(&entry->tensor, i, 1, &value);
        out[i] = (uint32_t)value;
    }
    return entry->tensor.cols;
}

static void check_trace(suite *s)
{
    char path[TEST_PATH_SIZE], name[TEST_PATH_SIZE];
    laya_error error;
    laya_file file;
    laya_safetensors expected;
    laya_arena arena;
    laya_pool *pool;
    golden_row *g = calloc(1, sizeof *g);
    assert_non_null(g);
    snprintf(name, sizeof name, "%s/trace.safetensors", s->golden);
    check(laya_file_map(&file, test_path(path, name), &error), &error);
    check(laya_safetensors_read(&expected, file.data, file.size, NULL, &error), &error);
    check(laya_pool_open(2, NULL, &pool, &error), &error);
    laya_arena_init(&arena, NULL);
    laya_row row = {
        .ids = g->ids, .markers = g->markers, .logits = g->logits, .action_logits = g->action_logits, .type = 0};
    row.count = to_integers(&expected, "input_ids", g->ids);
    row.options = to_integers(&expected, "markers", g->markers);
    size_t steps = 4 + s->model->config.encoder_layers + s->model->config.head_layers;
    for (int reference = 0; reference < 2; reference++) {
        trace_check state = {.expected = &expected};
        laya_trace trace = {.user = &state, .see = compare_trace};
        if (reference)
            check(laya_reference_run(&s->network, &row, 1, &arena, &trace, &error), &error);
        else
            check(laya_engine_run(&s->network, &row, 1, pool, &arena, &trace, &error), &error);
        print_message("%-28s trace, float%d: %.2e of the largest value\n", s->golden, reference ? 64 : 32,
                      state.worst);
        assert_int_equal(state.seen, steps);
        assert_true(state.worst <= 1e-4);
        compare_trace(&state, "logits", row.logits, 1, row.options);
        compare_trace(&state, "act_logits", row.action_logits, 1, s->model->config.actions);
        assert_true(state.worst <= 1e-4);
        laya_arena_reset(&arena);
    }
    laya_arena_close(&arena);
    laya_pool_close(pool);
    laya_safetensors_close(&expected);
    laya_file_unmap(&file);
    free(g);
}

static void test_traces(void **unused)
{
    (void)unused;
    check_trace(&demo);
    check_trace(&tiny);
}

/*
 * A trace needs all rows of the last head layer, a plain run computes only those that are read: the answers have the
 * same bits.
 */
static void ignore_values(void *user, const char *name, const double *values, size_t rows, size_t cols)
{
    (void)name, (void)values, (void)rows, (void)cols;
    ++*(size_t *)user;
}

static void test_trace_changes_nothing(void **unused)
{
    (void)unused;
    laya_error error;
    laya_arena arena;
    laya_pool *pool;
    golden_row *g = demo.rows[0];
    double first[MAX_OPTIONS];
    size_t calls = 0;
    laya_trace trace = {.user = &calls, .see = ignore_values};
    laya_arena_init(&arena, NULL);
    run_rows(&demo, &demo.network, 0, 1, 1, &arena);
    memcpy(first, g->logits, sizeof first);
    check(laya_pool_open(1, NULL, &pool, &error), &error);
    check(laya_engine_run(&demo.network, &g->row, 1, pool, &arena, &trace, &error), &error);
    assert_true(calls > 0);
    assert_memory_equal(first, g->logits, g->row.options * sizeof *first);
    laya_row two[2] = {g->row, g->row};
    assert_int_equal(laya_engine_run(&demo.network, two, 2, pool, &arena, &trace, &error), LAYA_ERROR_ARGUMENT);
    laya_pool_close(pool);
    laya_arena_close(&arena);
}

/* ------------------------------------------------------------------ the same bits */

typedef struct answers {
    double logits[MAX_ROWS][MAX_OPTIONS];
    double action_logits[MAX_ROWS][8];
} answers;

static answers *copy_answers(const suite *s)
{
    answers *a = calloc(1, sizeof *a);
    assert_non_null(a);
    for (size_t r = 0; r < s->short_count; r++) {
        memcpy(a->logits[r], s->rows[r]->logits, s->rows[r]->row.options * sizeof(double));
        memcpy(a->action_logits[r], s->rows[r]->action_logits, s->model->config.actions * sizeof(double));
    }
    return a;
}

static void expect_answers(const suite *s, const answers *a, const char *what)
{
    for (size_t r = 0; r < s->short_count; r++) {
        const golden_row *g = s->rows[r];
        if (memcmp(a->logits[r], g->logits, g->row.options * sizeof(double)) != 0 ||
            memcmp(a->action_logits[r], g->action_logits, s->model->config.actions * sizeof(double)) != 0) {
            fail_msg("%s, row %zu: other bits %s", s->golden, r, what);
        }
    }
}

static void check_same_bits(suite *s, const laya_network *network)
{
    laya_arena arena;
    laya_arena_init(&arena, NULL);
    for (size_t r = 0; r < s->short_count; r++) run_rows(s, network, r, 1, 1, &arena);
    answers *alone = copy_answers(s);
    static const unsigned threads[] = {1, 2, 3, 8};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        laya_arena_reset(&arena);
        run_rows(s, network, 0, s->short_count, threads[i], &arena);
        expect_answers(s, alone, "in one batch");
    }
    laya_arena_close(&arena);
    laya_arena_init(&arena, NULL);
    arena.poison = true;
    for (size_t step = 2; step <= 5; step++) {
        for (size_t r = 0; r < s->short_count; r += step) {
            size_t count = s->short_count - r < step ? s->short_count - r : step;
            laya_arena_reset(&arena);
            run_rows(s, network, r, count, 2, &arena);
        }
        expect_answers(s, alone, "in small batches with a poisoned arena");
    }
    laya_arena_close(&arena);
    free(alone);
}

static void test_same_bits(void **unused)
{
    (void)unused;
    size_t index = 0;
    for (const laya_kernels *kernels; (kernels = test_next_kernels(&index)) != NULL;) {
        laya_network network = tiny.network;
        network.kernels = kernels;
        check_same_bits(&tiny, &network);
    }
    check_same_bits(&demo, &demo.network);
}

/* ------------------------------------------------------------------ no allocation */

static void test_warm_runs_allocate_nothing(void **unused)
{
    (void)unused;
    test_memory memory;
    laya_arena arena;
    test_memory_init(&memory);
    laya_arena_init(&arena, &memory.hooks);
    run_rows(&demo, &demo.network, 0, 8, 2, &arena);
    laya_arena_reset(&arena);
    assert_true(memory.made > 0);
    size_t before = memory.made;
    for (int i = 0; i < 5; i++) {
        run_rows(&demo, &demo.network, (size_t)i, 3, 2, &arena);
        laya_arena_reset(&arena);
    }
    assert_int_equal(memory.made, before);
    laya_arena_close(&arena);
    assert_int_equal(memory.live, 0);
}

static void test_failing_allocations(void **unused)
{
    (void)unused;
    laya_error error;
    laya_pool *pool;
    check(laya_pool_open(2, NULL, &pool, &error), &error);
    laya_status status = LAYA_ERROR_MEMORY;
    test_memory memory;
    test_memory_init(&memory);
    for (size_t fail_at = 1; status != LAYA_OK; fail_at++) {
        assert_true(fail_at <= 50);
        test_memory_arm(&memory, fail_at);
        laya_arena arena;
        laya_arena_init(&arena, &memory.hooks);
        status = laya_engine_run(&demo.network, &demo.rows[0]->row, 1, pool, &arena, NULL, &error);
        laya_arena_close(&arena);
        if (fail_at == 1) assert_true(memory.failed);
        assert_int_equal(status, memory.failed ? LAYA_ERROR_MEMORY : LAYA_OK);
        assert_int_equal(memory.live, 0);
    }
    laya_pool_close(pool);
}

/* ------------------------------------------------------------------ stored types */

static void put64(unsigned char *out, uint64_t value)
{
    for (int i = 0; i < 8; i++) out[i] = (unsigned char)(value >> (8 * i));
}

/*
 * The demo's tensors in another type, as a whole file in memory: F32 keeps every value, BF16 cuts the low bits off.
 */
static unsigned char *encode(const laya_safetensors *tensors, laya_dtype dtype, size_t *size)
{
    size_t capacity = 16, at = 0;
    for (uint32_t i = 0; i < tensors->count; i++) {
        const laya_tensor_entry *e = &tensors->entries[i];
        capacity += 256 + (size_t)e->tensor.rows * e->tensor.cols * laya_dtype_size(dtype);
    }
    unsigned char *file = calloc(capacity, 1);
    assert_non_null(file);
    char *text = (char *)file + 8;
    int used = sprintf(text, "{");
    for (uint32_t i = 0; i < tensors->count; i++) {
        const laya_tensor_entry *e = &tensors->entries[i];
        size_t bytes = (size_t)e->tensor.rows * e->tensor.cols * laya_dtype_size(dtype);
        used += sprintf(text + used, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[", i ? "," : "", e->name,
                        laya_dtype_name(dtype));
        if (e->rank == 2) used += sprintf(text + used, "%lu,", (unsigned long)e->tensor.rows);
        used += sprintf(text + used, "%lu],\"data_offsets\":[%zu,%zu]}", (unsigned long)e->tensor.cols, at,
                        at + bytes);
        at += bytes;
    }
    used += sprintf(text + used, "}");
    put64(file, (uint64_t)used);
    unsigned char *out = file + 8 + used;
    for (uint32_t i = 0; i < tensors->count; i++) {
        const laya_tensor *t = &tensors->entries[i].tensor;
        for (size_t v = 0; v < (size_t)t->rows * t->cols; v++) {
            float value;
            laya_tensor_widen(t, v, 1, &value);
            uint32_t bits;
            memcpy(&bits, &value, sizeof bits);
            if (dtype == LAYA_BF16) bits >>= 16;
            for (size_t b = 0; b < laya_dtype_size(dtype); b++) *out++ = (unsigned char)(bits >> (8 * b));
        }
    }
    *size = (size_t)(out - file);
    return file;
}

/* Written to a file and mapped again, as a user would have it. */
static void check_encoded(laya_dtype dtype, const char *path, laya_safetensors *source, laya_safetensors *copy,
                          laya_file *file)
{
    laya_error error;
    size_t size;
    unsigned char *bytes = encode(source, dtype, &size);
    test_write_file(path, bytes, size);
    free(bytes);
    check(laya_file_map(file, path, &error), &error);
    check(laya_safetensors_read(copy, file->data, file->size, NULL, &error), &error);
}

static void test_stored_types(void **unused)
{
    (void)unused;
    laya_error error;
    laya_arena arena;
    laya_file file[3];
    laya_safetensors copy[3];
    laya_weights weights[3];
    answers *results[3];
    char path[3][64];
    size_t count = demo.short_count;
    laya_arena_init(&arena, NULL);
    run_rows(&demo, &demo.network, 0, count, 2, &arena);
    answers *original = copy_answers(&demo);
    /* F16 as F32; cut to BF16; the BF16 values as F32. */
    static const laya_dtype types[3] = {LAYA_F32, LAYA_BF16, LAYA_F32};
    for (int i = 0; i < 3; i++) {
        snprintf(path[i], sizeof path[i], "test_engine_%ld_%d.safetensors", (long)getpid(), i);
        check_encoded(types[i], path[i], i == 2 ? &copy[1] : &demo.model->tensors, &copy[i], &file[i]);
        check(laya_weights_bind(&weights[i], &copy[i], &demo.model->config, NULL, &error), &error);
        laya_network network = {.config = &demo.model->config, .weights = &weights[i]};
        laya_arena_reset(&arena);
        run_rows(&demo, &network, 0, count, 2, &arena);
        results[i] = copy_answers(&demo);
        if (i == 0) expect_answers(&demo, original, "from F32 weights with the same values");
        if (i == 1) assert_true(fabs(demo.rows[0]->logits[0] - original->logits[0][0]) < 1);
        if (i == 2) expect_answers(&demo, results[1], "from BF16 weights and the same values as F32");
    }
    for (int i = 0; i < 3; i++) {
        laya_weights_close(&weights[i]);
        laya_safetensors_close(&copy[i]);
        laya_file_unmap(&file[i]);
        remove(path[i]);
        free(results[i]);
    }
    free(original);
    laya_arena_close(&arena);
}

/* ------------------------------------------------------------------ bad input */

static void test_rules(void **unused)
{
    (void)unused;
    laya_error error;
    laya_arena arena;
    laya_pool *pool;
    laya_arena_init(&arena, NULL);
    check(laya_pool_open(1, NULL, &pool, &error), &error);
    const laya_network *network = &tiny.network;
    uint32_t ids[3] = {1, 2, 3}, markers[1] = {1};
    double logits[1], actions[8];
    const laya_row good = {ids, 3, markers, 1, 0, logits, actions};
    laya_row row = good;
    assert_int_equal(laya_engine_run(network, &row, 1, pool, &arena, NULL, &error), LAYA_OK);
    assert_int_equal(laya_engine_run(network, &row, 0, pool, &arena, NULL, &error), LAYA_OK);
    row.count = 0;
    assert_int_equal(laya_engine_run(network, &row, 1, pool, &arena, NULL, &error), LAYA_ERROR_ARGUMENT);
    row = good;
    row.count = tiny.model->config.max_positions + 1;
    assert_int_equal(laya_engine_run(network, &row, 1, pool, &arena, NULL, &error), LAYA_ERROR_ARGUMENT);
    row = good;
    row.options = 0;
    assert_int_equal(laya_engine_run(network, &row, 1, pool, &arena, NULL, &error), LAYA_ERROR_ARGUMENT);
    row = good;
    row.type = 3;
    assert_int_equal(laya_reference_run(network, &row, 1, &arena, NULL, &error), LAYA_ERROR_ARGUMENT);
    row = good;
    markers[0] = 3;
    assert_int_equal(laya_engine_run(network, &row, 1, pool, &arena, NULL, &error), LAYA_ERROR_ARGUMENT);
    markers[0] = 1;
    ids[2] = tiny.model->config.vocab_size;
    assert_int_equal(laya_engine_run(network, &row, 1, pool, &arena, NULL, &error), LAYA_ERROR_ARGUMENT);
    laya_pool_close(pool);
    laya_arena_close(&arena);
}

static void test_not_finite(void **unused)
{
    (void)unused;
    laya_error error;
    laya_arena arena;
    laya_pool *pool;
    static const unsigned char nan_bits[2] = {0xff, 0x7f};
    laya_weights weights = tiny.model->weights;
    weights.scorer_out_bias.data = nan_bits;
    weights.scorer_out_bias.dtype = LAYA_F16;
    laya_network network = {.config = &tiny.model->config, .weights = &weights};
    laya_arena_init(&arena, NULL);
    check(laya_pool_open(2, NULL, &pool, &error), &error);
    assert_int_equal(laya_engine_run(&network, &tiny.rows[0]->row, 1, pool, &arena, NULL, &error), LAYA_ERROR_FORMAT);
    assert_string_equal(error.message, "the option logits are not finite; the weights hold NaN or infinite values");
    assert_int_equal(laya_reference_run(&network, &tiny.rows[0]->row, 1, &arena, NULL, &error), LAYA_ERROR_FORMAT);
    laya_pool_close(pool);
    laya_arena_close(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_demo),
        cmocka_unit_test(test_golden_tiny),
        cmocka_unit_test(test_traces),
        cmocka_unit_test(test_trace_changes_nothing),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_warm_runs_allocate_nothing),
        cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_stored_types),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_not_finite),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
