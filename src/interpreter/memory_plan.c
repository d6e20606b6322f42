/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory by the life of values. A value lives from the step that makes it to the last that reads it; inputs and
 * outputs of the function live for the whole run. In the order of the steps each value takes the first gap that is
 * large enough; what was read for the last time gives its place back after the step.
 */
#include "interpreter/plan.h"

#include <string.h>

#define PLACE_FLOATS ((size_t)16) /* places are multiples of 64 bytes */

typedef struct gap {
    size_t begin, size;
} gap;

typedef struct gaps {
    gap *at; /* ascending, never adjacent to each other */
    size_t count;
    size_t top; /* floats in use so far; no gap ends beyond */
} gaps;

/* ------------------------------------------------------------------ sharing */

static laya_planned_value *bound_value(const laya_interpreter *interpreter, const laya_mil_binding *binding)
{
    return binding->name ? laya_mil_names_get(&interpreter->names, binding->name) : NULL;
}

static uint32_t last_of(const laya_planned_value *value)
{
    return value->output ? LAYA_PLAN_FOREVER : value->last;
}

static void join(laya_planned_value *value, laya_planned_value *home)
{
    value->home = home;
    if (last_of(value) > home->last) home->last = last_of(value);
}

/* An output of the function is no view of an input: the caller may write the next inputs while it reads outputs. */
static laya_status plan_alias(const laya_interpreter *interpreter, laya_planned_step *planned, bool reuse,
                              laya_error *error)
{
    const laya_mil_argument *x = laya_mil_find_argument(planned->step.op, "x");
    const laya_operand *operand = laya_step_operand(&planned->step, "x");
    laya_planned_value *made = planned->made[0];
    if (operand->array->count != made->array.count ||
        (operand->array->values == NULL && operand->constant && operand->array->integers == NULL)) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "%.200s (%.100s): the output has other elements than the input",
                         laya_mil_op_label(planned->step.op), planned->step.op->type);
    }
    laya_planned_value *value = bound_value(interpreter, &x->bindings[0]);
    planned->kind = LAYA_STEP_COPY;
    if (!reuse || !value || (value->home->input && made->output)) return LAYA_OK;
    planned->kind = LAYA_STEP_SHARE;
    join(made, value->home);
    return LAYA_OK;
}

static bool is_integer(const laya_mil_type *type)
{
    return type->dtype != LAYA_MIL_FP16 && type->dtype != LAYA_MIL_FP32;
}

/* Whether the value's memory may become the output's: read here for the last time, of the same kind and size. Inputs
   and constants are needed forever. */
static bool fits_in_place(const laya_planned_value *value, const laya_planned_value *made, uint32_t step)
{
    return value && value->home->last == step && value->array.count == made->array.count &&
           is_integer(&value->array.type) == is_integer(&made->array.type);
}

static void plan_in_place(const laya_interpreter *interpreter, laya_planned_step *planned, uint32_t index)
{
    const laya_mil_op *op = planned->step.op;
    for (uint32_t at = 0; at < op->input_count; at++) {
        for (uint32_t binding = 0; binding < op->inputs[at].count; binding++) {
            laya_planned_value *value = bound_value(interpreter, &op->inputs[at].bindings[binding]);
            if (!fits_in_place(value, planned->made[0], index)) continue;
            join(planned->made[0], value->home);
            return;
        }
    }
}

/* The home of every value, and until when each home is needed. */
static laya_status plan_sharing(laya_interpreter *interpreter, bool reuse, laya_error *error)
{
    for (uint32_t at = 0; at < interpreter->value_count; at++) {
        laya_planned_value *value = &interpreter->values[at];
        value->last = last_of(value);
        if (value->input || !reuse) value->last = LAYA_PLAN_FOREVER;
    }
    for (uint32_t at = 0; at < interpreter->step_count; at++) {
        laya_planned_step *planned = &interpreter->steps[at];
        if (planned->step.implementation->alias) {
            LAYA_TRY(plan_alias(interpreter, planned, reuse, error));
        } else if (planned->step.implementation->in_place && reuse) {
            plan_in_place(interpreter, planned, at);
        }
    }
    return LAYA_OK;
}

/* ------------------------------------------------------------------ places */

static size_t place_size(const laya_planned_value *value)
{
    return ((size_t)value->array.count + PLACE_FLOATS - 1) / PLACE_FLOATS * PLACE_FLOATS;
}

static bool take_place(gaps *all, size_t size, size_t *place)
{
    for (size_t at = 0; at < all->count; at++) {
        gap *found = &all->at[at];
        if (found->size < size) continue;
        *place = found->begin;
        found->begin += size;
        found->size -= size;
        if (found->size == 0) {
            memmove(found, found + 1, (all->count - at - 1) * sizeof *found);
            all->count--;
        }
        return true;
    }
    bool at_top = all->count > 0 && all->at[all->count - 1].begin + all->at[all->count - 1].size == all->top;
    *place = at_top ? all->at[all->count - 1].begin : all->top;
    if (at_top) all->count--;
    return laya_add_size(*place, size, &all->top);
}

