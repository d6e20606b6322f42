/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two packages compared by meaning. Operations that are not const are matched in order: the common beginning, the
 * common end, and between them one by one where there are equally many. Operands are equal when the operations that
 * make them are matched, so that the names of values do not count. Of lists, tuples and dictionaries only the kind is
 * compared.
 */
#include "base/error.h"
#include "base/json.h"
#include "coreml/listing.h"
#include "coreml/package.h"
#include "mil/operations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEPT 100u                         /* differences that are reported */
#define BLOCK ((uint64_t)4 * 1024 * 1024) /* bytes that are compared at once */
#define NONE UINT32_MAX

typedef struct difference {
    const char *where_a, *where_b; /* NULL: it is in the other package only */
    const char *what;
    const char *a, *b;
} difference;

/* Where a value comes from. */
typedef struct origin {
    const laya_mil_value *value;
    uint32_t position; /* of the operation that makes it or whose block has it as input; NONE: the function's input */
    uint32_t slot;     /* output of the operation; inputs of its blocks are counted on from there */
} origin;

/* A function of one of the packages. */
typedef struct side {
    const laya_mil_function *function;
    laya_listing listing;
    uint32_t *positions; /* of listed operations among those that are not const; NONE: const */
    const laya_listed **ops;
    uint32_t count; /* of ops */
    origin *origins;
    size_t origin_count;
} side;

typedef struct comparison {
    const laya_package *packages[2];
    laya_arena arena;
    bool failed; /* out of memory */
    difference differences[KEPT];
    uint32_t kept;
    uint64_t total;
    side a, b;
    uint32_t *mates; /* positions in b of the operations of a; NONE: without one */
    uint64_t op_counts[2];
} comparison;

/* ------------------------------------------------------------------ texts and differences */

static const char *format(comparison *c, const char *pattern, ...) LAYA_PRINTF(2, 3);
static const char *format(comparison *c, const char *pattern, ...)
{
    va_list arguments;
    va_start(arguments, pattern);
    int size = vsnprintf(NULL, 0, pattern, arguments);
    va_end(arguments);
    char *text = size >= 0 ? laya_arena_alloc(&c->arena, (size_t)size + 1, 1) : NULL;
    if (!text) {
        c->failed = true;
        return "";
    }
    va_start(arguments, pattern);
    vsnprintf(text, (size_t)size + 1, pattern, arguments);
    va_end(arguments);
    return text;
}

/* Count a difference. False: there are enough already, its texts are not wanted. */
static bool found(comparison *c)
{
    return c->total++ < KEPT && !c->failed;
}

static void keep(comparison *c, difference new)
{
    if (c->kept < KEPT) c->differences[c->kept++] = new;
}

/* A difference of two texts in a place that both packages have; one that is NULL is absent. */
static void compare_texts(comparison *c, const char *where, const char *what, const char *a, const char *b)
{
    if (a && b ? strcmp(a, b) == 0 : a == b) return;
    if (found(c)) keep(c, (difference){where, where, what, a, b});
}

static const char *type_text(comparison *c, const laya_mil_type *type)
{
    char text[LAYA_MIL_TYPE_TEXT];
    return format(c, "%s", laya_mil_type_text(type, text));
}

static const char *op_text(comparison *c, const side *from, uint32_t position)
{
    const laya_mil_op *op = from->ops[position]->op;
    return format(c, "operation %lu, %s %s", (unsigned long)position, op->type, laya_mil_op_label(op));
}

static void differ(comparison *c, uint32_t a, uint32_t b, const char *what, const char *text_a, const char *text_b)
{
    keep(c, (difference){op_text(c, &c->a, a), op_text(c, &c->b, b), what, text_a, text_b});
}

/* "int32 [4]: 0, 3, 2, 1", "string: valid", "fp16 [768, 768, 1, 1]" */
static const char *constant_text(comparison *c, const laya_mil_constant *constant)
{
    char type[LAYA_MIL_TYPE_TEXT], element[LAYA_ELEMENT_TEXT];
    uint32_t few = laya_few_elements(constant);
    const char *text = format(c, "%s", laya_mil_type_text(&constant->type, type));
    for (uint32_t at = 0; at < few; at++) {
        const char *value = constant->strings ? constant->strings[at] : element;
        if (!constant->strings) laya_element_text(constant, at, element);
        text = format(c, "%s%s%s", text, at ? ", " : ": ", value);
    }
    return text;
}

