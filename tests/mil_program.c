/* SPDX-License-Identifier: Apache-2.0 */
#include "mil_program.h"

#include "mil/builder.h"

#include <string.h>

/* ------------------------------------------------------------------ a good program */

laya_mil_type test_hidden_type(void)
{
    return laya_mil_tensor4(LAYA_MIL_FP16, 1, TEST_CHANNELS, 1, TEST_LENGTH);
}

/* fp16 values 1, 1 + 1/1024, … that differ from each other. */
static void fill(uint16_t *values, size_t count)
{
    for (size_t at = 0; at < count; at++) values[at] = (uint16_t)(0x3c00 + at % 1024);
}

/*
 * Inputs x, mask; outputs y, parts. The weight [64, 64, 1, 1] is large enough for the weight file; the mask's table
 * holds -1e4.
 */
void test_build_program(laya_mil_program *program, const laya_allocator *allocator)
{
    static uint16_t weight[TEST_CHANNELS * TEST_CHANNELS], gamma[TEST_CHANNELS], beta[TEST_CHANNELS];
    fill(weight, TEST_CHANNELS * TEST_CHANNELS);
    fill(gamma, TEST_CHANNELS);
    memset(beta, 0, sizeof beta);
    laya_mil_builder b;
    laya_error error;
    laya_mil_program_init(program, allocator);
    laya_mil_begin(&b, program, LAYA_MIL_COREML7, &error);
    laya_mil_value *x = laya_mil_input(&b, "x", test_hidden_type());
    laya_mil_value *mask = laya_mil_input(&b, "mask", test_hidden_type());
    laya_mil_value *w = laya_mil_const(&b, "weight",
                                       laya_mil_tensor4(LAYA_MIL_FP16, TEST_CHANNELS, TEST_CHANNELS, 1, 1), weight);
    laya_mil_value *g = laya_mil_const(&b, "gamma", laya_mil_vector(LAYA_MIL_FP16, TEST_CHANNELS), gamma);
    laya_mil_value *z = laya_mil_const(&b, "beta", laya_mil_vector(LAYA_MIL_FP16, TEST_CHANNELS), beta);
    laya_mil_value *norm = laya_mil_layer_norm(&b, "norm", x, 1, g, z, 1e-5);
    laya_mil_value *wide = laya_mil_conv(&b, "wide", norm, w, NULL);
    laya_mil_value *masked = laya_mil_add(&b, "masked", wide, mask);
    laya_mil_value *soft = laya_mil_softmax(&b, "soft", masked, 1);
    laya_mil_value *halves[2];
    laya_mil_split(&b, "halves", soft, 1, 2, halves);
    laya_mil_value *values[2] = {halves[1], halves[0]};
    laya_mil_value *joined = laya_mil_concat(&b, "joined", values, 2, 1);
    laya_mil_output(&b, laya_mil_gelu(&b, "y", joined));
    laya_mil_output(&b, laya_mil_relu(&b, "second", halves[0]));
    assert_int_equal(laya_mil_finish(&b), LAYA_OK);
}

/* A package in memory of this program. */
laya_package test_in_memory(const laya_mil_program *program)
{
    return (laya_package){
        .allocator = program->arena.allocator, .path = (char *)"model.mlpackage", .program = *program};
}

/* ------------------------------------------------------------------ what was found */

void test_print_findings(const laya_verdict *verdict)
{
    for (uint32_t at = 0; at < verdict->finding_count; at++) {
        const laya_finding *finding = &verdict->findings[at];
        print_error("  %s, check %u: %s\n", finding->error ? "error" : "warning", finding->check, finding->text);
    }
}

bool test_has_finding(const laya_verdict *verdict, bool error, unsigned check, const char *text)
{
    for (uint32_t at = 0; at < verdict->finding_count; at++) {
        const laya_finding *finding = &verdict->findings[at];
        if (finding->error == error && finding->check == check && test_contains(finding->text, text)) return true;
    }
    return false;
}

void test_check_package(const laya_package *package, laya_verdict *verdict)
{
    laya_error error;
    assert_int_equal(laya_package_check(package, verdict, &error), LAYA_OK);
}

/* ------------------------------------------------------------------ finding and changing parts */

laya_mil_function *test_main_function(laya_mil_program *program)
{
    return &program->functions[0];
}

