/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encoding in the order of the reference: added tokens that are not normalized are cut out of the text;
 * each piece between them is normalized; the other added tokens are cut out of it; what is left is split
 * into words, and BPE encodes each word.
 */
#include "text/tokenizer.h"

#include "base/error.h"
#include "base/file.h"
#include "base/utf8.h"
#include "text/metaspace.h"

#include <string.h>

/* ------------------------------------------------------------------ open and close */

laya_status laya_tokenizer_open(const char *path, const laya_allocator *allocator, laya_tokenizer **tokenizer,
                                laya_error *error)
{
    laya_error_clear(error);
    if (tokenizer) *tokenizer = NULL;
    if (!path || !tokenizer)
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_tokenizer_open: path and tokenizer must not be NULL");
    laya_allocator hooks = laya_allocator_or_default(allocator);
    laya_file file;
    LAYA_TRY(laya_file_map(&file, path, error));
    laya_tokenizer *opened = laya_alloc_zero(&hooks, 1, sizeof *opened);
    laya_status status;
    if (opened) {
        opened->allocator = hooks;
        status = laya_tokenizer_load(opened, file.data ? (const char *)file.data : "", file.size, error);
    } else {
        status = laya_fail_memory(error, sizeof *opened);
    }
    laya_file_unmap(&file);
    if (status != LAYA_OK) {
        laya_error_prefix(error, "%s: ", path);
        laya_tokenizer_close(opened);
        return status;
    }
    *tokenizer = opened;
    return LAYA_OK;
}

void laya_tokenizer_close(laya_tokenizer *tokenizer)
{
    if (!tokenizer) return;
    laya_allocator allocator = tokenizer->allocator;
    laya_bpe_close(&tokenizer->bpe, &allocator);
    laya_added_close(&tokenizer->raw, &allocator);
    laya_added_close(&tokenizer->normalized, &allocator);
    laya_release(&allocator, tokenizer);
}

/* ------------------------------------------------------------------ encode */

bool laya_tokenizer_normalize(laya_normalizer normalizer, laya_nfc_memory *memory, const char *text, size_t size,
                              laya_buffer *out, bool *unchanged)
{
    *unchanged = true;
    switch (normalizer) {
    case LAYA_NORMALIZER_NONE: return true;
    case LAYA_NORMALIZER_NFC:
        if (!laya_nfc_needed(text, size)) return true;
        *unchanged = false;
        return laya_nfc(memory, text, size, out);
    case LAYA_NORMALIZER_METASPACE:
        if (!memchr(text, ' ', size)) return true;
        *unchanged = false;
        laya_metaspace_replace(text, size, out);
        return !out->failed;
    }
    return true;
}

/* The working memory of one call. */
typedef struct encoder {
    const laya_tokenizer *tokenizer;
    laya_bpe_run run;
    laya_nfc_memory nfc;
    laya_buffer normal; /* a normalized piece */
    laya_buffer spaced; /* a piece with its spaces replaced */
} encoder;

/* Split text without added tokens into words and encode them. False: no memory. */
static bool encode_words(encoder *e, const char *text, size_t size)
{
    switch (e->tokenizer->splitter) {
    case LAYA_SPLITTER_BYTE_LEVEL:
        for (size_t at = 0, end; at < size; at = end) {
            end = laya_byte_level_word(text, size, at);
            if (!laya_bpe_byte_word(&e->run, text + at, end - at)) return false;
        }
        return true;
    case LAYA_SPLITTER_METASPACE:
        laya_buffer_clear(&e->spaced);
        laya_metaspace_prepend(text, size, &e->spaced);
        if (e->spaced.failed) return false;
        for (size_t at = 0, end; at < e->spaced.size; at = end) {
            end = laya_metaspace_word(e->spaced.data, e->spaced.size, at);
            if (!laya_bpe_word(&e->run, e->spaced.data + at, end - at)) return false;
        }
        return true;
    case LAYA_SPLITTER_NONE: return laya_bpe_word(&e->run, text, size);
    }
    return true;
}

