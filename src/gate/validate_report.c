/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of a validation; docs/GATES.md lists the fields. */
#include "base/error.h"
#include "gate/validate.h"
#include "text/question.h"

#include <math.h>
#include <stdio.h>

/* ------------------------------------------------------------------ what is counted over all cases */

/* The largest value of a kind, and where. */
typedef struct worst {
    double value; /* -1: none */
    const laya_case_check *at;
    const laya_question_check *question;
} worst;

typedef struct totals {
    size_t cases, questions; /* evaluated */
    size_t other_cases, other_questions;
    size_t wrong, probability, action, not_finite, tokens; /* questions that fail a gate */
    size_t usage, unstable, refused;                       /* cases that do */
    size_t near_ties, near_ties_wrong, certified;
    worst probability_error, published_error, action_probability_error, action_logit_error, logit_error;
    bool passed;
} totals;

static void take(worst *kept, double value, const laya_case_check *check, const laya_question_check *question)
{
    if (value > kept->value) *kept = (worst){value, check, question};
}

static void count_question(totals *t, const laya_case_check *check, const laya_question_check *q)
{
    t->wrong += !q->decided;
    t->probability += !laya_probabilities_passed(q);
    t->action += !laya_action_passed(q);
    t->not_finite += !q->finite;
    t->tokens += !q->tokens;
    t->near_ties += q->near_tie;
    t->near_ties_wrong += q->near_tie && !q->decided;
    t->certified += q->certified;
    take(&t->probability_error, q->probability_error, check, q);
    take(&t->published_error, q->published_error, check, q);
    take(&t->action_probability_error, q->action_probability_error, check, q);
    take(&t->action_logit_error, q->action_logit_error, check, q);
    take(&t->logit_error, q->logit_error, check, q);
}

static void count_case(totals *t, const laya_case_check *check)
{
    size_t count = check->reference->input.count;
    if (!check->evaluated) {
        t->other_cases++;
        t->other_questions += count;
        return;
    }
    t->cases++;
    t->questions += count;
    t->refused += check->failure[0] != '\0';
    t->usage += !check->usage;
    t->unstable += !check->stable;
    t->passed = t->passed && laya_case_passed(check);
    if (check->failure[0]) return;
    for (size_t at = 0; at < count; at++) count_question(t, check, &check->questions[at]);
}

static void count_all(totals *t, const laya_validation *v)
{
    const worst none = {.value = -1};
    *t = (totals){.probability_error = none,
                  .published_error = none,
                  .action_probability_error = none,
                  .action_logit_error = none,
                  .logit_error = none,
                  .passed = true};
    for (size_t at = 0; at < v->model->count; at++) count_case(t, &v->cases[at]);
    if (t->cases == 0) t->passed = false; /* nothing was shown */
}

/* ------------------------------------------------------------------ parts of the document */

static void write_reference(laya_json_writer *w, const laya_validation *v)
{
    laya_json_name(w, "reference");
    laya_json_begin(w, '{');
    laya_json_member_string(w, "class", v->reference->class);
    laya_json_member_string(w, "recorded", v->reference_path ? "before" : "for this run");
    laya_json_member_path(w, "file", v->reference_path);
    laya_json_member_string(w, "sha256", v->reference->sha256);
    laya_json_member_string(w, "fixture_sha256", v->reference->fixture_sha256);
    laya_json_member_string(w, "model", v->model->name);
    laya_json_member_string(w, "source_weights_sha256", v->model->weights_sha256);
    laya_json_end(w, '}');
}

static void write_gate(laya_json_writer *w, const char *name, const char *rule, double limit, size_t failures)
{
    laya_json_name(w, name);
    laya_json_begin(w, '{');
    laya_json_member_string(w, "rule", rule);
    if (isfinite(limit)) laya_json_member_double(w, "limit", limit);
    laya_json_member_uint(w, "failures", failures);
    laya_json_member_bool(w, "passed", failures == 0);
    laya_json_end(w, '}');
}

