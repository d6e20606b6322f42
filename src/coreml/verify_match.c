/* SPDX-License-Identifier: Apache-2.0 */
/* A package that was read back against the program that was written: every constant, byte for byte. */
#include "coreml/verify.h"
#include "mil/operations.h"

#include <inttypes.h>
#include <string.h>

#define BLOCK_SIZE ((size_t)256 * 1024)

typedef struct matcher {
    laya_allocator allocator;
    const laya_meter *meter;
    laya_error *error;
    laya_arena scratch;   /* of the walks */
    laya_mil_names names; /* operations that were read, by their first output */
    unsigned char *block;
    size_t capacity;
} matcher;

static laya_status reserve_block(matcher *m, size_t size)
{
    if (size <= m->capacity) return LAYA_OK;
    laya_release(&m->allocator, m->block);
    m->capacity = 0;
    m->block = laya_alloc(&m->allocator, size, 1);
    if (!m->block) return laya_fail_memory(m->error, size);
    m->capacity = size;
    return LAYA_OK;
}

static laya_status fail_bytes(const matcher *m, const char *name, uint64_t at)
{
    return laya_fail(
        m->error, LAYA_ERROR_FORMAT,
        "constant '%.200s': what was read back differs from what was written within %zu bytes after byte "
        "%" PRIu64 " (a faulty disk or memory?)",
        name, BLOCK_SIZE, at);
}

/* Blocks of whole rows. */
static laya_status match_source(matcher *m, const char *name, const laya_mil_constant *written,
                                const unsigned char *read, uint64_t size)
{
    const laya_mil_source *source = written->source;
    uint64_t rows = written->type.rank ? (uint64_t)written->type.dims[0] : 1;
    if (rows == 0) return LAYA_OK;
    uint64_t row_size = size / rows, each = row_size < BLOCK_SIZE ? BLOCK_SIZE / (row_size ? row_size : 1) : 1;
    if (each > rows) each = rows;
    LAYA_TRY(reserve_block(m, (size_t)(each * row_size)));
    for (uint64_t row = 0; row < rows; row += each) {
        uint64_t count = rows - row < each ? rows - row : each, at = row * row_size;
        LAYA_TRY(source->read(source->user, row, count, m->block, m->error));
        if (memcmp(m->block, read + at, (size_t)(count * row_size)) != 0) return fail_bytes(m, name, at);
        LAYA_TRY(laya_meter_add(m->meter, count * row_size, m->error));
    }
    if (source->forget) source->forget(source->user);
    return LAYA_OK;
}

static laya_status match_memory(matcher *m, const char *name, const unsigned char *written, const unsigned char *read,
                                uint64_t size)
{
    for (uint64_t at = 0; at < size; at += BLOCK_SIZE) {
        size_t count = size - at < BLOCK_SIZE ? (size_t)(size - at) : BLOCK_SIZE;
        if (memcmp(written + at, read + at, count) != 0) return fail_bytes(m, name, at);
        LAYA_TRY(laya_meter_add(m->meter, count, m->error));
    }
    return LAYA_OK;
}

static laya_status match_strings(const matcher *m, const char *name, const laya_mil_constant *written,
                                 const laya_mil_constant *read)
{
    bool same = written->string_count == read->string_count;
    for (uint32_t at = 0; same && at < read->string_count; at++)
        same = strcmp(written->strings[at], read->strings[at]) == 0;
    if (same) return LAYA_OK;
    return laya_fail(m->error, LAYA_ERROR_FORMAT, "constant '%.200s': another text was read back than was written",
                     name);
}

