/* SPDX-License-Identifier: Apache-2.0 */
#include "coreml/constexpr.h"

#include "base/error.h"

#include <string.h>

/* ------------------------------------------------------------------ parameters */

const laya_mil_constant *laya_constexpr_parameter(const laya_constexpr *from, const char *name)
{
    size_t at = 0;
    while (strcmp(from->form->parameters[at].name, name) != 0) at++;
    return from->constants[at];
}

uint32_t laya_constexpr_axis(const laya_constexpr *from, const char *name, uint32_t rank)
{
    const laya_mil_constant *constant = laya_constexpr_parameter(from, name);
    int64_t axis = 0;
    size_t count;
    if (constant && laya_mil_constant_integers(constant, &axis, 1, &count) && axis < 0) axis += rank;
    return (uint32_t)axis;
}

/* Find a parameter's constant. Its bytes are at hand and as many as its type says. */
static laya_status find_constant(const laya_constexpr *from, const laya_mil_parameter *wanted,
                                 const laya_mil_constant **constant, laya_error *error)
{
    uint64_t size;
    const laya_mil_argument *argument = laya_mil_find_argument(from->op, wanted->name);
    *constant = argument ? laya_mil_bound_constant(&argument->bindings[0]) : NULL;
    if (from->form->in_attributes) *constant = laya_mil_find_attribute(from->op, wanted->name);
    if (*constant ? (*constant)->strings != NULL : !(wanted->flags & LAYA_MIL_REQUIRED)) return LAYA_OK;
    bool known = *constant && laya_mil_type_size(&(*constant)->type, &size) && size == (*constant)->size;
    if (known && ((*constant)->bytes || size == 0)) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_FORMAT, "parameter '%s': its bytes cannot be read", wanted->name);
}

laya_status laya_constexpr_read(const laya_mil_op *op, laya_mil_opset opset, laya_constexpr *out, laya_error *error)
{
    *out = (laya_constexpr){.op = op, .form = laya_mil_operation_find(op->type, opset)};
    if (!out->form || op->output_count != 1 || !laya_mil_is_constexpr(op)) {
        const char *name = laya_mil_opset_name(opset);
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "%.200s (%.100s): this operation cannot be expanded in %s",
                         laya_mil_op_label(op), op->type, name ? name : "this opset");
    }
    /* Types are the declared ones, which users of the output rely on. */
    LAYA_TRY(laya_mil_infer(op, opset, &out->type, error));
    if (!laya_mil_type_equal(&out->type, &op->outputs[0]->type)) {
        char wanted[LAYA_MIL_TYPE_TEXT], found[LAYA_MIL_TYPE_TEXT];
        return laya_fail(error, LAYA_ERROR_FORMAT, "the output is declared as %s, expected %s",
                         laya_mil_type_text(&op->outputs[0]->type, found), laya_mil_type_text(&out->type, wanted));
    }
    for (size_t at = 0; out->form->parameters[at].name; at++)
        LAYA_TRY(find_constant(out, &out->form->parameters[at], &out->constants[at], error));
    if (laya_mil_type_count(&out->type, &out->count)) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_FORMAT, "more elements than can be counted");
}

/* ------------------------------------------------------------------ blocks */

laya_block_walk laya_block_walk_start(const laya_mil_type *type, const int64_t *groups)
{
    laya_block_walk at = {.rank = type->rank, .run = 1};
    while (at.rank > 0 && (!groups || groups[at.rank - 1] == 1)) at.run *= (uint64_t)type->dims[--at.rank];
    for (uint32_t axis = 0; axis < at.rank; axis++) {
        at.groups[axis] = groups[axis];
        at.sides[axis] = type->dims[axis] / groups[axis];
    }
    if (at.rank > 0) {
        at.run *= (uint64_t)at.sides[at.rank - 1];
        at.sides[at.rank - 1] = 1;
    }
    at.left = at.run;
    return at;
}

static void next_run(laya_block_walk *at)
{
    uint64_t stride = 1;
    at->left = at->run;
    for (uint32_t axis = at->rank; axis > 0; axis--) {
        if (++at->inside[axis - 1] < at->sides[axis - 1]) return;
        at->inside[axis - 1] = 0;
        at->block += stride;
        if (++at->group[axis - 1] < at->groups[axis - 1]) return;
        at->group[axis - 1] = 0;
        stride *= (uint64_t)at->groups[axis - 1];
        at->block -= stride;
    }
}

size_t laya_block_walk_ahead(const laya_block_walk *at, size_t limit)
{
    return at->left < limit ? (size_t)at->left : limit;
}

void laya_block_walk_over(laya_block_walk *at, size_t count)
{
    at->left -= count;
    if (at->left == 0) next_run(at);
}
