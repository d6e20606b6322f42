/* SPDX-License-Identifier: Apache-2.0 */
#include "mil/program.h"

#include <string.h>

void laya_mil_program_init(laya_mil_program *program, const laya_allocator *allocator)
{
    *program = (laya_mil_program){.version = 1};
    laya_arena_init(&program->arena, allocator);
}

void laya_mil_program_close(laya_mil_program *program)
{
    laya_arena_close(&program->arena);
    *program = (laya_mil_program){.arena = program->arena};
}

const laya_mil_argument *laya_mil_find_argument(const laya_mil_op *op, const char *name)
{
    for (uint32_t at = 0; at < op->input_count; at++) {
        if (strcmp(op->inputs[at].name, name) == 0) return &op->inputs[at];
    }
    return NULL;
}

const laya_mil_constant *laya_mil_find_attribute(const laya_mil_op *op, const char *name)
{
    for (uint32_t at = 0; at < op->attribute_count; at++) {
        if (strcmp(op->attributes[at].name, name) == 0) return op->attributes[at].value;
    }
    return NULL;
}

const laya_mil_constant *laya_mil_bound_constant(const laya_mil_binding *binding)
{
    if (!binding->name) return binding->constant;
    return binding->value ? binding->value->constant : NULL;
}

const laya_mil_type *laya_mil_bound_type(const laya_mil_binding *binding)
{
    if (!binding->name) return binding->constant ? &binding->constant->type : NULL;
    return binding->value ? &binding->value->type : NULL;
}

bool laya_mil_is_const(const laya_mil_op *op)
{
    return strcmp(op->type, "const") == 0;
}

bool laya_mil_is_constexpr(const laya_mil_op *op)
{
    static const char prefix[] = "constexpr_";
    return strncmp(op->type, prefix, sizeof prefix - 1) == 0;
}

/* ------------------------------------------------------------------ names */

static const char *const keywords[] = {"any",   "bool",  "program", "func",  "tensor", "list",   "dict",   "tuple",
                                       "true",  "false", "string",  "bf16",  "fp16",   "fp32",   "fp64",   "int8",
                                       "int16", "int32", "int64",   "uint8", "uint16", "uint32", "uint64", "state"};

bool laya_mil_name_is_legal(const char *name)
{
    for (const char *at = name; *at; at++) {
        bool letter = (*at >= 'A' && *at <= 'Z') || (*at >= 'a' && *at <= 'z') || *at == '_';
        bool later = (*at >= '0' && *at <= '9') || *at == '@';
        if (!letter && (at == name || !later)) return false;
    }
    for (size_t at = 0; at < sizeof keywords / sizeof *keywords; at++) {
        if (strcmp(name, keywords[at]) == 0) return false;
    }
    return *name != '\0';
}

void laya_mil_names_init(laya_mil_names *names, const laya_allocator *allocator)
{
    *names = (laya_mil_names){.allocator = laya_allocator_or_default(allocator)};
}

void laya_mil_names_close(laya_mil_names *names)
{
    laya_release(&names->allocator, names->keys);
    laya_release(&names->allocator, names->items);
    *names = (laya_mil_names){.allocator = names->allocator};
}

/* FNV-1a, 64 bits. */
static uint64_t hash_name(const char *name)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (const char *at = name; *at; at++) hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
    return hash;
}

/* The slot that holds the name, or the free one where it belongs. There is a free slot. */
static size_t find_slot(const laya_mil_names *names, const char *name)
{
    size_t mask = names->capacity - 1, slot = (size_t)hash_name(name) & mask;
    while (names->keys[slot] && strcmp(names->keys[slot], name) != 0) slot = (slot + 1) & mask;
    return slot;
}

static bool grow(laya_mil_names *names)
{
    laya_mil_names larger = {.allocator = names->allocator, .count = names->count};
    larger.capacity = names->capacity ? names->capacity * 2 : 64;
    larger.keys = laya_alloc_zero(&names->allocator, larger.capacity, sizeof *larger.keys);
    larger.items = laya_alloc_zero(&names->allocator, larger.capacity, sizeof *larger.items);
    if (!larger.keys || !larger.items) {
        laya_mil_names_close(&larger);
        return false;
    }
    for (size_t at = 0; at < names->capacity; at++) {
        if (!names->keys[at]) continue;
        size_t slot = find_slot(&larger, names->keys[at]);
        larger.keys[slot] = names->keys[at];
        larger.items[slot] = names->items[at];
    }
    laya_mil_names_close(names);
    *names = larger;
    return true;
}

bool laya_mil_names_put(laya_mil_names *names, const char *name, void *item, void **older)
{
    if (older) *older = NULL;
    if (names->count >= names->capacity / 2 && !grow(names)) return false;
    size_t slot = find_slot(names, name);
    if (names->keys[slot]) {
        if (older) *older = names->items[slot];
    } else {
        names->count++;
    }
    names->keys[slot] = name;
    names->items[slot] = item;
    return true;
}

void *laya_mil_names_get(const laya_mil_names *names, const char *name)
{
    return names->capacity ? names->items[find_slot(names, name)] : NULL;
}