static laya_status match_constant(matcher *m, const char *name, const laya_mil_constant *written,
                                  const laya_mil_constant *read)
{
    char wrote[LAYA_MIL_TYPE_TEXT], found[LAYA_MIL_TYPE_TEXT];
    if (!laya_mil_type_equal(&written->type, &read->type)) {
        return laya_fail(m->error, LAYA_ERROR_FORMAT, "constant '%.200s': written as %s, read back as %s", name,
                         laya_mil_type_text(&written->type, wrote), laya_mil_type_text(&read->type, found));
    }
    if (written->type.kind != LAYA_MIL_TENSOR) return LAYA_OK;
    if (written->type.dtype == LAYA_MIL_STRING) return match_strings(m, name, written, read);
    uint64_t size;
    if (!laya_mil_type_size(&read->type, &size) || size != read->size || !read->bytes) {
        return laya_fail(m->error, LAYA_ERROR_FORMAT, "constant '%.200s': no bytes of type %s were read back", name,
                         laya_mil_type_text(&read->type, found));
    }
    if (written->source)
        LAYA_TRY(match_source(m, name, written, read->bytes, size));
    else
        LAYA_TRY(match_memory(m, name, written->bytes, read->bytes, size));
    if (read->in_file) laya_file_forget(read->bytes, (size_t)size);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ operations */

static laya_status fail_missing(const matcher *m, const char *operation, const char *parameter)
{
    return laya_fail(m->error, LAYA_ERROR_FORMAT, "operation '%.200s': its constant '%.100s' was not read back",
                     operation, parameter);
}

/* Constants bound in place. */
static laya_status match_inputs(matcher *m, const laya_mil_op *written, const laya_mil_op *read)
{
    for (uint32_t at = 0; at < written->input_count; at++) {
        const laya_mil_argument *wrote = &written->inputs[at];
        const laya_mil_argument *found = laya_mil_find_argument(read, wrote->name);
        for (uint32_t i = 0; i < wrote->count; i++) {
            const laya_mil_constant *constant = wrote->bindings[i].constant;
            if (wrote->bindings[i].name || !constant) continue;
            const laya_mil_constant *other = found && i < found->count ? found->bindings[i].constant : NULL;
            if (!other) return fail_missing(m, laya_mil_op_label(written), wrote->name);
            LAYA_TRY(match_constant(m, laya_mil_op_label(written), constant, other));
        }
    }
    return LAYA_OK;
}

static laya_status match_op(matcher *m, const laya_mil_op *written)
{
    if (written->output_count == 0) return LAYA_OK;
    const char *name = written->outputs[0]->name;
    const laya_mil_op *read = laya_mil_names_get(&m->names, name);
    if (!read || strcmp(read->type, written->type) != 0) {
        return laya_fail(m->error, LAYA_ERROR_FORMAT, "operation '%.200s' (%.60s) was written, but not read back",
                         name, written->type);
    }
    LAYA_TRY(match_inputs(m, written, read));
    for (uint32_t at = 0; at < written->attribute_count; at++) {
        const laya_mil_attribute *attribute = &written->attributes[at];
        const laya_mil_constant *other = laya_mil_find_attribute(read, attribute->name);
        if (!other) return fail_missing(m, name, attribute->name);
        LAYA_TRY(match_constant(m, name, attribute->value, other));
    }
    return LAYA_OK;
}

/* Call `visit` for every operation of a function, those of nested blocks included; `count` of them. */
static laya_status each_op(matcher *m, const laya_mil_function *function,
                           laya_status (*visit)(matcher *m, const laya_mil_op *op), uint64_t *count)
{
    laya_walk walk;
    laya_walk_begin(&walk, function, &m->scratch);
    *count = 0;
    for (;;) {
        switch (laya_walk_next(&walk)) {
        case LAYA_WALK_OPERATION:
            ++*count;
            LAYA_TRY(visit(m, walk.op));
            break;
        case LAYA_WALK_END: return LAYA_OK;
        case LAYA_WALK_FAILED: return laya_fail_memory(m->error, 0);
        default: break;
        }
    }
}

static laya_status remember_op(matcher *m, const laya_mil_op *op)
{
    if (op->output_count == 0) return LAYA_OK;
    /* The table holds pointers that can be written through; it only gives this one back. */
    void *item = (void *)(uintptr_t)op;
    if (laya_mil_names_put(&m->names, op->outputs[0]->name, item, NULL)) return LAYA_OK;
    return laya_fail_memory(m->error, 0);
}

static laya_status match_function(matcher *m, const laya_mil_function *written, const laya_mil_program *program)
{
    const laya_mil_function *read = NULL;
    for (uint32_t at = 0; at < program->function_count && !read; at++) {
        if (strcmp(program->functions[at].name, written->name) == 0) read = &program->functions[at];
    }
    if (!read) {
        return laya_fail(m->error, LAYA_ERROR_FORMAT, "function '%.200s' was written, but not read back",
                         written->name);
    }
    uint64_t wrote, found;
    laya_mil_names_close(&m->names);
    LAYA_TRY(each_op(m, read, remember_op, &found));
    LAYA_TRY(each_op(m, written, match_op, &wrote));
    if (wrote == found) return LAYA_OK;
    return laya_fail(m->error, LAYA_ERROR_FORMAT,
                     "function '%.200s': %" PRIu64 " operations were written, %" PRIu64 " read back", written->name,
                     wrote, found);
}

laya_status laya_package_match(const laya_mil_program *written, const laya_mil_program *read, const laya_meter *meter,
                               laya_error *error)
{
    matcher m = {.allocator = laya_allocator_or_default(&read->arena.allocator), .meter = meter, .error = error};
    laya_arena_init(&m.scratch, &m.allocator);
    laya_mil_names_init(&m.names, &m.allocator);
    laya_status status = LAYA_OK;
    for (uint32_t at = 0; at < written->function_count && status == LAYA_OK; at++)
        status = match_function(&m, &written->functions[at], read);
    laya_arena_close(&m.scratch);
    laya_mil_names_close(&m.names);
    laya_release(&m.allocator, m.block);
    return status;
}

/* ------------------------------------------------------------------ reading back */

/* The verifier's checks; the first error is the message. */
static laya_status require_good(const laya_package *package, const char *name, laya_error *error)
{
    laya_verdict verdict;
    LAYA_TRY(laya_package_check(package, &verdict, error));
    laya_status status = LAYA_OK;
    for (uint32_t at = 0; at < verdict.finding_count && status == LAYA_OK; at++) {
        if (verdict.findings[at].error)
            status = laya_fail(error, LAYA_ERROR_FORMAT, "%s: the package written fails its verification: %s", name,
                               verdict.findings[at].text);
    }
    laya_verdict_close(&verdict);
    return status;
}

laya_status laya_package_read_back(const laya_mil_program *written, const char *path, const char *name,
                                   const laya_meter *meter, laya_error *error)
{
    laya_package *package;
    LAYA_TRY(laya_package_open(path, &written->arena.allocator, &package, error));
    laya_status status = require_good(package, name, error);
    if (status == LAYA_OK) status = laya_package_match(written, &package->program, meter, error);
    laya_package_close(package);
    return status;
}
