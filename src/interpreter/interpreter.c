/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a function, running it step by step. */
#include "interpreter/interpreter.h"

#include "interpreter/plan.h"

#include <string.h>

/* ------------------------------------------------------------------ open, close */

static laya_status find_function(const laya_mil_program *program, const char *name,
                                 const laya_mil_function **function, laya_error *error)
{
    if (!name) name = program->default_function ? program->default_function : "main";
    for (uint32_t at = 0; at < program->function_count; at++) {
        *function = &program->functions[at];
        if (strcmp((*function)->name, name) == 0) break;
        *function = NULL;
    }
    if (!*function) return laya_fail(error, LAYA_ERROR_FORMAT, "the program has no function called '%.200s'", name);
    if ((*function)->opset != 0) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "function '%.200s': opset '%.100s' is not known here", name,
                     (*function)->opset_name ? (*function)->opset_name : "");
}

static laya_status make_plan(laya_interpreter *interpreter, const char *function, const laya_plan_options *options,
                             laya_error *error)
{
    LAYA_TRY(find_function(interpreter->program, function, &interpreter->function, error));
    laya_mil_names_init(&interpreter->names, &interpreter->allocator);
    laya_status status = laya_plan_steps(interpreter, error);
    if (status == LAYA_OK) status = laya_plan_memory(interpreter, options->reuse, error);
    laya_mil_names_close(&interpreter->names);
    return status;
}

laya_status laya_interpreter_open_with(const laya_mil_program *program, const char *function, laya_numerics numerics,
                                       const laya_plan_options *options, laya_pool *pool,
                                       const laya_allocator *allocator, laya_interpreter **out, laya_error *error)
{
    laya_allocator hooks = laya_allocator_or_default(allocator);
    *out = NULL;
    laya_interpreter *interpreter = laya_alloc_zero(&hooks, 1, sizeof *interpreter);
    if (!interpreter) return laya_fail_memory(error, sizeof *interpreter);
    interpreter->allocator = hooks;
    laya_arena_init(&interpreter->arena, &hooks);
    interpreter->program = program;
    interpreter->numerics = numerics;
    interpreter->run = (laya_run){
        .pool = pool, .kernels = laya_kernels_select(LAYA_CPU_ALL), .strict = numerics == LAYA_NUMERICS_FP16_STRICT};
    laya_status status = make_plan(interpreter, function, options, error);
    if (status != LAYA_OK) {
        laya_interpreter_close(interpreter);
        return status;
    }
    interpreter->run.opset = interpreter->function->opset;
    *out = interpreter;
    return LAYA_OK;
}

laya_status laya_interpreter_open(const laya_mil_program *program, const char *function, laya_numerics numerics,
                                  laya_pool *pool, const laya_allocator *allocator, laya_interpreter **interpreter,
                                  laya_error *error)
{
    laya_plan_options options = {.reuse = true};
    return laya_interpreter_open_with(program, function, numerics, &options, pool, allocator, interpreter, error);
}

void laya_interpreter_close(laya_interpreter *interpreter)
{
    if (!interpreter) return;
    laya_allocator hooks = interpreter->allocator;
    for (uint32_t at = 0; at < interpreter->expanded_count; at++) laya_release(&hooks, interpreter->expanded[at]);
    laya_release(&hooks, interpreter->block);
    laya_arena_close(&interpreter->arena);
    laya_release(&hooks, interpreter);
}

/* ------------------------------------------------------------------ inputs, outputs */

uint32_t laya_interpreter_input_count(const laya_interpreter *interpreter)
{
    return interpreter->function->input_count;
}

uint32_t laya_interpreter_output_count(const laya_interpreter *interpreter)
{
    return interpreter->function->body.output_count;
}

laya_array *laya_interpreter_input(laya_interpreter *interpreter, uint32_t index, const char **name)
{
    laya_planned_value *value = interpreter->inputs[index];
    if (name) *name = value->value->name;
    return &value->array;
}

const laya_array *laya_interpreter_output(const laya_interpreter *interpreter, uint32_t index, const char **name)
{
    const laya_planned_value *value = interpreter->outputs[index];
    if (name) *name = value->value->name;
    return &value->array;
}

void laya_interpreter_memory(const laya_interpreter *interpreter, uint64_t *planned, uint64_t *unplanned)
{
    *planned = interpreter->planned;
    *unplanned = interpreter->unplanned;
}

void laya_interpreter_set_trace(laya_interpreter *interpreter, const laya_interpreter_trace *trace)
{
    interpreter->trace = trace ? *trace : (laya_interpreter_trace){0};
}

/* ------------------------------------------------------------------ run */

typedef struct rounding {
    const laya_kernels *kernels;
    float *values;
} rounding;

static void round_range(const void *argument, size_t begin, size_t end)
{
    const rounding *all = argument;
    all->kernels->round_half(all->values + begin, end - begin);
}

static void round_array(const laya_interpreter *interpreter, const laya_array *array)
{
    if (interpreter->numerics == LAYA_NUMERICS_FP32 || array->type.dtype != LAYA_MIL_FP16) return;
    rounding all = {interpreter->run.kernels, array->values};
    laya_run_ranges(&interpreter->run, (size_t)array->count, 1, round_range, &all);
}

static void copy_alias(const laya_step *step)
{
    const laya_array *from = laya_step_operand(step, "x")->array, *to = step->outputs[0];
    if (to->values)
        memcpy(to->values, from->values, (size_t)to->count * sizeof *to->values);
    else
        memcpy(to->integers, from->integers, (size_t)to->count * sizeof *to->integers);
}

static laya_status run_step(const laya_interpreter *interpreter, const laya_planned_step *planned, laya_error *error)
{
    const laya_step *step = &planned->step;
    const laya_implementation *implementation = step->implementation;
    if (planned->kind == LAYA_STEP_COPY) copy_alias(step);
    if (planned->kind != LAYA_STEP_RUN) return LAYA_OK;
    laya_status status = implementation->run(&interpreter->run, step, error);
    if (status != LAYA_OK) {
        laya_error_prefix(error, "%.200s (%.100s): ", laya_mil_op_label(step->op), step->op->type);
        return status;
    }
    for (uint32_t at = 0; at < step->output_count && !implementation->exact; at++)
        round_array(interpreter, step->outputs[at]);
    return LAYA_OK;
}

laya_status laya_interpreter_run(laya_interpreter *interpreter, laya_error *error)
{
    const laya_interpreter_trace *trace = &interpreter->trace;
    for (uint32_t at = 0; at < interpreter->function->input_count; at++)
        round_array(interpreter, &interpreter->inputs[at]->array);
    for (uint32_t at = 0; at < interpreter->step_count; at++) {
        const laya_planned_step *planned = &interpreter->steps[at];
        LAYA_TRY(run_step(interpreter, planned, error));
        for (uint32_t made = 0; trace->see && made < planned->step.output_count; made++)
            trace->see(trace->user, planned->made[made]->value, planned->step.outputs[made]);
    }
    return LAYA_OK;
}
