/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of a package as JSON. */
#include "coreml/inspect.h"

#include "base/error.h"
#include "base/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST 10u /* constants that are named */

typedef struct blob {
    uint64_t offset, size;
} blob;

/* A constant with the operation that has it. */
typedef struct holding {
    const laya_mil_op *op;
    const char *parameter; /* "val" of const operations */
    const laya_mil_constant *constant;
    uint64_t bytes;
} holding;

typedef struct facts {
    const laya_package *package;
    laya_arena arena;
    laya_buffer out;
    laya_json_writer w;
    laya_listing *listings; /* one a function */
    uint64_t file_count, file_bytes, inline_count, inline_bytes;
    blob *blobs; /* of all constants in the weight file; NULL: they are only counted */
    uint64_t blob_count;
    holding largest[LARGEST]; /* by bytes, descending; in the order of the program where these are equal */
    uint32_t largest_count;
} facts;

/* ------------------------------------------------------------------ types, values, constants */

static void put_text(laya_json_writer *w, const char *text)
{
    laya_json_put_string(w, text, strlen(text));
}

void laya_inspect_begin_line(laya_json_writer *w)
{
    laya_json_begin(w, '{');
    w->pretty = false;
}

void laya_inspect_end_line(laya_json_writer *w)
{
    laya_json_end(w, '}');
    w->pretty = true;
}

void laya_inspect_member_number(laya_json_writer *w, const char *name, double value)
{
    char text[LAYA_NUMBER_SIZE];
    laya_json_name(w, name);
    if (isfinite(value)) {
        laya_json_put_repr(w, value);
        return;
    }
    laya_format_repr(text, value);
    put_text(w, text);
}

/* "dtype" and "shape" where they are known. */
static void member_type(laya_json_writer *w, const laya_mil_type *type)
{
    if (type->dtype == LAYA_MIL_NO_DTYPE) return;
    laya_json_member_string(w, "dtype", laya_mil_dtype_name(type->dtype));
    laya_json_name(w, "shape");
    laya_json_begin(w, '[');
    for (uint32_t axis = 0; axis < type->rank; axis++) {
        if (type->dims[axis] < 0)
            laya_json_put_raw(w, "null");
        else
            laya_json_put_uint(w, (uint64_t)type->dims[axis]);
    }
    laya_json_end(w, ']');
}

void laya_inspect_member_type(laya_json_writer *w, const laya_mil_type *type)
{
    char text[LAYA_MIL_TYPE_TEXT];
    laya_json_member_string(w, "type", laya_mil_type_text(type, text));
}

static void put_values(laya_json_writer *w, laya_mil_value *const *values, uint32_t count)
{
    laya_json_begin(w, '[');
    for (uint32_t at = 0; at < count; at++) {
        laya_json_begin(w, '{');
        laya_json_member_string(w, "name", values[at]->name);
        laya_inspect_member_type(w, &values[at]->type);
        laya_json_end(w, '}');
    }
    laya_json_end(w, ']');
}

void laya_inspect_put_element(laya_json_writer *w, const laya_mil_constant *constant, uint64_t at)
{
    char text[LAYA_ELEMENT_TEXT];
    if (constant->strings)
        put_text(w, constant->strings[at]);
    else if (!laya_element_text(constant, at, text))
        laya_json_put_raw(w, "null");
    else if (strpbrk(text, "NI")) /* NaN and infinities are no JSON numbers */
        put_text(w, text);
    else
        laya_json_put_raw(w, text);
}

static uint64_t constant_bytes(const laya_mil_constant *constant)
{
    uint64_t bytes = constant->size;
    for (uint32_t at = 0; constant->strings && at < constant->string_count; at++)
        bytes += strlen(constant->strings[at]);
    return bytes;
}

