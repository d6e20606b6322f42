/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of a screen; docs/GATES.md lists the fields. */
#include "screen/report.h"

#include "base/error.h"
#include "palette/manifest.h"

#include <math.h>

const laya_screen_variant laya_screen_variants[LAYA_SCREEN_VARIANTS] = {
    {"w8-uniform-g32", LAYA_PALETTE_UNIFORM, 8, 32},   {"w8-uniform-g4", LAYA_PALETTE_UNIFORM, 8, 4},
    {"w8-kmeans-g32", LAYA_PALETTE_KMEANS, 8, 32},     {"w6-kmeans-g32", LAYA_PALETTE_KMEANS, 6, 32},
    {"w4-kmeans-g32", LAYA_PALETTE_KMEANS, 4, 32},     {"w8-uniform-tensor", LAYA_PALETTE_UNIFORM, 8, 0},
    {"w8-kmeans-tensor", LAYA_PALETTE_KMEANS, 8, 0},   {"w6-kmeans-tensor", LAYA_PALETTE_KMEANS, 6, 0},
    {"w4-kmeans-tensor", LAYA_PALETTE_KMEANS, 4, 0},   {"w8-weighted-g32", LAYA_PALETTE_WEIGHTED, 8, 32},
    {"w6-weighted-g32", LAYA_PALETTE_WEIGHTED, 6, 32}, {"w4-weighted-g32", LAYA_PALETTE_WEIGHTED, 4, 32}};

/* ------------------------------------------------------------------ the study's table */

#define NOT_GIVEN (-1.0)

typedef struct study_row {
    const char *variant;
    double probability_error;
    bool passed;
    double action_logit_error, seconds; /* NOT_GIVEN: the table has none */
} study_row;

/* S74 */
static const study_row study_rows[] = {{"w8-uniform-g32", 0.023612, false, NOT_GIVEN, NOT_GIVEN},
                                       {"w8-uniform-g4", 0.033858, false, NOT_GIVEN, NOT_GIVEN},
                                       {"w8-kmeans-g32", 0.014393, true, 16.24, 186.50},
                                       {"w6-kmeans-g32", 0.052243, false, 76.62, 56.13},
                                       {"w4-kmeans-g32", 0.200221, false, 605.30, 23.90}};

static const char study_note[] =
    "The study screened the published multilingual checkpoint at length 96 with its own fixture, executed by Core ML "
    "on an M3 Max; its seconds are those of coremltools with 8 workers. Model, fixture, executor and machine are "
    "others "
    "here: the figures stand beside each other and are not comparable.";

static void write_given(laya_json_writer *w, const char *name, double value)
{
    laya_json_name(w, name);
    if (value < 0)
        laya_json_put_raw(w, "null");
    else
        laya_json_put_double(w, value);
}

static void write_study(laya_json_writer *w)
{
    laya_json_name(w, "study");
    laya_json_begin(w, '{');
    for (size_t at = 0; at < sizeof study_rows / sizeof *study_rows; at++) {
        const study_row *row = &study_rows[at];
        laya_json_name(w, row->variant);
        laya_json_begin(w, '{');
        laya_json_member_bool(w, "passed", row->passed);
        laya_json_member_double(w, "probability_error", row->probability_error);
        write_given(w, "action_logit_error", row->action_logit_error);
        laya_json_member_uint(w, "argmax_changes", 0); /* of 59, in all five */
        write_given(w, "seconds", row->seconds);
        laya_json_end(w, '}');
    }
    laya_json_end(w, '}');
    laya_json_member_string(w, "study_note", study_note);
}

/* ------------------------------------------------------------------ parts of the document */

static void copy_member(laya_json_writer *w, laya_json_value object, const char *name)
{
    laya_json_name(w, name);
    laya_json_put_value(w, laya_json_get(object, name));
}

static void write_reference(laya_json_writer *w, const laya_screen_results *results, laya_json_value parent)
{
    static const char *const copied[] = {"class", "sha256", "fixture_sha256", "model", "source_weights_sha256"};
    laya_json_value reference = laya_json_get(parent, "reference");
    laya_json_name(w, "reference");
    laya_json_begin(w, '{');
    laya_json_member_string(w, "recorded", results->options->reference ? "before" : "for this run");
    laya_json_member_path(w, "file", results->reference);
    for (size_t at = 0; at < sizeof copied / sizeof *copied; at++) copy_member(w, reference, copied[at]);
    laya_json_end(w, '}');
}

/* The gates that a validation did not pass. */
static void write_failed(laya_json_writer *w, laya_json_value gates)
{
    laya_json_name(w, "failed");
    laya_json_begin(w, '[');
    for (laya_json_iterator it = laya_json_first(gates); laya_json_present(it.value); laya_json_next(&it)) {
        size_t size;
        laya_json_value passed = laya_json_get(it.value, "passed");
        const char *name = laya_json_text(it.key, &size);
        if (laya_json_present(passed) && laya_json_typeof(passed) == LAYA_JSON_FALSE)
            laya_json_put_string(w, name, size);
    }
    laya_json_end(w, ']');
}

