/* SPDX-License-Identifier: Apache-2.0 */
#include "predict/result_json.h"

#include "base/json.h"
#include "base/number.h"

#include <stdio.h>
#include <string.h>

static void put_span(laya_json_writer *w, laya_span span)
{
    laya_json_put_string(w, span.text, span.size);
}

/* The key of option i: its label, or its level as a decimal. */
static void option_key(laya_json_writer *w, const laya_query *query, size_t at)
{
    char text[24];
    if (query->labels) {
        laya_json_key(w, query->labels[at].text, query->labels[at].size);
    } else {
        int size = snprintf(text, sizeof text, "%zu", at);
        laya_json_key(w, text, (size_t)size);
    }
}

static void write_probabilities(laya_json_writer *w, const laya_query *query, const laya_answer *answer)
{
    laya_json_name(w, "probabilities");
    laya_json_begin(w, '{');
    for (size_t at = 0; at < answer->count; at++) {
        option_key(w, query, at);
        laya_json_put_round4(w, (double)answer->probabilities[at]);
    }
    laya_json_end(w, '}');
}

static void write_legend(laya_json_writer *w, const laya_query *query)
{
    laya_json_name(w, "legend");
    laya_json_begin(w, '{');
    for (size_t at = 0; at < query->count; at++) {
        option_key(w, query, at);
        put_span(w, query->legend[at]);
    }
    laya_json_end(w, '}');
}

static void write_numbers(laya_json_writer *w, const char *name, const double *values, size_t count)
{
    laya_json_name(w, name);
    laya_json_begin(w, '[');
    for (size_t at = 0; at < count; at++) {
        char text[LAYA_NUMBER_SIZE];
        /* A float32 is written with the nine digits that identify it, a float64 with all of its own. */
        if (values[at] == (double)(float)values[at])
            laya_format_float32(text, values[at]);
        else
            laya_format_repr(text, values[at]);
        laya_json_put_raw(w, text);
    }
    laya_json_end(w, ']');
}

static void write_raw(laya_json_writer *w, const laya_answer *answer)
{
    laya_json_name(w, "raw");
    laya_json_begin(w, '{');
    write_numbers(w, "logits", answer->logits, answer->count);
    write_numbers(w, "action_logits", answer->action_logits, answer->action_count);
    laya_json_name(w, "temperature");
    laya_json_put_repr(w, answer->temperature);
    laya_json_member_uint(w, "input_tokens", answer->input_tokens);
    laya_json_end(w, '}');
}

static void write_gate(laya_json_writer *w, const laya_answer *answer)
{
    if (answer->abstention == LAYA_GATE_NONE) return;
    bool low = answer->abstention == LAYA_GATE_ABSTAINED;
    laya_json_member_string(w, "abstention", low ? "abstained" : "passed");
    laya_json_name(w, "abstention_threshold");
    laya_json_put_repr(w, answer->abstention_threshold);
    if (!low) return;
    laya_json_name(w, "low_confidence");
    laya_json_put_bool(w, true);
}

/* Which package answered, or the CPU engine. */
static void write_served_by(laya_json_writer *w, const laya_answer *answer, const char *executor)
{
    laya_json_name(w, "served_by");
    laya_json_begin(w, '{');
    laya_json_member_string(w, "executor", answer->bucket ? executor : "native");
    laya_json_name(w, "length");
    if (answer->bucket)
        laya_json_put_uint(w, answer->bucket);
    else
        laya_json_put_raw(w, "null");
    laya_json_end(w, '}');
}

static void write_answer(laya_json_writer *w, const laya_query *query, const laya_answer *answer,
                         const char *executor, unsigned flags)
{
    laya_json_begin(w, '{');
    laya_json_member_string(w, "type", laya_question_type_name(answer->type));
    switch (answer->type) {
    case LAYA_CHOICE:
        laya_json_name(w, "choice");
        put_span(w, query->labels[answer->best]);
        write_probabilities(w, query, answer);
        break;
    case LAYA_SCORE:
        laya_json_member_round4(w, "score", answer->score);
        write_legend(w, query);
        write_probabilities(w, query, answer);
        break;
    case LAYA_NOUL: laya_json_member_round4(w, "noul", (double)answer->probabilities[1]); break;
    }
    laya_json_member_round4(w, "confidence", answer->confidence);
    laya_json_member_round4(w, "answer_confidence", answer->answer_confidence);
    laya_json_name(w, "action");
    laya_json_begin(w, '{');
    laya_json_member_round4(w, "act_probability", answer->act_probability);
    laya_json_end(w, '}');
    write_gate(w, answer);
    if (executor) write_served_by(w, answer, executor);
    if (flags & LAYA_PREDICT_RAW) write_raw(w, answer);
    laya_json_end(w, '}');
}

/* Questions whose option blocks became equal when they were cut. */
static void write_collisions(laya_json_writer *w, const laya_query *queries, const laya_result *result)
{
    bool open = false;
    for (size_t at = 0; at < result->count; at++) {
        const laya_answer *answer = &result->answers[at];
        if (answer->distinct_options >= answer->count) continue;
        if (!open) {
            laya_json_name(w, "options");
            laya_json_begin(w, '{');
            open = true;
        }
        laya_json_key(w, queries[at].id.text, queries[at].id.size);
        laya_json_begin(w, '{');
        laya_json_member_uint(w, "total", answer->count);
        laya_json_member_uint(w, "distinct", answer->distinct_options);
        laya_json_name(w, "tokens_per_option");
        if (answer->tokens_per_option)
            laya_json_put_uint(w, answer->tokens_per_option);
        else
            laya_json_put_raw(w, "null");
        laya_json_end(w, '}');
    }
    if (open) laya_json_end(w, '}');
}

static void write_usage(laya_json_writer *w, const laya_query *queries, const laya_result *result, unsigned flags)
{
    laya_json_begin(w, '{');
    laya_json_member_uint(w, "input_tokens", result->input_tokens);
    laya_json_member_uint(w, "output_tokens", 0);
    if (result->count > 0) {
        if (flags & LAYA_PREDICT_STATE_TOKEN_COUNTS) {
            laya_json_member_uint(w, "state_tokens", result->state_tokens);
            laya_json_member_uint(w, "state_tokens_dropped", result->state_tokens_dropped);
        }
        laya_json_name(w, "truncated");
        laya_json_put_bool(w, result->state_tokens_dropped > 0);
        laya_json_name(w, "truncated_questions");
        laya_json_begin(w, '[');
        for (size_t at = 0; at < result->count; at++) {
            if (result->answers[at].state_tokens_dropped) put_span(w, queries[at].id);
        }
        laya_json_end(w, ']');
        write_collisions(w, queries, result);
    }
    laya_json_end(w, '}');
}

void laya_result_write(laya_buffer *out, const laya_query *queries, const laya_result *result, const char *executor,
                       unsigned flags)
{
    laya_json_writer writer, *w = &writer;
    laya_json_writer_init(w, out, (flags & LAYA_PREDICT_PRETTY) != 0);
    laya_json_begin(w, '{');
    laya_json_member_string(w, "model", "laya-rl-agent");
    laya_json_name(w, "answers");
    laya_json_begin(w, '{');
    for (size_t at = 0; at < result->count; at++) {
        laya_json_key(w, queries[at].id.text, queries[at].id.size);
        write_answer(w, &queries[at], &result->answers[at], executor, flags);
    }
    laya_json_end(w, '}');
    laya_json_name(w, "usage");
    write_usage(w, queries, result, flags);
    laya_json_end(w, '}');
}
