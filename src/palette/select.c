/* SPDX-License-Identifier: Apache-2.0 */
/* Which constants get tables: the weights of convolutions, told by their role. */
#include "palette/palettes.h"

#include "base/error.h"
#include "coreml/listing.h"

#include <inttypes.h>
#include <string.h>

/* A constant that may be a weight, and how it is used. */
typedef struct candidate {
    laya_mil_op *op;
    uint32_t convolutions; /* that read it as their weight */
    bool other;            /* something else reads it */
} candidate;

typedef struct selection {
    laya_arena *arena; /* of the program */
    laya_mil_names names;
    candidate *candidates;
    uint32_t count;
} selection;

/* ------------------------------------------------------------------ what a weight is */

/* Whether an element, without its sign, is zero or one; else 2. */
static unsigned magnitude(const laya_mil_constant *constant, uint64_t at)
{
    const unsigned char *bytes = constant->bytes;
    uint32_t bits, one;
    if (constant->type.dtype == LAYA_MIL_FP16) {
        bits = bytes[2 * at] | (uint32_t)(bytes[2 * at + 1] & 0x7fu) << 8;
        one = 0x3c00u;
    } else {
        bits = bytes[4 * at] | (uint32_t)bytes[4 * at + 1] << 8 | (uint32_t)bytes[4 * at + 2] << 16 |
               (uint32_t)(bytes[4 * at + 3] & 0x7fu) << 24;
        one = 0x3f800000u;
    }
    return bits == 0 ? 0 : (bits == one ? 1 : 2);
}

/* A kernel that moves channels and changes signs, no more: each output channel is one input channel. */
static bool only_moves(const laya_mil_constant *constant)
{
    uint64_t rows = (uint64_t)constant->type.dims[0], row = (uint64_t)constant->type.dims[1];
    if (rows != row || constant->type.dims[2] != 1 || constant->type.dims[3] != 1) return false;
    for (uint64_t at = 0; at < rows; at++) {
        unsigned sum = 0;
        for (uint64_t i = 0; i < row && sum < 2; i++) sum += magnitude(constant, at * row + i);
        if (sum != 1) return false;
    }
    return true;
}

/* The fixed matrix of RoPE in the lean graph, "rope_rotation" (study.md, S68: RoPE constants stay). */
static bool is_rotation(const char *name, const laya_mil_constant *constant)
{
    return strncmp(name, "rope_", 5) == 0 || strstr(name, "_rope_") != NULL || only_moves(constant);
}

static bool may_be_weight(const laya_mil_op *op)
{
    uint64_t elements, size;
    if (!laya_mil_is_const(op) || op->output_count != 1 || !op->outputs[0]->constant) return false;
    const laya_mil_constant *constant = op->outputs[0]->constant;
    const laya_mil_type *type = &constant->type;
    if (type->kind != LAYA_MIL_TENSOR || type->rank != 4) return false;
    if (type->dtype != LAYA_MIL_FP16 && type->dtype != LAYA_MIL_FP32) return false;
    if (!laya_mil_type_count(type, &elements) || elements <= LAYA_PALETTE_THRESHOLD) return false;
    if (type->dims[0] > UINT32_MAX || !laya_mil_type_equal(type, &op->outputs[0]->type)) return false;
    if (!constant->bytes || !laya_mil_type_size(type, &size) || size != constant->size) return false;
    return !is_rotation(op->outputs[0]->name, constant);
}

/* ------------------------------------------------------------------ uses */

static void note_use(const selection *s, const laya_mil_binding *binding, bool weight)
{
    candidate *found = binding->name ? laya_mil_names_get(&s->names, binding->name) : NULL;
    if (!found || binding->value != found->op->outputs[0]) return;
    if (weight)
        found->convolutions++;
    else
        found->other = true;
}

static void note_op(const selection *s, const laya_listed *listed)
{
    const laya_mil_op *op = listed->op;
    for (uint32_t at = 0; at < op->input_count; at++) {
        const laya_mil_argument *argument = &op->inputs[at];
        bool weight = listed->depth == 0 && strcmp(op->type, "conv") == 0 && strcmp(argument->name, "weight") == 0;
        for (uint32_t part = 0; part < argument->count; part++) note_use(s, &argument->bindings[part], weight);
    }
    for (uint32_t block = 0; block < op->block_count; block++) {
        for (uint32_t at = 0; at < op->blocks[block].output_count; at++)
            note_use(s, &op->blocks[block].outputs[at], false);
    }
}

