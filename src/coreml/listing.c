/* SPDX-License-Identifier: Apache-2.0 */
#include "coreml/listing.h"

#include "base/error.h"
#include "base/half.h"
#include "base/number.h"
#include "coreml/weight_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first operation in the blocks of operation `parent`, from block `from` on; op NULL: they are empty. */
static laya_listed enter_blocks(const laya_listing *listing, uint32_t parent, uint32_t from)
{
    const laya_mil_op *op = listing->ops[parent].op;
    for (uint32_t block = from; block < op->block_count; block++) {
        if (op->blocks[block].first)
            return (laya_listed){op->blocks[block].first, parent, block, 0, listing->ops[parent].depth + 1};
    }
    return (laya_listed){0};
}

/* What comes after the last operation of the list; op NULL: nothing. */
static laya_listed following(const laya_listing *listing)
{
    uint32_t at = listing->count - 1;
    laya_listed next = enter_blocks(listing, at, 0);
    while (!next.op && at != LAYA_NOT_LISTED) {
        const laya_listed *done = &listing->ops[at];
        if (done->op->next)
            return (laya_listed){done->op->next, done->parent, done->block, done->place + 1, done->depth};
        at = done->parent;
        if (at != LAYA_NOT_LISTED) next = enter_blocks(listing, at, done->block + 1);
    }
    return next;
}

laya_status laya_listing_make(laya_listing *listing, const laya_mil_function *function, laya_arena *arena,
                              laya_error *error)
{
    *listing = (laya_listing){0};
    uint32_t capacity = 0;
    laya_listed next = {.op = function->body.first, .parent = LAYA_NOT_LISTED};
    while (next.op) {
        if (listing->count == capacity) {
            capacity = capacity ? capacity * 2 : 64;
            laya_listed *larger = laya_arena_alloc(arena, capacity, sizeof *larger);
            if (!larger) return laya_fail_memory(error, capacity * sizeof *larger);
            if (listing->count) memcpy(larger, listing->ops, listing->count * sizeof *larger);
            listing->ops = larger;
        }
        listing->ops[listing->count++] = next;
        next = following(listing);
    }
    return LAYA_OK;
}

static int by_type(const void *a, const void *b)
{
    return strcmp(((const laya_op_kind *)a)->type, ((const laya_op_kind *)b)->type);
}

laya_status laya_listing_kinds(const laya_listing *listings, uint32_t listing_count, laya_arena *arena,
                               laya_op_kind **kinds, uint32_t *count, laya_error *error)
{
    size_t total = 0, used = 0;
    *count = 0;
    for (uint32_t at = 0; at < listing_count; at++) total += listings[at].count;
    laya_op_kind *all = *kinds = laya_arena_alloc(arena, total, sizeof *all);
    if (!all) return laya_fail_memory(error, total * sizeof *all);
    for (uint32_t at = 0; at < listing_count; at++) {
        for (uint32_t op = 0; op < listings[at].count; op++)
            all[used++] = (laya_op_kind){listings[at].ops[op].op->type, 1};
    }
    if (used) qsort(all, used, sizeof *all, by_type);
    for (size_t at = 0; at < used; at++) {
        if (*count && strcmp(all[*count - 1].type, all[at].type) == 0)
            all[*count - 1].count++;
        else
            all[(*count)++] = all[at];
    }
    return LAYA_OK;
}

/* ------------------------------------------------------------------ constants */

static uint64_t load(const unsigned char *bytes, unsigned size)
{
    uint64_t value = 0;
    for (unsigned at = 0; at < size; at++) value |= (uint64_t)bytes[at] << 8 * at;
    return value;
}

static double load_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Nine digits identify a float32; they are enough for what is narrower. */
static bool put_float(char text[LAYA_ELEMENT_TEXT], float value)
{
    if (isfinite(value))
        laya_format_float32(text, (double)value);
    else
        laya_format_repr(text, (double)value);
    return true;
}

static bool put_integer(char text[LAYA_ELEMENT_TEXT], uint64_t raw, unsigned bits, bool is_signed)
{
    if (is_signed && bits < 64 && raw >> (bits - 1))
        snprintf(text, LAYA_ELEMENT_TEXT, "-%" PRIu64, (UINT64_C(1) << bits) - raw);
    else if (is_signed && raw >> 63)
        snprintf(text, LAYA_ELEMENT_TEXT, "-%" PRIu64, ~raw + 1);
    else
        snprintf(text, LAYA_ELEMENT_TEXT, "%" PRIu64, raw);
    return true;
}

bool laya_element_text(const laya_mil_constant *constant, uint64_t at, char text[LAYA_ELEMENT_TEXT])
{
    laya_mil_dtype dtype = constant->type.dtype;
    unsigned bits = laya_mil_dtype_bits(dtype);
    if (constant->type.kind != LAYA_MIL_TENSOR || bits == 0 || !constant->bytes) return false;
    uint64_t raw = bits < 8 ? laya_unpack_bits(constant->bytes, at, bits)
                            : load(constant->bytes + at * (bits / 8), bits / 8);
    switch (dtype) {
    case LAYA_MIL_BOOL: snprintf(text, LAYA_ELEMENT_TEXT, "%s", raw ? "true" : "false"); return true;
    case LAYA_MIL_FP16: return put_float(text, laya_half_to_float((uint16_t)raw));
    case LAYA_MIL_BF16: return put_float(text, laya_bfloat_to_float((uint16_t)raw));
    case LAYA_MIL_FP32: return put_float(text, laya_float_of_bits((uint32_t)raw));
    case LAYA_MIL_FP64: laya_format_repr(text, load_double(raw)); return true;
    case LAYA_MIL_FLOAT8E4M3FN:
    case LAYA_MIL_FLOAT8E5M2: return false;
    default: return put_integer(text, raw, bits, dtype >= LAYA_MIL_INT8 && dtype <= LAYA_MIL_INT4);
    }
}

uint32_t laya_few_elements(const laya_mil_constant *constant)
{
    char text[LAYA_ELEMENT_TEXT];
    uint64_t count;
    if (constant->type.kind != LAYA_MIL_TENSOR) return 0;
    if (constant->strings) return constant->string_count <= LAYA_FEW_ELEMENTS ? constant->string_count : 0;
    if (!laya_mil_type_count(&constant->type, &count) || count == 0 || count > LAYA_FEW_ELEMENTS) return 0;
    return laya_element_text(constant, 0, text) ? (uint32_t)count : 0;
}