/* Normalize a piece, cut the other added tokens out of it, and encode the rest. */
static bool encode_piece(encoder *e, const char *text, size_t size)
{
    bool unchanged;
    laya_buffer_clear(&e->normal);
    if (!laya_tokenizer_normalize(e->tokenizer->normalizer, &e->nfc, text, size, &e->normal, &unchanged))
        return false;
    if (!unchanged) {
        text = e->normal.data;
        size = e->normal.size;
    }
    laya_added_scan scan;
    size_t begin, end;
    uint32_t id;
    laya_added_start(&scan, &e->tokenizer->normalized, text, size);
    while (laya_added_next(&scan, &begin, &end, &id)) {
        bool done = id == LAYA_NO_ID ? encode_words(e, text + begin, end - begin) : laya_bpe_append(&e->run, id);
        if (!done) return false;
    }
    return true;
}

static bool encode_text(encoder *e, const char *text, size_t size)
{
    laya_added_scan scan;
    size_t begin, end;
    uint32_t id;
    laya_added_start(&scan, &e->tokenizer->raw, text, size);
    while (laya_added_next(&scan, &begin, &end, &id)) {
        bool done = id == LAYA_NO_ID ? encode_piece(e, text + begin, end - begin) : laya_bpe_append(&e->run, id);
        if (!done) return false;
    }
    return true;
}

laya_status laya_tokenizer_encode(const laya_tokenizer *tokenizer, const char *text, size_t size, uint32_t **ids,
                                  size_t *count, laya_error *error)
{
    laya_error_clear(error);
    if (ids) *ids = NULL;
    if (count) *count = 0;
    if (!tokenizer || (!text && size) || !ids || !count) {
        return laya_fail(error, LAYA_ERROR_ARGUMENT,
                         "laya_tokenizer_encode: tokenizer, text, ids and count must not be NULL");
    }
    if (size == 0) return LAYA_OK;
    if (size > LAYA_TOKENIZER_MAX_TEXT) {
        return laya_fail(error, LAYA_ERROR_INPUT, "the text has %zu bytes; at most %zu can be tokenized", size,
                         LAYA_TOKENIZER_MAX_TEXT);
    }
    size_t valid = laya_utf8_valid(text, size);
    if (valid < size) return laya_fail(error, LAYA_ERROR_INPUT, "the text is not UTF-8 at byte offset %zu", valid);

    encoder e = {.tokenizer = tokenizer,
                 .run = {.bpe = &tokenizer->bpe, .allocator = &tokenizer->allocator},
                 .nfc = {.allocator = &tokenizer->allocator}};
    laya_buffer_init(&e.normal, &tokenizer->allocator);
    laya_buffer_init(&e.spaced, &tokenizer->allocator);
    bool done = encode_text(&e, text, size);
    laya_bpe_run_close(&e.run);
    laya_nfc_close(&e.nfc);
    laya_buffer_close(&e.normal);
    laya_buffer_close(&e.spaced);
    if (!done) {
        laya_release(&tokenizer->allocator, e.run.ids);
        return laya_fail_memory(error, 0);
    }
    *ids = e.run.ids;
    *count = e.run.count;
    return LAYA_OK;
}

void laya_tokenizer_release(const laya_tokenizer *tokenizer, uint32_t *ids)
{
    if (tokenizer) laya_release(&tokenizer->allocator, ids);
}

/* ------------------------------------------------------------------ vocabulary */

size_t laya_tokenizer_vocab_size(const laya_tokenizer *tokenizer)
{
    return tokenizer ? tokenizer->bpe.vocab.count : 0;
}

const char *laya_tokenizer_token(const laya_tokenizer *tokenizer, uint32_t id, size_t *size)
{
    if (size) *size = 0;
    if (!tokenizer || id >= tokenizer->bpe.vocab.count) return NULL;
    const laya_vocab *vocab = &tokenizer->bpe.vocab;
    if (size) *size = vocab->offsets[id + 1] - vocab->offsets[id];
    return vocab->text + vocab->offsets[id];
}

int laya_tokenizer_find(const laya_tokenizer *tokenizer, const char *token, size_t size, uint32_t *id)
{
    if (!tokenizer || (!token && size) || size > UINT32_MAX) return 0;
    uint32_t found = laya_vocab_find(&tokenizer->bpe.vocab, token, size);
    if (found == LAYA_NO_ID) return 0;
    if (id) *id = found;
    return 1;
}
