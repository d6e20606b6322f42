/* SPDX-License-Identifier: Apache-2.0 */
/* The exported graphs: operation counts of the published shapes, names, types, bytes of constants. */
#include "support.h"

#include "base/half.h"
#include "export/export.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ shapes without weights */

/* A model of a published shape whose tensors have a place but no values: enough to build a graph. */
typedef struct shape_model {
    laya_model model;
    bool global[64];
    laya_encoder_weights encoder[64];
    laya_head_weights head[4];
} shape_model;

static const unsigned char anywhere[8];

static laya_tensor tensor(uint32_t rows, uint32_t cols)
{
    return (laya_tensor){.data = anywhere, .dtype = LAYA_F16, .rows = rows, .cols = cols};
}

static shape_model *make_shape(uint32_t layers, uint32_t d, uint32_t inner)
{
    shape_model *shape = calloc(1, sizeof *shape);
    assert_non_null(shape);
    laya_config *config = &shape->model.config;
    *config = (laya_config){.hidden_size = d,
                            .encoder_layers = layers,
                            .attention_heads = d / 64,
                            .head_size = 64,
                            .intermediate_size = inner,
                            .local_attention = 128,
                            .max_positions = 8192,
                            .norm_eps = 1e-5,
                            .global_rope_theta = 160000,
                            .local_rope_theta = 10000,
                            .layer_is_global = shape->global,
                            .head_layers = 2,
                            .head_heads = d / 64};
    laya_weights *w = &shape->model.weights;
    w->encoder = shape->encoder;
    w->head = shape->head;
    for (uint32_t at = 0; at < layers; at++) {
        shape->global[at] = at % 3 == 0;
        laya_encoder_weights *layer = &shape->encoder[at];
        if (at) layer->attn_norm = tensor(1, d);
        layer->wqkv = tensor(3 * d, d);
        layer->attn_out = tensor(d, d);
        layer->mlp_norm = tensor(1, d);
        layer->mlp_in = tensor(2 * inner, d);
        layer->mlp_out = tensor(d, inner);
    }
    for (uint32_t at = 0; at < 2; at++) {
        laya_head_weights *layer = &shape->head[at];
        layer->norm1 = layer->norm1_bias = layer->norm2 = layer->norm2_bias = tensor(1, d);
        layer->in_proj = tensor(3 * d, d);
        layer->in_proj_bias = tensor(1, 3 * d);
        layer->out_proj = tensor(d, d);
        layer->out_proj_bias = layer->linear2_bias = tensor(1, d);
        layer->linear1 = tensor(4 * d, d);
        layer->linear1_bias = tensor(1, 4 * d);
        layer->linear2 = tensor(d, 4 * d);
    }
    w->embedding_norm = w->final_norm = w->scorer_norm = w->scorer_norm_bias = w->scorer_in_bias = tensor(1, d);
    w->scorer_in = tensor(d, d);
    w->scorer_out = tensor(1, d);
    w->scorer_out_bias = tensor(1, 1);
    return shape;
}

static uint32_t count_ops(const laya_mil_program *program, const char *type)
{
    uint32_t count = 0;
    for (const laya_mil_op *op = program->functions[0].body.first; op; op = op->next) {
        count += type ? strcmp(op->type, type) == 0 : !laya_mil_is_const(op);
    }
    return count;
}

static void build(const laya_model *model, const laya_export_options *options, laya_mil_program *program)
{
    laya_error error;
    assert_int_equal(laya_export_check(model, options, &error), LAYA_OK);
    laya_mil_program_init(program, NULL);
    if (laya_export_build(model, options, program, &error) != LAYA_OK) fail_msg("%s", error.message);
}

static laya_export_options options_of(laya_graph graph, laya_export_kind kind, uint32_t length)
{
    laya_export_options options;
    laya_export_options_init(&options);
    options.graph = graph;
    options.kind = kind;
    options.length = length;
    return options;
}

static void check_total(const shape_model *shape, laya_graph graph, uint32_t expected)
{
    static const uint32_t lengths[] = {16, 96, 97, 1024};
    for (size_t at = 0; at < sizeof lengths / sizeof *lengths; at++) {
        laya_mil_program program;
        laya_export_options options = options_of(graph, LAYA_EXPORT_BODY, lengths[at]);
        build(&shape->model, &options, &program);
        assert_int_equal(count_ops(&program, NULL), expected);
        laya_mil_program_close(&program);
    }
}

