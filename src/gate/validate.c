/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/validate.h"

#include "base/error.h"
#include "base/staging.h"
#include "gate/html.h"
#include "model/engine.h"
#include "model/model.h"

#include <stdio.h>
#include <string.h>

void laya_validate_options_init(laya_validate_options *options)
{
    *options = (laya_validate_options){.size = sizeof *options, .repeats = 100};
}

/* ------------------------------------------------------------------ the run */

/* The first answer of a case, which the others are compared with. */
typedef struct first_answer {
    laya_buffer text;
    laya_json doc;
} first_answer;

static laya_status keep_first(first_answer *first, const char *text, size_t size, const laya_allocator *allocator,
                              laya_error *error)
{
    laya_buffer_append(&first->text, text, size);
    if (first->text.failed) return laya_fail_memory(error, size);
    return laya_json_parse(&first->doc, first->text.data, size, allocator, error);
}

/* A later answer. One with the same bytes has nothing new. */
static laya_status check_repeat(laya_validation *v, laya_case_check *check, const first_answer *first,
                                const char *text, size_t size, laya_error *error)
{
    laya_json doc;
    if (size == first->text.size && memcmp(text, first->text.data, size) == 0) return LAYA_OK;
    LAYA_TRY(laya_json_parse(&doc, text, size, &v->arena.allocator, error));
    laya_arena_mark mark = laya_arena_save(&v->arena);
    laya_status status = laya_case_check_answer(check, &doc, &v->arena, error);
    laya_arena_restore(&v->arena, mark);
    if (!laya_same_published(&first->doc, &doc)) check->stable = false;
    laya_json_close(&doc);
    return status;
}

/* What the package is to blame for, and what is the machine's fault. */
static bool is_refusal(laya_status status)
{
    return status == LAYA_ERROR_FORMAT || status == LAYA_ERROR_INPUT || status == LAYA_ERROR_UNSUPPORTED;
}

static laya_status answer_once(laya_validation *v, laya_case_check *check, first_answer *first,
                               const laya_source *source, laya_error *error)
{
    const char *text;
    size_t size;
    laya_predict_options options;
    laya_error reason = {0};
    laya_predict_options_init(&options);
    options.flags = LAYA_PREDICT_RAW;
    laya_status status = source->predict(source->user, &check->reference->input, &options, &text, &size, &reason);
    if (is_refusal(status)) {
        snprintf(check->failure, sizeof check->failure, "%s", reason.message);
        return LAYA_OK;
    }
    if (status != LAYA_OK) return laya_fail(error, status, "%s", reason.message);
    if (check->repeats++ > 0) return check_repeat(v, check, first, text, size, error);
    LAYA_TRY(keep_first(first, text, size, &v->arena.allocator, error));
    laya_arena_mark mark = laya_arena_save(&v->arena);
    status = laya_case_check_answer(check, &first->doc, &v->arena, error);
    laya_arena_restore(&v->arena, mark);
    return status;
}

static laya_status run_case(laya_validation *v, laya_case_check *check, const laya_source *source, uint64_t done,
                            uint64_t total, laya_error *error)
{
    first_answer first = {0};
    laya_buffer_init(&first.text, &v->arena.allocator);
    laya_status status = LAYA_OK;
    for (uint32_t at = 0; at < v->repeats && status == LAYA_OK && !check->failure[0]; at++) {
        status = laya_check_interrupt(&v->interrupt, error);
        if (status == LAYA_OK) status = answer_once(v, check, &first, source, error);
        if (v->progress.report) v->progress.report(v->progress.user, done + at + 1, total);
    }
    laya_json_close(&first.doc);
    laya_buffer_close(&first.text);
    return status;
}

laya_status laya_validation_run(laya_validation *v, const laya_source *source, laya_error *error)
{
    const laya_reference_model *model = v->model;
    uint64_t done = 0, fitting = 0;
    v->cases = laya_arena_alloc(&v->arena, model->count, sizeof *v->cases);
    if (!v->cases) return laya_fail_memory(error, model->count * sizeof *v->cases);
    for (size_t at = 0; at < model->count; at++) {
        const laya_reference_case *reference = &model->cases[at];
        size_t count = reference->input.count;
        laya_question_check *questions = laya_arena_alloc(&v->arena, count, sizeof *questions);
        if (!questions) return laya_fail_memory(error, count * sizeof *questions);
        laya_case_check_init(&v->cases[at], reference, questions, v->package.length, v->package.markers);
        fitting += v->cases[at].evaluated;
    }
    for (size_t at = 0; at < model->count; at++) {
        if (!v->cases[at].evaluated) continue;
        LAYA_TRY(run_case(v, &v->cases[at], source, done, fitting * v->repeats, error));
        done += v->repeats;
    }
    return LAYA_OK;
}

/* ------------------------------------------------------------------ the public call */