/* ------------------------------------------------------------------ where values come from */

static int by_value(const void *a, const void *b)
{
    uintptr_t left = (uintptr_t)((const origin *)a)->value, right = (uintptr_t)((const origin *)b)->value;
    return left < right ? -1 : left > right;
}

static const origin *find_origin(const side *from, const laya_mil_value *value)
{
    const origin key = {.value = value};
    if (from->origin_count == 0) return NULL;
    return bsearch(&key, from->origins, from->origin_count, sizeof key, by_value);
}

static size_t count_values(const side *s)
{
    size_t count = s->function->input_count;
    for (uint32_t at = 0; at < s->count; at++) {
        const laya_mil_op *op = s->ops[at]->op;
        count += op->output_count;
        for (uint32_t block = 0; block < op->block_count; block++) count += op->blocks[block].input_count;
    }
    return count;
}

static void add_origins(side *s, uint32_t position, uint32_t *slot, laya_mil_value *const *values, uint32_t count)
{
    for (uint32_t at = 0; at < count; at++) s->origins[s->origin_count++] = (origin){values[at], position, (*slot)++};
}

static laya_status find_origins(comparison *c, side *s, laya_error *error)
{
    size_t count = count_values(s);
    uint32_t slot = 0;
    s->origins = laya_arena_alloc(&c->arena, count, sizeof *s->origins);
    if (!s->origins) return laya_fail_memory(error, count * sizeof *s->origins);
    add_origins(s, NONE, &slot, s->function->inputs, s->function->input_count);
    for (uint32_t at = 0; at < s->count; at++) {
        const laya_mil_op *op = s->ops[at]->op;
        slot = 0;
        add_origins(s, at, &slot, op->outputs, op->output_count);
        for (uint32_t block = 0; block < op->block_count; block++)
            add_origins(s, at, &slot, op->blocks[block].inputs, op->blocks[block].input_count);
    }
    if (count) qsort(s->origins, count, sizeof *s->origins, by_value);
    return LAYA_OK;
}

static laya_status open_side(comparison *c, side *s, const laya_mil_function *function, laya_error *error)
{
    *s = (side){.function = function};
    LAYA_TRY(laya_listing_make(&s->listing, function, &c->arena, error));
    s->positions = laya_arena_alloc(&c->arena, s->listing.count, sizeof *s->positions);
    s->ops = laya_arena_alloc(&c->arena, s->listing.count, sizeof(laya_listed *));
    if (!s->positions || !s->ops) return laya_fail_memory(error, s->listing.count * sizeof *s->ops);
    for (uint32_t at = 0; at < s->listing.count; at++) {
        const laya_listed *listed = &s->listing.ops[at];
        s->positions[at] = laya_mil_is_const(listed->op) ? NONE : s->count;
        if (s->positions[at] != NONE) s->ops[s->count++] = listed;
    }
    return find_origins(c, s, error);
}

/* ------------------------------------------------------------------ constants and operands */

static bool lies_in(const laya_file *file, const laya_mil_constant *constant)
{
    uintptr_t start = (uintptr_t)file->data, at = (uintptr_t)constant->bytes;
    return file->data && at >= start && at - start < file->size;
}

/* The first byte that differs; the size when none does. Pages of the weight files are given back behind. */
static uint64_t first_difference(const comparison *c, const laya_mil_constant *a, const laya_mil_constant *b)
{
    bool mapped_a = lies_in(&c->packages[0]->weight_file, a), mapped_b = lies_in(&c->packages[1]->weight_file, b);
    if (a->bytes == b->bytes) return a->size;
    for (uint64_t at = 0; at < a->size; at += BLOCK) {
        size_t size = (size_t)(a->size - at < BLOCK ? a->size - at : BLOCK);
        if (memcmp(a->bytes + at, b->bytes + at, size) != 0) {
            while (a->bytes[at] == b->bytes[at]) at++;
            return at;
        }
        if (mapped_a) laya_file_forget(a->bytes + at, size);
        if (mapped_b) laya_file_forget(b->bytes + at, size);
    }
    return a->size;
}