/* 6,390 and 10,594: study.md D2. 596: the count; the large shape by the same arithmetic. */
static void test_totals(void **state)
{
    (void)state;
    shape_model *shape = make_shape(22, 768, 1152);
    check_total(shape, LAYA_GRAPH_PER_HEAD, 6390);
    check_total(shape, LAYA_GRAPH_LEAN, 22 * 25 - 1 + 2 * 19 + 9);
    free(shape);
    shape = make_shape(28, 1024, 2624);
    check_total(shape, LAYA_GRAPH_PER_HEAD, 10594);
    check_total(shape, LAYA_GRAPH_LEAN, 28 * 25 - 1 + 2 * 19 + 9);
    free(shape);
}

typedef struct expected_count {
    const char *type;
    uint32_t count;
} expected_count;

static void check_counts(const laya_mil_program *program, const expected_count *expected)
{
    uint32_t total = 0;
    for (; expected->type; expected++) {
        if (count_ops(program, expected->type) != expected->count)
            fail_msg("%s: %u, expected %u", expected->type, count_ops(program, expected->type), expected->count);
        total += expected->count;
    }
    assert_int_equal(total, count_ops(program, NULL));
}

/* study.md D4: RoPE has 528 splits, 2,112 mul, 528 sub, add and concat each. */
static void test_kinds_of_the_multilingual_body(void **state)
{
    (void)state;
    static const expected_count per_head[] = {{"conv", 98},
                                              {"layer_norm", 50},
                                              {"mul", 45 + 2112 + 288 + 22},
                                              {"batch_norm", 5},
                                              {"einsum", 577},
                                              {"softmax", 288},
                                              {"transpose", 288},
                                              {"split", 528 + 24 + 72 + 22},
                                              {"sub", 528},
                                              {"add", 528 + 288 + 48 + 1},
                                              {"concat", 528 + 24},
                                              {"gelu", 23},
                                              {"relu", 2},
                                              {"slice_by_index", 1},
                                              {NULL, 0}};
    /* Counted by hand from the list of a layer in docs/GRAPHS.md. */
    static const expected_count lean[] = {{"conv", 98 + 22},
                                          {"layer_norm", 50},
                                          {"mul", 22 * 3},
                                          {"einsum", 49},
                                          {"softmax", 24},
                                          {"transpose", 24},
                                          {"split", 24 * 2 + 22},
                                          {"reshape", 24 * 3},
                                          {"add", 22 + 24 + 48 + 1},
                                          {"gelu", 23},
                                          {"relu", 2},
                                          {"slice_by_index", 1},
                                          {NULL, 0}};
    shape_model *shape = make_shape(22, 768, 1152);
    laya_mil_program program;
    laya_export_options options = options_of(LAYA_GRAPH_PER_HEAD, LAYA_EXPORT_BODY, 96);
    build(&shape->model, &options, &program);
    check_counts(&program, per_head);
    laya_mil_program_close(&program);
    options.graph = LAYA_GRAPH_LEAN;
    build(&shape->model, &options, &program);
    check_counts(&program, lean);
    laya_mil_program_close(&program);
    free(shape);
}

/* study.md D2: a layer is 22 H + 18, layer 0 is 22 H + 16; the mlp is norm 2, conv 2, split, gelu, mul, add. */
static void test_probes(void **state)
{
    (void)state;
    shape_model *shape = make_shape(22, 768, 1152);
    static const struct {
        laya_export_kind kind;
        laya_graph graph;
        uint32_t layer, count;
    } cases[] = {{LAYA_EXPORT_LAYER, LAYA_GRAPH_PER_HEAD, 0, 280}, {LAYA_EXPORT_LAYER, LAYA_GRAPH_PER_HEAD, 1, 282},
                 {LAYA_EXPORT_LAYER, LAYA_GRAPH_LEAN, 0, 24},      {LAYA_EXPORT_LAYER, LAYA_GRAPH_LEAN, 21, 25},
                 {LAYA_EXPORT_MLP, LAYA_GRAPH_PER_HEAD, 3, 8},     {LAYA_EXPORT_MLP, LAYA_GRAPH_LEAN, 3, 7}};
    for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
        laya_mil_program program;
        laya_export_options options = options_of(cases[at].graph, cases[at].kind, 64);
        options.layer = cases[at].layer;
        build(&shape->model, &options, &program);
        assert_int_equal(count_ops(&program, NULL), cases[at].count);
        const char *mask = program.functions[0].input_count > 1 ? program.functions[0].inputs[1]->name : NULL;
        if (cases[at].kind == LAYA_EXPORT_MLP)
            assert_null(mask);
        else
            assert_string_equal(mask, cases[at].layer % 3 == 0 ? "full_mask" : "local_mask");
        laya_mil_program_close(&program);
    }
    free(shape);
}

