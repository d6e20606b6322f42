/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokenizers: text to token ids, exactly as the Hugging Face tokenizer.json prescribes.
 *
 * Two families are implemented: byte-level BPE in ModernBERT's style (NFC, GPT-2 splitting rule) and
 * BPE with byte fallback in mmBERT's style (Metaspace) or Gemma-2's (Replace and Split). A file that asks
 * for anything else is refused by name.
 */
#ifndef LAYA_TOKENIZER_H
#define LAYA_TOKENIZER_H

#include "laya/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct laya_tokenizer laya_tokenizer;

/*
 * Read a tokenizer.json.
 *
 * path       the file
 * allocator  copied; NULL means malloc and free
 * tokenizer  receives the tokenizer; close it with laya_tokenizer_close
 * error      may be NULL
 *
 * Errors: IO, FORMAT (malformed, contradictory), UNSUPPORTED (a normalizer, pre-tokenizer, model or
 * option that is not implemented; the message names it), MEMORY.
 */
LAYA_API laya_status laya_tokenizer_open(const char *path, const laya_allocator *allocator,
                                         laya_tokenizer **tokenizer, laya_error *error);

/* Release a tokenizer that laya_tokenizer_open gave. NULL is allowed. */
LAYA_API void laya_tokenizer_close(laya_tokenizer *tokenizer);

/*
 * Encode a text without adding special tokens (add_special_tokens=False); added tokens that the text
 * spells out become their ids.
 *
 * text, size  UTF-8; NUL bytes are ordinary characters
 * ids         receives an array of *count ids, NULL when there are none; release it with
 *             laya_tokenizer_release
 *
 * May be called from several threads at once. Errors: INPUT (not UTF-8, the message gives the byte
 * offset; or longer than 256 MiB), MEMORY.
 */
LAYA_API laya_status laya_tokenizer_encode(const laya_tokenizer *tokenizer, const char *text, size_t size,
                                           uint32_t **ids, size_t *count, laya_error *error);

/* Release ids that laya_tokenizer_encode of the same tokenizer gave. NULL is allowed. */
LAYA_API void laya_tokenizer_release(const laya_tokenizer *tokenizer, uint32_t *ids);

/* One more than the largest id, added tokens included. */
LAYA_API size_t laya_tokenizer_vocab_size(const laya_tokenizer *tokenizer);

/*
 * The vocabulary's own spelling of an id ("Ġrefund", "▁refund"), not NUL-terminated; its bytes live as
 * long as the tokenizer. NULL and *size = 0 for an id that no entry has.
 */
LAYA_API const char *laya_tokenizer_token(const laya_tokenizer *tokenizer, uint32_t id, size_t *size);

/*
 * Look up the id of a token by the vocabulary's own spelling, added tokens included.
 * Returns 1 and sets *id when it exists, else 0.
 */
LAYA_API int laya_tokenizer_find(const laya_tokenizer *tokenizer, const char *token, size_t size, uint32_t *id);

#ifdef __cplusplus
}
#endif

#endif
