/* SPDX-License-Identifier: Apache-2.0 */
/* From the operations of a function to values and steps. */
#include "interpreter/plan.h"

#include <inttypes.h>
#include <string.h>

#define RAW_ELEMENTS 4096u /* constants up to here are widened even where they could stay as they are stored */

static const laya_implementation *const tables[] = {laya_elementwise_implementations, laya_reduction_implementations,
                                                    laya_product_implementations, laya_shape_implementations};

static const laya_implementation *find_implementation(const char *type)
{
    for (size_t table = 0; table < sizeof tables / sizeof *tables; table++) {
        for (const laya_implementation *at = tables[table]; at->type; at++) {
            if (strcmp(at->type, type) == 0) return at;
        }
    }
    return NULL;
}

static void *take(laya_interpreter *interpreter, size_t count, size_t size, laya_error *error)
{
    void *block = laya_arena_alloc(&interpreter->arena, count, size);
    if (block)
        memset(block, 0, count * size);
    else
        laya_fail_memory(error, count * size);
    return block;
}

/* ------------------------------------------------------------------ values */

static laya_status add_value(laya_interpreter *interpreter, const laya_mil_value *value, laya_planned_value **out,
                             laya_error *error)
{
    void *older;
    laya_planned_value *planned = &interpreter->values[interpreter->value_count++];
    planned->value = value;
    planned->home = planned;
    planned->last = 0;
    if (!laya_mil_names_put(&interpreter->names, value->name, planned, &older)) return laya_fail_memory(error, 0);
    if (older) return laya_fail(error, LAYA_ERROR_FORMAT, "two values are called '%.200s'", value->name);
    *out = planned;
    return LAYA_OK;
}

/* The value that a binding names. */
static laya_status find_value(const laya_interpreter *interpreter, const laya_mil_binding *binding,
                              laya_planned_value **out, laya_error *error)
{
    *out = laya_mil_names_get(&interpreter->names, binding->name);
    if (*out && (*out)->value == binding->value) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_FORMAT, "'%.200s' is not defined before it is used", binding->name);
}

/* ------------------------------------------------------------------ constants */

/* The constant as a planned value of its own, for parameters that are bound in place. */
static laya_status set_constant(laya_interpreter *interpreter, laya_planned_value *planned,
                                const laya_mil_constant *constant, laya_error *error)
{
    planned->input = true;
    planned->home = planned;
    LAYA_TRY(laya_plan_load(&interpreter->arena, constant, &planned->constant, error));
    planned->array.type = planned->stored.type = constant->type;
    uint64_t count = 0;
    if (laya_mil_type_count(&constant->type, &count)) planned->stored.count = count;
    return LAYA_OK;
}

/* A copy of the operation whose parameters are bound in place to what earlier constexpr operations made. */
static laya_status resolve_constexpr(laya_interpreter *interpreter, const laya_mil_op *op, laya_mil_op *resolved,
                                     laya_error *error)
{
    *resolved = *op;
    resolved->inputs = take(interpreter, op->input_count, sizeof *op->inputs, error);
    if (!resolved->inputs) return LAYA_ERROR_MEMORY;
    for (uint32_t at = 0; at < op->input_count; at++) {
        const laya_mil_argument *argument = &op->inputs[at];
        laya_mil_binding *bindings = take(interpreter, argument->count, sizeof *bindings, error);
        if (!bindings) return LAYA_ERROR_MEMORY;
        for (uint32_t binding = 0; binding < argument->count; binding++) {
            bindings[binding] = argument->bindings[binding];
            if (!bindings[binding].name) continue;
            laya_planned_value *value;
            LAYA_TRY(find_value(interpreter, &bindings[binding], &value, error));
            bindings[binding] = (laya_mil_binding){.constant = value->constant};
        }
        resolved->inputs[at] = (laya_mil_argument){argument->name, bindings, argument->count};
    }
    return LAYA_OK;
}

static laya_status expand(laya_interpreter *interpreter, const laya_mil_op *op, laya_planned_value *planned,
                          laya_error *error)
{
    laya_mil_op resolved;
    uint64_t size = 0;
    unsigned char *bytes = NULL;
    laya_mil_constant *constant = take(interpreter, 1, sizeof *constant, error);
    if (!constant) return LAYA_ERROR_MEMORY;
    LAYA_TRY(resolve_constexpr(interpreter, op, &resolved, error));
    LAYA_TRY(laya_constexpr_expand(&resolved, interpreter->function->opset, &interpreter->allocator, &bytes, &size,
                                   error));
    interpreter->expanded[interpreter->expanded_count++] = bytes;
    *constant = (laya_mil_constant){.type = op->outputs[0]->type, .bytes = bytes, .size = size};
    return set_constant(interpreter, planned, constant, error);
}