/* ------------------------------------------------------------------ interface and names */

static const laya_mil_value *find_value(const laya_mil_program *program, const char *name)
{
    for (const laya_mil_op *op = program->functions[0].body.first; op; op = op->next) {
        for (uint32_t at = 0; at < op->output_count; at++) {
            if (strcmp(op->outputs[at]->name, name) == 0) return op->outputs[at];
        }
    }
    fail_msg("no value %s", name);
    return NULL;
}

static void check_feature(const laya_mil_feature *feature, const char *name, const char *type)
{
    char text[LAYA_MIL_TYPE_TEXT];
    assert_string_equal(feature->name, name);
    assert_string_equal(laya_mil_type_text(&feature->type, text), type);
}

/* study.md, contract table D20. */
static void test_contract(void **state)
{
    (void)state;
    shape_model *shape = make_shape(22, 768, 1152);
    laya_mil_program program;
    laya_export_options options = options_of(LAYA_GRAPH_PER_HEAD, LAYA_EXPORT_BODY, 96);
    build(&shape->model, &options, &program);
    const laya_mil_interface *interface = program.interfaces;
    assert_int_equal(interface->input_count, 5);
    assert_int_equal(interface->output_count, 2);
    check_feature(&interface->inputs[0], "embeddings", "fp16 [1, 768, 1, 96]");
    check_feature(&interface->inputs[1], "full_mask", "fp16 [1, 96, 1, 96]");
    check_feature(&interface->inputs[2], "local_mask", "fp16 [1, 96, 1, 96]");
    check_feature(&interface->inputs[3], "type_vectors", "fp16 [1, 768, 1, 1]");
    check_feature(&interface->inputs[4], "marker_map", "fp16 [1, 96, 1, 32]");
    check_feature(&interface->outputs[0], "option_logits", "fp16 [1, 1, 1, 32]");
    check_feature(&interface->outputs[1], "cls_column", "fp16 [1, 768, 1, 1]");
    assert_int_equal(program.specification_version, 7);
    assert_string_equal(program.functions[0].opset_name, "CoreML6");
    char text[LAYA_MIL_TYPE_TEXT];
    const laya_mil_value *scores = find_value(&program, "layers_3_attn_head_7_scores");
    assert_string_equal(scores->op->type, "einsum");
    assert_string_equal(laya_mil_type_text(&scores->type, text), "fp16 [1, 96, 1, 96]");
    laya_mil_program_close(&program);

    options.precision = LAYA_PACKAGE_FP32;
    options.markers = 5;
    build(&shape->model, &options, &program);
    check_feature(&program.interfaces->outputs[0], "option_logits", "fp32 [1, 1, 1, 5]");
    assert_int_equal(program.specification_version, 6);
    laya_mil_program_close(&program);
    free(shape);
}

static void test_names_are_legal_and_unique(void **state)
{
    (void)state;
    shape_model *shape = make_shape(4, 128, 96);
    for (int graph = 0; graph < 2; graph++) {
        laya_mil_program program;
        laya_export_options options = options_of((laya_graph)graph, LAYA_EXPORT_BODY, 32);
        build(&shape->model, &options, &program);
        laya_mil_names names;
        laya_mil_names_init(&names, NULL);
        for (laya_mil_op *op = program.functions[0].body.first; op; op = op->next) {
            for (uint32_t at = 0; at < op->output_count; at++) {
                void *older;
                assert_true(laya_mil_name_is_legal(op->outputs[at]->name));
                assert_true(laya_mil_names_put(&names, op->outputs[at]->name, op, &older));
                assert_null(older);
            }
        }
        laya_mil_names_close(&names);
        laya_mil_program_close(&program);
    }
    free(shape);
}

/* ------------------------------------------------------------------ bytes of constants */

