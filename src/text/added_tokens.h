/* SPDX-License-Identifier: Apache-2.0 */
/* Added tokens: entries of tokenizer.json that are found in the text as they stand, before BPE. */
#ifndef LAYA_TEXT_ADDED_TOKENS_H
#define LAYA_TEXT_ADDED_TOKENS_H

#include "base/memory.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct laya_added_token {
    const char *text; /* what is looked for; belongs to the set */
    uint32_t size;    /* bytes, > 0 */
    uint32_t id;
    bool lstrip;      /* takes the white space on its left along */
    bool rstrip;      /* takes the white space on its right along */
    bool single_word; /* only where no word character is next to it */
} laya_added_token;

/* Tokens that are looked for together, sorted by their bytes, so that those with a prefix are neighbours. */
typedef struct laya_added_set {
    laya_added_token *tokens; /* [count] */
    char *text;
    uint32_t count;
    uint32_t first[257]; /* tokens that begin with byte b are first[b] .. first[b + 1] - 1 */
} laya_added_set;

/* Make room for `capacity` tokens whose texts have `bytes` bytes together. False: no memory. */
bool laya_added_init(laya_added_set *set, const laya_allocator *allocator, uint32_t capacity, size_t bytes);
/* Add a token with a copy of its text, which must follow the texts before it in the room given. */
void laya_added_add(laya_added_set *set, const laya_added_token *token);
/* Sort. Returns NULL, or a token whose text another one has too. */
const laya_added_token *laya_added_finish(laya_added_set *set);
void laya_added_close(laya_added_set *set, const laya_allocator *allocator);

/* A walk through a text. */
typedef struct laya_added_scan {
    const laya_added_set *set;
    const char *text;
    size_t size;
    size_t search;      /* where the next match may begin */
    size_t covered;     /* where the piece after the last token begins */
    size_t space_begin; /* the run of white space that was looked at last */
    size_t space_end;
    size_t token_begin; /* a token that was found behind the piece just given */
    size_t token_end;
    uint32_t token; /* its id, or LAYA_NO_ID */
} laya_added_scan;

/* Begin to walk through valid UTF-8, which must outlive the scan. */
void laya_added_start(laya_added_scan *scan, const laya_added_set *set, const char *text, size_t size);
/*
 * The next piece [*begin, *end): the text of a token with its id, or text between tokens with LAYA_NO_ID.
 * Never empty. False at the end.
 */
bool laya_added_next(laya_added_scan *scan, size_t *begin, size_t *end, uint32_t *id);

#endif
