/* SPDX-License-Identifier: Apache-2.0 */
/* The palettes of a package: what the tables hold, how much of them is used, and the bytes that they save. */
#include "base/error.h"
#include "coreml/beside.h"
#include "coreml/inspect.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ reading */

static bool is_palette(const laya_mil_op *op)
{
    return strcmp(op->type, "constexpr_lut_to_dense") == 0;
}

static uint32_t count_palettes(const laya_package *package, const laya_listing *listings)
{
    uint32_t count = 0;
    for (uint32_t function = 0; function < package->program.function_count; function++) {
        const laya_listing *listing = &listings[function];
        for (uint32_t at = 0; at < listing->count; at++) count += is_palette(listing->ops[at].op);
    }
    return count;
}

/* Count the entries of each table that an index names. */
static laya_status count_used(laya_inspected_palette *palette, laya_arena *arena, laya_error *error)
{
    const laya_lut *lut = &palette->lut;
    size_t tables, entries;
    palette->used = NULL;
    bool fits = lut->table_count <= SIZE_MAX && laya_mul_size((size_t)lut->table_count, lut->entries, &entries);
    if (!fits) return laya_fail_memory(error, 0);
    tables = (size_t)lut->table_count;
    palette->used = laya_arena_alloc(arena, tables, sizeof *palette->used);
    if (!palette->used) return laya_fail_memory(error, tables * sizeof *palette->used);
    laya_arena_mark mark = laya_arena_save(arena);
    unsigned char *seen = laya_arena_alloc(arena, entries, 1);
    if (!seen) return laya_fail_memory(error, entries);
    memset(seen, 0, entries);
    laya_lut_reader reader;
    laya_lut_run run;
    laya_lut_begin(&reader, lut);
    while (laya_lut_next(&reader, &run)) {
        unsigned char *table = seen + run.table * lut->entries;
        for (size_t i = 0; i < run.count; i++) table[run.indices[i]] = 1;
    }
    for (size_t table = 0; table < tables; table++) {
        palette->used[table] = 0;
        for (uint32_t at = 0; at < lut->entries; at++)
            palette->used[table] = (uint16_t)(palette->used[table] + seen[table * lut->entries + at]);
    }
    laya_arena_restore(arena, mark);
    return LAYA_OK;
}

/* Read an operation; what is wrong with it is kept as a text. */
static laya_status read_palette(const laya_package *package, laya_inspected_palette *palette, laya_arena *arena,
                                laya_error *error)
{
    laya_error problem;
    laya_mil_opset opset = package->program.functions[palette->function].opset;
    laya_status status = laya_constexpr_read(palette->op, opset, &palette->from, &problem);
    if (status == LAYA_OK && !laya_mil_type_size(&palette->from.type, &palette->dense_bytes))
        status = laya_fail(&problem, LAYA_ERROR_FORMAT, "more bytes than can be counted");
    if (status != LAYA_OK) {
        palette->problem = laya_arena_copy(arena, problem.message, strlen(problem.message));
        return palette->problem ? LAYA_OK : laya_fail_memory(error, sizeof problem.message);
    }
    palette->lut = laya_lut_of(&palette->from);
    LAYA_TRY(count_used(palette, arena, error));
    const laya_mil_constant *indices = palette->lut.indices;
    if (package->weights_path && indices->in_file) laya_file_forget(indices->bytes, (size_t)indices->size);
    return LAYA_OK;
}

laya_status laya_inspect_palettes(const laya_package *package, const laya_listing *listings, laya_arena *arena,
                                  laya_inspected_palettes *out, laya_error *error)
{
    uint32_t count = count_palettes(package, listings);
    *out = (laya_inspected_palettes){.package = package};
    out->all = laya_arena_alloc(arena, count, sizeof *out->all);
    if (!out->all) return laya_fail_memory(error, count * sizeof *out->all);
    for (uint32_t function = 0; function < package->program.function_count; function++) {
        const laya_listing *listing = &listings[function];
        for (uint32_t at = 0; at < listing->count; at++) {
            if (!is_palette(listing->ops[at].op)) continue;
            laya_inspected_palette *palette = &out->all[out->count++];
            *palette = (laya_inspected_palette){.op = listing->ops[at].op, .function = function};
            LAYA_TRY(read_palette(package, palette, arena, error));
        }
    }
    return LAYA_OK;
}

