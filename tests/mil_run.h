/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of a few operations, run by the interpreter. */
#ifndef LAYA_TEST_MIL_RUN_H
#define LAYA_TEST_MIL_RUN_H

#include "mil_program.h"

#include "interpreter/plan.h"

#define TEST_ELEMENTS 64 /* of an operand or result, at most */

/* An operand: a function input, or where `fixed` a constant bound in place. */
typedef struct test_operand {
    const char *name;
    laya_mil_dtype dtype;
    uint32_t rank;
    int64_t dims[5];
    double values[TEST_ELEMENTS];
    bool fixed;
    const char *text;
} test_operand;

#define VALUES(...) .values = {__VA_ARGS__}
#define SHAPE(rank_, ...) .rank = (rank_), .dims = {__VA_ARGS__}

typedef struct test_result {
    laya_mil_type type;
    double values[TEST_ELEMENTS];
} test_result;

/* ------------------------------------------------------------------ operands */

/* A vector operand of this type. */
#define VECTOR(name_, dtype_, count_, ...)                                                                           \
    {                                                                                                                \
        .name = (name_), .dtype = (dtype_), SHAPE(1, count_), VALUES(__VA_ARGS__)                                    \
    }
#define F32(name_, count_, ...) VECTOR(name_, LAYA_MIL_FP32, count_, __VA_ARGS__)
#define I32(name_, count_, ...) VECTOR(name_, LAYA_MIL_INT32, count_, __VA_ARGS__)
#define BOOLS(name_, count_, ...) VECTOR(name_, LAYA_MIL_BOOL, count_, __VA_ARGS__)
#define TEXT(name_, text_)                                                                                           \
    {                                                                                                                \
        .name = (name_), .text = (text_)                                                                             \
    }
/* A constant scalar. */
#define SCALAR(name_, dtype_, value_)                                                                                \
    {                                                                                                                \
        .name = (name_), .dtype = (dtype_), VALUES(value_), .fixed = true                                            \
    }
/* A constant list of integers. */
#define LIST(name_, count_, ...)                                                                                     \
    {                                                                                                                \
        .name = (name_), .dtype = LAYA_MIL_INT32, SHAPE(1, count_), VALUES(__VA_ARGS__), .fixed = true               \
    }

/* ------------------------------------------------------------------ programs */

#define FP32 LAYA_NUMERICS_FP32
#define FP16 LAYA_NUMERICS_FP16
#define STRICT LAYA_NUMERICS_FP16_STRICT

/* For CoreML8, with the input zero (one float) and the output first, its relu. */
void test_begin_program(laya_mil_program *program);
laya_mil_type test_operand_type(const test_operand *from);
/* The bytes of a constant, in the file's order. */
void test_encode(const laya_mil_type *type, const double *values, unsigned char *bytes);
/* Add a parameter, and where it is not fixed an input of the function of the same name. */
void test_add_operand(laya_mil_program *program, laya_mil_op *op, const test_operand *from);
/* Declare what the operation gives. */
void test_declare(laya_mil_op *op);

void test_write_array(const laya_array *array, const double *values);
void test_read_array(const laya_array *array, test_result *out);

laya_pool *test_open_pool(unsigned threads);
laya_interpreter *test_open_interpreter(const laya_mil_program *program, laya_numerics numerics, bool reuse,
                                        laya_pool *pool);
void test_run_interpreter(laya_interpreter *interpreter);

/* Run one operation on these operands, up to one without a name. */
test_result test_compute(const char *type, laya_numerics numerics, const test_operand *operands);
#define COMPUTE(type, numerics, ...) test_compute(type, numerics, (const test_operand[]){__VA_ARGS__, {0}})

/* Equal, or both NaN; nearly: within `ulps` units in the last place of float32. */
void test_expect(const test_result *found, size_t count, const double *values, double ulps);
#define EXPECT(found, ulps, ...)                                                                                     \
    do {                                                                                                             \
        const test_result expect_found = (found);                                                                    \
        const double expect_values[] = {__VA_ARGS__};                                                                \
        test_expect(&expect_found, sizeof expect_values / sizeof *expect_values, expect_values, ulps);               \
    } while (0)

#endif