static float half_at(const unsigned char *bytes, size_t at)
{
    return laya_half_to_float((uint16_t)(bytes[2 * at] | bytes[2 * at + 1] << 8));
}

static const laya_mil_constant *read_constant(const laya_mil_program *program, const char *name,
                                              unsigned char **bytes)
{
    laya_error error;
    const laya_mil_constant *constant = find_value(program, name)->constant;
    *bytes = malloc((size_t)constant->size);
    assert_non_null(*bytes);
    if (constant->source) {
        uint64_t rows = (uint64_t)constant->type.dims[0];
        assert_int_equal(constant->source->read(constant->source->user, 0, rows, *bytes, &error), LAYA_OK);
    } else {
        memcpy(*bytes, constant->bytes, (size_t)constant->size);
    }
    return constant;
}

/*
 * The demo model has 3 heads of 64 in 192 channels. Row c * 6 + slot of the lean projection is row slot * 64 + c of
 * Wqkv (slots: 3 queries, 3 keys), row 384 + c * 3 + h is row 384 + h * 64 + c. 1 / 8 = 1/4 (queries) * 1/2 (keys).
 */
static void test_lean_weights(void **state)
{
    (void)state;
    laya_model *model = test_open_model(TEST_DEMO);
    laya_mil_program program;
    laya_export_options options = options_of(LAYA_GRAPH_LEAN, LAYA_EXPORT_BODY, 32);
    build(model, &options, &program);
    unsigned char *bytes;
    const laya_tensor *wqkv = &model->weights.encoder[2].wqkv, *out = &model->weights.encoder[2].attn_out;
    const laya_mil_constant *constant = read_constant(&program, "layers_2_attn_qkv_weight", &bytes);
    assert_int_equal(constant->type.dims[0], 576);
    assert_int_equal(constant->type.dims[1], 192);
    for (uint32_t row = 0; row < 576; row++) {
        uint32_t from = row < 384 ? row % 6 * 64 + row / 6 : 384 + (row - 384) % 3 * 64 + (row - 384) / 3;
        float scale = from < 192 ? 0.25f : from < 384 ? 0.5f : 1.0f;
        for (uint32_t col = 0; col < 192; col += 13) {
            float value;
            laya_tensor_widen(wqkv, (size_t)from * 192 + col, 1, &value);
            assert_true(half_at(bytes, (size_t)row * 192 + col) ==
                        laya_half_to_float(laya_float_to_half(value * scale)));
        }
    }
    free(bytes);
    read_constant(&program, "layers_2_attn_out_weight", &bytes);
    for (uint32_t row = 0; row < 192; row += 7) {
        for (uint32_t col = 0; col < 192; col++) {
            float value;
            laya_tensor_widen(out, (size_t)row * 192 + col % 3 * 64 + col / 3, 1, &value);
            assert_true(half_at(bytes, (size_t)row * 192 + col) == value);
        }
    }
    free(bytes);
    laya_mil_program_close(&program);
    laya_model_close(model);
}

/* Angles of position 5: 5 * theta^(-2c / 64); the demo model's thetas are 20000 and 1000. */
static void test_rope_tables(void **state)
{
    (void)state;
    laya_model *model = test_open_model(TEST_DEMO);
    for (int graph = 0; graph < 2; graph++) {
        laya_mil_program program;
        laya_export_options options = options_of((laya_graph)graph, LAYA_EXPORT_BODY, 32);
        build(model, &options, &program);
        for (int global = 0; global < 2; global++) {
            unsigned char *cosine, *sine;
            const laya_mil_constant *table = read_constant(&program, global ? "rope_global_cos" : "rope_local_cos",
                                                           &cosine);
            read_constant(&program, global ? "rope_global_sin" : "rope_local_sin", &sine);
            assert_int_equal(table->type.dims[1], graph ? 64 : 32);
            for (size_t c = 0; c < (graph ? 64u : 32u); c++) {
                double angle = 5 * pow(global ? 20000.0 : 1000.0, -2.0 * (double)(c % 32) / 64);
                assert_true(fabs(half_at(cosine, c * 32 + 5) - cos(angle)) < 5e-4);
                assert_true(fabs(half_at(sine, c * 32 + 5) - sin(angle)) < 5e-4);
            }
            free(cosine);
            free(sine);
        }
        laya_mil_program_close(&program);
    }
    laya_model_close(model);
}

