/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout and masks of the exported graphs, apart from fp16: a tiny model of awkward shape, executed in float32, against
 * ModernBERT of transformers with explicit attention and with SDPA (tests/golden/layout, made by
 * tools/layout/record.py). Then the same with one thing wrong at a time: each must be seen.
 */
#include "golden_files.h"
#include "layout_body.h"

#include <math.h>

#define GOLDEN "tests/golden/layout"
#define MAX_ROWS 16
#define MAX_TOKENS 96

/* Largest difference from float32 and float64 recordings of hidden states of size 5; float32 PyTorch is 6e-6 off. */
#define TOLERANCE 2e-5
/* A change of the model must make more difference than this. */
#define VISIBLE (50 * TOLERANCE)

/* ------------------------------------------------------------------ recordings */

typedef struct recordings {
    golden_document document;
    laya_json_value root;
    laya_file files[2];
    laya_safetensors tensors[2];
    laya_config config; /* of the variant at hand */
    bool global[LAYOUT_MAX_LAYERS];
    laya_weights weights;
    laya_row rows[MAX_ROWS];
    uint32_t ids[MAX_ROWS][MAX_TOKENS], markers[MAX_ROWS][LAYOUT_MAX_OPTIONS];
    uint32_t length;
} recordings;

static double number_of(laya_json_value object, const char *key)
{
    double number = NAN;
    assert_true(laya_json_to_double(laya_json_get(object, key), &number));
    return number;
}

static laya_json_value find_variant(const recordings *r, const char *name)
{
    laya_json_iterator it = laya_json_first(laya_json_get(r->root, "variants"));
    laya_span text = {name, strlen(name)};
    while (laya_json_present(it.value) && !golden_same(laya_json_get(it.value, "name"), text)) laya_json_next(&it);
    assert_true(laya_json_present(it.value));
    return it.value;
}

/* The configuration that a variant names. */
static void set_variant(recordings *r, laya_json_value variant)
{
    laya_config *config = &r->config;
    config->norm_eps = number_of(variant, "norm_eps");
    config->global_rope_theta = number_of(variant, "global_theta");
    config->local_rope_theta = number_of(variant, "local_theta");
    config->head_heads = golden_uint(variant, "head_heads");
    for (uint32_t at = 0; at < config->encoder_layers; at++) r->global[at] = at % golden_uint(variant, "every") == 0;
}

static void read_config(recordings *r)
{
    laya_json_value root = r->root;
    r->config = (laya_config){.vocab_size = golden_uint(root, "vocab_size"),
                              .hidden_size = golden_uint(root, "hidden_size"),
                              .encoder_layers = golden_uint(root, "layers"),
                              .attention_heads = golden_uint(root, "heads"),
                              .intermediate_size = golden_uint(root, "intermediate_size"),
                              .local_attention = golden_uint(root, "local_attention"),
                              .max_positions = 64,
                              .head_layers = golden_uint(root, "head_layers"),
                              .actions = golden_uint(root, "actions"),
                              .layer_is_global = r->global};
    r->config.head_size = r->config.hidden_size / r->config.attention_heads;
    r->length = golden_uint(root, "length");
    set_variant(r, find_variant(r, "base"));
}

static void read_rows(recordings *r)
{
    size_t at = 0;
    for (laya_json_iterator it = laya_json_first(laya_json_get(r->root, "rows")); laya_json_present(it.value);
         laya_json_next(&it), at++) {
        assert_in_range(at, 0, MAX_ROWS - 1);
        laya_row *row = &r->rows[at];
        row->ids = r->ids[at];
        row->markers = r->markers[at];
        row->count = (uint32_t)golden_uints(laya_json_get(it.value, "ids"), r->ids[at], MAX_TOKENS);
        row->options = (uint32_t)golden_uints(laya_json_get(it.value, "markers"), r->markers[at], LAYOUT_MAX_OPTIONS);
        row->type = golden_uint(it.value, "type");
        assert_int_equal(row->count, golden_uint(it.value, "tokens"));
    }
}

static void bind_bias(const recordings *r, const char *name, laya_tensor *tensor)
{
    const laya_tensor_entry *entry = laya_safetensors_find(&r->tensors[1], name);
    if (!entry) fail_msg("no tensor %s", name);
    *tensor = entry->tensor;
}