/* Type, bytes, place in the weight file, and the values when they are few. */
static void member_constant(laya_json_writer *w, const laya_mil_constant *constant)
{
    uint32_t few = laya_few_elements(constant);
    laya_inspect_member_type(w, &constant->type);
    if (constant->in_file) laya_json_member_uint(w, "offset", constant->offset);
    if (!few) {
        laya_json_member_uint(w, "bytes", constant_bytes(constant));
        return;
    }
    laya_json_name(w, "value");
    if (constant->type.rank > 0) laya_json_begin(w, '[');
    for (uint32_t at = 0; at < (constant->type.rank > 0 ? few : 1); at++) laya_inspect_put_element(w, constant, at);
    if (constant->type.rank > 0) laya_json_end(w, ']');
}

/* ------------------------------------------------------------------ interface */

static void member_true(laya_json_writer *w, const char *name, bool value)
{
    if (!value) return;
    laya_json_name(w, name);
    laya_json_put_bool(w, true);
}

static void member_features(laya_json_writer *w, const char *name, const laya_mil_feature *features, uint32_t count)
{
    laya_json_name(w, name);
    laya_json_begin(w, '[');
    for (uint32_t at = 0; at < count; at++) {
        const laya_mil_feature *feature = &features[at];
        laya_inspect_begin_line(w);
        laya_json_member_string(w, "name", feature->name);
        laya_json_member_string(w, "kind", feature->kind);
        member_type(w, &feature->type);
        member_true(w, "flexible", feature->flexible);
        member_true(w, "optional", feature->optional);
        laya_inspect_end_line(w);
    }
    laya_json_end(w, ']');
}

/* What the description says about a function; nothing when it is silent. */
static void member_interface(laya_json_writer *w, const laya_mil_program *program, const laya_mil_function *function)
{
    laya_mil_interface interface = {0};
    for (uint32_t at = 0; at < program->interface_count; at++) {
        if (program->function_count == 1 || strcmp(program->interfaces[at].name, function->name) == 0)
            interface = program->interfaces[at];
    }
    member_features(w, "inputs", interface.inputs, interface.input_count);
    member_features(w, "outputs", interface.outputs, interface.output_count);
    member_features(w, "states", interface.states, interface.state_count);
}

/* ------------------------------------------------------------------ operations */

static int by_count(const void *a, const void *b)
{
    const laya_op_kind *left = a, *right = b;
    if (left->count != right->count) return left->count < right->count ? 1 : -1;
    return strcmp(left->type, right->type);
}

static laya_status member_operations(facts *f, const laya_listing *listing, laya_error *error)
{
    laya_json_writer *w = &f->w;
    uint64_t constant = 0, constexpr = 0;
    laya_op_kind *kinds;
    uint32_t count;
    for (uint32_t at = 0; at < listing->count; at++) {
        constant += laya_mil_is_const(listing->ops[at].op);
        constexpr += laya_mil_is_constexpr(listing->ops[at].op);
    }
    LAYA_TRY(laya_listing_kinds(listing, 1, &f->arena, &kinds, &count, error));
    if (count) qsort(kinds, count, sizeof *kinds, by_count);
    laya_json_name(w, "operations");
    laya_json_begin(w, '{');
    laya_json_member_uint(w, "non_constant", listing->count - constant - constexpr);
    laya_json_member_uint(w, "const", constant);
    laya_json_member_uint(w, "constexpr", constexpr);
    laya_json_name(w, "kinds");
    laya_json_begin(w, '{');
    for (uint32_t at = 0; at < count; at++) laya_json_member_uint(w, kinds[at].type, kinds[at].count);
    laya_json_end(w, '}');
    laya_json_end(w, '}');
    return LAYA_OK;
}

/* The name of a value, or an object for a constant in place. */
static void put_binding(laya_json_writer *w, const laya_mil_binding *binding)
{
    if (binding->name) {
        put_text(w, binding->name);
        return;
    }
    laya_json_begin(w, '{');
    member_constant(w, binding->constant);
    laya_json_end(w, '}');
}

