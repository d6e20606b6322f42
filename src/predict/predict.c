/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline: questions -> rows of tokens -> logits -> answers. */
#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"
#include "model/engine.h"
#include "predict/answer.h"
#include "predict/context.h"
#include "predict/gate.h"
#include "predict/result_json.h"
#include "runtime/bundle.h"
#include "text/prompt.h"
#include "text/question.h"

#include <string.h>

/* Options of one call, checked and completed. */
typedef struct settings {
    unsigned flags;
    uint32_t max_len;
    uint32_t head_max_len;
    const laya_temperatures *temperatures;
    laya_gate gate;
} settings;

void laya_predict_options_init(laya_predict_options *options)
{
    *options = (laya_predict_options){.size = sizeof *options};
}

static laya_status read_options(laya_context *context, const laya_predict_options *options, settings *out)
{
    laya_predict_options defaults;
    const laya_config *config = &context->model->config;
    laya_error *error = &context->error;
    if (!options) {
        laya_predict_options_init(&defaults);
        options = &defaults;
    }
    if (options->size != sizeof *options)
        return laya_fail(error, LAYA_ERROR_ARGUMENT,
                         "predict options: size is %zu, expected %zu; call laya_predict_options_init first",
                         options->size, sizeof *options);
    if (options->max_len > config->max_positions)
        return laya_fail(error, LAYA_ERROR_ARGUMENT,
                         "max_len=%u is longer than the %u positions of this encoder; lower max_len",
                         options->max_len, config->max_positions);
    const unsigned known = LAYA_PREDICT_STATE_TOKEN_COUNTS | LAYA_PREDICT_RAW | LAYA_PREDICT_PRETTY;
    if (options->flags & ~known)
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "predict options: unknown flags 0x%x", options->flags & ~known);
    out->flags = options->flags;
    out->max_len = options->max_len ? options->max_len : config->max_len;
    out->head_max_len = options->head_max_len ? options->head_max_len : config->head_max_len;
    out->temperatures = laya_calibration_for(&context->model->calibration, options->lang);
    return laya_gate_read(&out->gate, options->min_confidence, &context->model->allocator, error);
}

/* ------------------------------------------------------------------ the shared core */

/* Build the rows of all queries; usage numbers go into the answers and the result. */
static laya_status build_rows(laya_context *context, const settings *set, const laya_state *state,
                              const laya_query *queries, size_t count, laya_row *rows, laya_answer *answers,
                              laya_result *result)
{
    const laya_prompt prompt = {.tokenizer = context->model->tokenizer,
                                .specials = &context->model->specials,
                                .max_len = set->max_len,
                                .head_max_len = set->head_max_len,
                                .arena = &context->arena};
    laya_tokens tokens;
    laya_status status = laya_prompt_tokens(&prompt, (laya_span){state->text, state->size}, &tokens, &context->error);
    if (status == LAYA_ERROR_INPUT) laya_error_prefix(&context->error, "state: ");
    LAYA_TRY(status);
    result->state_tokens = tokens.count;
    for (size_t at = 0; at < count; at++) {
        laya_prompt_row row;
        LAYA_TRY(laya_prompt_build(&prompt, &queries[at], tokens, state->keep_end != 0, &row, &context->error));
        uint32_t options = queries[at].count, actions = context->model->config.actions;
        double *logits = laya_arena_alloc(&context->arena, (size_t)options + actions, sizeof *logits);
        if (!logits) return laya_fail_memory(&context->error, ((size_t)options + actions) * sizeof *logits);
        rows[at] = (laya_row){.ids = row.ids,
                              .count = row.count,
                              .markers = row.markers,
                              .options = options,
                              .type = (uint32_t)queries[at].type,
                              .logits = logits,
                              .action_logits = logits + options};
        answers[at] = (laya_answer){.type = queries[at].type,
                                    .count = options,
                                    .logits = logits,
                                    .action_count = actions,
                                    .action_logits = logits + options,
                                    .input_tokens = row.count,
                                    .state_tokens_dropped = row.dropped,
                                    .distinct_options = row.distinct,
                                    .tokens_per_option = row.tokens_per_option};
        result->input_tokens += row.count;
        if (row.dropped > result->state_tokens_dropped) result->state_tokens_dropped = row.dropped;
    }
    return LAYA_OK;
}

