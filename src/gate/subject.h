/* SPDX-License-Identifier: Apache-2.0 */
/* What is validated or timed: a package of one length, or the float32 engine, behind the public predict. */
#ifndef LAYA_GATE_SUBJECT_H
#define LAYA_GATE_SUBJECT_H

#include "gate/fixture.h"
#include "laya/bundle.h"
#include "laya/predict.h"

/* Anything that answers as laya_predict does. The text is valid until the next call. */
typedef struct laya_source {
    void *user;
    laya_status (*predict)(void *user, const laya_fixture_case *input, const laya_predict_options *options,
                           const char **result, size_t *size, laya_error *error);
} laya_source;

typedef struct laya_subject {
    laya_bundle *bundle; /* NULL: native */
    laya_bucket_info package;
    const laya_model *model;
    laya_context *context;
    const char *executor;
    double load_seconds; /* opening bundle and context: verification, reading, preparing */
} laya_subject;

/*
 * Open the package of a length, and a context on it.
 *
 * path       as laya_bundle_open takes it
 * length     0: the bundle has one package only
 * interrupt  asked within a call, between questions
 *
 * Errors: as laya_bundle_open and laya_context_open; ARGUMENT (no package of that length, or several and none chosen).
 */
laya_status laya_subject_open(laya_subject *subject, const char *path, const laya_bundle_options *options,
                              uint32_t length, const laya_interrupt *interrupt, laya_error *error);
/* The float32 engine on a model that outlives the subject. */
laya_status laya_subject_open_native(laya_subject *subject, const laya_model *model, unsigned threads,
                                     const laya_interrupt *interrupt, laya_error *error);
void laya_subject_close(laya_subject *subject);

/* The subject must outlive the source. */
laya_source laya_subject_source(laya_subject *subject);

#endif