static void member_arguments(laya_json_writer *w, const laya_mil_op *op)
{
    laya_json_name(w, "inputs");
    laya_json_begin(w, '{');
    for (uint32_t at = 0; at < op->input_count; at++) {
        const laya_mil_argument *argument = &op->inputs[at];
        laya_json_name(w, argument->name);
        if (argument->count != 1) laya_json_begin(w, '[');
        for (uint32_t part = 0; part < argument->count; part++) put_binding(w, &argument->bindings[part]);
        if (argument->count != 1) laya_json_end(w, ']');
    }
    laya_json_end(w, '}');
}

static void member_attributes(laya_json_writer *w, const laya_mil_op *op)
{
    laya_json_name(w, "attributes");
    laya_json_begin(w, '{');
    for (uint32_t at = 0; at < op->attribute_count; at++) {
        laya_json_name(w, op->attributes[at].name);
        laya_json_begin(w, '{');
        member_constant(w, op->attributes[at].value);
        laya_json_end(w, '}');
    }
    laya_json_end(w, '}');
}

static void member_blocks(laya_json_writer *w, const laya_mil_op *op)
{
    laya_json_name(w, "blocks");
    laya_json_begin(w, '[');
    for (uint32_t at = 0; at < op->block_count; at++) {
        const laya_mil_block *block = &op->blocks[at];
        laya_json_begin(w, '{');
        laya_json_name(w, "inputs");
        put_values(w, block->inputs, block->input_count);
        laya_json_name(w, "outputs");
        laya_json_begin(w, '[');
        for (uint32_t output = 0; output < block->output_count; output++) put_binding(w, &block->outputs[output]);
        laya_json_end(w, ']');
        laya_json_end(w, '}');
    }
    laya_json_end(w, ']');
}

/* A line an operation; those of nested blocks follow theirs, with depth and block. */
static void member_listing(laya_json_writer *w, const laya_listing *listing)
{
    laya_json_name(w, "listing");
    laya_json_begin(w, '[');
    for (uint32_t at = 0; at < listing->count; at++) {
        const laya_listed *listed = &listing->ops[at];
        const laya_mil_op *op = listed->op;
        laya_inspect_begin_line(w);
        laya_json_member_string(w, "type", op->type);
        if (op->name) laya_json_member_string(w, "name", op->name);
        if (listed->depth) {
            laya_json_member_uint(w, "depth", listed->depth);
            laya_json_member_uint(w, "block", listed->block);
        }
        if (op->input_count) member_arguments(w, op);
        if (op->attribute_count) member_attributes(w, op);
        laya_json_name(w, "outputs");
        put_values(w, op->outputs, op->output_count);
        if (op->block_count) member_blocks(w, op);
        laya_inspect_end_line(w);
    }
    laya_json_end(w, ']');
}

static laya_status put_functions(facts *f, bool operations, laya_error *error)
{
    const laya_mil_program *program = &f->package->program;
    laya_json_writer *w = &f->w;
    laya_json_name(w, "functions");
    laya_json_begin(w, '[');
    for (uint32_t at = 0; at < program->function_count; at++) {
        const laya_mil_function *function = &program->functions[at];
        laya_json_begin(w, '{');
        laya_json_member_string(w, "name", function->name);
        laya_json_member_string(w, "opset", function->opset_name ? function->opset_name : "");
        member_interface(w, program, function);
        LAYA_TRY(member_operations(f, &f->listings[at], error));
        if (operations) member_listing(w, &f->listings[at]);
        laya_json_end(w, '}');
    }
    laya_json_end(w, ']');
    return LAYA_OK;
}

/* ------------------------------------------------------------------ constants */

static void keep_largest(facts *f, holding new)
{
    uint32_t at = f->largest_count;
    while (at > 0 && f->largest[at - 1].bytes < new.bytes) at--;
    if (at == LARGEST) return;
    if (f->largest_count < LARGEST) f->largest_count++;
    memmove(&f->largest[at + 1], &f->largest[at], (f->largest_count - 1 - at) * sizeof new);
    f->largest[at] = new;
}

