/* SPDX-License-Identifier: Apache-2.0 */
/* Moving elements between layouts: what transpose, split, slices, concat, stack, tile and pad have in common. */
#ifndef LAYA_INTERPRETER_MOVE_H
#define LAYA_INTERPRETER_MOVE_H

#include "interpreter/step.h"

/* Elements are 4 bytes in memory, whatever their type. */
#define LAYA_ELEMENT 4u
#define LAYA_LAYOUT_AXES (2 * LAYA_MIL_MAX_RANK)

/* A box of elements, and where they lie at both ends: strides count elements, 0 and negative ones are allowed. */
typedef struct laya_layout {
    uint32_t rank;
    int64_t dims[LAYA_LAYOUT_AXES];
    int64_t from[LAYA_LAYOUT_AXES];
    int64_t to[LAYA_LAYOUT_AXES];
} laya_layout;

/* Copy the box that begins at elements `from_first` and `to_first`. No two elements have one place at the end. */
void laya_move(const laya_run *run, const laya_layout *layout, const void *from, int64_t from_first, void *to,
               int64_t to_first);
/* The whole of both in order. */
void laya_move_all(const laya_run *run, const laya_array *from, const laya_array *to);

/* The elements of an array, of either kind. */
void *laya_array_data(const laya_array *array);
/* C order: strides of a tensor of this type. */
void laya_strides(const laya_mil_type *type, int64_t strides[LAYA_MIL_MAX_RANK]);

/* ------------------------------------------------------------------ operations in other files */

laya_status laya_run_split(const laya_run *run, const laya_step *step, laya_error *error);
laya_status laya_run_slice_by_index(const laya_run *run, const laya_step *step, laya_error *error);
laya_status laya_run_slice_by_size(const laya_run *run, const laya_step *step, laya_error *error);
laya_status laya_run_gather(const laya_run *run, const laya_step *step, laya_error *error);

#endif
