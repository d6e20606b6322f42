/* SPDX-License-Identifier: Apache-2.0 */
/* What palettes change: computed against the package that they were made from, or as the bundle's manifest records. */
#include "base/error.h"
#include "base/half.h"
#include "coreml/inspect.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------ measuring */

/* One element of the types that palettes have: fp16, fp32, int8, uint8. */
static double load(const laya_mil_constant *constant, uint64_t at)
{
    const unsigned char *bytes = constant->bytes;
    switch (constant->type.dtype) {
    case LAYA_MIL_FP16: bytes += 2 * at; return (double)laya_half_to_float((uint16_t)(bytes[0] | bytes[1] << 8));
    case LAYA_MIL_FP32:
        bytes += 4 * at;
        return (double)laya_float_of_bits((uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                                          (uint32_t)bytes[3] << 24);
    case LAYA_MIL_INT8: return (double)((bytes[at] ^ 128) - 128);
    default: return (double)bytes[at];
    }
}

static void add_error(laya_lut_figures *figures, double weight, double entry)
{
    double difference = weight - entry;
    figures->sse += difference * difference;
    figures->energy += weight * weight;
    if (fabs(difference) > figures->largest) figures->largest = fabs(difference);
}

static laya_status measure(laya_inspected_palette *palette, const laya_mil_constant *dense, laya_arena *arena,
                           laya_error *error)
{
    const laya_lut *lut = &palette->lut;
    palette->measured = true;
    if (!dense->bytes) return LAYA_OK; /* it has no elements */
    size_t values = (size_t)lut->tables->size / lut->width, table_values = lut->entries * lut->vector;
    laya_arena_mark mark = laya_arena_save(arena);
    double *tables = laya_arena_alloc(arena, values, sizeof *tables);
    if (!tables) return laya_fail_memory(error, values * sizeof *tables);
    for (size_t at = 0; at < values; at++) tables[at] = load(lut->tables, at);
    laya_lut_reader reader;
    laya_lut_run run;
    laya_lut_begin(&reader, lut);
    while (laya_lut_next(&reader, &run)) {
        const double *table = tables + run.table * table_values;
        for (size_t i = 0; i < run.count; i++) {
            for (size_t part = 0; part < lut->vector; part++)
                add_error(&palette->figures, load(dense, laya_lut_place(lut, run.first + i, part)),
                          table[run.indices[i] * lut->vector + part]);
        }
    }
    /* A NaN is in no maximum, but in the sum. */
    if (isnan(palette->figures.sse)) palette->figures.largest = palette->figures.sse;
    laya_arena_restore(arena, mark);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ the parent's constants */

static const laya_mil_function *find_function(const laya_mil_program *program, const laya_mil_function *wanted,
                                              bool single)
{
    for (uint32_t at = 0; at < program->function_count; at++) {
        if (single || strcmp(program->functions[at].name, wanted->name) == 0) return &program->functions[at];
    }
    return NULL;
}

/* The operations of a function by the names of their outputs; of several of one name the first. */
static laya_status name_operations(const laya_mil_function *function, laya_mil_names *names, laya_arena *arena,
                                   laya_error *error)
{
    laya_listing listing;
    LAYA_TRY(laya_listing_make(&listing, function, arena, error));
    for (uint32_t at = 0; at < listing.count; at++) {
        const laya_mil_op *op = listing.ops[at].op;
        for (uint32_t output = 0; output < op->output_count; output++) {
            const char *name = op->outputs[output]->name;
            if (laya_mil_names_get(names, name)) continue;
            if (!laya_mil_names_put(names, name, op->outputs[output], NULL)) return laya_fail_memory(error, 0);
        }
    }
    return LAYA_OK;
}

/* The dense constant of a palette's name and type. */
static laya_status find_dense(const laya_inspected_palette *palette, const laya_mil_names *names,
                              const laya_mil_constant **dense, laya_error *error)
{
    char wanted[LAYA_MIL_TYPE_TEXT], found[LAYA_MIL_TYPE_TEXT];
    const char *name = palette->op->outputs[0]->name;
    const laya_mil_value *value = laya_mil_names_get(names, name);
    if (!value) {
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "'%.200s': not found; name the package that the palettes were made from", name);
    }
    *dense = value->constant;
    if (!*dense) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "'%.200s': expected a dense constant, found an output of %.100s",
                         name, value->op ? value->op->type : "nothing");
    }
    if (!laya_mil_type_equal(&(*dense)->type, &palette->from.type)) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "'%.200s': expected %s, found %s", name,
                         laya_mil_type_text(&palette->from.type, wanted), laya_mil_type_text(&(*dense)->type, found));
    }
    if ((*dense)->size == palette->dense_bytes && ((*dense)->bytes || (*dense)->size == 0)) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_FORMAT, "'%.200s': its bytes cannot be read", name);
}