/* The first pass counts, the second one also notes the blobs. */
static void count_constant(facts *f, const laya_mil_op *op, const char *parameter, const laya_mil_constant *constant)
{
    if (f->blobs) {
        if (constant->in_file) f->blobs[f->blob_count++] = (blob){constant->offset, constant->size};
        return;
    }
    holding new = {op, parameter, constant, constant_bytes(constant)};
    *(constant->in_file ? &f->file_count : &f->inline_count) += 1;
    *(constant->in_file ? &f->file_bytes : &f->inline_bytes) += new.bytes;
    keep_largest(f, new);
}

static void count_constants(facts *f)
{
    for (uint32_t function = 0; function < f->package->program.function_count; function++) {
        const laya_listing *listing = &f->listings[function];
        for (uint32_t at = 0; at < listing->count; at++) {
            const laya_mil_op *op = listing->ops[at].op;
            for (uint32_t i = 0; i < op->attribute_count; i++)
                count_constant(f, op, op->attributes[i].name, op->attributes[i].value);
            for (uint32_t i = 0; i < op->input_count; i++) {
                const laya_mil_argument *argument = &op->inputs[i];
                for (uint32_t part = 0; part < argument->count; part++) {
                    const laya_mil_binding *binding = &argument->bindings[part];
                    if (!binding->name) count_constant(f, op, argument->name, binding->constant);
                }
            }
        }
    }
}

static int by_offset(const void *a, const void *b)
{
    uint64_t left = ((const blob *)a)->offset, right = ((const blob *)b)->offset;
    return left < right ? -1 : left > right;
}

/* Sort the blobs and drop the repeated ones. Returns their bytes. */
static uint64_t unite_blobs(facts *f)
{
    uint64_t kept = 0, bytes = 0;
    if (f->blob_count) qsort(f->blobs, f->blob_count, sizeof *f->blobs, by_offset);
    for (uint64_t at = 0; at < f->blob_count; at++) {
        if (kept && f->blobs[kept - 1].offset == f->blobs[at].offset) continue;
        f->blobs[kept++] = f->blobs[at];
        bytes += f->blobs[at].size;
    }
    f->blob_count = kept;
    return bytes;
}

static void member_largest(facts *f)
{
    laya_json_writer *w = &f->w;
    laya_json_name(w, "largest");
    laya_json_begin(w, '[');
    for (uint32_t at = 0; at < f->largest_count; at++) {
        const holding *held = &f->largest[at];
        laya_inspect_begin_line(w);
        laya_json_member_string(w, "name", laya_mil_op_label(held->op));
        if (!laya_mil_is_const(held->op)) laya_json_member_string(w, "parameter", held->parameter);
        laya_inspect_member_type(w, &held->constant->type);
        laya_json_member_uint(w, "bytes", held->bytes);
        laya_inspect_end_line(w);
    }
    laya_json_end(w, ']');
}

static void member_counted(laya_json_writer *w, const char *name, uint64_t count, uint64_t bytes)
{
    laya_json_name(w, name);
    laya_inspect_begin_line(w);
    laya_json_member_uint(w, "count", count);
    laya_json_member_uint(w, "bytes", bytes);
    laya_inspect_end_line(w);
}

static laya_status put_constants(facts *f, laya_error *error)
{
    laya_json_writer *w = &f->w;
    count_constants(f);
    f->blobs = laya_arena_alloc(&f->arena, f->file_count, sizeof *f->blobs);
    if (!f->blobs) return laya_fail_memory(error, f->file_count * sizeof *f->blobs);
    count_constants(f);
    uint64_t blob_bytes = unite_blobs(f);
    laya_json_name(w, "constants");
    laya_json_begin(w, '{');
    laya_json_member_uint(w, "count", f->file_count + f->inline_count);
    laya_json_member_uint(w, "bytes", f->file_bytes + f->inline_bytes);
    member_counted(w, "in_model", f->inline_count, f->inline_bytes);
    member_counted(w, "in_weight_file", f->file_count, f->file_bytes);
    member_counted(w, "distinct_blobs", f->blob_count, blob_bytes);
    member_largest(f);
    laya_json_end(w, '}');
    return LAYA_OK;
}

/* ------------------------------------------------------------------ files, metadata */

