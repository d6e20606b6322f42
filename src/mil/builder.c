/* SPDX-License-Identifier: Apache-2.0 */
#include "mil/builder.h"

#include "base/half.h"
#include "base/number.h"

#include <stdio.h>
#include <string.h>

#define NAME_SIZE 256

/* ------------------------------------------------------------------ memory and errors */

static bool good(const laya_mil_builder *builder)
{
    return builder->status == LAYA_OK;
}

static void *take(laya_mil_builder *builder, size_t count, size_t size)
{
    if (!good(builder)) return NULL;
    void *block = laya_arena_alloc(&builder->program->arena, count, size);
    if (!block) {
        builder->status = laya_fail_memory(builder->error, count * size);
        return NULL;
    }
    memset(block, 0, count * size);
    return block;
}

void *laya_mil_copy(laya_mil_builder *builder, const void *bytes, size_t size)
{
    void *copy = take(builder, size, 1);
    if (copy && size) memcpy(copy, bytes, size);
    return copy;
}

static const char *copy_text(laya_mil_builder *builder, const char *text)
{
    return laya_mil_copy(builder, text, strlen(text) + 1);
}

/* ------------------------------------------------------------------ names */

static bool is_name_character(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

/* scope + "_" + label, made unique; NULL after a failure. The name is free, but not yet in the table. */
static const char *make_name(laya_mil_builder *builder, const char *scope, const char *label)
{
    char name[NAME_SIZE];
    int size = snprintf(name, sizeof name - 12, "%s%s%s", scope, *scope ? "_" : "", label);
    if (!good(builder)) return NULL;
    if (size < 0 || (size_t)size >= sizeof name - 12 || !laya_mil_name_is_legal(name)) {
        builder->status = laya_fail(builder->error, LAYA_ERROR_ARGUMENT, "'%.100s' is no name for a MIL value", name);
        return NULL;
    }
    for (unsigned number = 2; laya_mil_names_get(&builder->names, name); number++) {
        snprintf(name + size, sizeof name - (size_t)size, "_%u", number);
    }
    return copy_text(builder, name);
}

static void remember(laya_mil_builder *builder, laya_mil_names *names, const char *name, void *item)
{
    if (good(builder) && !laya_mil_names_put(names, name, item, NULL))
        builder->status = laya_fail_memory(builder->error, 0);
}

size_t laya_mil_enter(laya_mil_builder *builder, const char *format, ...)
{
    size_t before = strlen(builder->scope), at = before;
    va_list arguments;
    if (at > 0 && at < sizeof builder->scope - 1) builder->scope[at++] = '_';
    va_start(arguments, format);
    vsnprintf(builder->scope + at, sizeof builder->scope - at, format, arguments);
    va_end(arguments);
    return before;
}

void laya_mil_leave(laya_mil_builder *builder, size_t scope)
{
    builder->scope[scope] = '\0';
}

/* ------------------------------------------------------------------ begin and finish */

void laya_mil_begin(laya_mil_builder *builder, laya_mil_program *program, laya_mil_opset opset, laya_error *error)
{
    *builder = (laya_mil_builder){.program = program, .status = LAYA_OK, .error = error};
    laya_mil_names_init(&builder->names, &program->arena.allocator);
    laya_mil_names_init(&builder->parameters, &program->arena.allocator);
    laya_error_clear(error);
    builder->function = take(builder, 1, sizeof *builder->function);
    if (!builder->function) return;
    builder->function->name = "main";
    builder->function->opset = opset;
    builder->function->opset_name = laya_mil_opset_name(opset);
    builder->function->specialization_count = 1;
    builder->function->specialization_name = builder->function->opset_name;
    program->specification_version = (int32_t)opset;
    program->version = 1;
    program->functions = builder->function;
    program->function_count = 1;
}

static void make_interface(laya_mil_builder *builder)
{
    const laya_mil_function *function = builder->function;
    laya_mil_interface *interface = take(builder, 1, sizeof *interface);
    laya_mil_feature *inputs = take(builder, function->input_count, sizeof *inputs);
    laya_mil_feature *outputs = take(builder, function->body.output_count, sizeof *outputs);
    if (!good(builder)) return;
    for (uint32_t at = 0; at < function->input_count; at++) {
        const laya_mil_value *value = function->inputs[at];
        inputs[at] = (laya_mil_feature){.name = value->name, .kind = "multiArray", .type = value->type};
    }
    for (uint32_t at = 0; at < function->body.output_count; at++) {
        const laya_mil_value *value = function->body.outputs[at].value;
        outputs[at] = (laya_mil_feature){.name = value->name, .kind = "multiArray", .type = value->type};
    }
    *interface = (laya_mil_interface){.name = function->name,
                                      .inputs = inputs,
                                      .input_count = function->input_count,
                                      .outputs = outputs,
                                      .output_count = function->body.output_count};
    builder->program->interfaces = interface;
    builder->program->interface_count = 1;
}

laya_status laya_mil_finish(laya_mil_builder *builder)
{
    if (good(builder)) make_interface(builder);
    laya_mil_names_close(&builder->names);
    laya_mil_names_close(&builder->parameters);
    return builder->status;
}

void laya_mil_metadata_add(laya_mil_builder *builder, const char *key, const char *text)
{
    laya_mil_program *program = builder->program;
    laya_mil_metadata *all = take(builder, program->metadata_count + 1, sizeof *all);
    const char *key_copy = copy_text(builder, key), *text_copy = copy_text(builder, text);
    if (!good(builder)) return;
    if (program->metadata_count) memcpy(all, program->metadata, program->metadata_count * sizeof *all);
    all[program->metadata_count++] = (laya_mil_metadata){key_copy, text_copy};
    program->metadata = all;
}

/* ------------------------------------------------------------------ operations, in general */

static laya_mil_value *make_value(laya_mil_builder *builder, const char *name)
{
    laya_mil_value *value = take(builder, 1, sizeof *value);
    if (!value) return NULL;
    value->name = name;
    remember(builder, &builder->names, name, value);
    return value;
}

static void append(laya_mil_builder *builder, laya_mil_op *op)
{
    laya_mil_block *body = &builder->function->body;
    if (body->last)
        body->last->next = op;
    else
        body->first = op;
    body->last = op;
    body->op_count++;
}

/* An operation with room for `inputs` arguments and its outputs, not yet in the block. NULL after a failure. */
static laya_mil_op *make_op(laya_mil_builder *builder, const char *type, const char *label, uint32_t inputs,
                            uint32_t outputs)
{
    laya_mil_op *op = take(builder, 1, sizeof *op);
    const char *name = make_name(builder, builder->scope, label);
    if (!name || !op) return NULL;
    op->type = type;
    op->name = name;
    op->inputs = take(builder, inputs, sizeof *op->inputs);
    op->outputs = take(builder, outputs, sizeof(laya_mil_value *));
    for (uint32_t at = 0; good(builder) && at < outputs; at++) {
        char part[NAME_SIZE];
        if (outputs > 1) {
            snprintf(part, sizeof part, "%s_%lu", name, (unsigned long)at);
            name = make_name(builder, "", part);
            if (!name) return NULL;
        }
        op->outputs[at] = make_value(builder, name);
        if (outputs > 1) name = op->name;
    }
    op->output_count = outputs;
    return good(builder) ? op : NULL;
}

static laya_mil_binding *add_argument(laya_mil_builder *builder, laya_mil_op *op, const char *name, uint32_t count)
{
    laya_mil_binding *bindings = take(builder, count, sizeof *bindings);
    if (!bindings || !op) return NULL;
    op->inputs[op->input_count++] = (laya_mil_argument){name, bindings, count};
    return bindings;
}

static void bind_to(laya_mil_builder *builder, laya_mil_binding *binding, const laya_mil_op *op, const char *name,
                    laya_mil_value *value)
{
    if (!good(builder)) return;
    if (value)
        *binding = (laya_mil_binding){.name = value->name, .value = value};
    else
        builder->status = laya_fail(builder->error, LAYA_ERROR_ARGUMENT, "%s (%s): parameter '%s' is missing",
                                    op->name, op->type, name);
}

static void bind(laya_mil_builder *builder, laya_mil_op *op, const char *name, laya_mil_value *value)
{
    laya_mil_binding *binding = add_argument(builder, op, name, 1);
    bind_to(builder, binding, op, name, value);
}

static void bind_all(laya_mil_builder *builder, laya_mil_op *op, const char *name, laya_mil_value *const *values,
                     uint32_t count)
{
    laya_mil_binding *bindings = add_argument(builder, op, name, count);
    for (uint32_t at = 0; bindings && at < count; at++) bind_to(builder, &bindings[at], op, name, values[at]);
}

/* Give the outputs their types and put the operation into the block. Returns the first output. */
static laya_mil_value *finish_op(laya_mil_builder *builder, laya_mil_op *op)
{
    if (!good(builder) || !op) return NULL;
    laya_mil_type *types = take(builder, op->output_count, sizeof *types);
    if (!types) return NULL;
    builder->status = laya_mil_infer(op, builder->function->opset, types, builder->error);
    if (!good(builder)) return NULL;
    for (uint32_t at = 0; at < op->output_count; at++) {
        op->outputs[at]->type = types[at];
        op->outputs[at]->op = op;
    }
    append(builder, op);
    return op->outputs[0];
}

/* ------------------------------------------------------------------ inputs, outputs, constants */

laya_mil_value *laya_mil_input(laya_mil_builder *builder, const char *name, laya_mil_type type)
{
    laya_mil_function *function = builder->function;
    const char *full = make_name(builder, "", name);
    laya_mil_value *value = full ? make_value(builder, full) : NULL;
    laya_mil_value **inputs = take(builder, good(builder) ? function->input_count + 1 : 1, sizeof(laya_mil_value *));
    if (!inputs || !value) return NULL;
    value->type = type;
    if (function->input_count) memcpy(inputs, function->inputs, function->input_count * sizeof(laya_mil_value *));
    inputs[function->input_count++] = value;
    function->inputs = inputs;
    return value;
}

void laya_mil_output(laya_mil_builder *builder, laya_mil_value *value)
{
    if (!good(builder) || !value) return;
    laya_mil_block *body = &builder->function->body;
    laya_mil_binding *outputs = take(builder, body->output_count + 1, sizeof *outputs);
    if (!outputs) return;
    if (body->output_count) memcpy(outputs, body->outputs, body->output_count * sizeof *outputs);
    outputs[body->output_count++] = (laya_mil_binding){.name = value->name, .value = value};
    body->outputs = outputs;
}

static laya_mil_value *add_const(laya_mil_builder *builder, const char *scope, const char *label,
                                 const laya_mil_constant *constant)
{
    laya_mil_op *op = take(builder, 1, sizeof *op);
    laya_mil_attribute *attribute = take(builder, 1, sizeof *attribute);
    laya_mil_value **outputs = take(builder, 1, sizeof(laya_mil_value *));
    laya_mil_constant *copy = laya_mil_copy(builder, constant, sizeof *constant);
    const char *name = make_name(builder, scope, label);
    laya_mil_value *value = name ? make_value(builder, name) : NULL;
    if (!good(builder) || !value || !op || !attribute || !outputs) return NULL;
    *attribute = (laya_mil_attribute){"val", copy};
    outputs[0] = value;
    value->type = constant->type;
    value->op = op;
    value->constant = copy;
    *op = (laya_mil_op){.type = "const",
                        .name = name,
                        .outputs = outputs,
                        .output_count = 1,
                        .attributes = attribute,
                        .attribute_count = 1};
    append(builder, op);
    return value;
}

laya_mil_value *laya_mil_const(laya_mil_builder *builder, const char *label, laya_mil_type type, const void *bytes)
{
    laya_mil_constant constant = {.type = type};
    if (!laya_mil_type_size(&type, &constant.size) || constant.size > SIZE_MAX) {
        if (good(builder))
            builder->status = laya_fail(builder->error, LAYA_ERROR_ARGUMENT, "%s: a constant cannot have this type",
                                        label);
        return NULL;
    }
    constant.bytes = laya_mil_copy(builder, bytes, (size_t)constant.size);
    return constant.bytes ? add_const(builder, builder->scope, label, &constant) : NULL;
}

laya_mil_value *laya_mil_const_source(laya_mil_builder *builder, const char *label, laya_mil_type type,
                                      const laya_mil_source *source)
{
    laya_mil_constant constant = {.type = type};
    bool sized = laya_mil_type_size(&type, &constant.size);
    constant.source = laya_mil_copy(builder, source, sizeof *source);
    if (!sized && good(builder))
        builder->status = laya_fail(builder->error, LAYA_ERROR_ARGUMENT, "%s: a constant cannot have this type",
                                    label);
    return constant.source ? add_const(builder, builder->scope, label, &constant) : NULL;
}

/* ------------------------------------------------------------------ parameters */

static bool same_constant(const laya_mil_constant *a, const laya_mil_constant *b)
{
    if (!laya_mil_type_equal(&a->type, &b->type) || a->size != b->size) return false;
    if (a->strings || b->strings) return a->strings && b->strings && strcmp(a->strings[0], b->strings[0]) == 0;
    return memcmp(a->bytes, b->bytes, (size_t)a->size) == 0;
}

/* The shared const operation of a parameter's value, whose text makes its name. */
static laya_mil_value *share(laya_mil_builder *builder, const char *parameter, const char *text,
                             const laya_mil_constant *constant)
{
    char label[NAME_SIZE / 2];
    int size = snprintf(label, sizeof label, "%s_%s", parameter, text);
    for (int at = 0; at < size && label[at]; at++) {
        if (!is_name_character(label[at])) label[at] = '_';
    }
    laya_mil_value *known = laya_mil_names_get(&builder->parameters, label);
    if (known && same_constant(known->constant, constant)) return known;
    laya_mil_value *value = add_const(builder, "", label, constant);
    if (value && !known) remember(builder, &builder->parameters, value->name, value);
    return value;
}

static laya_mil_value *integers(laya_mil_builder *builder, const char *parameter, laya_mil_type type,
                                const int32_t *values, uint32_t count)
{
    char text[NAME_SIZE / 2] = "";
    unsigned char *bytes = take(builder, count, 4);
    if (!bytes) return NULL;
    for (uint32_t at = 0, used = 0; at < count; at++) {
        uint32_t bits = (uint32_t)values[at];
        for (unsigned byte = 0; byte < 4; byte++) bytes[4 * at + byte] = (unsigned char)(bits >> (8 * byte));
        long long value = values[at];
        int size = snprintf(text + used, sizeof text - used, "%s%s%lld", at ? "_" : "", value < 0 ? "m" : "",
                            value < 0 ? -value : value);
        used += size > 0 && (size_t)size < sizeof text - used ? (uint32_t)size : 0;
    }
    laya_mil_constant constant = {.type = type, .bytes = bytes, .size = 4 * (uint64_t)count};
    return share(builder, parameter, text, &constant);
}

static void bind_integer(laya_mil_builder *builder, laya_mil_op *op, const char *parameter, int32_t value)
{
    laya_mil_type type = laya_mil_scalar(LAYA_MIL_INT32);
    bind(builder, op, parameter, integers(builder, parameter, type, &value, 1));
}

static void bind_integers(laya_mil_builder *builder, laya_mil_op *op, const char *parameter, const int32_t *values,
                          uint32_t count)
{
    laya_mil_type type = laya_mil_vector(LAYA_MIL_INT32, count);
    bind(builder, op, parameter, integers(builder, parameter, type, values, count));
}

static void bind_bool(laya_mil_builder *builder, laya_mil_op *op, const char *parameter, bool value)
{
    static const unsigned char bytes[2] = {0, 1};
    laya_mil_constant constant = {.type = laya_mil_scalar(LAYA_MIL_BOOL), .bytes = &bytes[value], .size = 1};
    bind(builder, op, parameter, share(builder, parameter, value ? "true" : "false", &constant));
}

static void bind_string(laya_mil_builder *builder, laya_mil_op *op, const char *parameter, const char *text)
{
    const char *copy = copy_text(builder, text);
    const char **strings = laya_mil_copy(builder, &copy, sizeof copy);
    if (!strings) return;
    laya_mil_constant constant = {.type = laya_mil_scalar(LAYA_MIL_STRING), .strings = strings, .string_count = 1};
    bind(builder, op, parameter, share(builder, parameter, text, &constant));
}

/* A scalar in the type of x. */
static void bind_number(laya_mil_builder *builder, laya_mil_op *op, const char *parameter, const laya_mil_value *x,
                        double value)
{
    char text[LAYA_NUMBER_SIZE];
    unsigned char *bytes = take(builder, 4, 1);
    if (!bytes || !x) return;
    bool half = x->type.dtype == LAYA_MIL_FP16;
    uint32_t bits = half ? laya_float_to_half((float)value) : laya_bits_of_float((float)value);
    for (unsigned byte = 0; byte < 4; byte++) bytes[byte] = (unsigned char)(bits >> (8 * byte));
    laya_format_repr(text, value);
    laya_mil_constant constant = {.type = laya_mil_scalar(x->type.dtype), .bytes = bytes, .size = half ? 2 : 4};
    bind(builder, op, parameter, share(builder, parameter, text, &constant));
}

/* ------------------------------------------------------------------ operations */

laya_mil_value *laya_mil_conv(laya_mil_builder *builder, const char *label, laya_mil_value *x, laya_mil_value *weight,
                              laya_mil_value *bias)
{
    static const int32_t ones[2] = {1, 1}, zeros[4] = {0, 0, 0, 0};
    laya_mil_op *op = make_op(builder, "conv", label, 8, 1);
    bind(builder, op, "x", x);
    bind(builder, op, "weight", weight);
    if (bias) bind(builder, op, "bias", bias);
    bind_integers(builder, op, "strides", ones, 2);
    bind_string(builder, op, "pad_type", "valid");
    bind_integers(builder, op, "pad", zeros, 4);
    bind_integers(builder, op, "dilations", ones, 2);
    bind_integer(builder, op, "groups", 1);
    return finish_op(builder, op);
}

laya_mil_value *laya_mil_layer_norm(laya_mil_builder *builder, const char *label, laya_mil_value *x, int32_t axis,
                                    laya_mil_value *gamma, laya_mil_value *beta, double epsilon)
{
    laya_mil_op *op = make_op(builder, "layer_norm", label, 5, 1);
    bind(builder, op, "x", x);
    bind_integers(builder, op, "axes", &axis, 1);
    if (gamma) bind(builder, op, "gamma", gamma);
    if (beta) bind(builder, op, "beta", beta);
    bind_number(builder, op, "epsilon", x, epsilon);
    return finish_op(builder, op);
}

laya_mil_value *laya_mil_batch_norm(laya_mil_builder *builder, const char *label, laya_mil_value *x,
                                    laya_mil_value *mean, laya_mil_value *variance, laya_mil_value *gamma,
                                    laya_mil_value *beta, double epsilon)
{
    laya_mil_op *op = make_op(builder, "batch_norm", label, 6, 1);
    bind(builder, op, "x", x);
    bind(builder, op, "mean", mean);
    bind(builder, op, "variance", variance);
    bind(builder, op, "gamma", gamma);
    bind(builder, op, "beta", beta);
    bind_number(builder, op, "epsilon", x, epsilon);
    return finish_op(builder, op);
}

laya_mil_value *laya_mil_einsum(laya_mil_builder *builder, const char *label, laya_mil_value *x, laya_mil_value *y)
{
    laya_mil_value *const values[2] = {x, y};
    laya_mil_op *op = make_op(builder, "einsum", label, 2, 1);
    bind_all(builder, op, "values", values, 2);
    bind_string(builder, op, "equation", "nchw,nwhu->nchu");
    return finish_op(builder, op);
}

laya_mil_value *laya_mil_softmax(laya_mil_builder *builder, const char *label, laya_mil_value *x, int32_t axis)
{
    laya_mil_op *op = make_op(builder, "softmax", label, 2, 1);
    bind(builder, op, "x", x);
    bind_integer(builder, op, "axis", axis);
    return finish_op(builder, op);
}

laya_mil_value *laya_mil_transpose(laya_mil_builder *builder, const char *label, laya_mil_value *x,
                                   const int32_t *perm)
{
    laya_mil_op *op = make_op(builder, "transpose", label, 2, 1);
    bind(builder, op, "x", x);
    if (x) bind_integers(builder, op, "perm", perm, x->type.rank);
    return finish_op(builder, op);
}

laya_mil_value *laya_mil_reshape(laya_mil_builder *builder, const char *label, laya_mil_value *x, uint32_t rank,
                                 const int32_t *shape)
{
    laya_mil_op *op = make_op(builder, "reshape", label, 2, 1);
    bind(builder, op, "x", x);
    bind_integers(builder, op, "shape", shape, rank);
    return finish_op(builder, op);
}

/* Finish an operation with several outputs. */
static void finish_parts(laya_mil_builder *builder, laya_mil_op *op, uint32_t parts, laya_mil_value **outputs)
{
    const laya_mil_value *first = finish_op(builder, op);
    for (uint32_t at = 0; at < parts; at++) outputs[at] = first ? op->outputs[at] : NULL;
}

void laya_mil_split(laya_mil_builder *builder, const char *label, laya_mil_value *x, int32_t axis, uint32_t parts,
                    laya_mil_value **outputs)
{
    laya_mil_op *op = make_op(builder, "split", label, 3, parts);
    bind(builder, op, "x", x);
    bind_integer(builder, op, "num_splits", (int32_t)parts);
    bind_integer(builder, op, "axis", axis);
    finish_parts(builder, op, parts, outputs);
}

void laya_mil_split_sizes(laya_mil_builder *builder, const char *label, laya_mil_value *x, int32_t axis,
                          uint32_t parts, const int32_t *sizes, laya_mil_value **outputs)
{
    laya_mil_op *op = make_op(builder, "split", label, 3, parts);
    bind(builder, op, "x", x);
    bind_integers(builder, op, "split_sizes", sizes, parts);
    bind_integer(builder, op, "axis", axis);
    finish_parts(builder, op, parts, outputs);
}

laya_mil_value *laya_mil_concat(laya_mil_builder *builder, const char *label, laya_mil_value *const *values,
                                uint32_t count, int32_t axis)
{
    laya_mil_op *op = make_op(builder, "concat", label, 3, 1);
    bind_all(builder, op, "values", values, count);
    bind_integer(builder, op, "axis", axis);
    bind_bool(builder, op, "interleave", false);
    return finish_op(builder, op);
}

laya_mil_value *laya_mil_slice(laya_mil_builder *builder, const char *label, laya_mil_value *x, const int32_t *begin,
                               const int32_t *end)
{
    laya_mil_op *op = make_op(builder, "slice_by_index", label, 3, 1);
    bind(builder, op, "x", x);
    if (x) bind_integers(builder, op, "begin", begin, x->type.rank);
    if (x) bind_integers(builder, op, "end", end, x->type.rank);
    return finish_op(builder, op);
}

static laya_mil_value *binary(laya_mil_builder *builder, const char *type, const char *label, laya_mil_value *x,
                              laya_mil_value *y)
{
    laya_mil_op *op = make_op(builder, type, label, 2, 1);
    bind(builder, op, "x", x);
    bind(builder, op, "y", y);
    return finish_op(builder, op);
}

laya_mil_value *laya_mil_add(laya_mil_builder *builder, const char *label, laya_mil_value *x, laya_mil_value *y)
{
    return binary(builder, "add", label, x, y);
}

laya_mil_value *laya_mil_sub(laya_mil_builder *builder, const char *label, laya_mil_value *x, laya_mil_value *y)
{
    return binary(builder, "sub", label, x, y);
}

laya_mil_value *laya_mil_mul(laya_mil_builder *builder, const char *label, laya_mil_value *x, laya_mil_value *y)
{
    return binary(builder, "mul", label, x, y);
}

laya_mil_value *laya_mil_relu(laya_mil_builder *builder, const char *label, laya_mil_value *x)
{
    laya_mil_op *op = make_op(builder, "relu", label, 1, 1);
    bind(builder, op, "x", x);
    return finish_op(builder, op);
}

laya_mil_value *laya_mil_gelu(laya_mil_builder *builder, const char *label, laya_mil_value *x)
{
    laya_mil_op *op = make_op(builder, "gelu", label, 2, 1);
    bind(builder, op, "x", x);
    bind_string(builder, op, "mode", "EXACT");
    return finish_op(builder, op);
}