static void write_gates(laya_json_writer *w, const totals *t)
{
    const double limit = LAYA_GATE_PROBABILITY;
    laya_json_name(w, "gates");
    laya_json_begin(w, '{');
    laya_json_member_string(w, "applied", "in this run, with limits fixed before it");
    write_gate(w, "answered", "the package answers every case that fits it", NAN, t->refused);
    write_gate(w, "argmax", "every decision equals the reference", NAN, t->wrong);
    write_gate(w, "probability", "error of calibrated probabilities", limit, t->probability);
    write_gate(w, "action_probability", "error of the action probability", limit, t->action);
    write_gate(w, "finite", "every output is finite", NAN, t->not_finite);
    write_gate(w, "usage", "token usage equals the reference", NAN, t->usage + t->tokens);
    write_gate(w, "stable", "all repeats publish the same", NAN, t->unstable);
    write_gate(w, "evaluated", "at least one case fits the package", NAN, t->cases == 0);
    laya_json_end(w, '}');
}

static void write_counts(laya_json_writer *w, const totals *t)
{
    laya_json_name(w, "counts");
    laya_json_begin(w, '{');
    laya_json_member_uint(w, "questions", t->questions + t->other_questions);
    laya_json_member_uint(w, "evaluated", t->questions);
    laya_json_member_uint(w, "unvalidated", t->other_questions);
    laya_json_member_uint(w, "cases", t->cases + t->other_cases);
    laya_json_member_uint(w, "evaluated_cases", t->cases);
    laya_json_member_uint(w, "unvalidated_cases", t->other_cases);
    laya_json_member_uint(w, "near_ties", t->near_ties);
    laya_json_member_uint(w, "near_ties_decided_otherwise", t->near_ties_wrong);
    laya_json_member_uint(w, "certified", t->certified);
    laya_json_end(w, '}');
}

static void write_worst(laya_json_writer *w, const char *name, const worst *kept)
{
    laya_json_name(w, name);
    if (!kept->at) {
        laya_json_put_raw(w, "null");
        return;
    }
    laya_json_begin(w, '{');
    laya_json_member_double(w, "value", kept->value);
    laya_json_member_string(w, "case", kept->at->reference->input.name);
    laya_json_member_string(w, "question", kept->question->item->id);
    laya_json_end(w, '}');
}

static void write_worst_errors(laya_json_writer *w, const totals *t)
{
    laya_json_name(w, "worst");
    laya_json_begin(w, '{');
    write_worst(w, "probability_error", &t->probability_error);
    write_worst(w, "published_error", &t->published_error);
    write_worst(w, "action_probability_error", &t->action_probability_error);
    write_worst(w, "action_logit_error", &t->action_logit_error);
    write_worst(w, "logit_error", &t->logit_error);
    laya_json_end(w, '}');
}

static void write_near_ties(laya_json_writer *w, const laya_validation *v)
{
    laya_json_name(w, "near_ties");
    laya_json_begin(w, '[');
    for (size_t at = 0; at < v->model->count; at++) {
        const laya_case_check *check = &v->cases[at];
        bool measured = check->evaluated && !check->failure[0];
        for (size_t i = 0; measured && i < check->reference->input.count; i++) {
            const laya_question_check *q = &check->questions[i];
            if (!q->near_tie) continue;
            laya_json_begin(w, '{');
            laya_json_member_string(w, "case", check->reference->input.name);
            laya_json_member_string(w, "question", q->item->id);
            laya_json_member_double(w, "margin", q->margin);
            laya_json_member_bool(w, "argmax_equal", q->decided);
            laya_json_end(w, '}');
        }
    }
    laya_json_end(w, ']');
}

/* ------------------------------------------------------------------ cases */