void *test_take(laya_mil_program *program, size_t size)
{
    void *block = laya_arena_alloc(&program->arena, 1, size);
    assert_non_null(block);
    memset(block, 0, size);
    return block;
}

laya_mil_op *test_find_op(laya_mil_program *program, const char *output)
{
    for (laya_mil_op *op = test_main_function(program)->body.first; op; op = op->next) {
        if (strcmp(op->outputs[0]->name, output) == 0) return op;
    }
    fail_msg("no operation has the output %s", output);
    return NULL;
}

laya_mil_value *test_find_value(laya_mil_program *program, const char *name)
{
    return test_find_op(program, name)->outputs[0];
}

laya_mil_argument *test_find_input(laya_mil_program *program, const char *output, const char *parameter)
{
    laya_mil_op *op = test_find_op(program, output);
    for (uint32_t at = 0; at < op->input_count; at++) {
        if (strcmp(op->inputs[at].name, parameter) == 0) return &op->inputs[at];
    }
    fail_msg("%s has no parameter %s", output, parameter);
    return NULL;
}

/* Rename a value where it is made and used. */
void test_rename(laya_mil_program *program, laya_mil_value *value, const char *name)
{
    laya_mil_block *body = &test_main_function(program)->body;
    for (laya_mil_op *op = body->first; op; op = op->next) {
        for (uint32_t at = 0; at < op->input_count; at++) {
            for (uint32_t i = 0; i < op->inputs[at].count; i++) {
                if (op->inputs[at].bindings[i].value == value) op->inputs[at].bindings[i].name = name;
            }
        }
    }
    value->name = name;
}

void test_bind(laya_mil_binding *binding, laya_mil_value *value)
{
    *binding = (laya_mil_binding){.name = value->name, .value = value};
}

laya_mil_constant *test_make_constant(laya_mil_program *program, laya_mil_type type, const void *bytes)
{
    laya_mil_constant *constant = test_take(program, sizeof *constant);
    constant->type = type;
    assert_true(laya_mil_type_size(&type, &constant->size));
    unsigned char *copy = test_take(program, (size_t)constant->size + 1);
    if (bytes) memcpy(copy, bytes, (size_t)constant->size);
    constant->bytes = copy;
    return constant;
}

/* Put another constant in place of a const operation's value. */
void test_replace_constant(laya_mil_program *program, const char *name, laya_mil_type type, const void *bytes)
{
    laya_mil_op *op = test_find_op(program, name);
    op->attributes[0].value = test_make_constant(program, type, bytes);
    op->outputs[0]->constant = op->attributes[0].value;
}

/* Bind a parameter to a constant in place, as some writers do. */
void test_bind_constant(laya_mil_program *program, laya_mil_argument *argument, laya_mil_type type, const void *bytes)
{
    argument->bindings[0] = (laya_mil_binding){.constant = test_make_constant(program, type, bytes)};
}

void test_remove_input(laya_mil_program *program, const char *output, const char *parameter)
{
    laya_mil_op *op = test_find_op(program, output);
    *test_find_input(program, output, parameter) = op->inputs[op->input_count - 1];
    op->input_count--;
}

laya_mil_argument *test_add_input(laya_mil_program *program, laya_mil_op *op, const char *parameter)
{
    laya_mil_argument *inputs = test_take(program, (op->input_count + 1) * sizeof *inputs);
    if (op->input_count) memcpy(inputs, op->inputs, op->input_count * sizeof *inputs);
    op->inputs = inputs;
    inputs[op->input_count] = (laya_mil_argument){parameter, test_take(program, sizeof(laya_mil_binding)), 1};
    return &inputs[op->input_count++];
}

void test_add_attribute(laya_mil_program *program, laya_mil_op *op, const char *name,
                        const laya_mil_constant *constant)
{
    laya_mil_attribute *attributes = test_take(program, (op->attribute_count + 1) * sizeof *attributes);
    if (op->attribute_count) memcpy(attributes, op->attributes, op->attribute_count * sizeof *attributes);
    attributes[op->attribute_count++] = (laya_mil_attribute){name, constant};
    op->attributes = attributes;
}

