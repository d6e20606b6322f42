/* SPDX-License-Identifier: Apache-2.0 */
/* One table: the weights of a group of output channels become 2^bits values and an index for each. */
#ifndef LAYA_PALETTE_GROUP_H
#define LAYA_PALETTE_GROUP_H

#include "laya/palette.h"
#include "mil/type.h"

#define LAYA_PALETTE_MAX_BITS 8u
#define LAYA_PALETTE_MAX_ENTRIES 256u

/* What a table changes. Sums in float64, in a fixed order. */
typedef struct laya_palette_error {
    double sse;             /* sum of (weight - table entry)^2 */
    double energy;          /* sum of weight^2 */
    double weighted_sse;    /* the same sums with the activation's mean square as factor; where there is none: sse */
    double weighted_energy; /*   and energy */
    double largest;         /* |weight - table entry| */
} laya_palette_error;

/* Add the figures of a part to those of the whole. */
void laya_palette_error_add(laya_palette_error *whole, const laya_palette_error *part);

/* Working memory, for one thread. */
typedef struct laya_grouper laya_grouper;

typedef struct laya_group_source {
    const unsigned char *bytes; /* [rows, row] weights, fp16 or fp32, little-endian */
    laya_mil_dtype dtype;
    uint64_t rows;       /* output channels */
    uint64_t row;        /* elements of an output channel */
    const float *energy; /* [row] mean square of the activation that each element multiplies; NULL: 1 */
} laya_group_source;

/* largest: the most elements of a group. Errors: FORMAT (2^32 - 1 or more), MEMORY. */
laya_status laya_grouper_open(uint64_t largest, const laya_allocator *allocator, laya_grouper **out,
                              laya_error *error);
/* NULL is allowed. */
void laya_grouper_close(laya_grouper *grouper);

/*
 * Distinct values of a group, -0 and +0 being one. Errors: FORMAT (a weight that is not finite; names row and column),
 * MEMORY.
 */
laya_status laya_group_distinct(laya_grouper *grouper, const laya_group_source *source, uint32_t *distinct,
                                laya_error *error);

/*
 * Make the table.
 *
 * mode     WEIGHTED without an energy equals KMEANS. An energy below a millionth of the row's mean counts as that
 * bits     1 to 8
 * lut      [2^bits] entries in the weights' type, little-endian; ascending, those that are not used are 0 (KMEANS,
 *          WEIGHTED, UNIQUE)
 * indices  [rows * row], one a byte
 *
 * Errors: FORMAT (a weight that is not finite; UNIQUE with more than 2^bits values), MEMORY.
 */
laya_status laya_group_make(laya_grouper *grouper, const laya_group_source *source, laya_palette_mode mode,
                            unsigned bits, unsigned char *lut, unsigned char *indices, laya_palette_error *errors,
                            laya_error *error);

#endif