static void put_file(laya_json_writer *w, const laya_package *package, const char *path, size_t size)
{
    size_t prefix = strlen(package->path);
    if (strncmp(path, package->path, prefix) == 0) path += prefix;
    laya_inspect_begin_line(w);
    laya_json_member_path(w, "path", path + strspn(path, "/"));
    laya_json_member_uint(w, "bytes", size);
    laya_inspect_end_line(w);
}

static laya_status put_files(facts *f, laya_error *error)
{
    const laya_package *package = f->package;
    laya_json_writer *w = &f->w;
    char *manifest_path = laya_path_join(&package->allocator, package->path, LAYA_PACKAGE_MANIFEST);
    if (!manifest_path) return laya_fail_memory(error, 0);
    laya_file manifest;
    laya_json_name(w, "files");
    laya_json_begin(w, '[');
    if (laya_file_map(&manifest, manifest_path, NULL) == LAYA_OK) { /* it may be gone since the package was opened */
        put_file(w, package, manifest_path, manifest.size);
        laya_file_unmap(&manifest);
    }
    laya_release(&package->allocator, manifest_path);
    put_file(w, package, package->model_path, package->model_file.size);
    if (package->weights_path) put_file(w, package, package->weights_path, package->weight_file.size);
    laya_json_end(w, ']');
    return LAYA_OK;
}

static void put_metadata(laya_json_writer *w, const laya_mil_program *program)
{
    laya_json_name(w, "metadata");
    laya_json_begin(w, '{');
    for (uint32_t at = 0; at < program->metadata_count; at++)
        laya_json_member_string(w, program->metadata[at].key, program->metadata[at].text);
    laya_json_end(w, '}');
}

/* ------------------------------------------------------------------ the whole */

static laya_status put_palettes(facts *f, laya_error *error)
{
    laya_inspected_palettes palettes;
    LAYA_TRY(laya_inspect_palettes(f->package, f->listings, &f->arena, &palettes, error));
    laya_inspect_member_palettes(&f->w, &palettes, false);
    return LAYA_OK;
}

static laya_status put_package(facts *f, bool operations, laya_error *error)
{
    const laya_mil_program *program = &f->package->program;
    laya_json_writer *w = &f->w;
    f->listings = laya_arena_alloc(&f->arena, program->function_count, sizeof *f->listings);
    if (!f->listings) return laya_fail_memory(error, program->function_count * sizeof *f->listings);
    for (uint32_t at = 0; at < program->function_count; at++)
        LAYA_TRY(laya_listing_make(&f->listings[at], &program->functions[at], &f->arena, error));
    laya_json_begin(w, '{');
    laya_json_member_path(w, "package", f->package->path);
    laya_json_member_uint(w, "specification_version", (uint32_t)program->specification_version);
    if (program->default_function) laya_json_member_string(w, "default_function", program->default_function);
    LAYA_TRY(put_functions(f, operations, error));
    LAYA_TRY(put_constants(f, error));
    LAYA_TRY(put_palettes(f, error));
    LAYA_TRY(put_files(f, error));
    put_metadata(w, program);
    laya_json_end(w, '}');
    return f->out.failed ? laya_fail_memory(error, f->out.size) : LAYA_OK;
}

laya_status laya_package_describe(const laya_package *package, int operations, char **json, laya_error *error)
{
    laya_error_clear(error);
    if (!json) return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_package_describe: json must not be NULL");
    *json = NULL;
    if (!package) return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_package_describe: package must not be NULL");
    facts f = {.package = package};
    laya_arena_init(&f.arena, &package->allocator);
    laya_buffer_init(&f.out, &package->allocator);
    laya_json_writer_init(&f.w, &f.out, true);
    laya_status status = put_package(&f, operations != 0, error);
    laya_arena_close(&f.arena);
    if (status == LAYA_OK)
        *json = f.out.data;
    else
        laya_buffer_close(&f.out);
    return status;
}

void laya_package_release(const laya_package *package, char *text)
{
    if (package) laya_release(&package->allocator, text);
}
