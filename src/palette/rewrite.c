/* SPDX-License-Identifier: Apache-2.0 */
/* The program with palettes in the place of weights. */
#include "palette/palettes.h"

#include "base/error.h"
#include "coreml/listing.h"
#include "mil/operations.h"

#include <string.h>

#define LUT_OPERATION "constexpr_lut_to_dense"

typedef struct rewriter {
    laya_mil_program *program;
    laya_mil_opset needed; /* the first opset that has the form */
    bool grouped;
    laya_error *error;
} rewriter;

/* ------------------------------------------------------------------ pieces */

static void *take(const rewriter *r, size_t count, size_t size)
{
    void *block = laya_arena_alloc(&r->program->arena, count, size);
    if (!block) laya_fail_memory(r->error, count * size);
    return block;
}

static laya_mil_constant *make_constant(const rewriter *r, const laya_mil_type *type, const void *bytes,
                                        uint64_t size)
{
    laya_mil_constant *constant = take(r, 1, sizeof *constant);
    if (constant) *constant = (laya_mil_constant){.type = *type, .bytes = bytes, .size = size};
    return constant;
}

/* ------------------------------------------------------------------ the two forms
 * Bound as coremltools 9 writes them: constants in place, which go to the weight file like those of const operations.
 */

/* Attributes of iOS 16: packed indices as bytes, a table, the shape. */
static laya_status put_attributes(const rewriter *r, const laya_palette_weight *weight)
{
    const laya_mil_type *type = &weight->constant->type;
    const laya_mil_type bytes = laya_mil_vector(LAYA_MIL_UINT8, (int64_t)weight->indices_size);
    const laya_mil_type table = laya_mil_vector(type->dtype, INT64_C(1) << weight->bits);
    const laya_mil_type sizes = laya_mil_vector(LAYA_MIL_UINT32, type->rank);
    unsigned char *shape = take(r, type->rank, 4);
    laya_mil_attribute *attributes = take(r, 3, sizeof *attributes);
    if (!shape || !attributes) return LAYA_ERROR_MEMORY;
    for (uint32_t axis = 0; axis < type->rank; axis++) {
        for (unsigned byte = 0; byte < 4; byte++)
            shape[4 * axis + byte] = (unsigned char)((uint64_t)type->dims[axis] >> (8 * byte) & 0xff);
    }
    attributes[0] = (laya_mil_attribute){"indices", make_constant(r, &bytes, weight->indices, weight->indices_size)};
    attributes[1] = (laya_mil_attribute){"lut", make_constant(r, &table, weight->lut, weight->lut_size)};
    attributes[2] = (laya_mil_attribute){"shape", make_constant(r, &sizes, shape, 4 * (uint64_t)type->rank)};
    for (unsigned at = 0; at < 3; at++) {
        if (!attributes[at].value) return LAYA_ERROR_MEMORY;
    }
    weight->op->inputs = NULL;
    weight->op->input_count = 0;
    weight->op->attributes = attributes;
    weight->op->attribute_count = 3;
    return LAYA_OK;
}

static laya_mil_dtype index_dtype(unsigned bits)
{
    switch (bits) {
    case 1: return LAYA_MIL_UINT1;
    case 2: return LAYA_MIL_UINT2;
    case 3: return LAYA_MIL_UINT3;
    case 4: return LAYA_MIL_UINT4;
    case 6: return LAYA_MIL_UINT6;
    default: return LAYA_MIL_UINT8;
    }
}

/* Inputs of iOS 18: indices in the shape of the weight, tables [groups, 1, 1, 1, 2^bits, 1]. */
static laya_status put_inputs(const rewriter *r, const laya_palette_weight *weight)
{
    laya_mil_type indices = weight->constant->type, tables = weight->constant->type;
    indices.dtype = index_dtype(weight->bits);
    tables.rank = 6;
    tables.dims[0] = weight->channels / weight->group;
    tables.dims[1] = tables.dims[2] = tables.dims[3] = tables.dims[5] = 1;
    tables.dims[4] = INT64_C(1) << weight->bits;
    laya_mil_argument *arguments = take(r, 2, sizeof *arguments);
    laya_mil_binding *bindings = take(r, 2, sizeof *bindings);
    if (!arguments || !bindings) return LAYA_ERROR_MEMORY;
    bindings[0] = (laya_mil_binding){.constant = make_constant(r, &indices, weight->indices, weight->indices_size)};
    bindings[1] = (laya_mil_binding){.constant = make_constant(r, &tables, weight->lut, weight->lut_size)};
    if (!bindings[0].constant || !bindings[1].constant) return LAYA_ERROR_MEMORY;
    arguments[0] = (laya_mil_argument){.name = "indices", .bindings = &bindings[0], .count = 1};
    arguments[1] = (laya_mil_argument){.name = "lut", .bindings = &bindings[1], .count = 1};
    weight->op->inputs = arguments;
    weight->op->input_count = 2;
    weight->op->attributes = NULL;
    weight->op->attribute_count = 0;
    return LAYA_OK;
}

/* The const operation becomes the one that expands its value. */
static laya_status put_palette(const rewriter *r, const laya_palette_weight *weight)
{
    LAYA_TRY(r->grouped ? put_inputs(r, weight) : put_attributes(r, weight));
    weight->op->type = LUT_OPERATION;
    weight->op->outputs[0]->constant = NULL;
    return LAYA_OK;
}

/* ------------------------------------------------------------------ the opset
 * What changes from CoreML5 to CoreML9 for the operations that are known here: the types that they take, which their
 * inference shows, and the parameters of gather. It got batch_dims, then validate_indices, and negative indices lost
 * their meaning. A parameter that has a default must be written, so an older gather is refused.
 */