/* A weight that fp16 cannot hold is named; fp32 takes it. */
static void test_value_beyond_fp16(void **state)
{
    (void)state;
    laya_model *model = test_open_model(TEST_DEMO);
    unsigned char values[192 * 4] = {0};
    uint32_t bits = laya_bits_of_float(70000.0f);
    for (size_t byte = 0; byte < 4; byte++) values[4 * 17 + byte] = (unsigned char)(bits >> (8 * byte));
    laya_tensor original = model->weights.final_norm;
    model->weights.final_norm = (laya_tensor){.data = values, .dtype = LAYA_F32, .rows = 1, .cols = 192};
    for (int precision = 0; precision < 2; precision++) {
        laya_mil_program program;
        laya_error error;
        unsigned char out[192 * 4];
        laya_export_options options = options_of(LAYA_GRAPH_PER_HEAD, LAYA_EXPORT_BODY, 32);
        options.precision = (laya_package_precision)precision;
        build(model, &options, &program);
        const laya_mil_source *source = find_value(&program, "final_norm_weight")->constant->source;
        laya_status status = source->read(source->user, 0, 1, out, &error);
        assert_int_equal(status, precision ? LAYA_OK : LAYA_ERROR_FORMAT);
        if (!precision) assert_contains(error.message, "70000 at row 0, column 17");
        laya_mil_program_close(&program);
    }
    model->weights.final_norm = original;
    laya_model_close(model);
}

/* ------------------------------------------------------------------ options and memory */

static void test_options(void **state)
{
    (void)state;
    laya_model *model = test_open_model(TEST_DEMO);
    laya_error error;
    laya_export_options options;
#define REFUSED(change, text)                                                                                        \
    do {                                                                                                             \
        laya_export_options_init(&options);                                                                          \
        change;                                                                                                      \
        assert_int_equal(laya_export_check(model, &options, &error), LAYA_ERROR_ARGUMENT);                           \
        assert_contains(error.message, text);                                                                        \
    } while (0)
    REFUSED(options.size = 3, "laya_export_options_init");
    REFUSED(options.length = 15, "length: expected 16 to 1024");
    REFUSED(options.length = 1025, "found 1025");
    REFUSED(options.markers = 1, "markers: expected 2 to 255");
    REFUSED(options.markers = 256, "found 256");
    REFUSED((options.kind = LAYA_EXPORT_LAYER, options.layer = 4), "layer: expected 0 to 3");
    REFUSED(options.kind = (laya_export_kind)7, "kind: 7");
    REFUSED(options.graph = (laya_graph)7, "graph: 7");
    REFUSED(options.precision = (laya_package_precision)7, "precision: 7");
    REFUSED(options.weights_sha256 = "12", "64 lower-case");
#undef REFUSED
    laya_export_options_init(&options);
    assert_int_equal(laya_export_check(model, &options, &error), LAYA_OK);
    laya_model_close(model);
}

static void test_memory_failures(void **state)
{
    (void)state;
    shape_model *shape = make_shape(2, 128, 64);
    for (int graph = 0; graph < 2; graph++) {
        laya_export_options options = options_of((laya_graph)graph, LAYA_EXPORT_BODY, 16);
        test_memory memory;
        test_memory_init(&memory);
        size_t fail_at = 1;
        do {
            laya_mil_program program;
            laya_error error;
            test_memory_arm(&memory, fail_at++);
            laya_mil_program_init(&program, &memory.hooks);
            laya_status status = laya_export_build(&shape->model, &options, &program, &error);
            assert_int_equal(status, memory.failed ? LAYA_ERROR_MEMORY : LAYA_OK);
            laya_mil_program_close(&program);
            assert_int_equal(memory.live, 0);
        } while (memory.failed);
        assert_true(fail_at > 3);
    }
    free(shape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_totals),
                                       cmocka_unit_test(test_kinds_of_the_multilingual_body),
                                       cmocka_unit_test(test_probes),
                                       cmocka_unit_test(test_contract),
                                       cmocka_unit_test(test_names_are_legal_and_unique),
                                       cmocka_unit_test(test_lean_weights),
                                       cmocka_unit_test(test_rope_tables),
                                       cmocka_unit_test(test_value_beyond_fp16),
                                       cmocka_unit_test(test_options),
                                       cmocka_unit_test(test_memory_failures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
