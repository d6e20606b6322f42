/* SPDX-License-Identifier: Apache-2.0 */
#include "palette/manifest.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "export/fingerprint.h"

#include <stdio.h>
#include <string.h>

const char *laya_palette_mode_name(laya_palette_mode mode)
{
    switch (mode) {
    case LAYA_PALETTE_UNIFORM: return "uniform";
    case LAYA_PALETTE_KMEANS: return "kmeans";
    case LAYA_PALETTE_UNIQUE: return "unique";
    case LAYA_PALETTE_WEIGHTED: return "weighted";
    }
    return NULL;
}

static const char *algorithm(laya_palette_mode mode)
{
    switch (mode) {
    case LAYA_PALETTE_UNIFORM: return "equal steps between smallest and largest weight of a group, scale in float64";
    case LAYA_PALETTE_KMEANS: return "exact 1-D k-means over the distinct values of a group";
    case LAYA_PALETTE_UNIQUE: return "the distinct values of a group";
    case LAYA_PALETTE_WEIGHTED:
        return "exact 1-D k-means over the distinct values of a group, each element weighted by the mean square of "
               "the "
               "activation that it multiplies";
    }
    return "";
}

uint64_t laya_palette_bytes(const laya_palette_weight *weight)
{
    return weight->lut ? weight->indices_size + weight->lut_size : weight->constant->size;
}

bool laya_palette_package_file(const laya_bundle_file *file)
{
    return strncmp(file->path, LAYA_BUNDLE_PACKAGE "/", sizeof LAYA_BUNDLE_PACKAGE) == 0;
}

uint64_t laya_palette_package_bytes(const laya_bundle_file *files, uint32_t count)
{
    uint64_t bytes = 0;
    for (uint32_t at = 0; at < count; at++)
        bytes += laya_palette_package_file(&files[at]) ? files[at].written.size : 0;
    return bytes;
}

void laya_palette_text(const laya_palette_job *job, char text[LAYA_PALETTE_TEXT])
{
    uint32_t bits = job->mode == LAYA_PALETTE_UNIQUE ? 0 : job->bits;
    laya_manifest_palette_text(laya_palette_mode_name(job->mode), bits, job->group_size, text);
}

/* ------------------------------------------------------------------ members */

static void put_relative(laya_json_writer *w, const char *name, double sse, double energy)
{
    laya_json_member_double(w, name, sse > 0 ? sse / energy : 0);
}

static void write_weight(laya_json_writer *w, const laya_palette_weight *weight)
{
    const laya_palette_error *errors = &weight->errors;
    laya_json_begin(w, '{');
    laya_json_member_string(w, "name", weight->name);
    laya_json_name(w, "shape");
    laya_json_begin(w, '[');
    for (uint32_t axis = 0; axis < weight->constant->type.rank; axis++)
        laya_json_put_uint(w, (uint64_t)weight->constant->type.dims[axis]);
    laya_json_end(w, ']');
    laya_json_member_uint(w, "bits", weight->bits);
    laya_json_member_uint(w, "groups", weight->channels / weight->group);
    laya_json_member_double(w, "sse", errors->sse);
    put_relative(w, "relative_error", errors->sse, errors->energy);
    if (weight->energy) put_relative(w, "weighted_relative_error", errors->weighted_sse, errors->weighted_energy);
    laya_json_member_double(w, "largest_error", errors->largest);
    laya_json_member_uint(w, "bytes_before", weight->constant->size);
    laya_json_member_uint(w, "bytes_after", laya_palette_bytes(weight));
    laya_json_end(w, '}');
}

static void write_skipped(laya_json_writer *w, const laya_palette_contents *bundle)
{
    const char *reason = bundle->job->mode == LAYA_PALETTE_UNIQUE ? "more than 256 distinct values in a group"
                                                                  : "the allocation of bits left it as it is";
    laya_json_name(w, "skipped");
    laya_json_begin(w, '[');
    for (uint32_t at = 0; at < bundle->count; at++) {
        if (bundle->weights[at].lut) continue;
        laya_json_begin(w, '{');
        laya_json_member_string(w, "name", bundle->weights[at].name);
        laya_json_member_string(w, "reason", reason);
        laya_json_end(w, '}');
    }
    laya_json_end(w, ']');
}

void laya_palette_write_energy(laya_json_writer *w, const laya_energy_facts *energy)
{
    laya_json_name(w, "energy");
    if (!energy->fixture_sha256) {
        laya_json_put_raw(w, "null");
        return;
    }
    laya_json_begin(w, '{');
    laya_json_member_string(w, "class", "native fp32 engine");
    laya_json_member_string(w, "fixture_sha256", energy->fixture_sha256);
    laya_json_member_uint(w, "cases", energy->cases);
    laya_json_member_uint(w, "questions", energy->questions);
    laya_json_member_uint(w, "tokens", energy->tokens);
    laya_json_end(w, '}');
}