static const char *missing_parameter(const laya_mil_op *op, laya_mil_opset opset)
{
    const laya_mil_operation *form = laya_mil_operation_find(op->type, opset);
    for (const laya_mil_parameter *at = form->parameters; at->name; at++) {
        if (at->flags & LAYA_MIL_DEFAULTED && !laya_mil_find_argument(op, at->name)) return at->name;
    }
    return NULL;
}

/* A dimension that only follows when the model runs agrees with every size. */
static bool agrees(const laya_mil_type *declared, const laya_mil_type *inferred)
{
    bool same = declared->kind == inferred->kind && declared->dtype == inferred->dtype &&
                declared->rank == inferred->rank;
    for (uint32_t axis = 0; same && axis < declared->rank; axis++)
        same = declared->dims[axis] == inferred->dims[axis] || inferred->dims[axis] == LAYA_MIL_UNKNOWN;
    return same;
}

/* The operation gives in the needed opset what it is declared to give. types: room for its outputs. */
static laya_status check_types(const rewriter *r, const laya_mil_op *op, laya_mil_type *types, laya_error *reason)
{
    LAYA_TRY(laya_mil_infer(op, r->needed, types, reason));
    for (uint32_t i = 0; i < op->output_count; i++) {
        char declared[LAYA_MIL_TYPE_TEXT], found[LAYA_MIL_TYPE_TEXT];
        if (agrees(&op->outputs[i]->type, &types[i])) continue;
        return laya_fail(reason, LAYA_ERROR_FORMAT, "%.200s (%.100s): its output is declared as %s, but would be %s",
                         laya_mil_op_label(op), op->type, laya_mil_type_text(&op->outputs[i]->type, declared),
                         laya_mil_type_text(&types[i], found));
    }
    const char *missing = missing_parameter(op, r->needed);
    if (!missing) return LAYA_OK;
    return laya_fail(reason, LAYA_ERROR_FORMAT, "%.200s (%.100s): it lacks the parameter '%.100s'",
                     laya_mil_op_label(op), op->type, missing);
}

static laya_status check_op(const rewriter *r, const laya_mil_op *op, laya_mil_opset from)
{
    laya_arena *arena = &r->program->arena;
    laya_arena_mark mark = laya_arena_save(arena);
    laya_mil_type *types = take(r, op->output_count, sizeof *types);
    laya_error reason;
    if (!types) return LAYA_ERROR_MEMORY;
    laya_error_clear(&reason);
    laya_status status = check_types(r, op, types, &reason);
    laya_arena_restore(arena, mark);
    if (status == LAYA_OK) return LAYA_OK;
    return laya_fail(r->error, LAYA_ERROR_UNSUPPORTED,
                     "the palettes need opset %s, and an operation of %s is not the same there: %.500s%s",
                     laya_mil_opset_name(r->needed), laya_mil_opset_name(from), reason.message,
                     r->grouped ? "; one table for each tensor, of 1, 2, 4, 6 or 8 bits, needs CoreML6 only" : "");
}

/* Whether a function can have the opset that the form needs. */
static laya_status check_function(const rewriter *r, const laya_mil_function *function)
{
    laya_listing listing;
    if (function->opset == 0 || function->specialization_count > 1) {
        return laya_fail(r->error, LAYA_ERROR_UNSUPPORTED,
                         "function '%.200s': palettes cannot be put into a function of opset '%.100s'%s",
                         function->name, function->opset_name,
                         function->opset == 0 ? ", which is not known here" : " with more than one specialization");
    }
    if (!r->grouped && function->opset >= LAYA_MIL_COREML8) {
        return laya_fail(r->error, LAYA_ERROR_UNSUPPORTED,
                         "function '%.200s': opset %s has no palettes whose parameters are attributes",
                         function->name, laya_mil_opset_name(function->opset));
    }
    if (function->opset >= r->needed) return LAYA_OK;
    LAYA_TRY(laya_listing_make(&listing, function, &r->program->arena, r->error));
    for (uint32_t at = 0; at < listing.count; at++) LAYA_TRY(check_op(r, listing.ops[at].op, function->opset));
    return LAYA_OK;
}

static void raise_opset(const rewriter *r, laya_mil_function *function)
{
    if (function->opset >= r->needed) return;
    function->opset = r->needed;
    function->opset_name = laya_mil_opset_name(r->needed);
    function->specialization_name = function->opset_name;
}

laya_status laya_palettes_rewrite(laya_mil_program *program, const laya_palette_weight *weights, uint32_t count,
                                  bool grouped_form, laya_error *error)
{
    rewriter r = {.program = program,
                  .needed = grouped_form ? LAYA_MIL_COREML8 : LAYA_MIL_COREML6,
                  .grouped = grouped_form,
                  .error = error};
    bool any = false;
    for (uint32_t at = 0; at < count; at++) any |= weights[at].lut != NULL;
    if (!any) return LAYA_OK;
    for (uint32_t at = 0; at < program->function_count; at++) LAYA_TRY(check_function(&r, &program->functions[at]));
    for (uint32_t at = 0; at < program->function_count; at++) raise_opset(&r, &program->functions[at]);
    if (program->specification_version < (int32_t)r.needed) program->specification_version = (int32_t)r.needed;
    for (uint32_t at = 0; at < count; at++) {
        if (weights[at].lut) LAYA_TRY(put_palette(&r, &weights[at]));
    }
    return LAYA_OK;
}