/* ------------------------------------------------------------------ one palette */

/* "groups", and where one axis is divided, which, and the output's elements along it that share a table. */
static void member_groups(laya_json_writer *w, const laya_lut *lut)
{
    const int64_t *dims = lut->from->type.dims;
    uint32_t divided = 0, axis = 0;
    for (uint32_t at = 0; at < lut->shape.rank; at++) {
        if (lut->groups[at] == 1) continue;
        divided++;
        axis = at;
    }
    laya_json_member_uint(w, "groups", lut->table_count);
    if (divided == 1) {
        laya_json_member_uint(w, "axis", axis);
        laya_json_member_uint(w, "group_size", (uint64_t)(dims[axis] / lut->groups[axis]));
    }
    if (divided > 1) {
        bool pretty = w->pretty;
        laya_json_name(w, "group_shape");
        w->pretty = false;
        laya_json_begin(w, '[');
        for (uint32_t at = 0; at < lut->shape.rank; at++)
            laya_json_put_uint(w, (uint64_t)(dims[at] / lut->groups[at]));
        laya_json_end(w, ']');
        w->pretty = pretty;
    }
    if (lut->vector > 1) {
        laya_json_member_uint(w, "vector", lut->vector);
        laya_json_member_uint(w, "vector_axis", lut->vector_axis);
    }
}

static void member_used(laya_json_writer *w, const laya_inspected_palette *palette)
{
    const laya_lut *lut = &palette->lut;
    uint32_t least = lut->entries, most = 0;
    uint64_t unreferenced = 0;
    for (uint64_t at = 0; at < lut->table_count; at++) {
        uint32_t used = palette->used[at];
        if (used < least) least = used;
        if (used > most) most = used;
        unreferenced += lut->entries - used;
    }
    laya_json_member_uint(w, "entries", lut->entries);
    laya_json_member_uint(w, "used_least", least);
    laya_json_member_uint(w, "used_most", most);
    laya_json_member_uint(w, "unreferenced", unreferenced);
}

/* A value, or the values of a vector. */
static void put_entry(laya_json_writer *w, const laya_lut *lut, uint64_t entry)
{
    if (lut->vector > 1) laya_json_begin(w, '[');
    for (size_t part = 0; part < lut->vector; part++)
        laya_inspect_put_element(w, lut->tables, entry * lut->vector + part);
    if (lut->vector > 1) laya_json_end(w, ']');
}

static void member_tables(laya_json_writer *w, const laya_inspected_palette *palette)
{
    const laya_lut *lut = &palette->lut;
    laya_json_name(w, "tables");
    laya_json_begin(w, '[');
    for (uint64_t table = 0; table < lut->table_count; table++) {
        laya_inspect_begin_line(w);
        laya_json_member_uint(w, "used", palette->used[table]);
        laya_json_name(w, "values");
        laya_json_begin(w, '[');
        for (uint32_t at = 0; at < lut->entries; at++) put_entry(w, lut, table * lut->entries + at);
        laya_json_end(w, ']');
        laya_inspect_end_line(w);
    }
    laya_json_end(w, ']');
}

static void member_facts(laya_json_writer *w, const laya_inspected_palette *palette)
{
    const laya_lut *lut = &palette->lut;
    laya_json_member_string(w, "form", laya_mil_opset_name(lut->from->form->since));
    laya_inspect_member_type(w, &lut->from->type);
    laya_json_member_uint(w, "bits", lut->bits);
    member_groups(w, lut);
    member_used(w, palette);
    laya_json_member_uint(w, "index_bytes", lut->indices->size);
    laya_json_member_uint(w, "table_bytes", lut->tables->size);
    laya_json_member_uint(w, "dense_bytes", palette->dense_bytes);
    laya_inspect_member_figures(w, palette);
}

