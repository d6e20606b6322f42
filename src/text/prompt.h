/* SPDX-License-Identifier: Apache-2.0 */
/* Sequence building: [CLS] head [SEP] [MASK] option 0 [MASK] option 1 ... [SEP] state [SEP]. */
#ifndef LAYA_TEXT_PROMPT_H
#define LAYA_TEXT_PROMPT_H

#include "base/memory.h"
#include "laya/tokenizer.h"
#include "text/question.h"

#define LAYA_OPTION_TOKENS 48 /* an option's text is cut to its first 48 tokens, the mask not counted */

/* The special tokens of a checkpoint, by id, and the mask token's text. */
typedef struct laya_specials {
    uint32_t cls, sep, mask, pad;
    laya_span mask_text;
} laya_specials;

typedef struct laya_prompt {
    const laya_tokenizer *tokenizer;
    const laya_specials *specials;
    uint32_t max_len;
    uint32_t head_max_len;
    laya_arena *arena;
} laya_prompt;

typedef struct laya_tokens {
    const uint32_t *ids;
    uint32_t count;
} laya_tokens;

typedef struct laya_prompt_row {
    const uint32_t *ids; /* [count] */
    uint32_t count;
    const uint32_t *markers;    /* [options] positions of the mask tokens, in slot order */
    uint32_t tokens_per_option; /* cut of each block, its mask included; 0: not cut */
    uint32_t distinct;          /* different blocks after the cut */
    uint32_t dropped;           /* state tokens that did not fit */
} laya_prompt_row;

/* Tokenize a text whose mask-token literals become one space each. Errors: INPUT (not UTF-8), MEMORY. */
laya_status laya_prompt_tokens(const laya_prompt *prompt, laya_span text, laya_tokens *tokens, laya_error *error);

/*
 * Build the row of one question. `state` is tokenized once per call; keep_end says which end of it stays
 * when it does not fit. Errors: INPUT (options do not fit; the question is named), MEMORY.
 */
laya_status laya_prompt_build(const laya_prompt *prompt, const laya_query *query, laya_tokens state, bool keep_end,
                              laya_prompt_row *row, laya_error *error);

#endif