/* Record the reference into a temporary file that is gone again when this returns. */
static laya_status record_reference(const laya_validate_options *options, const laya_subject *subject,
                                    laya_reference *reference, laya_error *error)
{
    char folder[2048], path[2048 + 16];
    laya_reference_options record;
    laya_reference_options_init(&record);
    record.threads = options->bundle->threads;
    record.progress = options->progress;
    record.interrupt = options->interrupt;
    if (!options->fixture)
        return laya_fail(error, LAYA_ERROR_ARGUMENT,
                         "laya_validate: neither a reference nor a fixture to record one from");
    laya_status whole = laya_check_weights(&subject->model->weights, error);
    if (whole != LAYA_OK) laya_error_prefix(error, "a reference cannot be recorded, name one instead: ");
    LAYA_TRY(whole);
    LAYA_TRY(laya_make_temporary("laya-validate", folder, sizeof folder, error));
    snprintf(path, sizeof path, "%s/reference", folder);
    laya_status status = laya_reference_record(subject->model, options->fixture, &record, path, error);
    if (status == LAYA_OK) status = laya_reference_open(reference, path, &options->bundle->allocator, error);
    laya_remove_tree(folder);
    return status;
}

static laya_status open_reference(const laya_validate_options *options, const laya_subject *subject,
                                  laya_reference *reference, laya_error *error)
{
    if (!options->reference) return record_reference(options, subject, reference, error);
    return laya_reference_open(reference, options->reference, &options->bundle->allocator, error);
}

/* S49: a reference of other weights proves nothing. */
static laya_status match_reference(const laya_validate_options *options, const laya_bucket_info *package,
                                   const laya_reference *reference, const laya_reference_model **model,
                                   laya_error *error)
{
    *model = laya_reference_find(reference, package->weights_sha256);
    if (*model) return LAYA_OK;
    return laya_fail(
        error, LAYA_ERROR_FORMAT,
        "%s: expected answers of the weights with SHA-256 %s, from which %s was made, found those of %s; "
        "record a reference of that checkpoint",
        options->reference, package->weights_sha256, package->directory, reference->models[0].weights_sha256);
}

static laya_status save(const laya_validate_options *options, const laya_report *report, laya_error *error)
{
    const laya_allocator *allocator = &report->allocator;
    LAYA_TRY(laya_report_save(options->output, report->json.data, report->json.size, allocator, error));
    if (!options->html) return LAYA_OK;
    laya_buffer page;
    laya_buffer_init(&page, allocator);
    laya_status status = laya_report_html(&page, report->json.data, report->json.size, error);
    if (status == LAYA_OK) status = laya_report_save(options->html, page.data, page.size, allocator, error);
    laya_buffer_close(&page);
    return status;
}

static laya_status validate_with(const laya_validate_options *options, laya_subject *subject,
                                 const laya_reference *reference, laya_report **report, laya_error *error)
{
    laya_validation validation = {.reference = reference,
                                  .reference_path = options->reference,
                                  .package = subject->package,
                                  .executor = subject->executor,
                                  .class = laya_executor_class(options->bundle),
                                  .repeats = options->repeats,
                                  .progress = options->progress,
                                  .interrupt = options->interrupt};
    const laya_source source = laya_subject_source(subject);
    LAYA_TRY(match_reference(options, &subject->package, reference, &validation.model, error));
    laya_arena_init(&validation.arena, &options->bundle->allocator);
    laya_status status = laya_validation_run(&validation, &source, error);
    if (status == LAYA_OK) status = laya_validation_report(&validation, report, error);
    laya_arena_close(&validation.arena);
    if (status == LAYA_OK) status = save(options, *report, error);
    return status;
}

static laya_status validate(const char *package, const laya_validate_options *options, laya_report **report,
                            laya_error *error)
{
    const laya_allocator *allocator = &options->bundle->allocator;
    laya_subject subject;
    laya_reference reference;
    LAYA_TRY(laya_report_check_path(options->output, allocator, error));
    LAYA_TRY(laya_report_check_path(options->html, allocator, error));
    LAYA_TRY(laya_subject_open(&subject, package, options->bundle, options->length, &options->interrupt, error));
    laya_status status = open_reference(options, &subject, &reference, error);
    if (status == LAYA_OK) {
        status = validate_with(options, &subject, &reference, report, error);
        laya_reference_close(&reference);
    }
    laya_subject_close(&subject);
    return status;
}

laya_status laya_validate(const char *package, const laya_validate_options *options, laya_report **report,
                          laya_error *error)
{
    laya_bundle_options bundle;
    laya_error_clear(error);
    if (report) *report = NULL;
    if (!package || !options || !report)
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_validate: %s must not be NULL",
                         !package   ? "package"
                         : !options ? "options"
                                    : "report");
    if (options->size != sizeof *options)
        return laya_fail(error, LAYA_ERROR_ARGUMENT,
                         "laya_validate: options.size is %zu, expected %zu; call laya_validate_options_init first",
                         options->size, sizeof *options);
    if (options->repeats == 0)
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_validate: repeats must be at least 1");
    laya_validate_options completed = *options;
    laya_bundle_options_init(&bundle);
    if (!completed.bundle) completed.bundle = &bundle;
    laya_status status = validate(package, &completed, report, error);
    if (status == LAYA_OK) return LAYA_OK;
    laya_report_close(*report);
    *report = NULL;
    return status;
}