/* Of a validation report. */
static void write_gate(laya_json_writer *w, const laya_gate_result *result, laya_json_value validation)
{
    double action = NAN;
    laya_json_value worst = laya_json_get(laya_json_get(validation, "worst"), "action_probability_error");
    laya_json_to_double(laya_json_get(worst, "value"), &action);
    laya_json_name(w, "gate");
    laya_json_begin(w, '{');
    laya_json_member_bool(w, "passed", result->gate.passed);
    write_failed(w, laya_json_get(validation, "gates"));
    laya_json_member_double(w, "probability_error", result->gate.probability_error);
    laya_json_member_double(w, "action_probability_error", action);
    laya_json_member_double(w, "action_logit_error", result->gate.action_logit_error);
    laya_json_member_uint(w, "argmax_changes", result->argmax_changes);
    laya_json_member_uint(w, "near_ties", result->near_ties);
    laya_json_member_bool(w, "stable", result->stable);
    laya_json_member_uint(w, "evaluated", result->gate.evaluated);
    laya_json_member_uint(w, "unvalidated", result->gate.unvalidated);
    laya_json_end(w, '}');
}

/* sse / energy; 0 where nothing is lost, also of weights that are all zero. */
static double relative(double sse, double energy)
{
    return sse == 0 ? 0 : sse / energy;
}

static void write_bytes(laya_json_writer *w, const char *name, uint64_t before, uint64_t after)
{
    laya_json_name(w, name);
    laya_json_begin(w, '{');
    laya_json_member_uint(w, "before", before);
    laya_json_member_uint(w, "after", after);
    laya_json_member_double(w, "ratio", (double)before / (double)after);
    laya_json_end(w, '}');
}

static laya_status write_made(laya_json_writer *w, const laya_screen_row *row, bool weighted, laya_error *error)
{
    laya_json validation;
    size_t size;
    const char *text = laya_report_json(row->result.report, &size);
    LAYA_TRY(laya_json_parse(&validation, text, size, &w->out->allocator, error));
    laya_json_value root = laya_json_root(&validation);
    copy_member(w, laya_json_get(root, "package"), "package_sha256");
    laya_json_member_uint(w, "weights", row->weights);
    write_bytes(w, "weight_bytes", row->weights_before, row->weights_after);
    write_bytes(w, "package_bytes", row->package_before, row->package_after);
    laya_json_member_double(w, "relative_error", relative(row->errors.sse, row->errors.energy));
    laya_json_name(w, "weighted_relative_error");
    if (weighted)
        laya_json_put_double(w, relative(row->errors.weighted_sse, row->errors.weighted_energy));
    else
        laya_json_put_raw(w, "null");
    laya_json_member_round4(w, "seconds", row->seconds);
    write_gate(w, &row->result, root);
    laya_json_close(&validation);
    return LAYA_OK;
}

static laya_status write_row(laya_json_writer *w, const laya_screen_variant *variant, const laya_screen_row *row,
                             laya_error *error)
{
    laya_json_begin(w, '{');
    laya_json_member_string(w, "name", variant->name);
    laya_json_member_string(w, "mode", laya_palette_mode_name(variant->mode));
    laya_json_member_uint(w, "bits", variant->bits);
    laya_json_name(w, "group_size");
    if (variant->group_size)
        laya_json_put_uint(w, variant->group_size);
    else
        laya_json_put_raw(w, "null");
    laya_json_member_string(w, "status", row->made ? "made" : "not_made");
    if (row->made)
        LAYA_TRY(write_made(w, row, variant->mode == LAYA_PALETTE_WEIGHTED, error));
    else
        laya_json_member_string(w, "reason", row->reason);
    laya_json_end(w, '}');
    return LAYA_OK;
}

/* ------------------------------------------------------------------ the document */

static laya_status write_document(laya_json_writer *w, const laya_screen_results *results, laya_json_value parent,
                                  bool passed, laya_error *error)
{
    laya_json_begin(w, '{');
    laya_json_member_string(w, "format", LAYA_SCREEN_FORMAT);
    laya_json_member_uint(w, "version", 1);
    laya_json_member_bool(w, "passed", passed);
    copy_member(w, parent, "class");
    copy_member(w, parent, "executor");
    copy_member(w, parent, "package");
    write_reference(w, results, parent);
    laya_palette_write_energy(w, &results->energy);
    laya_json_member_uint(w, "repeats", results->options->repeats);
    laya_json_member_uint(w, "workers", results->workers);
    laya_json_name(w, "parent");
    laya_json_begin(w, '{');
    write_gate(w, &results->parent, parent);
    laya_json_end(w, '}');
    laya_json_name(w, "variants");
    laya_json_begin(w, '[');
    for (size_t at = 0; at < LAYA_SCREEN_VARIANTS; at++)
        LAYA_TRY(write_row(w, &laya_screen_variants[at], &results->rows[at], error));
    laya_json_end(w, ']');
    write_study(w);
    laya_json_member_string(w, "placement", LAYA_NOT_MEASURED);
    laya_json_member_string(w, "timings", LAYA_NOT_MEASURED);
    laya_write_origin(w);
    laya_json_end(w, '}');
    return LAYA_OK;
}

laya_status laya_screen_report(const laya_screen_results *results, const laya_allocator *allocator,
                               laya_report **report, laya_error *error)
{
    laya_json parent;
    laya_report *made;
    size_t size;
    const char *text = laya_report_json(results->parent.report, &size);
    *report = NULL;
    LAYA_TRY(laya_json_parse(&parent, text, size, allocator, error));
    laya_status status = laya_report_open(allocator, &made, error);
    if (status == LAYA_OK) {
        made->passed = true;
        for (size_t at = 0; at < LAYA_SCREEN_VARIANTS; at++) made->passed = made->passed && results->rows[at].made;
        status = write_document(&made->writer, results, laya_json_root(&parent), made->passed, error);
        if (status == LAYA_OK) status = laya_report_finish(made, error);
        if (status == LAYA_OK)
            *report = made;
        else
            laya_report_close(made);
    }
    laya_json_close(&parent);
    return status;
}
