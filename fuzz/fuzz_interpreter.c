/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the default function of a Core ML package in the interpreter, without the verifier before it, and runs it once
 * where that is little work. The input is that of the target `package`; the manifest in it is not read.
 */
#include "coreml/encode.h"
#include "fuzz_package.h"
#include "interpreter/plan.h"

#define MEMORY_LIMIT (16u << 20)  /* bytes asked for in all */
#define PLANNED_LIMIT (2u << 20)  /* bytes of values of a function that is run */
#define WORK_LIMIT (1ull << 22)   /* of a function that is run */
#define COUNT_LIMIT (1ull << 20)  /* elements of one value of a function that is run */
#define VALUES_LIMIT (1ull << 40) /* where sums stop */

/* ------------------------------------------------------------------ how much work a function is */

static uint64_t count_elements(const laya_mil_type *type)
{
    uint64_t count;
    return type && laya_mil_type_count(type, &count) && count <= COUNT_LIMIT ? count : COUNT_LIMIT + 1;
}

/* No operation takes more steps than its results have elements times the elements of its operands. */
static uint64_t work_of(const laya_mil_op *op)
{
    uint64_t read = 1, made = 1;
    for (uint32_t at = 0; at < op->input_count; at++) {
        for (uint32_t binding = 0; binding < op->inputs[at].count; binding++)
            read += count_elements(laya_mil_bound_type(&op->inputs[at].bindings[binding]));
    }
    for (uint32_t at = 0; at < op->output_count; at++) made += count_elements(&op->outputs[at]->type);
    return read > VALUES_LIMIT / made ? VALUES_LIMIT : read * made;
}

static bool is_little_work(const laya_mil_function *function)
{
    uint64_t work = 0;
    for (const laya_mil_op *op = function->body.first; op; op = op->next) {
        if (!laya_mil_is_const(op) && !laya_mil_is_constexpr(op)) work += work_of(op);
        if (work > WORK_LIMIT) return false;
    }
    return true;
}

/* ------------------------------------------------------------------ runs */

static void fill_inputs(laya_interpreter *interpreter)
{
    for (uint32_t at = 0; at < laya_interpreter_input_count(interpreter); at++) {
        laya_array *array = laya_interpreter_input(interpreter, at, NULL);
        int32_t kinds = array->type.dtype == LAYA_MIL_BOOL ? 2 : 3;
        for (size_t i = 0; i < array->count; i++) {
            if (array->values)
                array->values[i] = ((float)(i * 37 % 101) - 50.0f) / 8.0f;
            else
                array->integers[i] = (int32_t)(i % 3) % kinds;
        }
    }
}

/* Every bit of the outputs counts; one may be an alias of another. */
static uint64_t sum_outputs(const laya_interpreter *interpreter, laya_numerics numerics)
{
    uint64_t sum = 14695981039346656037u;
    for (uint32_t at = 0; at < laya_interpreter_output_count(interpreter); at++) {
        const laya_array *array = laya_interpreter_output(interpreter, at, NULL);
        for (size_t i = 0; i < array->count; i++) {
            uint32_t bits = 0;
            if (array->values) {
                float value = array->values[i];
                fuzz_check(numerics == LAYA_NUMERICS_FP32 || array->type.dtype != LAYA_MIL_FP16 || value != value ||
                               laya_round_fp16(value) == value,
                           "outputs of type fp16 are fp16 values");
                memcpy(&bits, &array->values[i], sizeof bits);
            } else if (array->integers) {
                bits = (uint32_t)array->integers[i];
            }
            sum = (sum ^ bits) * 1099511628211u;
        }
    }
    return sum;
}

/* What became of one opening and its run. */
typedef struct outcome {
    laya_status opened, run;
    bool was_run;
    uint64_t sum;
} outcome;

static outcome open_and_run(fuzz_memory *memory, const laya_mil_program *program, laya_pool *pool,
                            laya_numerics numerics, bool reuse)
{
    laya_error error = {0};
    laya_interpreter *interpreter = NULL;
    laya_plan_options options = {.reuse = reuse};
    outcome seen = {LAYA_OK, LAYA_OK, false, 0};
    memory->asked = 0;
    seen.opened = laya_interpreter_open_with(program, NULL, numerics, &options, pool, &memory->hooks, &interpreter,
                                             &error);
    fuzz_check_status(memory, seen.opened, &error);
    fuzz_check((seen.opened == LAYA_OK) == (interpreter != NULL), "an interpreter or an error");
    if (!interpreter) return seen;
    uint64_t planned, unplanned;
    laya_interpreter_memory(interpreter, &planned, &unplanned);
    seen.was_run = planned <= PLANNED_LIMIT && is_little_work(interpreter->function);
    if (seen.was_run) {
        fill_inputs(interpreter);
        seen.run = laya_interpreter_run(interpreter, &error);
        fuzz_check_status(memory, seen.run, &error);
        if (seen.run == LAYA_OK) seen.sum = sum_outputs(interpreter, numerics);
    }
    laya_interpreter_close(interpreter);
    return seen;
}

static void interpret(fuzz_memory *memory, const laya_mil_program *program)
{
    laya_error error = {0};
    laya_pool *pool = NULL;
    laya_status status = laya_pool_open(1, NULL, &pool, &error);
    fuzz_check(status == LAYA_OK, "a pool of one thread");
    memory->limit = MEMORY_LIMIT;
    outcome shared = open_and_run(memory, program, pool, LAYA_NUMERICS_FP16, true);
    outcome apart = open_and_run(memory, program, pool, LAYA_NUMERICS_FP16, false);
    if (shared.was_run && apart.was_run) {
        fuzz_check(shared.run == apart.run, "memory that is used again changes no status");
        fuzz_check(shared.sum == apart.sum, "memory that is used again changes no result");
    }
    open_and_run(memory, program, pool, LAYA_NUMERICS_FP16_STRICT, true);
    open_and_run(memory, program, pool, LAYA_NUMERICS_FP32, true);
    laya_pool_close(pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < FUZZ_PACKAGE_HEAD) return 0;
    fuzz_package parts = fuzz_package_open(data, size);
    fuzz_memory memory;
    laya_error error = {0};
    laya_mil_program program;
    fuzz_memory_init(&memory, data[0]);
    laya_mil_program_init(&program, &memory.hooks);
    laya_status status = laya_model_decode(&program, parts.model.data, parts.model.size, parts.weights.data,
                                           parts.weights.size, &error);
    fuzz_check_status(&memory, status, &error);
    if (status == LAYA_OK) interpret(&memory, &program);
    laya_mil_program_close(&program);
    fuzz_package_close(&parts);
    fuzz_memory_end(&memory);
    return 0;
}
