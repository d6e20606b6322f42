/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter's own structures: values, their memory, and the steps of a run. */
#ifndef LAYA_INTERPRETER_PLAN_H
#define LAYA_INTERPRETER_PLAN_H

#include "base/error.h"
#include "interpreter/step.h"

#define LAYA_PLAN_FOREVER UINT32_MAX

/*
 * A value of the function. Where several share memory (an alias, a result in place), `home` of all of them is the
 * first one, which alone has a place.
 */
typedef struct laya_planned_value {
    const laya_mil_value *value;
    const laya_mil_constant *constant; /* of const and constexpr operations */
    laya_array array;                  /* of constants: filled in when a step needs them widened */
    laya_array stored;                 /* of constants: type and count alone */
    struct laya_planned_value *home;
    bool input;           /* of the function, or a constant: never written */
    bool output;          /* of the function: kept until the next run */
    uint32_t first, last; /* steps that make it and read it last; of a home: it or one that shares its memory */
    size_t place;         /* of a home: floats from the start of the block */
    struct laya_planned_value *next_of_last; /* homes with the same `last` */
} laya_planned_value;

typedef enum laya_step_kind {
    LAYA_STEP_RUN,
    LAYA_STEP_SHARE, /* an alias: nothing to do */
    LAYA_STEP_COPY   /* an alias whose memory may not be shared */
} laya_step_kind;

typedef struct laya_planned_step {
    laya_step step;
    laya_planned_value **made; /* [output_count] */
    laya_step_kind kind;
} laya_planned_step;

struct laya_interpreter {
    laya_allocator allocator;
    laya_arena arena; /* of everything that is not said to lie elsewhere */
    const laya_mil_program *program;
    const laya_mil_function *function;
    laya_numerics numerics;
    laya_mil_names names; /* of values, while the plan is made */
    laya_planned_value *values;
    uint32_t value_count;
    laya_planned_step *steps;
    uint32_t step_count;
    laya_planned_value **inputs;
    laya_planned_value **outputs;
    unsigned char **expanded; /* bytes of constexpr operations, from the allocator */
    uint32_t expanded_count;
    laya_run run;
    void *block; /* values that are computed, scratch, shared memory; from the allocator */
    uint64_t planned, unplanned;
    laya_interpreter_trace trace;
};

/* What tests may switch off. */
typedef struct laya_plan_options {
    bool reuse; /* of memory */
} laya_plan_options;

/* laya_interpreter_open with these options. */
laya_status laya_interpreter_open_with(const laya_mil_program *program, const char *function, laya_numerics numerics,
                                       const laya_plan_options *options, laya_pool *pool,
                                       const laya_allocator *allocator, laya_interpreter **out, laya_error *error);

/* ------------------------------------------------------------------ constants */

/* The array of a type, without memory. Errors: UNSUPPORTED (flexible shapes, types that are not computed with),
   MEMORY. */
laya_status laya_plan_array(const laya_mil_type *type, laya_array *array, laya_error *error);

/* float32 or int32 values of a constant, in the arena; of strings none. Nothing is done where it has them already.
   Errors: FORMAT (no bytes, a value beyond int32), UNSUPPORTED (type), MEMORY. */
laya_status laya_plan_widen(laya_arena *arena, const laya_mil_constant *constant, laya_array *array,
                            laya_error *error);

/* The constant with its bytes at hand: itself, or a copy in the arena that was read from its source. */
laya_status laya_plan_load(laya_arena *arena, const laya_mil_constant *constant, const laya_mil_constant **loaded,
                           laya_error *error);

/* ------------------------------------------------------------------ steps and memory */

/* Values and steps of the function, in its order. */
laya_status laya_plan_steps(laya_interpreter *interpreter, laya_error *error);

/* Memory for every value that is computed, and of the run: arrays of all values, `run`, `planned`, `unplanned`. */
laya_status laya_plan_memory(laya_interpreter *interpreter, bool reuse, laya_error *error);

#endif
