/* SPDX-License-Identifier: Apache-2.0 */
/* A small MIL program that is right, and the means to make it wrong; what the verifier says of it. */
#ifndef LAYA_TEST_MIL_PROGRAM_H
#define LAYA_TEST_MIL_PROGRAM_H

#include "support.h"

#include "coreml/package.h"

#define TEST_CHANNELS 64
#define TEST_LENGTH 32

/* fp16 [1, 64, 1, 32] */
laya_mil_type test_hidden_type(void);

/*
 * For CoreML7, without any finding. Inputs x, mask; outputs y, second; all of the hidden type. Operations in order, by
 * their outputs: norm (layer_norm with gamma and beta), wide (conv with weight [64, 64, 1, 1]), masked (add), soft
 * (softmax), halves_0 and halves_1 (split), joined (concat), y (gelu), second (relu of halves_0).
 */
void test_build_program(laya_mil_program *program, const laya_allocator *allocator);
/* A package of this program, without files. The program stays the caller's. */
laya_package test_in_memory(const laya_mil_program *program);

/* ------------------------------------------------------------------ parts of a program */

laya_mil_function *test_main_function(laya_mil_program *program);
/* Zeroed memory of the program's arena. */
void *test_take(laya_mil_program *program, size_t size);
/* By the name of the first output; the test fails when there is none. */
laya_mil_op *test_find_op(laya_mil_program *program, const char *output);
laya_mil_value *test_find_value(laya_mil_program *program, const char *name);
laya_mil_argument *test_find_input(laya_mil_program *program, const char *output, const char *parameter);

/* Rename a value where it is made and used. */
void test_rename(laya_mil_program *program, laya_mil_value *value, const char *name);
void test_bind(laya_mil_binding *binding, laya_mil_value *value);
/* `bytes` NULL: zeros. */
laya_mil_constant *test_make_constant(laya_mil_program *program, laya_mil_type type, const void *bytes);
/* Put another constant in place of a const operation's value. */
void test_replace_constant(laya_mil_program *program, const char *name, laya_mil_type type, const void *bytes);
/* Bind a parameter to a constant in place, as some writers do. */
void test_bind_constant(laya_mil_program *program, laya_mil_argument *argument, laya_mil_type type,
                        const void *bytes);
laya_mil_argument *test_add_input(laya_mil_program *program, laya_mil_op *op, const char *parameter);
void test_remove_input(laya_mil_program *program, const char *output, const char *parameter);
void test_add_attribute(laya_mil_program *program, laya_mil_op *op, const char *name,
                        const laya_mil_constant *constant);
laya_mil_op *test_make_op(laya_mil_program *program, const char *type, const char *name, laya_mil_type output);
void test_append(laya_mil_block *block, laya_mil_op *op);
/* At the end of the function. */
laya_mil_op *test_append_op(laya_mil_program *program, const char *type, const char *name, laya_mil_type output);
/* With the one parameter x, the value of that name, whose type it keeps. */
laya_mil_op *test_append_unary(laya_mil_program *program, const char *type, const char *name, const char *x);
/* In the function and in the description. */
void test_add_output(laya_mil_program *program, laya_mil_value *value);
laya_mil_value *test_add_function_input(laya_mil_program *program, const char *name, laya_mil_type type);

/* ------------------------------------------------------------------ findings */

/* laya_package_check, which must succeed. Close the verdict. */
void test_check_package(const laya_package *package, laya_verdict *verdict);
void test_print_findings(const laya_verdict *verdict);
/* A finding of this severity and check whose text holds `text`. */
bool test_has_finding(const laya_verdict *verdict, bool error, unsigned check, const char *text);

typedef enum test_outcome {
    TEST_NOTHING, /* no finding */
    TEST_WARNING, /* this warning and nothing else */
    TEST_ERROR,   /* this error and nothing else */
    TEST_ALSO     /* this error, among others */
} test_outcome;

typedef struct test_change {
    const char *name;
    void (*make)(laya_mil_program *program);
    test_outcome outcome;
    unsigned check;
    const char *text;
} test_change;

#define TEST_CHANGE(make, outcome, check, text)                                                                      \
    {                                                                                                                \
#make, make, outcome, check, text                                                                            \
    }

/* Make each change to a new program and compare what the verifier finds. */
void test_run_changes(const test_change *changes, size_t count);

#endif
