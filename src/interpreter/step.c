/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the parameters of a step, rounding, and spreading work over the pool. */
#include "interpreter/step.h"

#include "base/half.h"

#include <string.h>

/* Elements of work below which a pool costs more than it saves, and of one task above it. */
#define SMALL_WORK ((size_t)32768)
#define TASK_WORK ((size_t)16384)
#define TASKS_PER_THREAD 4u

/* ------------------------------------------------------------------ parameters */

const laya_parameter_values *laya_step_parameter(const laya_step *step, const char *name)
{
    for (uint32_t at = 0; at < step->parameter_count; at++) {
        if (strcmp(step->parameters[at].name, name) == 0) return &step->parameters[at];
    }
    return NULL;
}

const laya_operand *laya_step_operand(const laya_step *step, const char *name)
{
    const laya_parameter_values *parameter = laya_step_parameter(step, name);
    return parameter ? &parameter->operands[0] : NULL;
}

int32_t laya_step_integer(const laya_step *step, const char *name, int32_t fallback)
{
    const laya_operand *operand = laya_step_operand(step, name);
    return operand && operand->array->integers && operand->array->count > 0 ? operand->array->integers[0] : fallback;
}

double laya_step_number(const laya_step *step, const char *name, double fallback)
{
    const laya_operand *operand = laya_step_operand(step, name);
    if (!operand || operand->array->count == 0) return fallback;
    if (operand->array->values) return (double)operand->array->values[0];
    return operand->array->integers ? (double)operand->array->integers[0] : fallback;
}

bool laya_step_bool(const laya_step *step, const char *name, bool fallback)
{
    return laya_step_integer(step, name, fallback) != 0;
}

const char *laya_step_string(const laya_step *step, const char *name, const char *fallback)
{
    const laya_operand *operand = laya_step_operand(step, name);
    const char *text = operand && operand->constant ? laya_mil_constant_string(operand->constant) : NULL;
    return text ? text : fallback;
}

const int32_t *laya_step_integers(const laya_step *step, const char *name, size_t *count)
{
    const laya_operand *operand = laya_step_operand(step, name);
    *count = operand && operand->array->integers ? (size_t)operand->array->count : 0;
    return operand ? operand->array->integers : NULL;
}

uint32_t laya_step_axis(const laya_step *step, const char *name, int32_t fallback, uint32_t rank)
{
    int32_t axis = laya_step_integer(step, name, fallback);
    return axis < 0 ? rank - (0u - (uint32_t)axis) : (uint32_t)axis;
}

/* ------------------------------------------------------------------ fp16 */

float laya_round_fp16(float value)
{
    return laya_round_to_half(value);
}

void laya_round_fp16_array(float *values, size_t count)
{
    for (size_t at = 0; at < count; at++) values[at] = laya_round_to_half(values[at]);
}

/* ------------------------------------------------------------------ work */

typedef struct ranges {
    laya_range_task task;
    const void *argument;
    size_t count, tasks;
} ranges;

static void run_range(void *argument, size_t index, unsigned worker)
{
    (void)worker;
    const ranges *all = argument;
    size_t size = all->count / all->tasks, larger = all->count % all->tasks;
    size_t begin = index * size + (index < larger ? index : larger);
    all->task(all->argument, begin, begin + size + (index < larger));
}

void laya_run_ranges(const laya_run *run, size_t count, size_t cost, laya_range_task task, const void *argument)
{
    size_t most = (size_t)laya_pool_threads(run->pool) * TASKS_PER_THREAD;
    size_t work = cost > 0 && count > SIZE_MAX / cost ? SIZE_MAX : count * cost;
    if (most <= TASKS_PER_THREAD || work < SMALL_WORK) {
        if (count > 0) task(argument, 0, count);
        return;
    }
    size_t tasks = work / TASK_WORK < most ? work / TASK_WORK : most;
    ranges all = {.task = task, .argument = argument, .count = count, .tasks = tasks < count ? tasks : count};
    laya_pool_run(run->pool, all.tasks, run_range, &all);
}

void laya_run_tasks(const laya_run *run, size_t count, size_t cost, laya_task task, void *argument)
{
    size_t work = cost > 0 && count > SIZE_MAX / cost ? SIZE_MAX : count * cost;
    if (work >= SMALL_WORK) {
        laya_pool_run(run->pool, count, task, argument);
        return;
    }
    for (size_t index = 0; index < count; index++) task(argument, index, 0);
}
