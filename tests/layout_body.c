/* SPDX-License-Identifier: Apache-2.0 */
#include "layout_body.h"

#include "base/half.h"

#include <string.h>

/* ------------------------------------------------------------------ models that can be changed */

static void subject_init(layout_subject *s, const laya_config *config, const laya_weights *weights)
{
    *s = (layout_subject){.model = {.config = *config, .weights = *weights}};
    assert_in_range(config->encoder_layers, 2, LAYOUT_MAX_LAYERS);
    assert_in_range(config->head_layers, 1, LAYOUT_MAX_LAYERS);
    memcpy(s->global, config->layer_is_global, config->encoder_layers * sizeof *s->global);
    memcpy(s->encoder, weights->encoder, config->encoder_layers * sizeof *s->encoder);
    memcpy(s->head, weights->head, config->head_layers * sizeof *s->head);
    s->model.config.layer_is_global = s->global;
    s->model.weights.encoder = s->encoder;
    s->model.weights.head = s->head;
    laya_arena_init(&s->arena, NULL);
}

static void subject_close(layout_subject *s)
{
    laya_arena_close(&s->arena);
}

/*
 * A float32 tensor of the same shape: row r is row order[r] of `tensor` (NULL: the same), its elements are multiplied
 * by factors (NULL: by 1).
 */
static laya_tensor changed(layout_subject *s, const laya_tensor *tensor, const size_t *order, const float *factors)
{
    size_t count = (size_t)tensor->rows * tensor->cols;
    unsigned char *bytes = laya_arena_alloc(&s->arena, count, 4);
    assert_non_null(bytes);
    for (size_t at = 0; at < count; at++) {
        float value;
        laya_tensor_widen(tensor, order ? order[at / tensor->cols] * tensor->cols + at % tensor->cols : at, 1,
                          &value);
        uint32_t bits = laya_bits_of_float(factors ? value * factors[at] : value);
        for (size_t byte = 0; byte < 4; byte++) bytes[4 * at + byte] = (unsigned char)(bits >> (8 * byte));
    }
    return (laya_tensor){.data = bytes, .dtype = LAYA_F32, .rows = tensor->rows, .cols = tensor->cols};
}

/* ------------------------------------------------------------------ the wrong models */

static void narrower(layout_subject *s)
{
    s->model.config.local_attention -= 2;
}

static void wider(layout_subject *s)
{
    s->model.config.local_attention += 2;
}

static void all_global(layout_subject *s)
{
    for (size_t at = 0; at < s->model.config.encoder_layers; at++) s->global[at] = true;
}

static void all_local(layout_subject *s)
{
    for (size_t at = 0; at < s->model.config.encoder_layers; at++) s->global[at] = false;
}

static void swap_thetas(layout_subject *s)
{
    double theta = s->model.config.global_rope_theta;
    s->model.config.global_rope_theta = s->model.config.local_rope_theta;
    s->model.config.local_rope_theta = theta;
}

static void smaller_epsilon(layout_subject *s)
{
    s->model.config.norm_eps /= 30;
}

/* (x + b) * w */
static void bias_first(layout_subject *s, const laya_tensor *weight, laya_tensor *bias)
{
    float factors[LAYOUT_MAX_WIDTH];
    if (!bias->data) return;
    laya_tensor_widen(weight, 0, weight->cols, factors);
    *bias = changed(s, bias, NULL, factors);
}

static void apple_bias_order(layout_subject *s)
{
    laya_weights *w = &s->model.weights;
    bias_first(s, &w->embedding_norm, &w->embedding_norm_bias);
    bias_first(s, &w->final_norm, &w->final_norm_bias);
    bias_first(s, &w->scorer_norm, &w->scorer_norm_bias);
    for (size_t at = 0; at < s->model.config.encoder_layers; at++) {
        bias_first(s, &s->encoder[at].attn_norm, &s->encoder[at].attn_norm_bias);
        bias_first(s, &s->encoder[at].mlp_norm, &s->encoder[at].mlp_norm_bias);
    }
    for (size_t at = 0; at < s->model.config.head_layers; at++) {
        bias_first(s, &s->head[at].norm1, &s->head[at].norm1_bias);
        bias_first(s, &s->head[at].norm2, &s->head[at].norm2_bias);
    }
}

static void no_encoder_bias(layout_subject *s)
{
    s->model.weights.embedding_norm_bias.data = s->model.weights.final_norm_bias.data = NULL;
    for (size_t at = 0; at < s->model.config.encoder_layers; at++)
        s->encoder[at].attn_norm_bias.data = s->encoder[at].mlp_norm_bias.data = NULL;
}

static void norm_before_everything(layout_subject *s)
{
    s->encoder[0].attn_norm = s->encoder[1].attn_norm;
    s->encoder[0].attn_norm_bias = s->encoder[1].attn_norm_bias;
}

