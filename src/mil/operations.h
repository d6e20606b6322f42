/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known about MIL operations: parameters, the opsets that have them, and the types of their outputs. The
 * builder declares outputs by it, the verifier checks declared ones. Rules: coremltools' operation definitions of
 * iOS 15 to iOS 18, as public documentation states them.
 */
#ifndef LAYA_MIL_OPERATIONS_H
#define LAYA_MIL_OPERATIONS_H

#include "mil/program.h"

typedef enum laya_mil_parameter_flags {
    LAYA_MIL_REQUIRED = 1,  /* has no default and must be there */
    LAYA_MIL_DEFAULTED = 2, /* has a default value, which a package states nevertheless */
    LAYA_MIL_CONSTANT = 4,  /* known at compile time: bound to a constant (or to a constexpr's output) */
    LAYA_MIL_VARIADIC = 8,  /* one binding per tensor */
    LAYA_MIL_OF_STATE = 16  /* a state, not a tensor */
} laya_mil_parameter_flags;

typedef struct laya_mil_parameter {
    const char *name;
    unsigned flags;
    uint64_t dtypes; /* that it may have, bit 1 << laya_mil_dtype each; 0: a value of any kind */
    char variable;   /* parameters with one letter have one dtype; 0: none */
} laya_mil_parameter;

#define LAYA_MIL_MAX_PARAMETERS 10

typedef enum laya_mil_output_count {
    LAYA_MIL_ONE_OUTPUT,
    LAYA_MIL_NO_OUTPUT,
    LAYA_MIL_MANY_OUTPUTS
} laya_mil_output_count;

typedef struct laya_mil_inference laya_mil_inference; /* mil/infer.h */

typedef struct laya_mil_operation {
    const char *type;
    laya_mil_opset since; /* this form of the operation exists from here … */
    laya_mil_opset until; /* … to here */
    bool in_attributes;   /* parameters are attributes (iOS16 constexpr operations) */
    laya_mil_parameter parameters[LAYA_MIL_MAX_PARAMETERS]; /* ends with name NULL */
    /* Check types and constants, give the outputs' types. Parameters, their dtypes and the number of outputs are
       checked before. */
    laya_status (*infer)(const laya_mil_inference *in, laya_mil_type *outputs);
    laya_mil_output_count outputs;
} laya_mil_operation;

/* The form of an operation that an opset has. NULL: unknown here, or not in that opset. */
const laya_mil_operation *laya_mil_operation_find(const char *type, laya_mil_opset opset);
/* The first opset that has any form of the operation; 0: not known here. */
laya_mil_opset laya_mil_operation_since(const char *type);

/*
 * The types of all outputs from the types and constants of the inputs: outputs[op->output_count]. Also checked:
 * required parameters are there, no unknown ones, constness, dtypes that must agree, shapes that must fit, the number
 * of outputs. Errors: FORMAT; messages name the operation's output or name, the parameter, expected and found.
 * UNSUPPORTED: the operation is not known here for this opset. const operations are known: their output has the type
 * of "val".
 */
laya_status laya_mil_infer(const laya_mil_op *op, laya_mil_opset opset, laya_mil_type *outputs, laya_error *error);

/* The name by which messages call an operation: its name, else its first output's, else its type. */
const char *laya_mil_op_label(const laya_mil_op *op);

/* Elements of an integer or bool constant, at most `capacity`; false when it is none (its bytes are not at hand, of
   sub-byte types) or longer. */
bool laya_mil_constant_integers(const laya_mil_constant *constant, int64_t *out, size_t capacity, size_t *count);
/* The value of a scalar (or one-element) fp16, fp32 or fp64 constant. */
bool laya_mil_constant_number(const laya_mil_constant *constant, double *out);
/* The text of a scalar string constant; NULL when it is none. */
const char *laya_mil_constant_string(const laya_mil_constant *constant);

#endif