static bool equal_strings(const laya_mil_constant *a, const laya_mil_constant *b)
{
    if (a->string_count != b->string_count) return false;
    for (uint32_t at = 0; at < a->string_count; at++) {
        if (strcmp(a->strings[at], b->strings[at]) != 0) return false;
    }
    return true;
}

/* "fp16 [768, 768, 1, 1], element 12: 0.5" */
static const char *element_text(comparison *c, const laya_mil_constant *constant, uint64_t byte)
{
    char element[LAYA_ELEMENT_TEXT];
    uint64_t at = byte * 8 / laya_mil_dtype_bits(constant->type.dtype);
    if (!laya_element_text(constant, at, element))
        snprintf(element, sizeof element, "0x%02x", (unsigned)constant->bytes[byte]);
    return format(c, "%s, element %llu: %s", type_text(c, &constant->type), (unsigned long long)at, element);
}

/* The texts of both when they are not the same constant. */
static bool constants_differ(comparison *c, const laya_mil_constant *a, const laya_mil_constant *b,
                             const char *texts[2])
{
    bool same_type = laya_mil_type_equal(&a->type, &b->type);
    bool bytes = same_type && a->bytes && b->bytes && a->size == b->size;
    uint64_t at = bytes ? first_difference(c, a, b) : 0;
    if (bytes ? at == a->size : same_type && a->size == 0 && b->size == 0 && equal_strings(a, b)) return false;
    if (!found(c)) return false;
    bool many = bytes && laya_few_elements(a) == 0;
    texts[0] = many ? element_text(c, a, at) : constant_text(c, a);
    texts[1] = many ? element_text(c, b, at) : constant_text(c, b);
    return true;
}

static bool same_origin(const comparison *c, const laya_mil_value *a, const laya_mil_value *b)
{
    const origin *from_a = find_origin(&c->a, a), *from_b = find_origin(&c->b, b);
    if (!from_a || !from_b) return from_a == from_b;
    if (from_a->position == NONE || from_b->position == NONE)
        return from_a->position == from_b->position && strcmp(a->name, b->name) == 0;
    return c->mates[from_a->position] == from_b->position && from_a->slot == from_b->slot;
}

/* "constant int32: 1", "y, made by operation 3 (relu)", "x, an input" */
static const char *binding_text(comparison *c, const side *from, const laya_mil_binding *binding)
{
    const laya_mil_constant *constant = laya_mil_bound_constant(binding);
    if (constant) return format(c, "constant %s", constant_text(c, constant));
    const origin *made = binding->value ? find_origin(from, binding->value) : NULL;
    if (!made) return format(c, "%s, which nothing makes", binding->name);
    if (made->position == NONE) return format(c, "%s, an input", binding->name);
    return format(c, "%s, made by operation %lu (%s)", binding->name, (unsigned long)made->position,
                  from->ops[made->position]->op->type);
}

/* Whether two bindings mean different things; then their texts. */
static bool bindings_differ(comparison *c, const laya_mil_binding *a, const laya_mil_binding *b, const char *texts[2])
{
    const laya_mil_constant *constant_a = laya_mil_bound_constant(a), *constant_b = laya_mil_bound_constant(b);
    if (constant_a && constant_b) return constants_differ(c, constant_a, constant_b, texts);
    bool same = !constant_a && !constant_b;
    if (same && a->value && b->value)
        same = same_origin(c, a->value, b->value);
    else if (same)
        same = a->value == b->value && strcmp(a->name, b->name) == 0;
    if (same || !found(c)) return false;
    texts[0] = binding_text(c, &c->a, a);
    texts[1] = binding_text(c, &c->b, b);
    return true;
}

/* ------------------------------------------------------------------ two operations */

static const char *argument_text(comparison *c, const side *from, const laya_mil_argument *argument)
{
    const char *text = argument->count ? binding_text(c, from, &argument->bindings[0]) : "nothing";
    for (uint32_t at = 1; at < argument->count; at++)
        text = format(c, "%s; %s", text, binding_text(c, from, &argument->bindings[at]));
    return text;
}