static void write_question(laya_json_writer *w, const laya_question_check *q)
{
    laya_json_begin(w, '{');
    laya_json_member_string(w, "id", q->item->id);
    laya_json_member_string(w, "type", laya_question_type_name(q->item->type));
    laya_json_member_uint(w, "tokens", q->item->count);
    laya_json_member_uint(w, "options", q->item->options);
    laya_json_member_bool(w, "passed", laya_question_passed(q));
    laya_json_member_bool(w, "argmax_equal", q->decided);
    laya_json_member_uint(w, "reference_argmax", q->reference_best);
    laya_json_member_uint(w, "argmax", q->best);
    laya_json_member_bool(w, "finite", q->finite);
    laya_json_member_bool(w, "tokens_equal", q->tokens);
    laya_json_member_double(w, "probability_error", q->probability_error);
    laya_json_member_double(w, "published_error", q->published_error);
    laya_json_member_double(w, "action_probability_error", q->action_probability_error);
    laya_json_member_double(w, "published_action_error", q->published_action_error);
    laya_json_member_double(w, "action_logit_error", q->action_logit_error);
    laya_json_member_double(w, "logit_error", q->logit_error);
    laya_json_member_double(w, "reference_margin", q->margin);
    laya_json_member_bool(w, "near_tie", q->near_tie);
    laya_json_member_double(w, "reference_logit_margin", q->logit_margin);
    laya_json_member_bool(w, "certified", q->certified);
    laya_json_member_double(w, "probability_bound", q->logit_error / (2 * q->temperature));
    laya_json_end(w, '}');
}

static void write_reason(laya_json_writer *w, const laya_validation *v, const laya_case_check *check)
{
    char text[160];
    if (check->needed_length > v->package.length)
        snprintf(text, sizeof text, "a row of %u tokens does not fit a package of %u", check->needed_length,
                 v->package.length);
    else
        snprintf(text, sizeof text, "%u options do not fit a package of %u marker slots", check->needed_markers,
                 v->package.markers);
    laya_json_member_string(w, "reason", text);
}

static void write_case(laya_json_writer *w, const laya_validation *v, const laya_case_check *check)
{
    bool refused = check->failure[0] != '\0';
    laya_json_begin(w, '{');
    laya_json_member_string(w, "name", check->reference->input.name);
    laya_json_member_string(w, "status", check->evaluated ? "evaluated" : "unvalidated");
    laya_json_member_uint(w, "questions", check->reference->input.count);
    laya_json_member_uint(w, "needed_length", check->needed_length);
    laya_json_member_uint(w, "needed_markers", check->needed_markers);
    if (!check->evaluated) {
        write_reason(w, v, check);
    } else {
        laya_json_member_bool(w, "passed", laya_case_passed(check));
        laya_json_member_uint(w, "repeats", check->repeats);
        laya_json_member_bool(w, "usage_equal", check->usage);
        laya_json_member_bool(w, "stable", check->stable);
        if (refused) laya_json_member_string(w, "failure", check->failure);
        laya_json_name(w, "answers");
        laya_json_begin(w, '[');
        for (size_t at = 0; !refused && at < check->reference->input.count; at++)
            write_question(w, &check->questions[at]);
        laya_json_end(w, ']');
    }
    laya_json_end(w, '}');
}

/* ------------------------------------------------------------------ the document */

static void write_document(laya_json_writer *w, const laya_validation *v, const totals *t)
{
    laya_json_begin(w, '{');
    laya_json_member_string(w, "format", LAYA_VALIDATION_FORMAT);
    laya_json_member_uint(w, "version", 1);
    laya_json_member_bool(w, "passed", t->passed);
    laya_json_member_string(w, "class", v->class);
    laya_json_member_string(w, "executor", v->executor);
    laya_write_package(w, &v->package);
    write_reference(w, v);
    laya_json_member_uint(w, "repeats", v->repeats);
    write_gates(w, t);
    write_counts(w, t);
    write_worst_errors(w, t);
    write_near_ties(w, v);
    laya_json_name(w, "cases");
    laya_json_begin(w, '[');
    for (size_t at = 0; at < v->model->count; at++) write_case(w, v, &v->cases[at]);
    laya_json_end(w, ']');
    laya_json_member_string(w, "placement", LAYA_NOT_MEASURED);
    laya_json_member_string(w, "timings", LAYA_NOT_MEASURED);
    laya_write_origin(w);
    laya_json_end(w, '}');
}

laya_status laya_validation_report(const laya_validation *v, laya_report **report, laya_error *error)
{
    totals t;
    laya_report *made;
    *report = NULL;
    LAYA_TRY(laya_report_open(&v->arena.allocator, &made, error));
    count_all(&t, v);
    made->passed = t.passed;
    write_document(&made->writer, v, &t);
    laya_status status = laya_report_finish(made, error);
    if (status != LAYA_OK) {
        laya_report_close(made);
        return status;
    }
    *report = made;
    return LAYA_OK;
}