static const char *palette_name(const laya_mil_op *op)
{
    return op->output_count ? op->outputs[0]->name : laya_mil_op_label(op);
}

static void put_palette(laya_json_writer *w, const laya_inspected_palettes *palettes,
                        const laya_inspected_palette *palette, bool tables)
{
    const laya_mil_program *program = &palettes->package->program;
    bool line = !tables || palette->problem;
    if (line)
        laya_inspect_begin_line(w);
    else
        laya_json_begin(w, '{');
    laya_json_member_string(w, "name", palette_name(palette->op));
    if (program->function_count > 1)
        laya_json_member_string(w, "function", program->functions[palette->function].name);
    if (palette->problem)
        laya_json_member_string(w, "problem", palette->problem);
    else
        member_facts(w, palette);
    if (line) {
        laya_inspect_end_line(w);
        return;
    }
    member_tables(w, palette);
    laya_json_end(w, '}');
}

/* ------------------------------------------------------------------ all of them */

typedef struct totals {
    uint32_t unreadable;
    uint32_t bits[9];                        /* palettes by bits of an index */
    uint64_t tables, indices, stored, dense; /* bytes */
} totals;

static totals add_up(const laya_inspected_palettes *palettes)
{
    totals sum = {0};
    for (uint32_t at = 0; at < palettes->count; at++) {
        const laya_inspected_palette *palette = &palettes->all[at];
        sum.unreadable += palette->problem != NULL;
        if (palette->problem) continue;
        sum.bits[palette->lut.bits]++;
        sum.tables += palette->lut.tables->size;
        sum.indices += palette->lut.indices->size;
        sum.dense += palette->dense_bytes;
    }
    sum.stored = sum.tables + sum.indices;
    return sum;
}

static void member_bits(laya_json_writer *w, const totals *sum)
{
    char key[16];
    laya_json_name(w, "bits");
    laya_inspect_begin_line(w);
    for (unsigned bits = 1; bits < sizeof sum->bits / sizeof *sum->bits; bits++) {
        if (!sum->bits[bits]) continue;
        snprintf(key, sizeof key, "%u", bits);
        laya_json_member_uint(w, key, sum->bits[bits]);
    }
    laya_inspect_end_line(w);
}

void laya_inspect_member_palettes(laya_json_writer *w, const laya_inspected_palettes *palettes, bool tables)
{
    totals sum = add_up(palettes);
    laya_json_name(w, "palettes");
    laya_json_begin(w, '{');
    laya_json_member_uint(w, "count", palettes->count);
    if (sum.unreadable) laya_json_member_uint(w, "unreadable", sum.unreadable);
    member_bits(w, &sum);
    laya_json_member_uint(w, "index_bytes", sum.indices);
    laya_json_member_uint(w, "table_bytes", sum.tables);
    laya_json_member_uint(w, "stored_bytes", sum.stored);
    laya_json_member_uint(w, "dense_bytes", sum.dense);
    laya_json_name(w, "ratio"); /* dense by stored */
    if (sum.stored)
        laya_json_put_round4(w, (double)sum.dense / (double)sum.stored);
    else
        laya_json_put_raw(w, "null");
    laya_json_name(w, "weights");
    laya_json_begin(w, '[');
    for (uint32_t at = 0; at < palettes->count; at++) put_palette(w, palettes, &palettes->all[at], tables);
    laya_json_end(w, ']');
    laya_json_end(w, '}');
}

/* ------------------------------------------------------------------ the report */

typedef struct report {
    const laya_package *package, *parent;
    laya_arena arena;
    laya_buffer out;
    laya_json_value palette; /* of the manifest; absent: there is none */
} report;