/* Candidates of a function, and what reads them. */
static laya_status find_candidates(selection *s, const laya_mil_function *function, laya_error *error)
{
    laya_listing listing;
    uint32_t first = s->count;
    LAYA_TRY(laya_listing_make(&listing, function, s->arena, error));
    candidate *all = laya_arena_alloc(s->arena, first + listing.count, sizeof *all);
    if (!all) return laya_fail_memory(error, (first + listing.count) * sizeof *all);
    if (first) memcpy(all, s->candidates, first * sizeof *all);
    s->candidates = all;
    laya_mil_names_init(&s->names, &s->arena->allocator);
    laya_status status = LAYA_OK;
    for (laya_mil_op *op = function->body.first; op && status == LAYA_OK; op = op->next) {
        if (!may_be_weight(op)) continue;
        all[s->count] = (candidate){.op = op};
        if (!laya_mil_names_put(&s->names, op->outputs[0]->name, &all[s->count++], NULL))
            status = laya_fail_memory(error, 0);
    }
    for (uint32_t at = 0; at < listing.count && status == LAYA_OK; at++) note_op(s, &listing.ops[at]);
    for (uint32_t at = 0; at < function->body.output_count && status == LAYA_OK; at++)
        note_use(s, &function->body.outputs[at], false);
    laya_mil_names_close(&s->names);
    return status;
}

/* ------------------------------------------------------------------ weights */

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static laya_palette_weight weight_of(const candidate *from, uint32_t group_size)
{
    const laya_mil_constant *constant = from->op->outputs[0]->constant;
    const int64_t *dims = constant->type.dims;
    laya_palette_weight weight = {.op = from->op,
                                  .name = from->op->outputs[0]->name,
                                  .constant = constant,
                                  .channels = (uint32_t)dims[0],
                                  .row = (uint64_t)dims[1] * (uint64_t)dims[2] * (uint64_t)dims[3]};
    weight.group = group_size ? group_size : weight.channels;
    return weight;
}

static laya_status check_groups(const laya_palette_weight *weights, uint32_t count, laya_error *error)
{
    uint32_t common = 0;
    for (uint32_t at = 0; at < count; at++) common = common_divisor(common, weights[at].channels);
    for (uint32_t at = 0; at < count; at++) {
        const laya_palette_weight *weight = &weights[at];
        if (weight->channels % weight->group == 0) continue;
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "%.200s: groups of %" PRIu32 " do not divide its %" PRIu32
                         " output channels; choose a divisor of %" PRIu32
                         ", which divides those of all weights, or one table for each tensor",
                         weight->name, weight->group, weight->channels, common);
    }
    return LAYA_OK;
}

laya_status laya_palettes_select(laya_mil_program *program, uint32_t group_size, laya_palette_weight **weights,
                                 uint32_t *count, laya_error *error)
{
    selection s = {.arena = &program->arena};
    *count = 0;
    for (uint32_t at = 0; at < program->function_count; at++)
        LAYA_TRY(find_candidates(&s, &program->functions[at], error));
    *weights = laya_arena_alloc(s.arena, s.count, sizeof **weights);
    if (!*weights) return laya_fail_memory(error, s.count * sizeof **weights);
    for (uint32_t at = 0; at < s.count; at++) {
        const candidate *found = &s.candidates[at];
        if (found->convolutions && !found->other) (*weights)[(*count)++] = weight_of(found, group_size);
    }
    return check_groups(*weights, *count, error);
}

bool laya_palettes_grouped_form(const laya_mil_program *program, laya_palette_mode mode, uint32_t group_size,
                                unsigned bits)
{
    for (uint32_t at = 0; at < program->function_count; at++) {
        if (program->functions[at].opset >= LAYA_MIL_COREML8) return true;
    }
    return group_size > 0 || (bits == 3 && mode != LAYA_PALETTE_UNIQUE);
}