static laya_status measure_palette(laya_inspected_palette *palette, const laya_package *parent,
                                   const laya_mil_names *names, laya_arena *arena, laya_error *error)
{
    const laya_mil_constant *dense;
    if (palette->problem) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "'%.200s': this palette cannot be read: %s",
                         laya_mil_op_label(palette->op), palette->problem);
    }
    laya_status status = find_dense(palette, names, &dense, error);
    if (status != LAYA_OK) {
        laya_error_prefix(error, "%s: ", parent->path);
        return status;
    }
    LAYA_TRY(measure(palette, dense, arena, error));
    if (parent->weights_path && dense->in_file) laya_file_forget(dense->bytes, (size_t)dense->size);
    return LAYA_OK;
}

/* The palettes of one function, which follow each other from `first` on; `end` receives the place behind them. */
static laya_status measure_function(laya_inspected_palettes *palettes, const laya_package *parent, uint32_t first,
                                    uint32_t *end, laya_arena *arena, laya_error *error)
{
    const laya_mil_program *program = &palettes->package->program;
    uint32_t function = palettes->all[first].function;
    const laya_mil_function *wanted = &program->functions[function];
    bool single = program->function_count == 1 && parent->program.function_count == 1;
    const laya_mil_function *found = find_function(&parent->program, wanted, single);
    if (!found)
        return laya_fail(error, LAYA_ERROR_FORMAT, "%s: function '%.200s' not found", parent->path, wanted->name);
    laya_mil_names names;
    laya_mil_names_init(&names, &palettes->package->allocator);
    laya_status status = name_operations(found, &names, arena, error);
    uint32_t at = first;
    for (; status == LAYA_OK && at < palettes->count && palettes->all[at].function == function; at++)
        status = measure_palette(&palettes->all[at], parent, &names, arena, error);
    laya_mil_names_close(&names);
    *end = at;
    return status;
}

laya_status laya_inspect_measure(laya_inspected_palettes *palettes, const laya_package *parent, laya_arena *arena,
                                 laya_error *error)
{
    for (uint32_t at = 0; at < palettes->count;) LAYA_TRY(measure_function(palettes, parent, at, &at, arena, error));
    return LAYA_OK;
}

/* ------------------------------------------------------------------ the manifest's records */

/* The records of weights by name; those of other forms are left out, of several of one name the first stays. */
static laya_status name_records(laya_json_value weights, laya_mil_names *names, laya_arena *arena, laya_error *error)
{
    if (laya_json_typeof(weights) != LAYA_JSON_ARRAY) return LAYA_OK;
    for (laya_json_iterator it = laya_json_first(weights); laya_json_present(it.value); laya_json_next(&it)) {
        laya_json_value name = laya_json_get(it.value, "name");
        size_t size;
        if (laya_json_typeof(name) != LAYA_JSON_STRING) continue;
        const char *text = laya_json_text(name, &size);
        char *key = laya_arena_copy(arena, text, size);
        laya_json_value *record = laya_arena_alloc(arena, 1, sizeof *record);
        if (!key || !record) return laya_fail_memory(error, size);
        *record = it.value;
        if (laya_mil_names_get(names, key)) continue;
        if (!laya_mil_names_put(names, key, record, NULL)) return laya_fail_memory(error, 0);
    }
    return LAYA_OK;
}