laya_mil_op *test_make_op(laya_mil_program *program, const char *type, const char *name, laya_mil_type output)
{
    laya_mil_op *op = test_take(program, sizeof *op);
    laya_mil_value *value = test_take(program, sizeof *value);
    *value = (laya_mil_value){.name = name, .type = output, .op = op};
    op->type = type;
    op->name = name;
    op->outputs = test_take(program, sizeof(laya_mil_value *));
    op->outputs[0] = value;
    op->output_count = 1;
    return op;
}

void test_append(laya_mil_block *block, laya_mil_op *op)
{
    if (block->last)
        block->last->next = op;
    else
        block->first = op;
    block->last = op;
    block->op_count++;
}

laya_mil_op *test_append_op(laya_mil_program *program, const char *type, const char *name, laya_mil_type output)
{
    laya_mil_op *op = test_make_op(program, type, name, output);
    test_append(&test_main_function(program)->body, op);
    return op;
}

laya_mil_op *test_append_unary(laya_mil_program *program, const char *type, const char *name, const char *x)
{
    laya_mil_value *value = test_find_value(program, x);
    laya_mil_op *op = test_append_op(program, type, name, value->type);
    test_bind(test_add_input(program, op, "x")->bindings, value);
    return op;
}

void test_add_output(laya_mil_program *program, laya_mil_value *value)
{
    laya_mil_block *body = &test_main_function(program)->body;
    laya_mil_interface *interface = &program->interfaces[0];
    laya_mil_binding *outputs = test_take(program, (body->output_count + 1) * sizeof *outputs);
    laya_mil_feature *features = test_take(program, (body->output_count + 1) * sizeof *features);
    memcpy(outputs, body->outputs, body->output_count * sizeof *outputs);
    memcpy(features, interface->outputs, body->output_count * sizeof *features);
    test_bind(&outputs[body->output_count], value);
    features[body->output_count] = (laya_mil_feature){.name = value->name, .kind = "multiArray", .type = value->type};
    body->outputs = outputs;
    interface->outputs = features;
    interface->output_count = ++body->output_count;
}

/* An input that nothing uses, in function and description. */
laya_mil_value *test_add_function_input(laya_mil_program *program, const char *name, laya_mil_type type)
{
    laya_mil_function *function = test_main_function(program);
    laya_mil_interface *interface = &program->interfaces[0];
    uint32_t count = interface->input_count;
    laya_mil_value **inputs = test_take(program, (function->input_count + 1) * sizeof(laya_mil_value *));
    laya_mil_feature *features = test_take(program, (count + 1) * sizeof *features);
    memcpy(inputs, function->inputs, function->input_count * sizeof(laya_mil_value *));
    memcpy(features, interface->inputs, count * sizeof *features);
    inputs[function->input_count] = test_take(program, sizeof(laya_mil_value));
    *inputs[function->input_count] = (laya_mil_value){.name = name, .type = type};
    features[count] = (laya_mil_feature){.name = name, .kind = "multiArray", .type = type};
    function->inputs = inputs;
    interface->inputs = features;
    interface->input_count++;
    return inputs[function->input_count++];
}

/* ------------------------------------------------------------------ changes */

static bool is_right(const test_change *change, const laya_verdict *verdict)
{
    bool error = change->outcome == TEST_ERROR || change->outcome == TEST_ALSO;
    if (!error && verdict->errors > 0) return false;
    if (change->outcome == TEST_NOTHING) return verdict->finding_count == 0;
    if (change->outcome != TEST_ALSO && verdict->finding_count != 1) return false;
    return test_has_finding(verdict, error, change->check, change->text);
}

void test_run_changes(const test_change *changes, size_t count)
{
    for (size_t at = 0; at < count; at++) {
        const test_change *change = &changes[at];
        laya_mil_program program;
        test_build_program(&program, NULL);
        change->make(&program);
        laya_package package = test_in_memory(&program);
        laya_verdict verdict;
        test_check_package(&package, &verdict);
        if (!is_right(change, &verdict)) {
            test_print_findings(&verdict);
            fail_msg("%s: expected %s\"%s\" of check %u", change->name,
                     change->outcome == TEST_ALSO ? "also " : "only ", change->text ? change->text : "",
                     change->check);
        }
        laya_verdict_close(&verdict);
        laya_mil_program_close(&program);
    }
}
