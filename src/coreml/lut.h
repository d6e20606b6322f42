/* SPDX-License-Identifier: Apache-2.0 */
/* Palettes: constexpr_lut_to_dense, whose elements are indices into tables. For interpreter and inspector. */
#ifndef LAYA_COREML_LUT_H
#define LAYA_COREML_LUT_H

#include "coreml/constexpr.h"

#define LAYA_LUT_PART 4096u /* indices that are unpacked at once */

typedef struct laya_lut {
    const laya_constexpr *from;
    const laya_mil_constant *tables, *indices;
    laya_mil_type shape;               /* of the indices, one element each; the output's unless entries are vectors */
    int64_t groups[LAYA_MIL_MAX_RANK]; /* tables on every axis of `shape`, in C order in `tables` */
    uint64_t table_count, table_bytes;
    uint64_t count;       /* of indices */
    unsigned bits, width; /* bits of an index, bytes of an element */
    uint32_t entries;     /* of a table: 2^bits */
    size_t vector;        /* elements of an entry */
    uint32_t vector_axis; /* along which they lie in the output */
    uint64_t inner;       /* elements of the output from one element of an entry to the next */
} laya_lut;

/* The palette of a constexpr_lut_to_dense operation of either form. `from` must live as long. */
laya_lut laya_lut_of(const laya_constexpr *from);

/* The place in the output of element `part` of the entry that index `at` names. */
uint64_t laya_lut_place(const laya_lut *lut, uint64_t at, size_t part);

/* Write all elements; `out` has the bytes of the output. */
void laya_lut_expand(const laya_lut *lut, unsigned char *out);

/* ------------------------------------------------------------------ reading the indices */

/* Indices that follow each other and belong to one table. */
typedef struct laya_lut_run {
    uint64_t table, first;        /* which table; the place of the first index */
    const unsigned char *indices; /* one a byte; valid until the next run is read */
    size_t count;
} laya_lut_run;

typedef struct laya_lut_reader {
    const laya_lut *lut;
    laya_block_walk walk;
    uint64_t first;    /* place of the first index that is unpacked */
    size_t used, held; /* of those that are unpacked */
    unsigned char indices[LAYA_LUT_PART];
} laya_lut_reader;

void laya_lut_begin(laya_lut_reader *reader, const laya_lut *lut);
/* In the order of the elements, each index once. False: that were all. */
bool laya_lut_next(laya_lut_reader *reader, laya_lut_run *run);

#endif