static void compare_bindings(comparison *c, uint32_t a, uint32_t b, const laya_mil_argument *in_a,
                             const laya_mil_argument *in_b)
{
    for (uint32_t at = 0; at < in_a->count; at++) {
        const char *texts[2];
        if (!bindings_differ(c, &in_a->bindings[at], &in_b->bindings[at], texts)) continue;
        const char *what = in_a->count > 1 ? format(c, "input %s, tensor %lu", in_a->name, (unsigned long)at)
                                           : format(c, "input %s", in_a->name);
        differ(c, a, b, what, texts[0], texts[1]);
    }
}

static void compare_arguments(comparison *c, uint32_t a, uint32_t b)
{
    const laya_mil_op *op_a = c->a.ops[a]->op, *op_b = c->b.ops[b]->op;
    for (uint32_t at = 0; at < op_a->input_count; at++) {
        const laya_mil_argument *in_a = &op_a->inputs[at], *in_b = laya_mil_find_argument(op_b, in_a->name);
        if (in_b && in_a->count == in_b->count)
            compare_bindings(c, a, b, in_a, in_b);
        else if (found(c))
            differ(c, a, b, format(c, "input %s", in_a->name), argument_text(c, &c->a, in_a),
                   in_b ? argument_text(c, &c->b, in_b) : NULL);
    }
    for (uint32_t at = 0; at < op_b->input_count; at++) {
        const laya_mil_argument *in_b = &op_b->inputs[at];
        if (!laya_mil_find_argument(op_a, in_b->name) && found(c))
            differ(c, a, b, format(c, "input %s", in_b->name), NULL, argument_text(c, &c->b, in_b));
    }
}

static void compare_attributes(comparison *c, uint32_t a, uint32_t b)
{
    const laya_mil_op *op_a = c->a.ops[a]->op, *op_b = c->b.ops[b]->op;
    for (uint32_t at = 0; at < op_a->attribute_count; at++) {
        const laya_mil_attribute *in_a = &op_a->attributes[at];
        const laya_mil_constant *in_b = laya_mil_find_attribute(op_b, in_a->name);
        const char *texts[2];
        if (in_b && constants_differ(c, in_a->value, in_b, texts))
            differ(c, a, b, format(c, "attribute %s", in_a->name), texts[0], texts[1]);
        if (!in_b && found(c))
            differ(c, a, b, format(c, "attribute %s", in_a->name), constant_text(c, in_a->value), NULL);
    }
    for (uint32_t at = 0; at < op_b->attribute_count; at++) {
        const laya_mil_attribute *in_b = &op_b->attributes[at];
        if (!laya_mil_find_attribute(op_a, in_b->name) && found(c))
            differ(c, a, b, format(c, "attribute %s", in_b->name), NULL, constant_text(c, in_b->value));
    }
}

static void compare_counts(comparison *c, uint32_t a, uint32_t b, const char *what, uint32_t count_a,
                           uint32_t count_b)
{
    if (count_a == count_b || !found(c)) return;
    differ(c, a, b, format(c, "%s", what), format(c, "%lu", (unsigned long)count_a),
           format(c, "%lu", (unsigned long)count_b));
}