/* Slot s of the prompt showed option order[s]: put logits and probabilities back into option order. */
static laya_status restore_order(laya_context *context, const uint32_t *order, uint32_t count, double *logits,
                                 float *probabilities)
{
    double *slot_logits = laya_arena_alloc(&context->arena, count, sizeof *slot_logits);
    float *slot_probabilities = laya_arena_alloc(&context->arena, count, sizeof *slot_probabilities);
    if (!slot_logits || !slot_probabilities) return laya_fail_memory(&context->error, 0);
    memcpy(slot_logits, logits, count * sizeof *logits);
    memcpy(slot_probabilities, probabilities, count * sizeof *probabilities);
    for (uint32_t slot = 0; slot < count; slot++) {
        logits[order[slot]] = slot_logits[slot];
        probabilities[order[slot]] = slot_probabilities[slot];
    }
    return LAYA_OK;
}

static laya_status finish_answer(laya_context *context, const settings *set, const laya_query *query, laya_row *row,
                                 laya_answer *answer)
{
    size_t wide = answer->count > answer->action_count ? answer->count : answer->action_count;
    float *probabilities = laya_arena_alloc(&context->arena, answer->count, sizeof *probabilities);
    float *scratch = laya_arena_alloc(&context->arena, wide, sizeof *scratch);
    if (!probabilities || !scratch) return laya_fail_memory(&context->error, 0);
    answer->temperature = laya_temperature_of(set->temperatures, answer->type, answer->count);
    laya_softmax(row->logits, answer->count, answer->temperature, probabilities);
    if (query->order) LAYA_TRY(restore_order(context, query->order, query->count, row->logits, probabilities));
    answer->probabilities = probabilities;
    laya_answer_compute(answer, scratch);
    laya_gate_apply(&set->gate, answer);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ who computes */

static laya_network network_of(const laya_context *context, const laya_progress *progress)
{
    return (laya_network){.config = &context->model->config,
                          .weights = &context->model->weights,
                          .kernels = context->kernels,
                          .progress = progress,
                          .interrupt = &context->interrupt,
                          .probe = context->probe};
}

static laya_status run_engine(laya_context *context, laya_row *rows, size_t count)
{
    const laya_network network = network_of(context, &context->progress);
    if (context->precision == LAYA_PRECISION_DOUBLE)
        return laya_reference_run(&network, rows, count, &context->arena, NULL, &context->error);
    return laya_engine_run(&network, rows, count, context->pool, &context->arena, NULL, &context->error);
}

/* The bucket of each row; NULL: the CPU engine. Nothing is computed before all are known. */
static laya_status choose_buckets(laya_context *context, const laya_query *queries, const laya_row *rows,
                                  size_t count, laya_bucket **buckets)
{
    for (size_t at = 0; at < count; at++) {
        buckets[at] = laya_bundle_choose(context->bundle, rows[at].count, rows[at].options);
        if (buckets[at] || context->long_native) continue;
        laya_error reason;
        (void)laya_bundle_fail_choice(context->bundle, rows[at].count, rows[at].options, &reason);
        return laya_fail_question(&context->error, queries[at].id, reason.message);
    }
    return LAYA_OK;
}

/* One row after the other: packages have batch 1. */
static laya_status run_bundle(laya_context *context, const laya_query *queries, laya_row *rows, size_t count,
                              laya_answer *answers)
{
    const laya_network network = network_of(context, NULL);
    const laya_progress *progress = &context->progress;
    laya_error *error = &context->error;
    laya_bucket **buckets = laya_arena_alloc(&context->arena, count, sizeof *buckets);
    if (!buckets) return laya_fail_memory(error, count * sizeof(laya_bucket *));
    LAYA_TRY(choose_buckets(context, queries, rows, count, buckets));
    for (size_t at = 0; at < count; at++) {
        laya_arena_mark mark = laya_arena_save(&context->arena);
        LAYA_TRY(laya_check_interrupt(&context->interrupt, error));
        if (buckets[at])
            LAYA_TRY(laya_bucket_run(context->bundle, buckets[at], &rows[at], &context->arena, error));
        else
            LAYA_TRY(laya_engine_run(&network, &rows[at], 1, context->pool, &context->arena, NULL, error));
        answers[at].bucket = buckets[at] ? buckets[at]->shape.length : 0;
        laya_arena_restore(&context->arena, mark);
        if (progress->report) progress->report(progress->user, at + 1, count);
    }
    return LAYA_OK;
}

static laya_status run(laya_context *context, const settings *set, const laya_state *state, const laya_query *queries,
                       size_t count, laya_result *result)
{
    laya_error *error = &context->error;
    *result = (laya_result){.count = count};
    if (count == 0) return LAYA_OK;
    laya_row *rows = laya_arena_alloc(&context->arena, count, sizeof *rows);
    laya_answer *answers = laya_arena_alloc(&context->arena, count, sizeof *answers);
    if (!rows || !answers) return laya_fail_memory(error, count * sizeof *answers);
    LAYA_TRY(build_rows(context, set, state, queries, count, rows, answers, result));
    if (context->bundle)
        LAYA_TRY(run_bundle(context, queries, rows, count, answers));
    else
        LAYA_TRY(run_engine(context, rows, count));
    for (size_t at = 0; at < count; at++)
        LAYA_TRY(finish_answer(context, set, &queries[at], &rows[at], &answers[at]));
    result->answers = answers;
    context->rows = rows;
    context->row_count = count;
    return LAYA_OK;
}

/* ------------------------------------------------------------------ JSON door */

static laya_status state_of_json(laya_context *context, laya_json_value value, laya_state *state)
{
    laya_json_type type = laya_json_typeof(value);
    if (type == LAYA_JSON_NULL)
        return laya_fail(&context->error, LAYA_ERROR_INPUT, "state must not be None; pass a string, dict, or list");
    state->keep_end = type == LAYA_JSON_ARRAY;
    if (type == LAYA_JSON_STRING) {
        state->text = laya_json_text(value, &state->size);
        return LAYA_OK;
    }
    laya_buffer text;
    laya_buffer_init(&text, &context->model->allocator);
    laya_json_write_python(&text, value);
    state->text = text.failed ? NULL : laya_arena_copy(&context->arena, text.data, text.size);
    state->size = text.size;
    laya_buffer_close(&text);
    return state->text ? LAYA_OK : laya_fail_memory(&context->error, state->size);
}

static laya_status queries_of_json(laya_context *context, laya_json_value questions, laya_query **queries,
                                   size_t *count)
{
    *count = laya_json_size(questions);
    if (laya_json_typeof(questions) != LAYA_JSON_OBJECT)
        return laya_fail(&context->error, LAYA_ERROR_INPUT,
                         "questions must be a dict of question id -> definition, got %s",
                         laya_json_type_name(questions));
    *queries = laya_arena_alloc(&context->arena, *count, sizeof **queries);
    if (!*queries) return laya_fail_memory(&context->error, *count * sizeof **queries);
    size_t at = 0;
    for (laya_json_iterator it = laya_json_first(questions); laya_json_present(it.value); laya_json_next(&it))
        LAYA_TRY(laya_query_from_json(&(*queries)[at++], it.key, it.value, &context->arena, &context->error));
    return LAYA_OK;
}

static laya_status predict(laya_context *context, laya_json_value state_value, laya_json_value questions,
                           const laya_predict_options *options)
{
    settings set;
    laya_state state;
    laya_query *queries;
    laya_result result;
    size_t count;
    LAYA_TRY(read_options(context, options, &set));
    LAYA_TRY(state_of_json(context, state_value, &state));
    LAYA_TRY(queries_of_json(context, questions, &queries, &count));
    LAYA_TRY(run(context, &set, &state, queries, count, &result));
    const char *executor = context->bundle ? laya_bundle_executor(context->bundle) : NULL;
    laya_result_write(&context->result, queries, &result, executor, set.flags);
    if (context->result.failed) return laya_fail_memory(&context->error, context->result.size);
    return LAYA_OK;
}

static laya_status parse(laya_context *context, laya_json *doc, const char *text, size_t size, const char *what)
{
    laya_status status = laya_json_parse(doc, text ? text : "", text ? size : 0, &context->model->allocator,
                                         &context->error);
    if (status == LAYA_ERROR_INPUT) laya_error_prefix(&context->error, "%s: ", what);
    return status;
}

static void begin_call(laya_context *context)
{
    laya_error_clear(&context->error);
    laya_arena_reset(&context->arena);
    laya_buffer_clear(&context->result);
    context->rows = NULL;
    context->row_count = 0;
}

laya_status laya_predict(laya_context *context, const char *state, size_t state_size, const char *questions,
                         size_t questions_size, const laya_predict_options *options, const char **result,
                         size_t *size)
{
    if (result) *result = NULL;
    if (size) *size = 0;
    if (!context) return LAYA_ERROR_ARGUMENT;
    begin_call(context);
    if (!result) return laya_fail(&context->error, LAYA_ERROR_ARGUMENT, "laya_predict: result must not be NULL");
    laya_json state_doc = {0}, questions_doc = {0};
    laya_status status = parse(context, &state_doc, state, state_size, "state");
    if (status == LAYA_OK) status = parse(context, &questions_doc, questions, questions_size, "questions");
    if (status == LAYA_OK)
        status = predict(context, laya_json_root(&state_doc), laya_json_root(&questions_doc), options);
    laya_json_close(&state_doc);
    laya_json_close(&questions_doc);
    if (status != LAYA_OK) return status;
    *result = context->result.data;
    if (size) *size = context->result.size;
    return LAYA_OK;
}

/* ------------------------------------------------------------------ struct door */

static laya_status check_decide(laya_context *context, const laya_state *state, const laya_question *questions,
                                size_t count)
{
    laya_error *error = &context->error;
    if (!state || (!state->text && state->size))
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_decide: state must not be NULL");
    if (!questions && count) return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_decide: questions must not be NULL");
    size_t valid = laya_utf8_valid(state->text, state->size);
    if (valid < state->size) return laya_fail(error, LAYA_ERROR_INPUT, "state: invalid UTF-8 at byte %zu", valid);
    return LAYA_OK;
}

laya_status laya_decide(laya_context *context, const laya_state *state, const laya_question *questions, size_t count,
                        const laya_predict_options *options, laya_result *result)
{
    settings set;
    if (result) *result = (laya_result){0};
    if (!context) return LAYA_ERROR_ARGUMENT;
    begin_call(context);
    if (!result) return laya_fail(&context->error, LAYA_ERROR_ARGUMENT, "laya_decide: result must not be NULL");
    LAYA_TRY(check_decide(context, state, questions, count));
    LAYA_TRY(read_options(context, options, &set));
    laya_query *queries = laya_arena_alloc(&context->arena, count, sizeof *queries);
    if (!queries) return laya_fail_memory(&context->error, count * sizeof *queries);
    for (size_t at = 0; at < count; at++)
        LAYA_TRY(laya_query_from_struct(&queries[at], &questions[at], &context->arena, &context->error));
    laya_result computed;
    LAYA_TRY(run(context, &set, state, queries, count, &computed));
    *result = computed;
    return LAYA_OK;
}
