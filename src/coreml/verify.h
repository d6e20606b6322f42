/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the verifier share. Numbers and names of the checks: docs/GRAPHS.md. */
#ifndef LAYA_COREML_VERIFY_H
#define LAYA_COREML_VERIFY_H

#include "base/error.h"
#include "coreml/package.h"

typedef enum laya_check_number {
    LAYA_CHECK_NAMES = 1,
    LAYA_CHECK_INTERFACE = 2,
    LAYA_CHECK_TYPES = 3,
    LAYA_CHECK_PARAMETERS = 4,
    LAYA_CHECK_VALUES = 5,
    LAYA_CHECK_FILES = 6
} laya_check_number;

/* A constant whose bytes lie in the weight file. */
typedef struct laya_reference {
    const laya_mil_constant *constant;
    const laya_mil_op *op; /* that it belongs to */
    const char *parameter; /* of the operation that it is bound to; NULL: it is the value of a const operation */
    uint32_t order;        /* in which it was met */
} laya_reference;

typedef struct laya_checker {
    const laya_package *package;
    laya_verdict *verdict;
    const char *function; /* that findings name; NULL: the program has but one */
    laya_arena scratch;
    laya_reference *references;
    uint32_t reference_count, reference_capacity;
    uint32_t warnings_kept;
    bool failed; /* out of memory */
} laya_checker;

/* Add a finding, printf style. A failure of memory sets `failed`. */
void laya_check_error(laya_checker *checker, laya_check_number check, const char *format, ...) LAYA_PRINTF(3, 4);
void laya_check_warning(laya_checker *checker, laya_check_number check, const char *format, ...) LAYA_PRINTF(3, 4);

/* Check 2 and what check 5 says of inputs and outputs. */
laya_status laya_check_interface(laya_checker *checker, laya_error *error);
/* Checks 1 and 4, the types of check 3 and the values of check 5; collects the references into the weight file. */
laya_status laya_check_operations(laya_checker *checker, laya_error *error);
/* The weight file of check 3 and the values of check 5 that lie there. */
laya_status laya_check_weight_file(laya_checker *checker, laya_error *error);
/* Check 6 of the bundle that the package lies in, if it does. `hashed` receives the number of files compared. */
laya_status laya_check_bundle(laya_checker *checker, bool *bundle, uint32_t *hashed, laya_error *error);

/* Count a constant and check its size; its values when they are at hand, else remember the reference. */
void laya_check_constant(laya_checker *checker, const laya_mil_op *op, const char *parameter,
                         const laya_mil_constant *constant);

/* ------------------------------------------------------------------ walking through a function
 * Operations in order, those of nested blocks between the operation that holds them and the next.
 */
typedef enum laya_walk_step {
    LAYA_WALK_OPERATION, /* walk->op is met; its nested blocks follow */
    LAYA_WALK_RESULTS,   /* all of walk->op lies behind: its outputs can be used from here */
    LAYA_WALK_ENTER,     /* a nested block of walk->op begins: walk->block */
    LAYA_WALK_LEAVE,     /* walk->block ends: a nested one of walk->op, or the function's body */
    LAYA_WALK_END,
    LAYA_WALK_FAILED /* out of memory */
} laya_walk_step;

typedef struct laya_walk_frame laya_walk_frame;
typedef struct laya_walk {
    laya_arena *arena;
    laya_walk_frame *frame, *spare;
    const laya_mil_op *op;
    const laya_mil_block *block;
    bool nested;
} laya_walk;

void laya_walk_begin(laya_walk *walk, const laya_mil_function *function, laya_arena *arena);
laya_walk_step laya_walk_next(laya_walk *walk);

#endif
