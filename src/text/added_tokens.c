/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search is leftmost-longest: at the first place where any token matches, the longest that does is
 * taken, and the search goes on behind it. Flags come into play only then; a token that single_word rules
 * out is not replaced by a shorter one. The piece of a token with rstrip may reach beyond the next match,
 * so that the same white space is covered twice. All of this is what the reference does.
 */
#include "text/added_tokens.h"

#include "base/utf8.h"
#include "text/bpe.h"
#include "text/unicode_tables.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ the set */

bool laya_added_init(laya_added_set *set, const laya_allocator *allocator, uint32_t capacity, size_t bytes)
{
    *set = (laya_added_set){0};
    if (capacity == 0) return true;
    set->tokens = laya_alloc(allocator, capacity, sizeof *set->tokens);
    set->text = laya_alloc(allocator, bytes, 1);
    return set->tokens && set->text;
}

void laya_added_close(laya_added_set *set, const laya_allocator *allocator)
{
    laya_release(allocator, set->tokens);
    laya_release(allocator, set->text);
    *set = (laya_added_set){0};
}

void laya_added_add(laya_added_set *set, const laya_added_token *token)
{
    char *copy = set->text;
    if (set->count) {
        const laya_added_token *last = &set->tokens[set->count - 1];
        copy += (size_t)(last->text - set->text) + last->size;
    }
    memcpy(copy, token->text, token->size);
    set->tokens[set->count] = *token;
    set->tokens[set->count++].text = copy;
}

static int compare_tokens(const void *left, const void *right)
{
    const laya_added_token *a = left, *b = right;
    int order = memcmp(a->text, b->text, a->size < b->size ? a->size : b->size);
    if (order) return order;
    return (a->size > b->size) - (a->size < b->size);
}

const laya_added_token *laya_added_finish(laya_added_set *set)
{
    if (set->count) qsort(set->tokens, set->count, sizeof *set->tokens, compare_tokens);
    uint32_t at = 0;
    for (unsigned byte = 0; byte < 256; byte++) {
        set->first[byte] = at;
        while (at < set->count && (unsigned char)set->tokens[at].text[0] == byte) at++;
    }
    set->first[256] = at;
    for (uint32_t i = 1; i < set->count; i++) {
        if (compare_tokens(&set->tokens[i - 1], &set->tokens[i]) == 0) return &set->tokens[i];
    }
    return NULL;
}

/* The first token in [low, high) whose byte at `depth` is at least `byte`. */
static uint32_t lower_bound(const laya_added_set *set, uint32_t low, uint32_t high, size_t depth, unsigned byte)
{
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if ((unsigned char)set->tokens[middle].text[depth] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The longest token that the text begins with, or NULL. */
static const laya_added_token *longest(const laya_added_set *set, const char *text, size_t size)
{
    const laya_added_token *best = NULL;
    uint32_t low = set->first[(unsigned char)text[0]], high = set->first[(unsigned char)text[0] + 1];
    for (size_t depth = 1; low < high; depth++) {
        /* All of [low, high) begin with the first `depth` bytes of the text; the shortest comes first. */
        if (set->tokens[low].size == depth) best = &set->tokens[low++];
        if (depth == size) break;
        unsigned byte = (unsigned char)text[depth];
        low = lower_bound(set, low, high, depth, byte);
        high = lower_bound(set, low, high, depth, byte + 1);
    }
    return best;
}

/* ------------------------------------------------------------------ surroundings */

static unsigned flags_before(const char *text, size_t at)
{
    size_t begin = at - 1;
    while (((unsigned char)text[begin] & 0xC0) == 0x80) begin--;
    return laya_unicode_flags(laya_utf8_next(text, &begin));
}

static unsigned flags_behind(const char *text, size_t at)
{
    return laya_unicode_flags(laya_utf8_next(text, &at));
}

static bool stands_alone(const laya_added_scan *scan, size_t begin, size_t end)
{
    if (begin > 0 && flags_before(scan->text, begin) & LAYA_UNICODE_WORD) return false;
    return end == scan->size || !(flags_behind(scan->text, end) & LAYA_UNICODE_WORD);
}

/* `begin` moved left over white space, not past `limit` (which may lie behind it and wins then). */
static size_t strip_left(const laya_added_scan *scan, size_t begin, size_t limit)
{
    while (begin > limit && flags_before(scan->text, begin) & LAYA_UNICODE_SPACE) {
        do {
            begin--;
        } while (((unsigned char)scan->text[begin] & 0xC0) == 0x80);
    }
    return begin > limit ? begin : limit;
}

/* `end` moved right over white space. The run is remembered, so that many tokens in it cost no more than one. */
static size_t strip_right(laya_added_scan *scan, size_t end)
{
    if (end >= scan->space_begin && end <= scan->space_end) return scan->space_end;
    scan->space_begin = end;
    while (end < scan->size && flags_behind(scan->text, end) & LAYA_UNICODE_SPACE) laya_utf8_next(scan->text, &end);
    scan->space_end = end;
    return end;
}

/* ------------------------------------------------------------------ the walk */

void laya_added_start(laya_added_scan *scan, const laya_added_set *set, const char *text, size_t size)
{
    *scan = (laya_added_scan){.set = set, .text = text, .size = size, .token = LAYA_NO_ID};
    scan->space_begin = 1; /* an empty range: nothing remembered */
    if (set->count == 0) scan->search = size;
}

/* Find the next token and leave it in the scan. False when there is none. */
static bool find_token(laya_added_scan *scan)
{
    const laya_added_set *set = scan->set;
    while (scan->search < scan->size) {
        unsigned char byte = (unsigned char)scan->text[scan->search];
        const laya_added_token *token = NULL;
        if (set->first[byte] != set->first[byte + 1])
            token = longest(set, scan->text + scan->search, scan->size - scan->search);
        if (!token) {
            scan->search++;
            continue;
        }
        size_t begin = scan->search, end = begin + token->size;
        scan->search = end;
        if (token->single_word && !stands_alone(scan, begin, end)) continue;
        if (token->lstrip) begin = strip_left(scan, begin, scan->covered);
        if (token->rstrip) end = strip_right(scan, end);
        scan->token = token->id;
        scan->token_begin = begin;
        scan->token_end = end;
        return true;
    }
    return false;
}

bool laya_added_next(laya_added_scan *scan, size_t *begin, size_t *end, uint32_t *id)
{
    for (;;) {
        if (scan->token == LAYA_NO_ID && !find_token(scan)) {
            *begin = scan->covered;
            *end = scan->covered = scan->size;
            *id = LAYA_NO_ID;
            return *begin < *end;
        }
        if (scan->covered < scan->token_begin) {
            *begin = scan->covered;
            *end = scan->covered = scan->token_begin;
            *id = LAYA_NO_ID;
            return true;
        }
        *begin = scan->token_begin;
        *end = scan->covered = scan->token_end;
        *id = scan->token;
        scan->token = LAYA_NO_ID;
        if (*begin < *end) return true;
    }
}
