/* SPDX-License-Identifier: Apache-2.0 */
/* What ModernBERT's tokenizer does before BPE: NFC, GPT-2's splitting rule, bytes as characters. */
#ifndef LAYA_TEXT_BYTE_LEVEL_H
#define LAYA_TEXT_BYTE_LEVEL_H

#include "base/memory.h"

#include <stdbool.h>
#include <stdint.h>

/* GPT-2's alphabet: the character that stands for a byte (itself where it is printable Latin-1). */
uint32_t laya_byte_level_char(unsigned byte);

/*
 * The end of the word that begins at `at` < size, by GPT-2's splitting expression
 *
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 */
size_t laya_byte_level_word(const char *text, size_t size, size_t at);

/* Working memory of laya_nfc, to be kept from call to call. */
typedef struct laya_nfc_memory {
    const laya_allocator *allocator;
    int32_t *points;
    size_t capacity;
} laya_nfc_memory;

/* False when the text (valid UTF-8) is in NFC for sure, so that nothing needs to be done. */
bool laya_nfc_needed(const char *text, size_t size);
/* Append the NFC of valid UTF-8, as Unicode 9 defines it. False: no memory. */
bool laya_nfc(laya_nfc_memory *memory, const char *text, size_t size, laya_buffer *out);
void laya_nfc_close(laya_nfc_memory *memory);

#endif
