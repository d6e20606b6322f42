/* SPDX-License-Identifier: Apache-2.0 */
/* Operations as a list, counts by kind, constants as short texts: for inspector, comparison and bundle manifest. */
#ifndef LAYA_COREML_LISTING_H
#define LAYA_COREML_LISTING_H

#include "mil/program.h"

#define LAYA_NOT_LISTED UINT32_MAX

typedef struct laya_listed {
    const laya_mil_op *op;
    uint32_t parent; /* index of the operation whose block holds it; LAYA_NOT_LISTED: it is in the function's body */
    uint32_t block;  /* which of the parent's blocks */
    uint32_t place;  /* in that block, from 0 */
    uint32_t depth;  /* 0: in the function's body */
} laya_listed;

/* The operations of a function in order, those of nested blocks after the operation that has the blocks. */
typedef struct laya_listing {
    laya_listed *ops;
    uint32_t count;
} laya_listing;

/* Errors: MEMORY. The list lies in the arena. */
laya_status laya_listing_make(laya_listing *listing, const laya_mil_function *function, laya_arena *arena,
                              laya_error *error);

typedef struct laya_op_kind {
    const char *type;
    uint32_t count;
} laya_op_kind;

/* How many operations there are of each type, sorted by type. Errors: MEMORY. The array lies in the arena. */
laya_status laya_listing_kinds(const laya_listing *listings, uint32_t listing_count, laya_arena *arena,
                               laya_op_kind **kinds, uint32_t *count, laya_error *error);

/* ------------------------------------------------------------------ constants */

#define LAYA_FEW_ELEMENTS 8u /* constants of so many elements are shown with their values */
#define LAYA_ELEMENT_TEXT 32

/*
 * One element as text: "1.5", "-3", "true", "NaN", "-Infinity". False: strings, 8-bit floats, and types that are not
 * known here.
 */
bool laya_element_text(const laya_mil_constant *constant, uint64_t at, char text[LAYA_ELEMENT_TEXT]);
/* Number of elements when the values can be shown: at most LAYA_FEW_ELEMENTS, and text for each; else 0. */
uint32_t laya_few_elements(const laya_mil_constant *constant);

#endif