static void swap_gates(layout_subject *s)
{
    size_t order[2 * 256] = {0}, inner = s->model.config.intermediate_size;
    assert_in_range(inner, 1, 256);
    for (size_t at = 0; at < 2 * inner; at++) order[at] = (at + inner) % (2 * inner);
    for (size_t at = 0; at < s->model.config.encoder_layers; at++)
        s->encoder[at].mlp_in = changed(s, &s->encoder[at].mlp_in, order, NULL);
}

/* Queries and keys so ordered that the halves of a head are the even and the odd channels: RoPE turns neighbours. */
static void turn_neighbours(layout_subject *s)
{
    size_t order[3 * LAYOUT_MAX_WIDTH] = {0}, width = s->model.config.hidden_size, size = s->model.config.head_size;
    assert_in_range(width, 1, LAYOUT_MAX_WIDTH);
    for (size_t at = 0; at < 3 * width; at++) {
        size_t c = at % size;
        order[at] = at < 2 * width ? at - c + (c < size / 2 ? 2 * c : 2 * c - size + 1) : at;
    }
    for (size_t at = 0; at < s->model.config.encoder_layers; at++)
        s->encoder[at].wqkv = changed(s, &s->encoder[at].wqkv, order, NULL);
}

static void approximate_gelu(laya_mil_program *program)
{
    for (const laya_mil_op *op = program->functions[0].body.first; op; op = op->next) {
        const laya_mil_argument *mode = strcmp(op->type, "gelu") == 0 ? laya_mil_find_argument(op, "mode") : NULL;
        if (!mode) continue;
        laya_mil_constant *constant = (laya_mil_constant *)laya_mil_bound_constant(&mode->bindings[0]);
        static const char *const other = "TANH_APPROXIMATION";
        constant->strings = &other;
    }
}

static void ignore_padding(const laya_model *model, const laya_row *row, const laya_body_shape *shape,
                           float *const inputs[LAYA_BODY_INPUTS])
{
    (void)row;
    size_t radius = model->config.local_attention / 2, length = shape->length;
    for (size_t key = 0; key < length; key++) {
        for (size_t query = 0; query < length; query++) {
            size_t distance = key > query ? key - query : query - key;
            inputs[LAYA_BODY_FULL_MASK][key * length + query] = 0;
            inputs[LAYA_BODY_LOCAL_MASK][key * length + query] = distance <= radius ? 0 : -1e4f;
        }
    }
}

static void transpose(float *mask, size_t length)
{
    for (size_t a = 0; a < length; a++) {
        for (size_t b = 0; b < a; b++) {
            float value = mask[a * length + b];
            mask[a * length + b] = mask[b * length + a];
            mask[b * length + a] = value;
        }
    }
}

static void swap_mask_axes(const laya_model *model, const laya_row *row, const laya_body_shape *shape,
                           float *const inputs[LAYA_BODY_INPUTS])
{
    (void)model;
    (void)row;
    transpose(inputs[LAYA_BODY_FULL_MASK], shape->length);
    transpose(inputs[LAYA_BODY_LOCAL_MASK], shape->length);
}

static void drop_type(const laya_model *model, const laya_row *row, const laya_body_shape *shape,
                      float *const inputs[LAYA_BODY_INPUTS])
{
    (void)model;
    (void)row;
    memset(inputs[LAYA_BODY_TYPE_VECTORS], 0, shape->hidden_size * sizeof(float));
}

static void next_type(const laya_model *model, const laya_row *row, const laya_body_shape *shape,
                      float *const inputs[LAYA_BODY_INPUTS])
{
    size_t d = shape->hidden_size;
    laya_tensor_widen(&model->weights.type_embedding, (row->type + 1) % 3 * d, d, inputs[LAYA_BODY_TYPE_VECTORS]);
}

static void early_markers(const laya_model *model, const laya_row *row, const laya_body_shape *shape,
                          float *const inputs[LAYA_BODY_INPUTS])
{
    (void)model;
    (void)row;
    size_t markers = shape->markers;
    float *map = inputs[LAYA_BODY_MARKER_MAP];
    memmove(map, map + markers, (shape->length - 1) * markers * sizeof *map);
    memset(map + (shape->length - 1) * markers, 0, markers * sizeof *map);
}

const layout_mutant layout_mutants[] = {
    {"local radius one less", "base", narrower, NULL, NULL, true},
    {"local radius one more", "base", wider, NULL, NULL, true},
    {"all layers global", "one_base", all_global, NULL, NULL, true},
    {"all layers local", "one_base", all_local, NULL, NULL, true},
    {"padding ignored", "base", NULL, NULL, ignore_padding, true},
    {"axes of the masks swapped", "base", NULL, NULL, swap_mask_axes, true},
    {"type vector dropped", "base", NULL, NULL, drop_type, true},
    {"type vector of the next type", "base", NULL, NULL, next_type, true},
    {"bias added before the norm's weight", "base", apple_bias_order, NULL, NULL, false},
    {"encoder norms without their bias", "base", no_encoder_bias, NULL, NULL, false},
    {"epsilon of the norms a thirtieth", "base", smaller_epsilon, NULL, NULL, false},
    {"first attention norm not the identity", "base", norm_before_everything, NULL, NULL, true},
    {"thetas swapped", "base", swap_thetas, NULL, NULL, true},
    {"RoPE turns neighbouring channels", "base", turn_neighbours, NULL, NULL, true},
    {"gate halves swapped", "base", swap_gates, NULL, NULL, true},
    {"GELU by tanh", "base", NULL, approximate_gelu, NULL, false},
    {"markers one position early", "base", NULL, NULL, early_markers, true},
};