/* The checkpoint's binder, then the biases that it refuses. */
static void bind(recordings *r)
{
    laya_error error = {0};
    char name[64];
    layout_must(laya_weights_bind(&r->weights, &r->tensors[0], &r->config, NULL, &error), &error);
    bind_bias(r, "encoder.embeddings.norm.bias", &r->weights.embedding_norm_bias);
    bind_bias(r, "encoder.final_norm.bias", &r->weights.final_norm_bias);
    for (unsigned at = 0; at < r->config.encoder_layers; at++) {
        laya_encoder_weights *w = &r->weights.encoder[at];
        snprintf(name, sizeof name, "encoder.layers.%u.attn_norm.bias", at);
        if (at) bind_bias(r, name, &w->attn_norm_bias);
        snprintf(name, sizeof name, "encoder.layers.%u.mlp_norm.bias", at);
        bind_bias(r, name, &w->mlp_norm_bias);
    }
}

static int open_recordings(void **state)
{
    static const char *const names[] = {GOLDEN "/model.safetensors", GOLDEN "/norm_biases.safetensors"};
    char path[TEST_PATH_SIZE];
    laya_error error = {0};
    recordings *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->root = golden_open(&r->document, test_path(path, GOLDEN), "cases");
    for (size_t at = 0; at < 2; at++) {
        layout_must(laya_file_map(&r->files[at], test_path(path, names[at]), &error), &error);
        layout_must(laya_safetensors_read(&r->tensors[at], r->files[at].data, r->files[at].size, NULL, &error),
                    &error);
    }
    read_config(r);
    read_rows(r);
    bind(r);
    *state = r;
    return 0;
}

static int close_recordings(void **state)
{
    recordings *r = *state;
    laya_weights_close(&r->weights);
    for (size_t at = 0; at < 2; at++) {
        laya_safetensors_close(&r->tensors[at]);
        laya_file_unmap(&r->files[at]);
    }
    golden_close(&r->document);
    free(r);
    return 0;
}

/* ------------------------------------------------------------------ comparing */

static double list_gap(laya_json_value expected, const double *got, size_t count)
{
    double values[LAYOUT_MAX_WIDTH] = {0}, gap = 0;
    assert_int_equal(golden_doubles(expected, values, LAYOUT_MAX_WIDTH), count);
    for (size_t at = 0; at < count; at++) {
        double difference = fabs(got[at] - values[at]);
        gap = fmax(gap, isnan(difference) ? INFINITY : difference);
    }
    return gap;
}

/* Largest difference of logits, first column and action logits from what an oracle gave. */
static double oracle_gap(const recordings *r, laya_json_value oracle, const laya_row *row, const layout_outputs *out)
{
    double gap = list_gap(laya_json_get(oracle, "logits"), out->logits, row->options);
    gap = fmax(gap, list_gap(laya_json_get(oracle, "cls"), out->cls, r->config.hidden_size));
    return fmax(gap, list_gap(laya_json_get(oracle, "actions"), out->actions, r->config.actions));
}

/* The largest difference of a mutant over the rows of its variant, from the named recording. */
static double variant_gap(recordings *r, const layout_mutant *change, const char *variant_name, laya_graph graph,
                          const char *oracle)
{
    double gap = 0;
    layout_body b;
    laya_json_value variant = find_variant(r, variant_name);
    set_variant(r, variant);
    layout_open_body(&b, change, &r->config, &r->weights, graph, r->length);
    for (laya_json_iterator it = laya_json_first(laya_json_get(variant, "cases")); laya_json_present(it.value);
         laya_json_next(&it)) {
        layout_outputs out = {0};
        const laya_row *row = &r->rows[golden_uint(it.value, "row")];
        layout_run(&b, row, &out);
        gap = fmax(gap, oracle_gap(r, laya_json_get(it.value, oracle), row, &out));
    }
    layout_close(&b);
    return gap;
}

static void check_oracle(recordings *r, const char *variant, const char *oracle)
{
    for (int graph = 0; graph < 2; graph++) {
        double gap = variant_gap(r, &layout_unchanged, variant, (laya_graph)graph, oracle);
        print_message("%s, %s, %s: %.2g\n", variant, oracle, laya_graph_name((laya_graph)graph), gap);
        if (!(gap <= TOLERANCE)) fail_msg("%s, %s: difference %g", variant, oracle, gap);
    }
}

/* ------------------------------------------------------------------ the five tests of the study (S28) */

static void test_explicit_attention(void **state)
{
    check_oracle(*state, "base", "explicit32");
    check_oracle(*state, "base", "explicit64");
}

static void test_sdpa(void **state)
{
    check_oracle(*state, "base", "sdpa32");
    check_oracle(*state, "base", "sdpa64");
}