static void write_totals(laya_json_writer *w, const laya_palette_contents *bundle)
{
    laya_palette_error errors = {0};
    uint64_t before = 0, after = 0;
    for (uint32_t at = 0; at < bundle->count; at++) {
        const laya_palette_weight *weight = &bundle->weights[at];
        laya_palette_error_add(&errors, &weight->errors);
        before += weight->constant->size;
        after += laya_palette_bytes(weight);
    }
    const laya_manifest *parent = &bundle->parent->manifest;
    put_relative(w, "relative_error", errors.sse, errors.energy);
    laya_json_member_uint(w, "weight_bytes_before", before);
    laya_json_member_uint(w, "weight_bytes_after", after);
    laya_json_member_uint(w, "package_bytes_before", laya_palette_package_bytes(parent->files, parent->file_count));
    laya_json_member_uint(w, "package_bytes_after", laya_palette_package_bytes(bundle->files, bundle->file_count));
}

static void write_palette(laya_json_writer *w, const laya_palette_contents *bundle)
{
    const laya_palette_job *job = bundle->job;
    laya_json_name(w, "palette");
    laya_json_begin(w, '{');
    laya_json_member_string(w, "parent_package_sha256", bundle->parent->manifest.package_sha256);
    laya_json_member_string(w, "mode", laya_palette_mode_name(job->mode));
    laya_json_member_string(w, "algorithm", algorithm(job->mode));
    if (job->bits && job->mode != LAYA_PALETTE_UNIQUE)
        laya_json_member_uint(w, "bits", job->bits);
    else
        laya_json_member_string(w, "bits", "per weight");
    laya_json_name(w, "group_size");
    if (job->group_size)
        laya_json_put_uint(w, job->group_size);
    else
        laya_json_put_raw(w, "null");
    laya_json_member_string(w, "form", bundle->grouped ? "CoreML8" : "CoreML6");
    laya_json_name(w, "target_error");
    if (job->target_error > 0)
        laya_json_put_repr(w, job->target_error);
    else
        laya_json_put_raw(w, "null");
    laya_palette_write_energy(w, &job->energy);
    laya_json_name(w, "weights");
    laya_json_begin(w, '[');
    for (uint32_t at = 0; at < bundle->count; at++) {
        if (bundle->weights[at].lut) write_weight(w, &bundle->weights[at]);
    }
    laya_json_end(w, ']');
    write_skipped(w, bundle);
    write_totals(w, bundle);
    laya_json_member_string(w, "gate", LAYA_NOT_MEASURED);
    laya_json_member_round4(w, "seconds", bundle->seconds);
    laya_json_end(w, '}');
}

/* ------------------------------------------------------------------ documents */

/* A member as it stands. */
static void copy_member(laya_json_writer *w, const laya_json_iterator *it)
{
    size_t size;
    const char *key = laya_json_text(it->key, &size);
    laya_json_key(w, key, size);
    laya_json_put_value(w, it->value);
}

/* A member of the parent's manifest, or what takes its place. */
static laya_status write_member(laya_json_writer *w, const laya_palette_contents *bundle,
                                const laya_json_iterator *it, laya_error *error)
{
    const laya_mil_program *program = bundle->program;
    if (laya_json_equals(it->key, "opset"))
        laya_json_member_string(w, "opset", program->functions[0].opset_name);
    else if (laya_json_equals(it->key, "specification_version"))
        laya_json_member_uint(w, "specification_version", (uint64_t)program->specification_version);
    else if (laya_json_equals(it->key, "package_sha256"))
        laya_json_member_string(w, "package_sha256", bundle->package_sha256);
    else if (laya_json_equals(it->key, "files"))
        laya_write_files(w, bundle->files, bundle->file_count);
    else if (laya_json_equals(it->key, "operations"))
        return laya_write_operations(w, program, error);
    else if (laya_json_equals(it->key, "tool"))
        laya_write_provenance(w);
    else if (laya_json_equals(it->key, "conversion_seconds"))
        laya_json_member_round4(w, "conversion_seconds", bundle->seconds);
    else if (laya_json_equals(it->key, "placement") || laya_json_equals(it->key, "numerical_check") ||
             laya_json_equals(it->key, "timings")) {
        size_t size;
        const char *key = laya_json_text(it->key, &size);
        laya_json_key(w, key, size);
        laya_json_put_string(w, LAYA_NOT_MEASURED, sizeof LAYA_NOT_MEASURED - 1);
    } else if (!laya_json_equals(it->key, "source_files_sha256")) /* part of the provenance */
        copy_member(w, it);
    return LAYA_OK;
}

/* The document at DIRECTORY/manifest.json, whose text is mapped. Close both after success. */
static laya_status open_document(laya_file *file, laya_json *doc, const char *directory,
                                 const laya_allocator *allocator, laya_error *error)
{
    char *path = laya_path_join(allocator, directory, LAYA_BUNDLE_MANIFEST);
    if (!path) return laya_fail_memory(error, 0);
    *file = (laya_file){NULL, 0};
    laya_status status = laya_file_map(file, path, error);
    if (status == LAYA_OK) {
        status = laya_json_parse(doc, file->data ? (const char *)file->data : "", file->size, allocator, error);
        if (status != LAYA_OK) {
            laya_error_prefix(error, "%s: ", path);
            laya_file_unmap(file);
        }
    }
    laya_release(allocator, path);
    return status;
}

