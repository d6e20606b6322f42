/* SPDX-License-Identifier: Apache-2.0 */
#include "coreml/lut.h"

#include "coreml/weight_file.h"

#include <string.h>

/* The form of iOS 16: one table, indices packed into bytes. */
static void read_packed(laya_lut *lut)
{
    lut->shape = lut->from->type;
    for (uint32_t axis = 0; axis < lut->shape.rank; axis++) lut->groups[axis] = 1;
    while (INT64_C(1) << lut->bits < lut->tables->type.dims[0]) lut->bits++;
}

/* The form of iOS 18: a table for each group, indices of a type of their own, entries of one or more elements. */
static void read_grouped(laya_lut *lut)
{
    lut->shape = lut->indices->type;
    lut->bits = laya_mil_dtype_bits(lut->shape.dtype);
    lut->vector = (size_t)lut->tables->type.dims[lut->shape.rank + 1];
    lut->vector_axis = laya_constexpr_axis(lut->from, "vector_axis", lut->shape.rank);
    for (uint32_t axis = 0; axis < lut->shape.rank; axis++) {
        lut->groups[axis] = lut->tables->type.dims[axis];
        lut->table_count *= (uint64_t)lut->groups[axis];
        if (axis > lut->vector_axis) lut->inner *= (uint64_t)lut->shape.dims[axis];
    }
}

laya_lut laya_lut_of(const laya_constexpr *from)
{
    laya_lut lut = {.from = from, .table_count = 1, .vector = 1, .inner = 1};
    lut.tables = laya_constexpr_parameter(from, "lut");
    lut.indices = laya_constexpr_parameter(from, "indices");
    if (from->form->in_attributes)
        read_packed(&lut);
    else
        read_grouped(&lut);
    lut.entries = 1u << lut.bits;
    lut.width = laya_mil_dtype_bits(from->type.dtype) / 8;
    lut.table_bytes = (uint64_t)lut.entries * lut.vector * lut.width;
    lut.count = from->count / lut.vector;
    return lut;
}

uint64_t laya_lut_place(const laya_lut *lut, uint64_t at, size_t part)
{
    if (lut->vector == 1) return at;
    return (at / lut->inner * lut->vector + part) * lut->inner + at % lut->inner;
}

/* ------------------------------------------------------------------ reading the indices */

void laya_lut_begin(laya_lut_reader *reader, const laya_lut *lut)
{
    reader->lut = lut;
    reader->walk = laya_block_walk_start(&lut->shape, lut->groups);
    reader->first = 0;
    reader->used = reader->held = 0;
}

bool laya_lut_next(laya_lut_reader *reader, laya_lut_run *run)
{
    const laya_lut *lut = reader->lut;
    if (reader->used == reader->held) {
        reader->first += reader->held;
        uint64_t left = lut->count - reader->first;
        reader->held = left < LAYA_LUT_PART ? (size_t)left : LAYA_LUT_PART;
        reader->used = 0;
        if (reader->held == 0) return false;
        laya_unpack_range(lut->indices->bytes, lut->bits, reader->first, reader->held, reader->indices);
    }
    run->table = reader->walk.block;
    run->first = reader->first + reader->used;
    run->indices = reader->indices + reader->used;
    run->count = laya_block_walk_ahead(&reader->walk, reader->held - reader->used);
    laya_block_walk_over(&reader->walk, run->count);
    reader->used += run->count;
    return true;
}

/* ------------------------------------------------------------------ expansion */

/* Copy the elements that indices name; a loop for each width, so that copies are single moves. */
static void look_up(const unsigned char *entries, unsigned width, const unsigned char *indices, size_t count,
                    unsigned char *out)
{
    if (width == 1) {
        for (size_t i = 0; i < count; i++) out[i] = entries[indices[i]];
    } else if (width == 2) {
        for (size_t i = 0; i < count; i++) memcpy(out + 2 * i, entries + 2 * (size_t)indices[i], 2);
    } else {
        for (size_t i = 0; i < count; i++) memcpy(out + 4 * i, entries + 4 * (size_t)indices[i], 4);
    }
}

/* The same for entries of several elements, which lie `inner` apart. */
static void look_up_vectors(const laya_lut *lut, const unsigned char *entries, const laya_lut_run *run,
                            unsigned char *out)
{
    size_t width = lut->width, entry = lut->vector * width;
    for (size_t i = 0; i < run->count; i++) {
        unsigned char *place = out + laya_lut_place(lut, run->first + i, 0) * width;
        for (size_t part = 0; part < lut->vector; part++)
            memcpy(place + part * lut->inner * width, entries + run->indices[i] * entry + part * width, width);
    }
}

void laya_lut_expand(const laya_lut *lut, unsigned char *out)
{
    laya_lut_reader reader;
    laya_lut_run run;
    laya_lut_begin(&reader, lut);
    while (laya_lut_next(&reader, &run)) {
        const unsigned char *entries = lut->tables->bytes + run.table * lut->table_bytes;
        if (lut->vector == 1)
            look_up(entries, lut->width, run.indices, run.count, out + run.first * lut->width);
        else
            look_up_vectors(lut, entries, &run, out);
    }
}