/* One row as a question of each type: as recorded, and the types are told apart. */
static void test_question_types(void **state)
{
    recordings *r = *state;
    laya_json_value variant = find_variant(r, "base");
    set_variant(r, variant);
    for (int graph = 0; graph < 2; graph++) {
        layout_body b;
        layout_outputs out[3] = {{{0}, {0}, {0}}};
        layout_open_body(&b, &layout_unchanged, &r->config, &r->weights, (laya_graph)graph, r->length);
        laya_json_iterator it = laya_json_first(laya_json_get(variant, "cases"));
        for (uint32_t type = 0; type < 3; type++, laya_json_next(&it)) {
            const laya_row *row = &r->rows[golden_uint(it.value, "row")];
            assert_int_equal(row->type, type);
            assert_memory_equal(row->ids, r->rows[0].ids, row->count * sizeof *row->ids);
            layout_run(&b, row, &out[type]);
            assert_true(oracle_gap(r, laya_json_get(it.value, "explicit64"), row, &out[type]) <= TOLERANCE);
        }
        for (uint32_t type = 0; type < 3; type++)
            assert_true(fabs(out[type].logits[0] - out[(type + 1) % 3].logits[0]) > VISIBLE);
        layout_close(&b);
    }
}

/* Whatever stands in the padding columns, the outputs keep their bits. */
static void test_padding_values(void **state)
{
    recordings *r = *state;
    const laya_row *row = &r->rows[8];
    set_variant(r, find_variant(r, "base"));
    assert_in_range(row->count, 1, r->length - 1);
    for (int graph = 0; graph < 2; graph++) {
        layout_body b;
        layout_outputs zeros = {{0}, {0}, {0}};
        layout_open_body(&b, &layout_unchanged, &r->config, &r->weights, (laya_graph)graph, r->length);
        layout_run(&b, row, &zeros);
        for (uint32_t padding = 0; padding < r->config.vocab_size + 2; padding++) {
            layout_outputs out = {{0}, {0}, {0}};
            float embedding[LAYOUT_MAX_WIDTH];
            uint32_t d = r->config.hidden_size, id = padding % r->config.vocab_size;
            laya_tensor_widen(&r->weights.embedding, (size_t)id * d, d, embedding);
            layout_fill(&b, row);
            for (uint32_t c = 0; c < d; c++) {
                for (uint32_t t = row->count; t < r->length; t++)
                    b.inputs[LAYA_BODY_EMBEDDINGS][c * r->length + t] = embedding[c] *
                                                                        (id < padding ? 1000.0f * (float)t : 1.0f);
            }
            layout_run_filled(&b, row, &out);
            assert_memory_equal(&out, &zeros, sizeof out);
        }
        layout_close(&b);
    }
}

/* Other RoPE bases, other epsilons, other places of the global layers; norm biases everywhere. */
static void test_variants(void **state)
{
    recordings *r = *state;
    size_t count = 0;
    for (laya_json_iterator it = laya_json_first(laya_json_get(r->root, "variants")); laya_json_present(it.value);
         laya_json_next(&it), count++) {
        char name[32];
        size_t size;
        const char *text = laya_json_text(laya_json_get(it.value, "name"), &size);
        snprintf(name, sizeof name, "%.*s", (int)size, text);
        check_oracle(r, name, "explicit64");
        check_oracle(r, name, "sdpa64");
    }
    assert_int_equal(count, 5);
}

/* ------------------------------------------------------------------ the other computations */

/* The CPU engine and the float64 reference know norm biases too. */
static void test_engine_and_reference(void **state)
{
    recordings *r = *state;
    laya_error error = {0};
    laya_pool *pool;
    laya_arena arena;
    laya_arena_init(&arena, NULL);
    layout_must(laya_pool_open(2, NULL, &pool, &error), &error);
    laya_json_value variant = find_variant(r, "base");
    set_variant(r, variant);
    const laya_network network = {.config = &r->config, .weights = &r->weights};
    for (laya_json_iterator it = laya_json_first(laya_json_get(variant, "cases")); laya_json_present(it.value);
         laya_json_next(&it)) {
        laya_json_value oracle = laya_json_get(it.value, "explicit64");
        laya_row row = r->rows[golden_uint(it.value, "row")];
        double logits[LAYOUT_MAX_OPTIONS], actions[LAYOUT_MAX_ACTIONS];
        row.logits = logits;
        row.action_logits = actions;
        for (int reference = 0; reference < 2; reference++) {
            double limit = reference ? TOLERANCE / 5 : TOLERANCE; /* RoPE tables and softmax were float32 */
            layout_must(reference ? laya_reference_run(&network, &row, 1, &arena, NULL, &error)
                                  : laya_engine_run(&network, &row, 1, pool, &arena, NULL, &error),
                        &error);
            assert_true(list_gap(laya_json_get(oracle, "logits"), logits, row.options) <= limit);
            assert_true(list_gap(laya_json_get(oracle, "actions"), actions, r->config.actions) <= limit);
            laya_arena_reset(&arena);
        }
    }
    laya_pool_close(pool);
    laya_arena_close(&arena);
}