static laya_status add_constant(laya_interpreter *interpreter, const laya_mil_op *op, laya_error *error)
{
    laya_planned_value *planned;
    if (op->output_count != 1) {
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED,
                         "the interpreter does not expand constants with %" PRIu32 " outputs", op->output_count);
    }
    LAYA_TRY(add_value(interpreter, op->outputs[0], &planned, error));
    if (laya_mil_is_constexpr(op)) return expand(interpreter, op, planned, error);
    return set_constant(interpreter, planned, op->outputs[0]->constant, error);
}

/* ------------------------------------------------------------------ steps */

static bool stays_stored(const laya_implementation *implementation, const char *parameter,
                         const laya_planned_value *value)
{
    laya_mil_dtype dtype = value->stored.type.dtype;
    return implementation->raw && strcmp(implementation->raw, parameter) == 0 && value->stored.count > RAW_ELEMENTS &&
           (dtype == LAYA_MIL_FP16 || dtype == LAYA_MIL_FP32) && value->constant->bytes;
}

static laya_status set_operand(laya_interpreter *interpreter, const laya_implementation *implementation,
                               const char *parameter, const laya_mil_binding *binding, laya_operand *operand,
                               laya_error *error)
{
    laya_planned_value *value;
    if (binding->name) {
        LAYA_TRY(find_value(interpreter, binding, &value, error));
    } else {
        value = take(interpreter, 1, sizeof *value, error);
        if (!value) return LAYA_ERROR_MEMORY;
        LAYA_TRY(set_constant(interpreter, value, binding->constant, error));
    }
    value->last = interpreter->step_count; /* of the step that is being made */
    operand->constant = value->constant;
    operand->array = &value->array;
    if (!value->constant) return LAYA_OK;
    if (stays_stored(implementation, parameter, value)) {
        operand->array = &value->stored;
        return LAYA_OK;
    }
    laya_status status = laya_plan_widen(&interpreter->arena, value->constant, &value->array, error);
    if (status != LAYA_OK) laya_error_prefix(error, "parameter '%.200s': ", parameter);
    return status;
}

static laya_status set_parameters(laya_interpreter *interpreter, laya_step *step, laya_error *error)
{
    const laya_mil_op *op = step->op;
    step->parameters = take(interpreter, op->input_count, sizeof *step->parameters, error);
    if (!step->parameters) return LAYA_ERROR_MEMORY;
    step->parameter_count = op->input_count;
    for (uint32_t at = 0; at < op->input_count; at++) {
        const laya_mil_argument *argument = &op->inputs[at];
        laya_operand *operands = take(interpreter, argument->count, sizeof *operands, error);
        if (!operands) return LAYA_ERROR_MEMORY;
        for (uint32_t binding = 0; binding < argument->count; binding++) {
            LAYA_TRY(set_operand(interpreter, step->implementation, argument->name, &argument->bindings[binding],
                                 &operands[binding], error));
        }
        step->parameters[at] = (laya_parameter_values){argument->name, operands, argument->count};
    }
    return LAYA_OK;
}

static laya_status set_outputs(laya_interpreter *interpreter, laya_planned_step *planned, laya_error *error)
{
    laya_step *step = &planned->step;
    uint32_t count = step->op->output_count;
    step->outputs = take(interpreter, count, sizeof *step->outputs, error);
    planned->made = take(interpreter, count, sizeof(laya_planned_value *), error);
    if (!step->outputs || !planned->made) return LAYA_ERROR_MEMORY;
    step->output_count = count;
    for (uint32_t at = 0; at < count; at++) {
        laya_planned_value *value;
        LAYA_TRY(add_value(interpreter, step->op->outputs[at], &value, error));
        LAYA_TRY(laya_plan_array(&step->op->outputs[at]->type, &value->array, error));
        value->first = value->last = interpreter->step_count;
        planned->made[at] = value;
        step->outputs[at] = &value->array;
    }
    return LAYA_OK;
}

static laya_status add_step(laya_interpreter *interpreter, const laya_mil_op *op, laya_error *error)
{
    laya_planned_step *planned = &interpreter->steps[interpreter->step_count];
    planned->step.op = op;
    planned->step.implementation = find_implementation(op->type);
    if (!planned->step.implementation)
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "the interpreter does not run this operation");
    LAYA_TRY(set_parameters(interpreter, &planned->step, error));
    LAYA_TRY(set_outputs(interpreter, planned, error));
    interpreter->step_count++;
    return LAYA_OK;
}

/* ------------------------------------------------------------------ types */

static bool is_fixed(const laya_mil_type *type)
{
    bool fixed = true;
    for (uint32_t axis = 0; axis < type->rank; axis++) fixed = fixed && type->dims[axis] >= 0;
    return fixed;
}

