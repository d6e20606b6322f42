/* SPDX-License-Identifier: Apache-2.0 */
#include "text/prompt.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first occurrence of `wanted` in a text, or NULL. */
static const char *find(const char *text, size_t size, laya_span wanted)
{
    while (size >= wanted.size) {
        const char *first = memchr(text, wanted.text[0], size - wanted.size + 1);
        if (!first) return NULL;
        if (memcmp(first, wanted.text, wanted.size) == 0) return first;
        size -= (size_t)(first + 1 - text);
        text = first + 1;
    }
    return NULL;
}

/* Replace every mask-token literal by one space, so that a text cannot add markers. */
static laya_status neutralise(const laya_prompt *prompt, laya_span *text, laya_error *error)
{
    laya_span mask = prompt->specials->mask_text;
    const char *hit = find(text->text, text->size, mask);
    if (!hit) return LAYA_OK;
    char *out = laya_arena_alloc(prompt->arena, text->size, 1);
    if (!out) return laya_fail_memory(error, text->size);
    size_t used = 0, at = 0;
    while (hit) {
        size_t run = (size_t)(hit - text->text) - at;
        memcpy(out + used, text->text + at, run);
        used += run;
        out[used++] = ' ';
        at += run + mask.size;
        hit = find(text->text + at, text->size - at, mask);
    }
    memcpy(out + used, text->text + at, text->size - at);
    *text = (laya_span){out, used + text->size - at};
    return LAYA_OK;
}

laya_status laya_prompt_tokens(const laya_prompt *prompt, laya_span text, laya_tokens *tokens, laya_error *error)
{
    *tokens = (laya_tokens){NULL, 0};
    LAYA_TRY(neutralise(prompt, &text, error));
    uint32_t *ids;
    size_t count;
    LAYA_TRY(laya_tokenizer_encode(prompt->tokenizer, text.text, text.size, &ids, &count, error));
    laya_status status = LAYA_OK;
    uint32_t *copy = laya_arena_alloc(prompt->arena, count, sizeof *copy);
    if (!copy || count > UINT32_MAX / 2) {
        status = laya_fail_memory(error, count * sizeof *copy);
    } else {
        if (count) memcpy(copy, ids, count * sizeof *copy);
        *tokens = (laya_tokens){copy, (uint32_t)count};
    }
    laya_tokenizer_release(prompt->tokenizer, ids);
    return status;
}

/* Tokens of one option text, which begins with a space in the prompt; at most LAYA_OPTION_TOKENS. */
static laya_status option_tokens(const laya_prompt *prompt, laya_span option, laya_tokens *tokens, laya_error *error)
{
    char *text = laya_arena_alloc(prompt->arena, option.size + 1, 1);
    if (!text) return laya_fail_memory(error, option.size + 1);
    text[0] = ' ';
    if (option.size) memcpy(text + 1, option.text, option.size);
    LAYA_TRY(laya_prompt_tokens(prompt, (laya_span){text, option.size + 1}, tokens, error));
    if (tokens->count > LAYA_OPTION_TOKENS) tokens->count = LAYA_OPTION_TOKENS;
    return LAYA_OK;
}

static int compare_blocks(const void *left, const void *right)
{
    const laya_tokens *a = left, *b = right;
    if (a->count != b->count) return a->count < b->count ? -1 : 1;
    return a->count ? memcmp(a->ids, b->ids, a->count * sizeof *a->ids) : 0;
}

/* How many of the blocks differ. Sorts them. */
static uint32_t count_distinct(laya_tokens *blocks, uint32_t count)
{
    uint32_t distinct = 1;
    qsort(blocks, count, sizeof *blocks, compare_blocks);
    for (uint32_t i = 1; i < count; i++) distinct += compare_blocks(&blocks[i - 1], &blocks[i]) != 0;
    return distinct;
}