/* Write the text in `out`, or say why there is none. */
static laya_status write_text(laya_buffer *out, laya_status status, const char *directory, const char *name,
                              const laya_allocator *allocator, laya_error *error)
{
    laya_buffer_putc(out, '\n');
    if (status == LAYA_OK && out->failed) status = laya_fail_memory(error, out->size);
    if (status != LAYA_OK) return status;
    char *path = laya_path_join(allocator, directory, name);
    if (!path) return laya_fail_memory(error, 0);
    status = laya_output_file(path, out->data, out->size, allocator, NULL, NULL, error);
    laya_release(allocator, path);
    return status;
}

laya_status laya_palette_manifest_write(const laya_palette_contents *bundle, const char *directory, laya_error *error)
{
    const laya_allocator *allocator = &bundle->job->allocator;
    laya_file file;
    laya_json doc;
    laya_buffer text;
    laya_json_writer w;
    LAYA_TRY(open_document(&file, &doc, bundle->parent->directory, allocator, error));
    laya_buffer_init(&text, allocator);
    laya_json_writer_init(&w, &text, true);
    laya_json_begin(&w, '{');
    laya_status status = LAYA_OK;
    laya_json_iterator it = laya_json_first(laya_json_root(&doc));
    for (; laya_json_present(it.value) && status == LAYA_OK; laya_json_next(&it))
        status = write_member(&w, bundle, &it, error);
    write_palette(&w, bundle);
    laya_json_end(&w, '}');
    status = write_text(&text, status, directory, LAYA_BUNDLE_MANIFEST, allocator, error);
    laya_buffer_close(&text);
    laya_json_close(&doc);
    laya_file_unmap(&file);
    return status;
}

/* ------------------------------------------------------------------ the gate */

static void write_gate(laya_json_writer *w, const laya_palette_gate *gate)
{
    laya_json_name(w, "gate");
    laya_json_begin(w, '{');
    laya_json_member_bool(w, "passed", gate->passed);
    laya_json_member_string(w, "class", gate->class);
    laya_json_member_string(w, "executor", gate->executor);
    laya_json_member_string(w, "reference_sha256", gate->reference_sha256);
    laya_json_member_double(w, "probability_error", gate->probability_error);
    laya_json_member_double(w, "action_logit_error", gate->action_logit_error);
    laya_json_member_uint(w, "evaluated_questions", gate->evaluated);
    laya_json_member_uint(w, "unvalidated_questions", gate->unvalidated);
    laya_json_member_uint(w, "repeats", gate->repeats);
    laya_json_end(w, '}');
}

static void write_gated(laya_json_writer *w, laya_json_value root, const laya_palette_gate *gate)
{
    laya_json_begin(w, '{');
    for (laya_json_iterator it = laya_json_first(root); laya_json_present(it.value); laya_json_next(&it)) {
        if (!laya_json_equals(it.key, "palette")) {
            copy_member(w, &it);
            continue;
        }
        laya_json_name(w, "palette");
        laya_json_begin(w, '{');
        for (laya_json_iterator in = laya_json_first(it.value); laya_json_present(in.value); laya_json_next(&in)) {
            if (laya_json_equals(in.key, "gate"))
                write_gate(w, gate);
            else
                copy_member(w, &in);
        }
        laya_json_end(w, '}');
    }
    laya_json_end(w, '}');
}

static laya_status replace(const char *directory, const char *name, const laya_allocator *allocator,
                           laya_error *error)
{
    char *from = laya_path_join(allocator, directory, name);
    char *to = laya_path_join(allocator, directory, LAYA_BUNDLE_MANIFEST);
    laya_status status = from && to ? LAYA_OK : laya_fail_memory(error, 0);
    if (status == LAYA_OK && rename(from, to) != 0)
        status = laya_fail(error, LAYA_ERROR_IO, "%s: cannot be replaced by %s", to, from);
    laya_release(allocator, from);
    laya_release(allocator, to);
    return status;
}

laya_status laya_palette_bundle_gate(const char *directory, const laya_palette_gate *gate,
                                     const laya_allocator *allocator, laya_error *error)
{
    static const char name[] = LAYA_BUNDLE_MANIFEST ".new";
    laya_file file;
    laya_json doc;
    laya_buffer text;
    laya_json_writer w;
    LAYA_TRY(open_document(&file, &doc, directory, allocator, error));
    laya_buffer_init(&text, allocator);
    laya_json_writer_init(&w, &text, true);
    write_gated(&w, laya_json_root(&doc), gate);
    laya_status status = write_text(&text, LAYA_OK, directory, name, allocator, error);
    if (status == LAYA_OK) status = replace(directory, name, allocator, error);
    laya_buffer_close(&text);
    laya_json_close(&doc);
    laya_file_unmap(&file);
    return status;
}
