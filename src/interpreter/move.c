/* SPDX-License-Identifier: Apache-2.0 */
#include "interpreter/move.h"

#include <string.h>

#define BLOCK 16 /* sides of a square that is transposed at once */

/* A layout without needless axes, and the places of its first element. */
typedef struct move {
    laya_layout layout;
    const unsigned char *from;
    unsigned char *to;
    uint32_t crossed; /* axis whose elements follow each other in `from` while the last axis' do in `to`, of which
                         BLOCK are moved with each row; the last one: none */
} move;

void *laya_array_data(const laya_array *array)
{
    return array->values ? (void *)array->values : (void *)array->integers;
}

void laya_strides(const laya_mil_type *type, int64_t strides[LAYA_MIL_MAX_RANK])
{
    int64_t stride = 1;
    for (uint32_t axis = type->rank; axis > 0; axis--) {
        strides[axis - 1] = stride;
        stride *= type->dims[axis - 1];
    }
}

/* Drop axes of one element and join neighbours that are contiguous at both ends. False: there is no element. */
static bool simplify(const laya_layout *in, laya_layout *out)
{
    out->rank = 0;
    for (uint32_t axis = 0; axis < in->rank; axis++) {
        int64_t size = in->dims[axis];
        if (size == 0) return false;
        if (size == 1) continue;
        uint32_t last = out->rank - 1;
        bool joined = out->rank > 0 && out->from[last] == in->from[axis] * size &&
                      out->to[last] == in->to[axis] * size;
        if (!joined) {
            last = out->rank++;
            out->dims[last] = 1;
        }
        out->dims[last] *= size;
        out->from[last] = in->from[axis];
        out->to[last] = in->to[axis];
    }
    if (out->rank == 0) {
        out->rank = 1;
        out->dims[0] = out->from[0] = out->to[0] = 1;
    }
    return true;
}

/* ------------------------------------------------------------------ rows */

/* One row along the last axis. */
static void move_row(const unsigned char *from, int64_t from_stride, unsigned char *to, int64_t to_stride,
                     int64_t count)
{
    if (from_stride == 1 && to_stride == 1) {
        memcpy(to, from, (size_t)count * LAYA_ELEMENT);
        return;
    }
    int64_t from_step = from_stride * (int64_t)LAYA_ELEMENT, to_step = to_stride * (int64_t)LAYA_ELEMENT;
    for (int64_t i = 0; i < count; i++) memcpy(to + i * to_step, from + i * from_step, LAYA_ELEMENT);
}

/* `height` elements of the crossed axis, which are `apart` elements apart in `to`, times the last axis. */
static void move_crossed(const unsigned char *from, int64_t from_stride, unsigned char *to, int64_t apart,
                         int64_t height, int64_t count)
{
    for (int64_t first = 0; first < count; first += BLOCK) {
        int64_t end = count - first < BLOCK ? count : first + BLOCK;
        for (int64_t i = 0; i < height; i++) {
            const unsigned char *in = from + i * (int64_t)LAYA_ELEMENT;
            unsigned char *out = to + i * apart * (int64_t)LAYA_ELEMENT;
            for (int64_t j = first; j < end; j++) {
                memcpy(out + j * (int64_t)LAYA_ELEMENT, in + j * from_stride * (int64_t)LAYA_ELEMENT, LAYA_ELEMENT);
            }
        }
    }
}

static void move_one(const move *work, size_t row)
{
    const laya_layout *layout = &work->layout;
    uint32_t last = layout->rank - 1;
    int64_t from = 0, to = 0, height = 1;
    for (uint32_t axis = last; axis > 0; axis--) {
        int64_t at, size = layout->dims[axis - 1];
        if (axis - 1 == work->crossed) {
            size_t blocks = (size_t)((size + BLOCK - 1) / BLOCK);
            at = (int64_t)(row % blocks) * BLOCK;
            row /= blocks;
            height = size - at < BLOCK ? size - at : BLOCK;
        } else {
            at = (int64_t)(row % (size_t)size);
            row /= (size_t)size;
        }
        from += at * layout->from[axis - 1];
        to += at * layout->to[axis - 1];
    }
    const unsigned char *in = work->from + from * (int64_t)LAYA_ELEMENT;
    unsigned char *out = work->to + to * (int64_t)LAYA_ELEMENT;
    if (work->crossed < last)
        move_crossed(in, layout->from[last], out, layout->to[work->crossed], height, layout->dims[last]);
    else
        move_row(in, layout->from[last], out, layout->to[last], layout->dims[last]);
}

static void move_rows(const void *argument, size_t begin, size_t end)
{
    for (size_t row = begin; row < end; row++) move_one(argument, row);
}

/* Elements of one contiguous row. */
static void move_elements(const void *argument, size_t begin, size_t end)
{
    const move *work = argument;
    memcpy(work->to + begin * LAYA_ELEMENT, work->from + begin * LAYA_ELEMENT, (end - begin) * LAYA_ELEMENT);
}

/* The axis to transpose with the last one; the last one itself: none. */
static uint32_t find_crossed(const laya_layout *layout)
{
    uint32_t last = layout->rank - 1;
    if (layout->to[last] != 1 || layout->from[last] == 1) return last;
    for (uint32_t axis = 0; axis < last; axis++) {
        if (layout->from[axis] == 1) return axis;
    }
    return last;
}

void laya_move(const laya_run *run, const laya_layout *layout, const void *from, int64_t from_first, void *to,
               int64_t to_first)
{
    move work;
    if (!simplify(layout, &work.layout)) return;
    work.from = (const unsigned char *)from + from_first * (int64_t)LAYA_ELEMENT;
    work.to = (unsigned char *)to + to_first * (int64_t)LAYA_ELEMENT;
    uint32_t last = work.layout.rank - 1;
    size_t count = (size_t)work.layout.dims[last], rows = 1;
    if (last == 0 && work.layout.from[0] == 1 && work.layout.to[0] == 1) {
        laya_run_ranges(run, count, 1, move_elements, &work);
        return;
    }
    work.crossed = find_crossed(&work.layout);
    if (work.crossed < last) count *= BLOCK;
    for (uint32_t axis = 0; axis < last; axis++) {
        int64_t size = work.layout.dims[axis];
        rows *= (size_t)(axis == work.crossed ? (size + BLOCK - 1) / BLOCK : size);
    }
    laya_run_ranges(run, rows, count, move_rows, &work);
}

void laya_move_all(const laya_run *run, const laya_array *from, const laya_array *to)
{
    laya_layout layout = {.rank = 1, .dims = {(int64_t)from->count}, .from = {1}, .to = {1}};
    laya_move(run, &layout, laya_array_data(from), 0, laya_array_data(to), 0);
}