static laya_status fail_markers(const laya_prompt *prompt, const laya_query *query, uint32_t fit, laya_error *error)
{
    char message[256];
    snprintf(message, sizeof message,
             "only %u of its %u option markers fit in max_len=%u with head_max_len=%u spent on the question; "
             "lower head_max_len, raise max_len, or use fewer options",
             fit, query->count, prompt->max_len, prompt->head_max_len);
    return laya_fail_question(error, query->id, message);
}

/* Append ids to the row as long as it is shorter than max_len. */
static void append(const laya_prompt *prompt, uint32_t *ids, laya_prompt_row *row, const uint32_t *more,
                   uint32_t count)
{
    uint32_t room = prompt->max_len - row->count;
    if (count > room) count = room;
    if (count) memcpy(ids + row->count, more, count * sizeof *ids);
    row->count += count;
}

laya_status laya_prompt_build(const laya_prompt *prompt, const laya_query *query, laya_tokens state, bool keep_end,
                              laya_prompt_row *row, laya_error *error)
{
    *row = (laya_prompt_row){0};
    const laya_specials *specials = prompt->specials;
    laya_tokens head;
    LAYA_TRY(laya_prompt_tokens(prompt, query->head, &head, error));

    /* blocks[s] is what follows the mask token of slot s */
    laya_tokens *blocks = laya_arena_alloc(prompt->arena, query->count, sizeof *blocks);
    uint32_t *markers = laya_arena_alloc(prompt->arena, query->count, sizeof *markers);
    if (!blocks || !markers) return laya_fail_memory(error, 0);
    int64_t spent = 0;
    for (uint32_t slot = 0; slot < query->count; slot++) {
        uint32_t option = query->order ? query->order[slot] : slot;
        LAYA_TRY(option_tokens(prompt, query->options[option], &blocks[slot], error));
        spent += 1 + blocks[slot].count;
    }

    int64_t budget = (int64_t)prompt->head_max_len - spent;
    if (budget < 16) {
        int64_t share = ((int64_t)prompt->head_max_len - 16) / (query->count > 1 ? query->count : 1);
        if (share < 4) share = 4;
        row->tokens_per_option = (uint32_t)share;
        spent = 0;
        for (uint32_t slot = 0; slot < query->count; slot++) {
            if (blocks[slot].count > share - 1) blocks[slot].count = (uint32_t)share - 1;
            spent += 1 + blocks[slot].count;
        }
        budget = (int64_t)prompt->head_max_len - spent;
    }
    int64_t head_count = budget > 8 ? budget : 8;
    if (head_count > head.count) head_count = head.count;

    int64_t longest = 1 + head_count + 1 + spent + 1 + (int64_t)state.count + 1;
    if (longest > prompt->max_len) longest = prompt->max_len;
    uint32_t *ids = laya_arena_alloc(prompt->arena, (size_t)longest, sizeof *ids);
    if (!ids) return laya_fail_memory(error, (size_t)longest * sizeof *ids);

    append(prompt, ids, row, &specials->cls, 1);
    append(prompt, ids, row, head.ids, (uint32_t)head_count);
    append(prompt, ids, row, &specials->sep, 1);
    uint32_t fit = 0;
    for (uint32_t slot = 0; slot < query->count; slot++) {
        if (row->count < prompt->max_len) markers[fit++] = row->count;
        append(prompt, ids, row, &specials->mask, 1);
        append(prompt, ids, row, blocks[slot].ids, blocks[slot].count);
    }
    if (fit < query->count) return fail_markers(prompt, query, fit, error);
    append(prompt, ids, row, &specials->sep, 1);

    uint32_t room = prompt->max_len - row->count;
    if (room > 0) room--; /* for the closing separator */
    uint32_t kept = state.count < room ? state.count : room;
    row->dropped = state.count - kept;
    append(prompt, ids, row, kept ? state.ids + (keep_end ? row->dropped : 0) : NULL, kept);
    append(prompt, ids, row, &specials->sep, 1);

    row->ids = ids;
    row->markers = markers;
    row->distinct = count_distinct(blocks, query->count);
    return LAYA_OK;
}
