/* SPDX-License-Identifier: Apache-2.0 */
/* Recording reference files with the float32 engine. */
#include "base/error.h"
#include "base/output.h"
#include "base/staging.h"
#include "base/utf8.h"
#include "export/bundle.h"
#include "export/fingerprint.h"
#include "gate/reference.h"
#include "model/engine.h"
#include "model/model.h"
#include "predict/context.h"

#include <string.h>

/* Progress is counted in questions; within a case the engine tells how far it is. */
#define QUESTION_STEPS 1000u

typedef struct recorder {
    const laya_model *model;
    const laya_reference_options *options;
    const laya_fixture *fixture;
    laya_context *context;
    laya_json_writer writer;
    laya_error *error;
    uint64_t done; /* questions of the finished cases */
    uint64_t now;  /* questions of the case that is being answered */
} recorder;

void laya_reference_options_init(laya_reference_options *options)
{
    *options = (laya_reference_options){.size = sizeof *options};
}

/* ------------------------------------------------------------------ hooks */

static void report_progress(void *user, uint64_t done, uint64_t total)
{
    const recorder *r = user;
    const laya_progress *to = &r->options->progress;
    if (!to->report || total == 0) return;
    double part = (double)done / (double)total * (double)r->now;
    to->report(to->user, (r->done * QUESTION_STEPS) + (uint64_t)(part * QUESTION_STEPS),
               r->fixture->questions * QUESTION_STEPS);
}

static laya_status ask_meter(void *user, uint64_t bytes, laya_error *error)
{
    (void)bytes;
    const recorder *r = user;
    return laya_check_interrupt(&r->options->interrupt, error);
}

/* ------------------------------------------------------------------ one case */

static void write_integers(laya_json_writer *w, const char *name, const uint32_t *values, size_t count)
{
    laya_json_name(w, name);
    laya_json_begin(w, '[');
    for (size_t at = 0; at < count; at++) laya_json_put_uint(w, values[at]);
    laya_json_end(w, ']');
}

static void write_numbers(laya_json_writer *w, const double *values, size_t count)
{
    laya_json_begin(w, '[');
    for (size_t at = 0; at < count; at++) laya_json_put_repr(w, values[at]);
    laya_json_end(w, ']');
}

static void write_rows(laya_json_writer *w, laya_json_value answers, const laya_row *rows, size_t count,
                       uint32_t actions)
{
    laya_json_iterator answer = laya_json_first(answers);
    laya_json_name(w, "items");
    laya_json_begin(w, '[');
    for (size_t at = 0; at < count; at++, laya_json_next(&answer)) {
        size_t size;
        const char *id = laya_json_text(answer.key, &size);
        laya_json_begin(w, '{');
        laya_json_name(w, "id");
        laya_json_put_string(w, id, size);
        write_integers(w, "ids", rows[at].ids, rows[at].count);
        write_integers(w, "markers", rows[at].markers, rows[at].options);
        laya_json_member_uint(w, "qtype", rows[at].type);
        laya_json_end(w, '}');
    }
    laya_json_end(w, ']');
    laya_json_name(w, "logits");
    laya_json_begin(w, '[');
    for (size_t at = 0; at < count; at++) write_numbers(w, rows[at].logits, rows[at].options);
    laya_json_end(w, ']');
    laya_json_name(w, "action_logits");
    laya_json_begin(w, '[');
    for (size_t at = 0; at < count; at++) write_numbers(w, rows[at].action_logits, actions);
    laya_json_end(w, ']');
}

static void write_case(recorder *r, const laya_fixture_case *input, laya_json_value result)
{
    laya_json_writer *w = &r->writer;
    laya_json_begin(w, '{');
    laya_buffer_putc(w->out, '\n'); /* a line for each case */
    laya_json_member_string(w, "name", input->name);
    laya_json_name(w, "state");
    laya_json_put_raw(w, input->state);
    laya_json_name(w, "questions");
    laya_json_put_raw(w, input->questions);
    write_rows(w, laya_json_get(result, "answers"), r->context->rows, r->context->row_count,
               r->model->config.actions);
    laya_json_name(w, "result");
    laya_json_begin(w, '{');
    laya_json_name(w, "answers");
    laya_json_put_value(w, laya_json_get(result, "answers"));
    laya_json_name(w, "usage");
    laya_json_put_value(w, laya_json_get(result, "usage"));
    laya_json_end(w, '}');
    laya_json_end(w, '}');
}

static laya_status record_case(recorder *r, const laya_fixture_case *input)
{
    const char *text;
    size_t size;
    laya_json doc;
    r->now = input->count;
    laya_status status = laya_predict(r->context, input->state, input->state_size, input->questions,
                                      input->questions_size, NULL, &text, &size);
    if (status != LAYA_OK) {
        if (r->error) *r->error = *laya_context_error(r->context);
        laya_error_prefix(r->error, "case '%s': ", input->name);
        return status;
    }
    LAYA_TRY(laya_json_parse(&doc, text, size, &r->model->allocator, r->error));
    write_case(r, input, laya_json_root(&doc));
    laya_json_close(&doc);
    r->done += input->count;
    return status;
}

