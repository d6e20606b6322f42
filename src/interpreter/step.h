/* SPDX-License-Identifier: Apache-2.0 */
/* What the implementations of operations see: one step of a plan. */
#ifndef LAYA_INTERPRETER_STEP_H
#define LAYA_INTERPRETER_STEP_H

#include "interpreter/interpreter.h"
#include "kernels/kernels.h"
#include "mil/operations.h"

/* A value as a step reads it. */
typedef struct laya_operand {
    const laya_array *array;           /* values or integers are set, unless raw */
    const laya_mil_constant *constant; /* of constants: type and stored bytes (fp16 or fp32, little-endian) */
} laya_operand;

typedef struct laya_parameter_values {
    const char *name;
    laya_operand *operands;
    uint32_t count;
} laya_parameter_values;

typedef struct laya_step laya_step;

/* What all steps of a run share. */
typedef struct laya_run {
    laya_pool *pool;
    const laya_kernels *kernels;
    bool strict;          /* fp16 sums: every addition is rounded to fp16 */
    laya_mil_opset opset; /* of the function */
    float *scratch;       /* [threads, scratch_size] of one worker each */
    size_t scratch_size;  /* floats per worker */
    float *shared;        /* [largest shared_size of all steps] of the whole step, for packed panels */
} laya_run;

typedef struct laya_implementation {
    const char *type; /* of the operation */
    /* Outputs' memory is there, not cleared, and overlaps no input unless in_place allows it. */
    laya_status (*run)(const laya_run *run, const laya_step *step, laya_error *error);
    /* Floats of scratch per worker, and shared, that a step needs; NULL: none. */
    void (*needs)(const laya_step *step, const laya_kernels *kernels, size_t *scratch, size_t *shared);
    bool in_place;   /* the first output may lie in the memory of an input that has as many elements */
    bool exact;      /* moves values only: nothing to round */
    bool alias;      /* the output has the elements of x in their order (reshape, squeeze, expand_dims, identity): it
                        is the memory of x, or a copy is made; run is NULL */
    const char *raw; /* parameter that may stay as stored when it is a large fp16 or fp32 constant; NULL: none */
} laya_implementation;

struct laya_step {
    const laya_mil_op *op;
    const laya_implementation *implementation;
    laya_parameter_values *parameters;
    uint32_t parameter_count;
    laya_array **outputs;
    uint32_t output_count;
};

/* The first operand of a parameter; NULL: not given. */
const laya_operand *laya_step_operand(const laya_step *step, const char *name);
const laya_parameter_values *laya_step_parameter(const laya_step *step, const char *name);
/* Constant parameters with a fallback for those that a package left out. */
int32_t laya_step_integer(const laya_step *step, const char *name, int32_t fallback);
double laya_step_number(const laya_step *step, const char *name, double fallback);
bool laya_step_bool(const laya_step *step, const char *name, bool fallback);
const char *laya_step_string(const laya_step *step, const char *name, const char *fallback);
/* A list of integers or bools; NULL: not given. */
const int32_t *laya_step_integers(const laya_step *step, const char *name, size_t *count);

/* An axis parameter, negative ones counted from the end. */
uint32_t laya_step_axis(const laya_step *step, const char *name, int32_t fallback, uint32_t rank);

/* The nearest fp16 value, ties to even; beyond 65504 infinity. */
float laya_round_fp16(float value);
/* The same for an array, in place. */
void laya_round_fp16_array(float *values, size_t count);

/*
 * task(argument, begin, end) for ranges that cover 0 .. count - 1, on the pool where count * cost elements of work are
 * worth it. Ranges and their number may differ from machine to machine: results must not depend on them.
 */
typedef void (*laya_range_task)(const void *argument, size_t begin, size_t end);
void laya_run_ranges(const laya_run *run, size_t count, size_t cost, laya_range_task task, const void *argument);
/* The same for single tasks of `cost` each, which may use their worker's scratch. */
void laya_run_tasks(const laya_run *run, size_t count, size_t cost, laya_task task, void *argument);

/* Tables of implementations, each ends with type NULL. */
extern const laya_implementation
    laya_elementwise_implementations[]; /* add … select, casts, activations, comparisons */
extern const laya_implementation laya_reduction_implementations[]; /* reductions, norms, softmax */
extern const laya_implementation laya_product_implementations[];   /* conv, einsum, matmul, linear, attention */
extern const laya_implementation laya_shape_implementations[];     /* transpose … pad, gather, slices */

/*
 * Expand a constexpr operation (its parameters are constants) into dense stored bytes of its output type, from the
 * allocator. Exactly as coreml.md section 4 states. Errors: UNSUPPORTED, FORMAT, MEMORY.
 */
laya_status laya_constexpr_expand(const laya_mil_op *op, laya_mil_opset opset, const laya_allocator *allocator,
                                  unsigned char **bytes, uint64_t *size, laya_error *error);

#endif
