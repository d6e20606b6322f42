/* SPDX-License-Identifier: Apache-2.0 */
/* Text forms of numbers, the same in every locale. */
#ifndef LAYA_BASE_NUMBER_H
#define LAYA_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

#define LAYA_NUMBER_SIZE 32 /* bytes that hold any of the texts below, terminator included */

/* Python's repr(float): the shortest digits that give the same double back. Returns the length. */
size_t laya_format_repr(char text[LAYA_NUMBER_SIZE], double value);
/* Nine significant digits, which identify a float32; ".0" is added to whole values. Returns the length. */
size_t laya_format_float32(char text[LAYA_NUMBER_SIZE], double value);
/* Python's round(value, 4): correctly rounded on the exact binary value, ties to even. */
double laya_round4(double value);
/* repr(round(value, 4)) of a finite value below 1e9 in magnitude. Returns the length. */
size_t laya_format_round4(char text[LAYA_NUMBER_SIZE], double value);
/*
 * A decimal number (JSON syntax, or NaN, Infinity, -Infinity) to the nearest double, as strtod in the C
 * locale. False when the text is not such a number.
 */
bool laya_parse_double(const char *text, size_t size, double *value);

#endif