/* Implementations rely on types that follow from those of the inputs. */
static laya_status check_types(laya_interpreter *interpreter, const laya_mil_op *op, laya_error *error)
{
    if (op->block_count > 0) {
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "%.200s (%.100s): the interpreter does not run control flow",
                         laya_mil_op_label(op), op->type);
    }
    laya_arena_mark mark = laya_arena_save(&interpreter->arena);
    laya_mil_type *inferred = take(interpreter, op->output_count, sizeof *inferred, error);
    if (!inferred) return LAYA_ERROR_MEMORY;
    LAYA_TRY(laya_mil_infer(op, interpreter->function->opset, inferred, error));
    for (uint32_t at = 0; at < op->output_count; at++) {
        const laya_mil_type *declared = &op->outputs[at]->type;
        char expected[LAYA_MIL_TYPE_TEXT], found[LAYA_MIL_TYPE_TEXT];
        laya_mil_type_text(&inferred[at], expected);
        laya_mil_type_text(declared, found);
        if (!is_fixed(&inferred[at]) || !is_fixed(declared)) {
            return laya_fail(error, LAYA_ERROR_UNSUPPORTED,
                             "%.200s (%.100s): the interpreter needs fixed shapes, found %s", laya_mil_op_label(op),
                             op->type, is_fixed(declared) ? expected : found);
        }
        if (laya_mil_type_equal(&inferred[at], declared)) continue;
        return laya_fail(error, LAYA_ERROR_FORMAT, "%.200s (%.100s): output '%.200s': expected %s, found %s",
                         laya_mil_op_label(op), op->type, op->outputs[at]->name, expected, found);
    }
    laya_arena_restore(&interpreter->arena, mark);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ the function */

static laya_status count_values(laya_interpreter *interpreter, laya_error *error)
{
    const laya_mil_function *function = interpreter->function;
    size_t values = function->input_count, steps = 0, constants = 0;
    for (const laya_mil_op *op = function->body.first; op; op = op->next) {
        values += op->output_count;
        if (laya_mil_is_constexpr(op)) constants++;
        if (!laya_mil_is_const(op) && !laya_mil_is_constexpr(op)) steps++;
    }
    if (values >= UINT32_MAX) return laya_fail_memory(error, 0);
    interpreter->values = take(interpreter, values, sizeof *interpreter->values, error);
    interpreter->steps = take(interpreter, steps, sizeof *interpreter->steps, error);
    interpreter->expanded = take(interpreter, constants, sizeof(unsigned char *), error);
    interpreter->inputs = take(interpreter, function->input_count, sizeof(laya_planned_value *), error);
    interpreter->outputs = take(interpreter, function->body.output_count, sizeof(laya_planned_value *), error);
    bool taken = interpreter->values && interpreter->steps && interpreter->expanded && interpreter->inputs &&
                 interpreter->outputs;
    return taken ? LAYA_OK : LAYA_ERROR_MEMORY;
}

static laya_status add_inputs(laya_interpreter *interpreter, laya_error *error)
{
    for (uint32_t at = 0; at < interpreter->function->input_count; at++) {
        const laya_mil_value *value = interpreter->function->inputs[at];
        laya_status status = add_value(interpreter, value, &interpreter->inputs[at], error);
        if (status == LAYA_OK) status = laya_plan_array(&value->type, &interpreter->inputs[at]->array, error);
        if (status != LAYA_OK) {
            laya_error_prefix(error, "input '%.200s': ", value->name);
            return status;
        }
        interpreter->inputs[at]->input = true;
    }
    return LAYA_OK;
}

static laya_status add_outputs(laya_interpreter *interpreter, laya_error *error)
{
    const laya_mil_block *body = &interpreter->function->body;
    for (uint32_t at = 0; at < body->output_count; at++) {
        laya_planned_value *value;
        if (!body->outputs[at].name)
            return laya_fail(error, LAYA_ERROR_FORMAT, "output %" PRIu32 " of the function has no name", at);
        LAYA_TRY(find_value(interpreter, &body->outputs[at], &value, error));
        value->output = true;
        if (value->constant) {
            LAYA_TRY(laya_plan_array(&value->constant->type, &value->stored, error));
            LAYA_TRY(laya_plan_widen(&interpreter->arena, value->constant, &value->array, error));
        }
        interpreter->outputs[at] = value;
    }
    return LAYA_OK;
}

laya_status laya_plan_steps(laya_interpreter *interpreter, laya_error *error)
{
    LAYA_TRY(count_values(interpreter, error));
    LAYA_TRY(add_inputs(interpreter, error));
    for (const laya_mil_op *op = interpreter->function->body.first; op; op = op->next) {
        LAYA_TRY(check_types(interpreter, op, error));
        bool constant = laya_mil_is_const(op) || laya_mil_is_constexpr(op);
        laya_status status = constant ? add_constant(interpreter, op, error) : add_step(interpreter, op, error);
        if (status != LAYA_OK) {
            laya_error_prefix(error, "%.200s (%.100s): ", laya_mil_op_label(op), op->type);
            return status;
        }
    }
    return add_outputs(interpreter, error);
}