static void compare_types(comparison *c, uint32_t a, uint32_t b, const char *what, laya_mil_value *const *in_a,
                          laya_mil_value *const *in_b, uint32_t count)
{
    for (uint32_t at = 0; at < count; at++) {
        if (laya_mil_type_equal(&in_a[at]->type, &in_b[at]->type) || !found(c)) continue;
        differ(c, a, b, format(c, "type of %s %lu", what, (unsigned long)at), type_text(c, &in_a[at]->type),
               type_text(c, &in_b[at]->type));
    }
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void compare_blocks(comparison *c, uint32_t a, uint32_t b)
{
    const laya_mil_op *op_a = c->a.ops[a]->op, *op_b = c->b.ops[b]->op;
    compare_counts(c, a, b, "number of blocks", op_a->block_count, op_b->block_count);
    for (uint32_t at = 0; at < smaller(op_a->block_count, op_b->block_count); at++) {
        const laya_mil_block *in_a = &op_a->blocks[at], *in_b = &op_b->blocks[at];
        compare_counts(c, a, b, "inputs of the block", in_a->input_count, in_b->input_count);
        compare_types(c, a, b, "block input", in_a->inputs, in_b->inputs,
                      smaller(in_a->input_count, in_b->input_count));
        compare_counts(c, a, b, "outputs of the block", in_a->output_count, in_b->output_count);
        for (uint32_t output = 0; output < smaller(in_a->output_count, in_b->output_count); output++) {
            const char *texts[2];
            if (bindings_differ(c, &in_a->outputs[output], &in_b->outputs[output], texts))
                differ(c, a, b, format(c, "block output %lu", (unsigned long)output), texts[0], texts[1]);
        }
    }
}

/* Position of the operation whose block holds this one; NONE: it is in the function's body. */
static uint32_t parent_position(const side *s, uint32_t position)
{
    uint32_t parent = s->ops[position]->parent;
    return parent == LAYA_NOT_LISTED ? NONE : s->positions[parent];
}

static bool same_place(const comparison *c, uint32_t a, uint32_t b)
{
    uint32_t parent_a = parent_position(&c->a, a), parent_b = parent_position(&c->b, b);
    if (parent_a == NONE || parent_b == NONE) return parent_a == parent_b;
    return c->mates[parent_a] == parent_b && c->a.ops[a]->block == c->b.ops[b]->block;
}

static void compare_ops(comparison *c, uint32_t a, uint32_t b)
{
    const laya_mil_op *op_a = c->a.ops[a]->op, *op_b = c->b.ops[b]->op;
    if (!same_place(c, a, b) && found(c)) differ(c, a, b, "block that holds it", "another", "another");
    if (strcmp(op_a->type, op_b->type) != 0) {
        if (found(c)) differ(c, a, b, "type of the operation", op_a->type, op_b->type);
        return;
    }
    compare_counts(c, a, b, "number of outputs", op_a->output_count, op_b->output_count);
    compare_types(c, a, b, "output", op_a->outputs, op_b->outputs, smaller(op_a->output_count, op_b->output_count));
    compare_arguments(c, a, b);
    compare_attributes(c, a, b);
    compare_blocks(c, a, b);
}

/* ------------------------------------------------------------------ functions */

/* Whether two operations look alike from outside. */
static bool alike(const laya_listed *a, const laya_listed *b)
{
    if (a->depth != b->depth || strcmp(a->op->type, b->op->type) != 0 || a->op->output_count != b->op->output_count)
        return false;
    for (uint32_t at = 0; at < a->op->output_count; at++) {
        if (!laya_mil_type_equal(&a->op->outputs[at]->type, &b->op->outputs[at]->type)) return false;
    }
    return true;
}

static laya_status match_ops(comparison *c, laya_error *error)
{
    const side *a = &c->a, *b = &c->b;
    uint32_t shorter = smaller(a->count, b->count), head = 0, tail = 0;
    c->mates = laya_arena_alloc(&c->arena, a->count, sizeof *c->mates);
    if (!c->mates) return laya_fail_memory(error, a->count * sizeof *c->mates);
    while (head < shorter && alike(a->ops[head], b->ops[head])) head++;
    if (a->count == b->count) head = shorter; /* one by one */
    while (tail < shorter - head && alike(a->ops[a->count - 1 - tail], b->ops[b->count - 1 - tail])) tail++;
    for (uint32_t at = 0; at < a->count; at++) {
        c->mates[at] = NONE;
        if (at < head) c->mates[at] = at;
        if (at >= a->count - tail) c->mates[at] = b->count - (a->count - at);
    }
    return LAYA_OK;
}

static void compare_operations(comparison *c)
{
    const side *a = &c->a, *b = &c->b;
    uint32_t next = 0; /* of b */
    for (uint32_t at = 0; at <= a->count; at++) {
        uint32_t mate = at < a->count ? c->mates[at] : b->count;
        for (; mate != NONE && next < mate; next++) {
            if (found(c)) keep(c, (difference){NULL, op_text(c, b, next), "operation", NULL, b->ops[next]->op->type});
        }
        if (at == a->count) break;
        if (mate != NONE) {
            compare_ops(c, at, mate);
            next = mate + 1;
        } else if (found(c)) {
            keep(c, (difference){op_text(c, a, at), NULL, "operation", a->ops[at]->op->type, NULL});
        }
    }
}

/* Outputs of a function are compared by their names, which are part of the interface. */
static const laya_mil_binding *find_output(const laya_mil_block *body, const char *name)
{
    for (uint32_t at = 0; at < body->output_count; at++) {
        if (strcmp(body->outputs[at].name, name) == 0) return &body->outputs[at];
    }
    return NULL;
}

static void compare_outputs(comparison *c, const char *where)
{
    const laya_mil_block *a = &c->a.function->body, *b = &c->b.function->body;
    for (uint32_t at = 0; at < a->output_count; at++) {
        const laya_mil_binding *in_a = &a->outputs[at], *in_b = find_output(b, in_a->name);
        const char *texts[2];
        if (!in_b) {
            if (found(c)) keep(c, (difference){where, where, "result", binding_text(c, &c->a, in_a), NULL});
        } else if (bindings_differ(c, in_a, in_b, texts)) {
            keep(c, (difference){where, where, format(c, "result %s", in_a->name), texts[0], texts[1]});
        }
    }
    for (uint32_t at = 0; at < b->output_count; at++) {
        const laya_mil_binding *in_b = &b->outputs[at];
        if (!find_output(a, in_b->name) && found(c))
            keep(c, (difference){where, where, "result", NULL, binding_text(c, &c->b, in_b)});
    }
}

static const laya_mil_value *find_input(const laya_mil_function *function, const char *name)
{
    for (uint32_t at = 0; at < function->input_count; at++) {
        if (strcmp(function->inputs[at]->name, name) == 0) return function->inputs[at];
    }
    return NULL;
}

static void compare_inputs(comparison *c, const char *where)
{
    const laya_mil_function *a = c->a.function, *b = c->b.function;
    for (uint32_t at = 0; at < a->input_count; at++) {
        const laya_mil_value *in_a = a->inputs[at], *in_b = find_input(b, in_a->name);
        if (in_b && laya_mil_type_equal(&in_a->type, &in_b->type)) continue;
        if (found(c))
            keep(c, (difference){where, where, format(c, "type of input %s", in_a->name), type_text(c, &in_a->type),
                                 in_b ? type_text(c, &in_b->type) : NULL});
    }
    for (uint32_t at = 0; at < b->input_count; at++) {
        const laya_mil_value *in_b = b->inputs[at];
        if (!find_input(a, in_b->name) && found(c))
            keep(c, (difference){where, where, format(c, "type of input %s", in_b->name), NULL,
                                 type_text(c, &in_b->type)});
    }
}

static laya_status compare_functions(comparison *c, const laya_mil_function *a, const laya_mil_function *b,
                                     laya_error *error)
{
    const char *where = format(c, "function %s", a->name);
    compare_texts(c, where, "opset", a->opset_name, b->opset_name);
    LAYA_TRY(open_side(c, &c->a, a, error));
    LAYA_TRY(open_side(c, &c->b, b, error));
    LAYA_TRY(match_ops(c, error));
    c->op_counts[0] += c->a.count;
    c->op_counts[1] += c->b.count;
    compare_inputs(c, where);
    compare_operations(c);
    compare_outputs(c, where);
    return LAYA_OK;
}

static const laya_mil_function *find_function(const laya_mil_program *program, const char *name)
{
    for (uint32_t at = 0; at < program->function_count; at++) {
        if (strcmp(program->functions[at].name, name) == 0) return &program->functions[at];
    }
    return NULL;
}

static laya_status compare_all_functions(comparison *c, laya_error *error)
{
    const laya_mil_program *a = &c->packages[0]->program, *b = &c->packages[1]->program;
    for (uint32_t at = 0; at < a->function_count; at++) {
        const laya_mil_function *other = find_function(b, a->functions[at].name);
        if (other)
            LAYA_TRY(compare_functions(c, &a->functions[at], other, error));
        else
            compare_texts(c, "model", "function", a->functions[at].name, NULL);
    }
    for (uint32_t at = 0; at < b->function_count; at++) {
        if (!find_function(a, b->functions[at].name))
            compare_texts(c, "model", "function", NULL, b->functions[at].name);
    }
    return LAYA_OK;
}

/* ------------------------------------------------------------------ interface */

static const laya_mil_feature *find_feature(const laya_mil_feature *features, uint32_t count, const char *name)
{
    for (uint32_t at = 0; at < count; at++) {
        if (strcmp(features[at].name, name) == 0) return &features[at];
    }
    return NULL;
}

/* "multiArray fp16 [1, 4, 1, 8], optional" */
static const char *feature_text(comparison *c, const laya_mil_feature *feature)
{
    bool typed = feature->type.dtype != LAYA_MIL_NO_DTYPE;
    return format(c, "%s%s%s%s%s", feature->kind, typed ? " " : "", typed ? type_text(c, &feature->type) : "",
                  feature->flexible ? ", flexible" : "", feature->optional ? ", optional" : "");
}

static bool same_feature(const laya_mil_feature *a, const laya_mil_feature *b)
{
    return strcmp(a->kind, b->kind) == 0 && laya_mil_type_equal(&a->type, &b->type) && a->flexible == b->flexible &&
           a->optional == b->optional;
}

/* Features are found by their names; their order does not count. */
static void compare_features(comparison *c, const char *where, const char *what, const laya_mil_feature *a,
                             uint32_t count_a, const laya_mil_feature *b, uint32_t count_b)
{
    for (uint32_t at = 0; at < count_a; at++) {
        const laya_mil_feature *other = find_feature(b, count_b, a[at].name);
        if ((other && same_feature(&a[at], other)) || !found(c)) continue;
        keep(c, (difference){where, where, format(c, "%s %s", what, a[at].name), feature_text(c, &a[at]),
                             other ? feature_text(c, other) : NULL});
    }
    for (uint32_t at = 0; at < count_b; at++) {
        if (!find_feature(a, count_a, b[at].name) && found(c))
            keep(c, (difference){where, where, format(c, "%s %s", what, b[at].name), NULL, feature_text(c, &b[at])});
    }
}

static const laya_mil_interface *find_interface(const laya_mil_program *program, const char *name)
{
    static const laya_mil_interface none = {0};
    for (uint32_t at = 0; at < program->interface_count; at++) {
        if (strcmp(program->interfaces[at].name, name) == 0) return &program->interfaces[at];
    }
    return &none;
}

static void compare_interface(comparison *c, const char *name)
{
    const laya_mil_interface *a = find_interface(&c->packages[0]->program, name);
    const laya_mil_interface *b = find_interface(&c->packages[1]->program, name);
    const char *where = format(c, "interface of %s", name);
    compare_features(c, where, "input", a->inputs, a->input_count, b->inputs, b->input_count);
    compare_features(c, where, "output", a->outputs, a->output_count, b->outputs, b->output_count);
    compare_features(c, where, "state", a->states, a->state_count, b->states, b->state_count);
}

static void compare_model(comparison *c)
{
    const laya_mil_program *a = &c->packages[0]->program, *b = &c->packages[1]->program;
    compare_texts(c, "model", "specification version", format(c, "%ld", (long)a->specification_version),
                  format(c, "%ld", (long)b->specification_version));
    compare_texts(c, "model", "default function", a->default_function, b->default_function);
    for (uint32_t at = 0; at < a->interface_count; at++) compare_interface(c, a->interfaces[at].name);
    for (uint32_t at = 0; at < b->interface_count; at++) {
        if (find_interface(a, b->interfaces[at].name)->name == NULL) compare_interface(c, b->interfaces[at].name);
    }
}

/* ------------------------------------------------------------------ the report */

static void member_text(laya_json_writer *w, const char *name, const char *text)
{
    laya_json_name(w, name);
    if (text)
        laya_json_put_string(w, text, strlen(text));
    else
        laya_json_put_raw(w, "null");
}

/* A difference stands on a line. */
static void put_difference(laya_json_writer *w, const difference *d)
{
    laya_json_begin(w, '{');
    w->pretty = false;
    laya_json_name(w, "where");
    laya_json_begin(w, '{');
    member_text(w, "a", d->where_a);
    member_text(w, "b", d->where_b);
    laya_json_end(w, '}');
    member_text(w, "what", d->what);
    member_text(w, "a", d->a);
    member_text(w, "b", d->b);
    laya_json_end(w, '}');
    w->pretty = true;
}

/* The kinds of all functions of a package. */
static laya_status find_kinds(comparison *c, const laya_package *package, laya_op_kind **kinds, uint32_t *count,
                              laya_error *error)
{
    uint32_t functions = package->program.function_count;
    laya_listing *listings = laya_arena_alloc(&c->arena, functions, sizeof *listings);
    if (!listings) return laya_fail_memory(error, functions * sizeof *listings);
    for (uint32_t at = 0; at < functions; at++)
        LAYA_TRY(laya_listing_make(&listings[at], &package->program.functions[at], &c->arena, error));
    return laya_listing_kinds(listings, functions, &c->arena, kinds, count, error);
}

/* Kinds of operations, const aside, of which the packages have different numbers. */
static laya_status member_kinds(comparison *c, laya_json_writer *w, laya_error *error)
{
    laya_op_kind *kinds[2];
    uint32_t counts[2], at[2] = {0, 0};
    for (unsigned i = 0; i < 2; i++) LAYA_TRY(find_kinds(c, c->packages[i], &kinds[i], &counts[i], error));
    laya_json_name(w, "kinds");
    laya_json_begin(w, '{');
    while (at[0] < counts[0] || at[1] < counts[1]) {
        int order = 0;
        if (at[0] == counts[0])
            order = 1;
        else if (at[1] == counts[1])
            order = -1;
        else
            order = strcmp(kinds[0][at[0]].type, kinds[1][at[1]].type);
        const char *type = order <= 0 ? kinds[0][at[0]].type : kinds[1][at[1]].type;
        uint32_t in_a = order <= 0 ? kinds[0][at[0]++].count : 0, in_b = order >= 0 ? kinds[1][at[1]++].count : 0;
        if (in_a == in_b || strcmp(type, "const") == 0) continue;
        laya_json_name(w, type);
        laya_json_begin(w, '{');
        laya_json_member_uint(w, "a", in_a);
        laya_json_member_uint(w, "b", in_b);
        laya_json_end(w, '}');
    }
    laya_json_end(w, '}');
    return LAYA_OK;
}

static laya_status put_report(comparison *c, laya_json_writer *w, laya_error *error)
{
    laya_json_begin(w, '{');
    laya_json_member_path(w, "a", c->packages[0]->path);
    laya_json_member_path(w, "b", c->packages[1]->path);
    laya_json_name(w, "equal");
    laya_json_put_bool(w, c->total == 0);
    laya_json_member_uint(w, "difference_count", c->total);
    laya_json_name(w, "differences");
    laya_json_begin(w, '[');
    for (uint32_t at = 0; at < c->kept; at++) put_difference(w, &c->differences[at]);
    laya_json_end(w, ']');
    if (c->op_counts[0] != c->op_counts[1]) LAYA_TRY(member_kinds(c, w, error));
    laya_json_end(w, '}');
    return LAYA_OK;
}

static laya_status compare(comparison *c, laya_json_writer *w, laya_error *error)
{
    compare_model(c);
    LAYA_TRY(compare_all_functions(c, error));
    if (c->failed) return laya_fail_memory(error, 0);
    LAYA_TRY(put_report(c, w, error));
    return w->out->failed ? laya_fail_memory(error, w->out->size) : LAYA_OK;
}

laya_status laya_package_compare(const laya_package *a, const laya_package *b, int *equal, char **json,
                                 laya_error *error)
{
    laya_error_clear(error);
    if (equal) *equal = 0;
    if (json) *json = NULL;
    if (!a || !b || !equal || !json)
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_package_compare: no argument but error may be NULL");
    comparison c = {.packages = {a, b}};
    laya_buffer out;
    laya_json_writer w;
    laya_arena_init(&c.arena, &a->allocator);
    laya_buffer_init(&out, &a->allocator);
    laya_json_writer_init(&w, &out, true);
    laya_status status = compare(&c, &w, error);
    laya_arena_close(&c.arena);
    if (status == LAYA_OK) {
        *equal = c.total == 0;
        *json = out.data;
    } else {
        laya_buffer_close(&out);
    }
    return status;
}