const size_t layout_mutant_count = sizeof layout_mutants / sizeof *layout_mutants;

const layout_mutant layout_unchanged = {"unchanged", "base", NULL, NULL, NULL, false};

/* ------------------------------------------------------------------ running the exported layout_body */

void layout_must(laya_status status, const laya_error *error)
{
    if (status != LAYA_OK) fail_msg("%s", error->message);
}

laya_export_options layout_options(laya_graph graph, laya_export_kind kind, uint32_t length)
{
    laya_export_options options;
    laya_export_options_init(&options);
    options.kind = kind;
    options.graph = graph;
    options.precision = LAYA_PACKAGE_FP32;
    options.length = length;
    options.markers = LAYOUT_MARKERS;
    return options;
}

void layout_open(layout_body *b, const layout_mutant *change, const laya_config *config, const laya_weights *weights,
                 const laya_export_options *options)
{
    laya_error error = {0};
    *b = (layout_body){.mutant = change};
    subject_init(&b->subject, config, weights);
    if (change->model) change->model(&b->subject);
    const laya_model *model = &b->subject.model;
    layout_must(laya_export_check(model, options, &error), &error);
    laya_mil_program_init(&b->program, NULL);
    layout_must(laya_export_build(model, options, &b->program, &error), &error);
    if (change->program) change->program(&b->program);
    layout_must(laya_pool_open(1, NULL, &b->pool, &error), &error);
    laya_allocator allocator = laya_allocator_or_default(NULL);
    layout_must(
        laya_interpreter_open(&b->program, NULL, LAYA_NUMERICS_FP32, b->pool, &allocator, &b->interpreter, &error),
        &error);
    laya_arena_init(&b->arena, NULL);
}

void layout_open_body(layout_body *b, const layout_mutant *change, const laya_config *config,
                      const laya_weights *weights, laya_graph graph, uint32_t length)
{
    laya_export_options options = layout_options(graph, LAYA_EXPORT_BODY, length);
    layout_open(b, change, config, weights, &options);
    laya_body_shape_init(&b->shape, config->hidden_size, length, LAYOUT_MARKERS);
    for (uint32_t at = 0; at < LAYA_BODY_INPUTS; at++) {
        const char *name;
        b->inputs[at] = laya_interpreter_input(b->interpreter, at, &name)->values;
        assert_string_equal(name, b->shape.inputs[at].name);
    }
    for (uint32_t at = 0; at < LAYA_BODY_OUTPUTS; at++) {
        const char *name;
        b->results[at] = laya_interpreter_output(b->interpreter, at, &name)->values;
        assert_string_equal(name, b->shape.outputs[at].name);
    }
}

void layout_close(layout_body *b)
{
    laya_interpreter_close(b->interpreter);
    laya_pool_close(b->pool);
    laya_mil_program_close(&b->program);
    laya_arena_close(&b->arena);
    subject_close(&b->subject);
}

/* The product's adapter writes the inputs. */
void layout_fill(layout_body *b, const laya_row *row)
{
    laya_error error = {0};
    layout_must(laya_check_row(&b->subject.model.config, row, &error), &error);
    layout_must(laya_adapter_fill(&b->subject.model, row, &b->shape, b->inputs, &b->arena, &error), &error);
    if (b->mutant->inputs) b->mutant->inputs(&b->subject.model, row, &b->shape, b->inputs);
}

/* Run what was filled in, then the host's action head. */
void layout_run_filled(layout_body *b, const laya_row *row, layout_outputs *out)
{
    laya_error error = {0};
    const laya_model *model = &b->subject.model;
    layout_must(laya_interpreter_run(b->interpreter, &error), &error);
    for (uint32_t o = 0; o < row->options; o++) out->logits[o] = (double)b->results[LAYA_BODY_OPTION_LOGITS][o];
    const float *state = b->results[LAYA_BODY_CLS_COLUMN];
    for (uint32_t c = 0; c < model->config.hidden_size; c++) out->cls[c] = (double)state[c];
    laya_row copy = *row;
    copy.logits = out->logits;
    copy.action_logits = out->actions;
    layout_must(laya_action_head_run(&model->config, &model->weights, &copy, &state, 1, b->pool, &b->arena, &error),
                &error);
    laya_arena_reset(&b->arena);
}

void layout_run(layout_body *b, const laya_row *row, layout_outputs *out)
{
    layout_fill(b, row);
    layout_run_filled(b, row, out);
}