static void give_place(gaps *all, size_t begin, size_t size)
{
    size_t at = all->count;
    while (at > 0 && all->at[at - 1].begin > begin) at--;
    bool after_gap = at > 0 && all->at[at - 1].begin + all->at[at - 1].size == begin;
    bool before_gap = at < all->count && begin + size == all->at[at].begin;
    if (after_gap && before_gap) {
        all->at[at - 1].size += size + all->at[at].size;
        memmove(&all->at[at], &all->at[at + 1], (all->count - at - 1) * sizeof *all->at);
        all->count--;
    } else if (after_gap) {
        all->at[at - 1].size += size;
    } else if (before_gap) {
        all->at[at].begin = begin;
        all->at[at].size += size;
    } else {
        memmove(&all->at[at + 1], &all->at[at], (all->count - at) * sizeof *all->at);
        all->at[at] = (gap){begin, size};
        all->count++;
    }
}

/* Homes that begin at a step, then those that end there. */
static laya_status place_step(laya_interpreter *interpreter, gaps *all, laya_planned_value **ends, uint32_t index,
                              laya_error *error)
{
    const laya_planned_step *planned = &interpreter->steps[index];
    for (uint32_t at = 0; at < planned->step.output_count; at++) {
        laya_planned_value *value = planned->made[at];
        if (value->home != value) continue;
        if (!take_place(all, place_size(value), &value->place)) return laya_fail_memory(error, 0);
        if (value->last == LAYA_PLAN_FOREVER) continue;
        value->next_of_last = ends[value->last];
        ends[value->last] = value;
    }
    for (laya_planned_value *value = ends[index]; value; value = value->next_of_last)
        give_place(all, value->place, place_size(value));
    return LAYA_OK;
}

static laya_status place_values(laya_interpreter *interpreter, size_t *floats, laya_error *error)
{
    laya_arena_mark mark = laya_arena_save(&interpreter->arena);
    size_t steps = interpreter->step_count;
    gaps all = {.at = laya_arena_alloc(&interpreter->arena, interpreter->value_count + (size_t)1, sizeof(gap))};
    laya_planned_value **ends = laya_arena_alloc(&interpreter->arena, steps, sizeof(laya_planned_value *));
    if (!all.at || !ends) return laya_fail_memory(error, 0);
    for (size_t at = 0; at < steps; at++) ends[at] = NULL;
    for (uint32_t at = 0; at < interpreter->function->input_count; at++) {
        laya_planned_value *value = interpreter->inputs[at];
        if (!take_place(&all, place_size(value), &value->place)) return laya_fail_memory(error, 0);
    }
    for (uint32_t at = 0; at < interpreter->step_count; at++)
        LAYA_TRY(place_step(interpreter, &all, ends, at, error));
    laya_arena_restore(&interpreter->arena, mark);
    *floats = all.top;
    return LAYA_OK;
}

/* ------------------------------------------------------------------ memory */

static void set_array(laya_planned_value *value, float *base)
{
    const laya_planned_value *home = value->home;
    if (home->constant) {
        value->array.values = home->array.values;
        value->array.integers = home->array.integers;
    } else if (is_integer(&value->array.type)) {
        value->array.integers = (int32_t *)(void *)(base + home->place);
    } else {
        value->array.values = base + home->place;
    }
}

/* Scratch and shared memory of the step that needs most. */
static void measure_scratch(laya_interpreter *interpreter, size_t *scratch, size_t *shared)
{
    *scratch = *shared = 0;
    for (uint32_t at = 0; at < interpreter->step_count; at++) {
        const laya_step *step = &interpreter->steps[at].step;
        size_t own = 0, common = 0;
        if (!step->implementation->needs) continue;
        step->implementation->needs(step, interpreter->run.kernels, &own, &common);
        if (own > *scratch) *scratch = own;
        if (common > *shared) *shared = common;
    }
}

static laya_status allocate(laya_interpreter *interpreter, size_t floats, laya_error *error)
{
    size_t scratch, shared, total, threads = laya_pool_threads(interpreter->run.pool);
    measure_scratch(interpreter, &scratch, &shared);
    if (scratch > SIZE_MAX - PLACE_FLOATS) return laya_fail_memory(error, 0);
    scratch = (scratch + PLACE_FLOATS - 1) / PLACE_FLOATS * PLACE_FLOATS;
    if (!laya_mul_size(scratch, threads, &total) || !laya_add_size(total, floats, &total) ||
        !laya_add_size(total, shared, &total) || !laya_add_size(total, PLACE_FLOATS, &total))
        return laya_fail_memory(error, 0);
    interpreter->block = laya_alloc(&interpreter->allocator, total, sizeof(float));
    if (!interpreter->block)
        return laya_fail_memory(error, total > SIZE_MAX / sizeof(float) ? 0 : total * sizeof(float));
    float *base = interpreter->block;
    size_t skip = (size_t)(-(uintptr_t)interpreter->block & (PLACE_FLOATS * sizeof(float) - 1));
    base += skip / sizeof(float);
    interpreter->run.scratch = base + floats;
    interpreter->run.scratch_size = scratch;
    interpreter->run.shared = interpreter->run.scratch + scratch * threads;
    for (uint32_t at = 0; at < interpreter->value_count; at++) {
        laya_planned_value *value = &interpreter->values[at];
        if (value->constant) continue;
        set_array(value, base);
        interpreter->unplanned += value->array.count * sizeof(float);
    }
    interpreter->planned = (uint64_t)floats * sizeof(float);
    return LAYA_OK;
}

laya_status laya_plan_memory(laya_interpreter *interpreter, bool reuse, laya_error *error)
{
    size_t floats;
    LAYA_TRY(plan_sharing(interpreter, reuse, error));
    LAYA_TRY(place_values(interpreter, &floats, error));
    return allocate(interpreter, floats, error);
}