static laya_status find_records(laya_inspected_palettes *palettes, const laya_mil_names *names, laya_error *error)
{
    for (uint32_t at = 0; at < palettes->count; at++) {
        laya_inspected_palette *palette = &palettes->all[at];
        if (palette->problem) continue;
        const char *name = palette->op->outputs[0]->name;
        uint32_t bits;
        palette->recorded = laya_mil_names_get(names, name);
        if (!palette->recorded || !laya_json_to_uint32(laya_json_get(*palette->recorded, "bits"), &bits)) continue;
        if (bits == palette->lut.bits) continue;
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "manifest.json: palette: '%.200s' has %" PRIu32 " bits, the package has %u; it was changed",
                         name, bits, palette->lut.bits);
    }
    return LAYA_OK;
}

laya_status laya_inspect_record(laya_inspected_palettes *palettes, laya_json_value palette, laya_arena *arena,
                                laya_error *error)
{
    laya_mil_names names;
    if (!laya_json_present(palette)) return LAYA_OK;
    laya_mil_names_init(&names, &palettes->package->allocator);
    laya_status status = name_records(laya_json_get(palette, "weights"), &names, arena, error);
    if (status == LAYA_OK) status = find_records(palettes, &names, error);
    laya_mil_names_close(&names);
    return status;
}

/* ------------------------------------------------------------------ writing */

static void put_figures(laya_json_writer *w, const laya_lut_figures *figures)
{
    laya_inspect_member_number(w, "sse", figures->sse);
    if (figures->energy > 0 || figures->sse == 0) {
        laya_inspect_member_number(w, "relative_error", figures->sse == 0 ? 0 : figures->sse / figures->energy);
    } else {
        laya_json_name(w, "relative_error"); /* the weights are zeros, or no numbers */
        laya_json_put_raw(w, "null");
    }
    laya_inspect_member_number(w, "largest_error", figures->largest);
}

/* A number or text of the manifest as it stands there; of other kinds null. */
static void member_copy(laya_json_writer *w, laya_json_value object, const char *name)
{
    laya_json_value value = laya_json_get(object, name);
    laya_json_type type = laya_json_typeof(value);
    size_t size = 0;
    double number;
    const char *text = laya_json_text(value, &size);
    laya_json_name(w, name);
    if (type == LAYA_JSON_STRING)
        laya_json_put_string(w, text, size);
    else if (laya_json_to_double(value, &number) && isfinite(number))
        laya_json_put_repr(w, number);
    else
        laya_json_put_raw(w, "null");
}

void laya_inspect_member_figures(laya_json_writer *w, const laya_inspected_palette *palette)
{
    if (palette->measured) {
        laya_json_name(w, "computed");
        laya_inspect_begin_line(w);
        put_figures(w, &palette->figures);
        laya_inspect_end_line(w);
    }
    if (palette->recorded) {
        laya_json_name(w, "recorded");
        laya_inspect_begin_line(w);
        member_copy(w, *palette->recorded, "sse");
        member_copy(w, *palette->recorded, "relative_error");
        if (laya_json_present(laya_json_get(*palette->recorded, "weighted_relative_error")))
            member_copy(w, *palette->recorded, "weighted_relative_error");
        member_copy(w, *palette->recorded, "largest_error");
        laya_inspect_end_line(w);
    }
}

void laya_inspect_member_total(laya_json_writer *w, const laya_inspected_palettes *palettes,
                               const laya_package *parent, laya_json_value palette)
{
    if (parent) {
        laya_lut_figures sum = {0};
        for (uint32_t at = 0; at < palettes->count; at++) {
            const laya_lut_figures *figures = &palettes->all[at].figures;
            sum.sse += figures->sse;
            sum.energy += figures->energy;
            if (figures->largest > sum.largest) sum.largest = figures->largest;
        }
        if (isnan(sum.sse)) sum.largest = sum.sse;
        laya_json_name(w, "computed");
        laya_json_begin(w, '{');
        laya_json_member_path(w, "parent", parent->path);
        put_figures(w, &sum);
        laya_json_end(w, '}');
    } else if (laya_json_present(palette)) {
        laya_json_name(w, "recorded");
        laya_json_begin(w, '{');
        member_copy(w, palette, "mode");
        member_copy(w, palette, "parent_package_sha256");
        laya_json_end(w, '}');
    }
}
