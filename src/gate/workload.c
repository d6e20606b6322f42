/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/workload.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/output.h"
#include "gate/statistics.h"

#include <string.h>

static const char questions[] = "{\"refund\": {\"type\": \"noul\", \"instructions\": \"Does the user ask for money "
                                "back?\"}}";
static const char short_state[] = "Please refund the duplicate charge.";

/* Plain sentences, numbered so that no two are equal. */
static const char *const sentences[] = {
    "On day %u the customer wrote that the parcel had arrived, but the box was open and two items were missing. ",
    "The agent answered message %u within an hour and asked for a photo of the label. ",
    "Invoice number %u was paid twice, once by card and once by bank transfer. ",
    "In reply %u the customer said that the app shows an error after the latest update. ",
    "Ticket %u was passed on to the team that looks after deliveries in the north. "};
enum { SENTENCES = sizeof sentences / sizeof *sentences };

/* No tokenizer makes fewer tokens of these sentences than one for this many bytes. */
#define BYTES_PER_TOKEN 8u

static void write_sentence(laya_buffer *out, unsigned number)
{
    const char *text = sentences[number % SENTENCES], *place = strstr(text, "%u");
    laya_buffer_append(out, text, (size_t)(place - text));
    laya_buffer_printf(out, "%u", number);
    laya_buffer_puts(out, place + 2);
}

static laya_status hash_input(laya_workload *workload, laya_error *error)
{
    laya_hash *hash;
    LAYA_TRY(laya_hash_open(&hash, error));
    laya_status status = laya_hash_update(hash, workload->input.state, workload->input.state_size, error);
    if (status == LAYA_OK) status = laya_hash_update(hash, "\n", 1, error);
    if (status == LAYA_OK) status = laya_hash_update(hash, questions, sizeof questions - 1, error);
    if (status == LAYA_OK) return laya_hash_finish(hash, workload->sha256, error);
    laya_hash_close(hash);
    return status;
}

laya_status laya_workload_open(laya_workload *workload, uint32_t fill, const laya_allocator *allocator,
                               laya_error *error)
{
    *workload = (laya_workload){0};
    laya_predict_options_init(&workload->options);
    workload->options.max_len = fill;
    laya_buffer_init(&workload->state, allocator);
    laya_buffer_putc(&workload->state, '"');
    if (fill == 0) laya_buffer_puts(&workload->state, short_state);
    for (unsigned number = 1; workload->state.size < (size_t)fill * BYTES_PER_TOKEN && !workload->state.failed;)
        write_sentence(&workload->state, number++);
    laya_buffer_putc(&workload->state, '"');
    laya_status status = workload->state.failed ? laya_fail_memory(error, workload->state.size) : LAYA_OK;
    if (status == LAYA_OK) {
        workload->input = (laya_fixture_case){.name = fill ? "long" : "short",
                                              .state = workload->state.data,
                                              .state_size = workload->state.size,
                                              .questions = questions,
                                              .questions_size = sizeof questions - 1,
                                              .count = 1};
        status = hash_input(workload, error);
    }
    if (status != LAYA_OK) laya_workload_close(workload);
    return status;
}

void laya_workload_close(laya_workload *workload)
{
    laya_buffer_close(&workload->state);
}

/* ------------------------------------------------------------------ candidates */

void laya_candidate_init(laya_candidate *candidate, const char *name, const laya_source *source,
                         const laya_allocator *allocator)
{
    *candidate = (laya_candidate){.name = name, .source = *source, .stable = true};
    laya_buffer_init(&candidate->published, allocator);
}

void laya_candidate_close(laya_candidate *candidate)
{
    laya_buffer_close(&candidate->published);
}

laya_status laya_candidate_call(laya_candidate *candidate, const laya_workload *workload, double *seconds,
                                laya_error *error)
{
    const laya_source *source = &candidate->source;
    laya_buffer *published = &candidate->published;
    const char *text;
    size_t size;
    double start = laya_seconds();
    LAYA_TRY(source->predict(source->user, &workload->input, &workload->options, &text, &size, error));
    *seconds = laya_seconds() - start;
    if (published->size == 0) {
        laya_buffer_append(published, text, size);
        return published->failed ? laya_fail_memory(error, size) : LAYA_OK;
    }
    if (size != published->size || memcmp(text, published->data, size) != 0) candidate->stable = false;
    return LAYA_OK;
}

/* ------------------------------------------------------------------ series */

void laya_series_init(laya_series *series, const laya_allocator *allocator)
{
    *series = (laya_series){.allocator = laya_allocator_or_default(allocator)};
}

laya_status laya_series_add(laya_series *series, double seconds, laya_error *error)
{
    if (series->count == series->capacity) {
        size_t capacity = series->capacity ? 2 * series->capacity : 64;
        double *grown = laya_alloc(&series->allocator, capacity, sizeof *grown);
        if (!grown) return laya_fail_memory(error, capacity * sizeof *grown);
        if (series->count) memcpy(grown, series->seconds, series->count * sizeof *grown);
        laya_release(&series->allocator, series->seconds);
        series->seconds = grown;
        series->capacity = capacity;
    }
    series->seconds[series->count++] = seconds;
    return LAYA_OK;
}

void laya_series_close(laya_series *series)
{
    laya_release(&series->allocator, series->seconds);
    *series = (laya_series){0};
}
