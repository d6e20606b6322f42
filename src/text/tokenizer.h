/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a tokenizer, and the reader of tokenizer.json. */
#ifndef LAYA_TEXT_TOKENIZER_H
#define LAYA_TEXT_TOKENIZER_H

#include "laya/tokenizer.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/byte_level.h"

#define LAYA_TOKENIZER_MAX_TEXT ((size_t)1 << 28) /* bytes of one text; its symbols fit into 32 bits */
#define LAYA_TOKENIZER_MAX_IDS ((size_t)1 << 29)  /* vocabulary and added tokens together; merges */

typedef enum laya_normalizer {
    LAYA_NORMALIZER_NONE,
    LAYA_NORMALIZER_NFC,
    LAYA_NORMALIZER_METASPACE /* Replace " " by U+2581 */
} laya_normalizer;

typedef enum laya_splitter {
    LAYA_SPLITTER_BYTE_LEVEL, /* GPT-2's rule; words are spelt in the byte alphabet */
    LAYA_SPLITTER_METASPACE,  /* prepend U+2581, words begin at it */
    LAYA_SPLITTER_NONE        /* one word; Gemma-2 splits at spaces, of which its normalizer leaves none */
} laya_splitter;

struct laya_tokenizer {
    laya_allocator allocator;
    laya_normalizer normalizer;
    laya_splitter splitter;
    laya_bpe bpe;
    laya_added_set raw;        /* looked for in the text itself */
    laya_added_set normalized; /* looked for in the normalized pieces between those */
};

/*
 * Append the normalized text. Nothing is appended and *unchanged is set when that is the text itself.
 * False: no memory.
 */
bool laya_tokenizer_normalize(laya_normalizer normalizer, laya_nfc_memory *memory, const char *text, size_t size,
                              laya_buffer *out, bool *unchanged);

/*
 * Fill a tokenizer (zero but for its allocator) from the text of a tokenizer.json. On failure it may be
 * partly filled. Messages name the field, not the file. Errors: FORMAT, UNSUPPORTED, MEMORY.
 */
laya_status laya_tokenizer_load(laya_tokenizer *tokenizer, const char *text, size_t size, laya_error *error);

#endif