/* Residual streams of the float64 reference: embeddings, then each layer. */
typedef struct stream {
    double values[LAYOUT_MAX_LAYERS + 1][MAX_TOKENS * 32];
    size_t count;
} stream;

static void see_stream(void *user, const char *name, const double *values, size_t rows, size_t cols)
{
    stream *s = user;
    if (strcmp(name, "embeddings") != 0 && strncmp(name, "encoder.layer.", 14) != 0) return;
    assert_true(s->count <= LAYOUT_MAX_LAYERS && rows * cols <= MAX_TOKENS * 32);
    memcpy(s->values[s->count++], values, rows * cols * sizeof *values);
}

static void check_layer(const recordings *r, const stream *s, laya_graph graph, uint32_t layer,
                        const layout_body *whole)
{
    laya_error error = {0};
    layout_body b;
    uint32_t length = r->length, d = r->config.hidden_size;
    laya_export_options options = layout_options(graph, LAYA_EXPORT_LAYER, length);
    options.layer = layer;
    layout_open(&b, &layout_unchanged, &r->config, &r->weights, &options);
    const char *name;
    float *hidden = laya_interpreter_input(b.interpreter, 0, &name)->values;
    float *mask = laya_interpreter_input(b.interpreter, 1, &name)->values;
    assert_string_equal(name, r->global[layer] ? "full_mask" : "local_mask");
    for (uint32_t at = 0; at < d * length; at++)
        hidden[at] = (float)s->values[layer][(size_t)(at % length) * d + at / length];
    memcpy(mask, whole->inputs[r->global[layer] ? LAYA_BODY_FULL_MASK : LAYA_BODY_LOCAL_MASK],
           (size_t)length * length * sizeof *mask);
    layout_must(laya_interpreter_run(b.interpreter, &error), &error);
    const float *out = laya_interpreter_output(b.interpreter, 0, &name)->values;
    for (uint32_t at = 0; at < d * length; at++) {
        double expected = s->values[layer + 1][(size_t)(at % length) * d + at / length];
        assert_true(fabs((double)out[at] - expected) <= TOLERANCE);
    }
    layout_close(&b);
}

/* Probes of one layer, whose norms have biases. */
static void test_layers(void **state)
{
    recordings *r = *state;
    laya_error error = {0};
    laya_row row = r->rows[0];
    double logits[LAYOUT_MAX_OPTIONS], actions[LAYOUT_MAX_ACTIONS];
    stream s = {.count = 0};
    const laya_trace trace = {&s, see_stream};
    laya_arena arena;
    laya_arena_init(&arena, NULL);
    set_variant(r, find_variant(r, "base"));
    row.logits = logits;
    row.action_logits = actions;
    assert_int_equal(row.count, r->length);
    const laya_network network = {.config = &r->config, .weights = &r->weights};
    layout_must(laya_reference_run(&network, &row, 1, &arena, &trace, &error), &error);
    assert_int_equal(s.count, r->config.encoder_layers + 1);
    for (int graph = 0; graph < 2; graph++) {
        layout_body whole;
        layout_open_body(&whole, &layout_unchanged, &r->config, &r->weights, (laya_graph)graph, r->length);
        layout_fill(&whole, &row);
        for (uint32_t layer = 0; layer < r->config.encoder_layers; layer++)
            check_layer(r, &s, (laya_graph)graph, layer, &whole);
        layout_close(&whole);
        layout_body mlp;
        laya_export_options options = layout_options((laya_graph)graph, LAYA_EXPORT_MLP, r->length);
        layout_open(&mlp, &layout_unchanged, &r->config, &r->weights, &options);
        layout_close(&mlp);
    }
    laya_arena_close(&arena);
}

/* ------------------------------------------------------------------ every mutant is seen */

static void test_mutants(void **state)
{
    recordings *r = *state;
    size_t missed = 0;
    for (size_t at = 0; at < layout_mutant_count; at++) {
        const layout_mutant *m = &layout_mutants[at];
        double gaps[2];
        for (int graph = 0; graph < 2; graph++)
            gaps[graph] = variant_gap(r, m, m->variant, (laya_graph)graph, "explicit64");
        bool seen = gaps[0] > VISIBLE && gaps[1] > VISIBLE;
        print_message("%-40s %.3g per-head, %.3g lean%s\n", m->name, gaps[0], gaps[1], seen ? "" : ": NOT SEEN");
        missed += !seen;
    }
    assert_int_equal(missed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_explicit_attention),
        cmocka_unit_test(test_sdpa),
        cmocka_unit_test(test_question_types),
        cmocka_unit_test(test_padding_values),
        cmocka_unit_test(test_variants),
        cmocka_unit_test(test_engine_and_reference),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_mutants),
    };
    return cmocka_run_group_tests(tests, open_recordings, close_recordings);
}
