/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of elementwise operations; included by interpreter/elementwise*.c only. */
#ifndef LAYA_INTERPRETER_ELEMENTWISE_H
#define LAYA_INTERPRETER_ELEMENTWISE_H

#include "interpreter/step.h"

#define LAYA_ROW_OPERANDS 3

/* A run of elements: float or int32, by the function. */
typedef struct laya_row {
    const void *in[LAYA_ROW_OPERANDS];
    size_t step[LAYA_ROW_OPERANDS]; /* 1: an element each; 0: one for all */
    void *out;                      /* overlaps no input */
    size_t count;
    float a, b; /* constant parameters of the operation */
    const laya_kernels *kernels;
} laya_row;

typedef void (*laya_row_function)(const laya_row *row);

/* Two operands. */
void laya_add_floats(const laya_row *row);
void laya_add_integers(const laya_row *row);
void laya_sub_floats(const laya_row *row);
void laya_sub_integers(const laya_row *row);
void laya_mul_floats(const laya_row *row);
void laya_mul_integers(const laya_row *row);
void laya_real_div_floats(const laya_row *row);
void laya_real_div_integers(const laya_row *row); /* towards zero; by zero: 0 */
void laya_floor_div_floats(const laya_row *row);
void laya_floor_div_integers(const laya_row *row);
void laya_mod_floats(const laya_row *row); /* of the sign of the divisor */
void laya_mod_integers(const laya_row *row);
void laya_maximum_floats(const laya_row *row);
void laya_maximum_integers(const laya_row *row);
void laya_minimum_floats(const laya_row *row);
void laya_minimum_integers(const laya_row *row);
void laya_pow_floats(const laya_row *row);
void laya_pow_integers(const laya_row *row);
void laya_equal_floats(const laya_row *row);
void laya_equal_integers(const laya_row *row);
void laya_not_equal_floats(const laya_row *row);
void laya_not_equal_integers(const laya_row *row);
void laya_greater_floats(const laya_row *row);
void laya_greater_integers(const laya_row *row);
void laya_greater_equal_floats(const laya_row *row);
void laya_greater_equal_integers(const laya_row *row);
void laya_less_floats(const laya_row *row);
void laya_less_integers(const laya_row *row);
void laya_less_equal_floats(const laya_row *row);
void laya_less_equal_integers(const laya_row *row);
void laya_logical_and(const laya_row *row);
void laya_logical_or(const laya_row *row);
void laya_logical_xor(const laya_row *row);

/* One operand. */
void laya_logical_not(const laya_row *row);
void laya_relu(const laya_row *row);
void laya_relu6(const laya_row *row);
void laya_leaky_relu(const laya_row *row); /* a: slope below zero */
void laya_silu(const laya_row *row);
void laya_sigmoid(const laya_row *row);
void laya_softplus(const laya_row *row);
void laya_softsign(const laya_row *row);
void laya_tanh(const laya_row *row);
void laya_erf(const laya_row *row);
void laya_exp(const laya_row *row);
void laya_exp2_floats(const laya_row *row);
void laya_exp2_integers(const laya_row *row);
void laya_log(const laya_row *row); /* of x + a */
void laya_sqrt(const laya_row *row);
void laya_rsqrt(const laya_row *row);   /* of x + a */
void laya_inverse(const laya_row *row); /* of x + a */
void laya_square_floats(const laya_row *row);
void laya_square_integers(const laya_row *row);
void laya_abs_floats(const laya_row *row);
void laya_abs_integers(const laya_row *row);
void laya_sign_floats(const laya_row *row);
void laya_sign_integers(const laya_row *row);
void laya_sin(const laya_row *row);
void laya_cos(const laya_row *row);
void laya_tan(const laya_row *row);
void laya_ceil(const laya_row *row);
void laya_floor(const laya_row *row);
void laya_round(const laya_row *row); /* ties to even */
void laya_clip(const laya_row *row);  /* to a … b */
void laya_gelu_exact(const laya_row *row);
void laya_gelu_tanh(const laya_row *row);
void laya_gelu_sigmoid(const laya_row *row);

/* Casts. Floats to integers: towards zero, the nearest int32 for what is beyond, NaN: 0. */
void laya_copy_floats(const laya_row *row);
void laya_floats_to_integers(const laya_row *row);
void laya_floats_to_bools(const laya_row *row);
void laya_integers_to_floats(const laya_row *row);
void laya_copy_integers(const laya_row *row);
void laya_integers_to_bools(const laya_row *row);
/* Cut to a smaller type, as C does for unsigned types; on top of int32 values. */
void laya_cut_integers(int32_t *integers, size_t count, laya_mil_dtype dtype);

/* in[0] (int32) ? in[1] : in[2] */
void laya_select_floats(const laya_row *row);
void laya_select_integers(const laya_row *row);

#endif
