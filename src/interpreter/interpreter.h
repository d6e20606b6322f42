/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Execution of a MIL function, operation by operation.
 *
 * Values of floating types are held as float32, of integer types and bool as int32, C order. Where the numerics say so,
 * the result of an operation of type fp16 is rounded to fp16 (to nearest, ties to even) before anything reads it.
 * Results have the same bits for any number of threads.
 */
#ifndef LAYA_INTERPRETER_INTERPRETER_H
#define LAYA_INTERPRETER_INTERPRETER_H

#include "base/threads.h"
#include "laya/bundle.h"
#include "mil/program.h"

/* A tensor in memory. Exactly one of values and integers is set, by the type; both NULL: raw (see step.h). */
typedef struct laya_array {
    laya_mil_type type;
    uint64_t count; /* elements */
    float *values;
    int32_t *integers;
} laya_array;

typedef struct laya_interpreter laya_interpreter;

/*
 * Prepare a function: constants widened (large weights of products stay as they are stored), constexpr operations
 * expanded, memory planned by the life of each value.
 *
 * function     name; NULL: the default one
 * program      must outlive the interpreter, with its package
 * pool         threads to use; must outlive the interpreter
 *
 * Errors: UNSUPPORTED (an operation that is not implemented, flexible shapes; names the operation), FORMAT (a graph that
 * the verifier would refuse), MEMORY.
 */
laya_status laya_interpreter_open(const laya_mil_program *program, const char *function, laya_numerics numerics,
                                  laya_pool *pool, const laya_allocator *allocator, laya_interpreter **interpreter,
                                  laya_error *error);
void laya_interpreter_close(laya_interpreter *interpreter);

/* Inputs and outputs of the function, in its order. */
uint32_t laya_interpreter_input_count(const laya_interpreter *interpreter);
uint32_t laya_interpreter_output_count(const laya_interpreter *interpreter);
/* Name and place of an input: the caller writes the values before each run (all of them: memory is reused). */
laya_array *laya_interpreter_input(laya_interpreter *interpreter, uint32_t index, const char **name);
/* Name and place of an output; valid until the next run. */
const laya_array *laya_interpreter_output(const laya_interpreter *interpreter, uint32_t index, const char **name);

/* One run. Inputs of type fp16 are rounded first where the numerics say so. Errors: MEMORY, FORMAT (an index out of
   range that only the data shows). */
laya_status laya_interpreter_run(laya_interpreter *interpreter, laya_error *error);

/* Bytes planned for values, and what they would need without reuse. */
void laya_interpreter_memory(const laya_interpreter *interpreter, uint64_t *planned, uint64_t *unplanned);

/* Sees each result after it was made and rounded, in order; for tests and audits. NULL: none. */
typedef struct laya_interpreter_trace {
    void *user;
    void (*see)(void *user, const laya_mil_value *value, const laya_array *array);
} laya_interpreter_trace;
void laya_interpreter_set_trace(laya_interpreter *interpreter, const laya_interpreter_trace *trace);

#endif
