/* SPDX-License-Identifier: Apache-2.0 */
/* What all constants share that are stored compressed (constexpr operations): parameters, and blocks of elements. */
#ifndef LAYA_COREML_CONSTEXPR_H
#define LAYA_COREML_CONSTEXPR_H

#include "mil/operations.h"

/* A constexpr operation whose types are right and whose bytes are at hand. */
typedef struct laya_constexpr {
    const laya_mil_op *op;
    const laya_mil_operation *form;
    const laya_mil_constant *constants[LAYA_MIL_MAX_PARAMETERS]; /* in the order of the form's parameters */
    laya_mil_type type;                                          /* of the output, as it is declared */
    uint64_t count;                                              /* elements of the output */
} laya_constexpr;

/*
 * Check an operation and find the constants of its parameters; each has as many bytes as its type says. Errors:
 * UNSUPPORTED (no constexpr operation of that opset), FORMAT (types; the output is declared otherwise; a parameter that
 * is no constant).
 */
laya_status laya_constexpr_read(const laya_mil_op *op, laya_mil_opset opset, laya_constexpr *out, laya_error *error);
/* The constant of one of the form's parameters; NULL: not given, of those that are not required. */
const laya_mil_constant *laya_constexpr_parameter(const laya_constexpr *from, const char *name);
/* A scalar axis of `rank` axes, counted from the first; 0 where it is not given. */
uint32_t laya_constexpr_axis(const laya_constexpr *from, const char *name, uint32_t rank);

/* ------------------------------------------------------------------ blocks
 * A walk over the elements of a tensor that is divided into `groups` blocks on every axis. Elements that follow each
 * other and belong to one block are a run. Blocks are counted in C order.
 */
typedef struct laya_block_walk {
    uint32_t rank;                    /* up to the last axis with more than one block */
    int64_t sides[LAYA_MIL_MAX_RANK]; /* steps inside of a block; 1 on the last axis, whose side is part of a run */
    int64_t groups[LAYA_MIL_MAX_RANK];
    int64_t inside[LAYA_MIL_MAX_RANK], group[LAYA_MIL_MAX_RANK]; /* where it stands */
    uint64_t run, left;                                          /* elements of a run, and those still to come */
    uint64_t block;                                              /* that the run belongs to */
} laya_block_walk;

/* groups: each divides its axis of the type. NULL: one block. */
laya_block_walk laya_block_walk_start(const laya_mil_type *type, const int64_t *groups);
/* The elements of the current run, at most `limit`; the walk moves on behind them in laya_block_walk_over. */
size_t laya_block_walk_ahead(const laya_block_walk *at, size_t limit);
void laya_block_walk_over(laya_block_walk *at, size_t count);

#endif