/* ------------------------------------------------------------------ the file */

static laya_status write_hash(recorder *r, const char *name, laya_source_file file)
{
    char hex[65];
    uint64_t size;
    const laya_meter meter = {.user = r, .report = ask_meter};
    char *path = laya_path_join(&r->model->allocator, r->model->directory, laya_source_file_name(file));
    if (!path) return laya_fail_memory(r->error, 0);
    laya_status status = laya_hash_file(path, hex, &size, &meter, r->error);
    laya_release(&r->model->allocator, path);
    if (status == LAYA_OK) laya_json_member_string(&r->writer, name, hex);
    return status;
}

/* A name for the model: its directory's, where that is one, else what the checkpoint says. */
static void write_model_name(laya_json_writer *w, const laya_model *model)
{
    const char *start = model->directory;
    size_t size = strlen(start);
    while (size > 0 && start[size - 1] == '/') size--;
    for (size_t at = size; at > 0; at--) {
        if (start[at - 1] != '/') continue;
        start += at;
        size -= at;
        break;
    }
    bool dots = size <= 2 && strspn(start, ".") >= size;
    if (!dots && laya_utf8_valid(start, size) == size)
        laya_json_key(w, start, size);
    else
        laya_json_name(w, *model->config.model_name ? model->config.model_name : "model");
}

static void write_tool(recorder *r)
{
    laya_json_writer *w = &r->writer;
    laya_json_name(w, "tool");
    laya_json_begin(w, '{');
    laya_json_member_string(w, "name", "laya.c");
    laya_json_member_string(w, "version", laya_version());
    laya_json_member_string(w, "kernels", r->context->kernels->name);
    laya_json_member_string(w, "source_sha256", laya_runtime_fingerprint);
    laya_json_end(w, '}');
}

static laya_status write_document(recorder *r)
{
    laya_json_writer *w = &r->writer;
    laya_json_begin(w, '{');
    laya_json_member_string(w, "format", LAYA_REFERENCE_FORMAT);
    laya_json_member_uint(w, "version", 1);
    laya_json_member_string(w, "class", LAYA_REFERENCE_NATIVE);
    write_tool(r);
    laya_json_member_string(w, "fixture_sha256", r->fixture->sha256);
    laya_json_name(w, "models");
    laya_json_begin(w, '{');
    write_model_name(w, r->model);
    laya_json_begin(w, '{');
    LAYA_TRY(write_hash(r, "source_weights_sha256", LAYA_SOURCE_WEIGHTS));
    LAYA_TRY(write_hash(r, "source_config_sha256", LAYA_SOURCE_CONFIG));
    laya_json_name(w, "cases");
    laya_json_begin(w, '[');
    for (size_t at = 0; at < r->fixture->count; at++) LAYA_TRY(record_case(r, &r->fixture->cases[at]));
    laya_json_end(w, ']');
    laya_json_end(w, '}');
    laya_json_end(w, '}');
    laya_json_end(w, '}');
    laya_buffer_putc(w->out, '\n');
    return w->out->failed ? laya_fail_memory(r->error, w->out->size) : LAYA_OK;
}

static laya_status record(recorder *r, laya_buffer *text)
{
    laya_context_options options;
    laya_context_options_init(&options);
    options.threads = r->options->threads;
    options.progress = (laya_progress){.user = r, .report = report_progress};
    options.interrupt = r->options->interrupt;
    LAYA_TRY(laya_context_open(r->model, &options, &r->context, r->error));
    laya_json_writer_init(&r->writer, text, false);
    laya_status status = write_document(r);
    laya_context_close(r->context);
    return status;
}

static laya_status record_and_write(recorder *r, const char *output)
{
    laya_staging staging;
    laya_buffer text;
    laya_buffer_init(&text, &r->model->allocator);
    /* First of all, so that an output that cannot be is reported at once. */
    LAYA_TRY(laya_staging_open(&staging, output, &r->model->allocator, r->error));
    laya_status status = record(r, &text);
    if (status == LAYA_OK)
        status = laya_staging_commit_file(&staging, text.data, text.size, r->error);
    else
        laya_staging_discard(&staging);
    laya_buffer_close(&text);
    return status;
}

laya_status laya_reference_record(const laya_model *model, const char *fixture, const laya_reference_options *options,
                                  const char *output, laya_error *error)
{
    laya_reference_options defaults;
    laya_fixture cases;
    laya_error_clear(error);
    if (!model || !fixture || !output)
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_reference_record: %s must not be NULL",
                         !model     ? "model"
                         : !fixture ? "fixture"
                                    : "output");
    laya_reference_options_init(&defaults);
    if (!options) options = &defaults;
    if (options->size != sizeof *options)
        return laya_fail(error, LAYA_ERROR_ARGUMENT,
                         "laya_reference_record: options.size is %zu, expected %zu; call laya_reference_options_init "
                         "first",
                         options->size, sizeof *options);
    LAYA_TRY(laya_fixture_open(&cases, fixture, &model->allocator, error));
    recorder r = {.model = model, .options = options, .fixture = &cases, .error = error};
    laya_status status = record_and_write(&r, output);
    laya_fixture_close(&cases);
    return status;
}
