/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/subject.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "gate/statistics.h"

#include <string.h>

/* The lengths of a bundle, for messages. */
static const char *list_lengths(const laya_bundle *bundle, laya_buffer *text)
{
    laya_bucket_info info;
    laya_buffer_init(text, NULL);
    for (size_t at = 0; laya_bundle_bucket(bundle, at, &info); at++)
        laya_buffer_printf(text, "%s%u", at ? ", " : "", info.length);
    return text->data ? text->data : "";
}

static laya_status find_package(const laya_bundle *bundle, const char *path, uint32_t length, laya_bucket_info *info,
                                laya_error *error)
{
    laya_buffer text;
    size_t count = laya_bundle_buckets(bundle);
    for (size_t at = 0; laya_bundle_bucket(bundle, at, info); at++) {
        if (info->length == length || (length == 0 && count == 1)) return LAYA_OK;
    }
    const char *lengths = list_lengths(bundle, &text);
    if (length == 0)
        laya_set_error(error, LAYA_ERROR_ARGUMENT, "%s: there are packages of %s tokens; choose one length", path,
                       lengths);
    else
        laya_set_error(error, LAYA_ERROR_ARGUMENT, "%s: no package of %u tokens; there are packages of %s tokens",
                       path, length, lengths);
    laya_buffer_close(&text);
    return LAYA_ERROR_ARGUMENT;
}

/* Of a bundle with several packages, open the one alone: a smaller one would answer what fits it. */
static laya_status open_package(laya_subject *subject, const char *path, const laya_bundle_options *options,
                                uint32_t length, laya_error *error)
{
    LAYA_TRY(laya_bundle_open(path, options, &subject->bundle, error));
    LAYA_TRY(find_package(subject->bundle, path, length, &subject->package, error));
    if (laya_bundle_buckets(subject->bundle) == 1) return LAYA_OK;
    laya_bundle *one;
    LAYA_TRY(laya_bundle_open(subject->package.directory, options, &one, error));
    laya_bundle_close(subject->bundle);
    subject->bundle = one;
    return find_package(one, path, length, &subject->package, error);
}

static laya_status open_context(laya_subject *subject, unsigned threads, const laya_interrupt *interrupt,
                                laya_error *error)
{
    laya_context_options options;
    laya_context_options_init(&options);
    options.threads = threads;
    options.interrupt = *interrupt;
    options.bundle = subject->bundle;
    return laya_context_open(subject->model, &options, &subject->context, error);
}

laya_status laya_subject_open(laya_subject *subject, const char *path, const laya_bundle_options *options,
                              uint32_t length, const laya_interrupt *interrupt, laya_error *error)
{
    double start = laya_seconds();
    *subject = (laya_subject){0};
    laya_status status = open_package(subject, path, options, length, error);
    if (status == LAYA_OK) {
        subject->model = laya_bundle_model(subject->bundle);
        subject->executor = laya_bundle_executor(subject->bundle);
        status = open_context(subject, options->threads, interrupt, error);
    }
    subject->load_seconds = laya_seconds() - start;
    if (status != LAYA_OK) laya_subject_close(subject);
    return status;
}

laya_status laya_subject_open_native(laya_subject *subject, const laya_model *model, unsigned threads,
                                     const laya_interrupt *interrupt, laya_error *error)
{
    double start = laya_seconds();
    *subject = (laya_subject){.model = model, .executor = "native fp32 engine"};
    laya_status status = open_context(subject, threads, interrupt, error);
    subject->load_seconds = laya_seconds() - start;
    return status;
}

void laya_subject_close(laya_subject *subject)
{
    laya_context_close(subject->context);
    laya_bundle_close(subject->bundle);
    *subject = (laya_subject){0};
}

static laya_status predict(void *user, const laya_fixture_case *input, const laya_predict_options *options,
                           const char **result, size_t *size, laya_error *error)
{
    laya_subject *subject = user;
    laya_status status = laya_predict(subject->context, input->state, input->state_size, input->questions,
                                      input->questions_size, options, result, size);
    if (status != LAYA_OK && error) *error = *laya_context_error(subject->context);
    return status;
}

laya_source laya_subject_source(laya_subject *subject)
{
    return (laya_source){.user = subject, .predict = predict};
}