static laya_status put_report(report *r, laya_error *error)
{
    const laya_mil_program *program = &r->package->program;
    laya_json_writer w;
    laya_inspected_palettes palettes;
    laya_listing *listings = laya_arena_alloc(&r->arena, program->function_count, sizeof *listings);
    if (!listings) return laya_fail_memory(error, program->function_count * sizeof *listings);
    for (uint32_t at = 0; at < program->function_count; at++)
        LAYA_TRY(laya_listing_make(&listings[at], &program->functions[at], &r->arena, error));
    LAYA_TRY(laya_inspect_palettes(r->package, listings, &r->arena, &palettes, error));
    if (r->parent)
        LAYA_TRY(laya_inspect_measure(&palettes, r->parent, &r->arena, error));
    else
        LAYA_TRY(laya_inspect_record(&palettes, r->palette, &r->arena, error));
    laya_json_writer_init(&w, &r->out, true);
    laya_json_begin(&w, '{');
    laya_json_member_path(&w, "package", r->package->path);
    laya_inspect_member_total(&w, &palettes, r->parent, r->palette);
    laya_inspect_member_palettes(&w, &palettes, true);
    laya_json_end(&w, '}');
    return r->out.failed ? laya_fail_memory(error, r->out.size) : LAYA_OK;
}

/* With what the manifest records of the package, where it is the one of its bundle. */
static laya_status put_recorded(report *r, const laya_file *manifest, laya_error *error)
{
    laya_json doc;
    const char *directory, *name;
    LAYA_TRY(laya_beside_directory(r->package->path, &r->arena, &directory, &name, error));
    laya_status status = laya_json_parse(&doc, (const char *)manifest->data, manifest->size, &r->package->allocator,
                                         error);
    if (status == LAYA_ERROR_INPUT) { /* no bundle of ours; the verifier says more */
        laya_error_clear(error);
        return put_report(r, error);
    }
    LAYA_TRY(status);
    if (laya_beside_is_bundle(laya_json_root(&doc), name))
        r->palette = laya_json_get(laya_json_root(&doc), "palette");
    if (laya_json_typeof(r->palette) != LAYA_JSON_OBJECT) r->palette = (laya_json_value){0};
    status = put_report(r, error);
    laya_json_close(&doc);
    return status;
}

laya_status laya_inspect_palette_report(const laya_package *package, const laya_package *parent,
                                        const laya_file *manifest, char **json, laya_error *error)
{
    report r = {.package = package, .parent = parent};
    laya_arena_init(&r.arena, &package->allocator);
    laya_buffer_init(&r.out, &package->allocator);
    laya_status status = manifest && !parent ? put_recorded(&r, manifest, error) : put_report(&r, error);
    laya_arena_close(&r.arena);
    if (status == LAYA_OK)
        *json = r.out.data;
    else
        laya_buffer_close(&r.out);
    return status;
}

/* The manifest.json beside the package; no data: there is none. */
static laya_status map_manifest(const laya_package *package, laya_file *manifest, laya_error *error)
{
    const char *directory, *name;
    laya_arena arena;
    laya_arena_init(&arena, &package->allocator);
    laya_status status = laya_beside_directory(package->path, &arena, &directory, &name, error);
    char *path = NULL;
    if (status == LAYA_OK) {
        path = laya_path_join(&package->allocator, directory, LAYA_BESIDE_MANIFEST);
        if (!path) status = laya_fail_memory(error, 0);
    }
    if (path && laya_path_exists(path)) status = laya_file_map(manifest, path, error);
    laya_release(&package->allocator, path);
    laya_arena_close(&arena);
    return status;
}

laya_status laya_package_palettes(const laya_package *package, const laya_package *parent, char **json,
                                  laya_error *error)
{
    laya_error_clear(error);
    if (!json) return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_package_palettes: json must not be NULL");
    *json = NULL;
    if (!package) return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_package_palettes: package must not be NULL");
    laya_file manifest = {NULL, 0};
    if (!parent) LAYA_TRY(map_manifest(package, &manifest, error));
    laya_status status = laya_inspect_palette_report(package, parent, manifest.data ? &manifest : NULL, json, error);
    laya_file_unmap(&manifest);
    return status;
}
