/* SPDX-License-Identifier: Apache-2.0 */
/* What the Gemma family does before BPE: spaces become U+2581, words begin at it. */
#ifndef LAYA_TEXT_METASPACE_H
#define LAYA_TEXT_METASPACE_H

#include "base/memory.h"

#define LAYA_METASPACE "\xE2\x96\x81" /* U+2581, LOWER ONE EIGHTH BLOCK */
#define LAYA_METASPACE_SIZE 3

/* Append the text with every space (U+0020 only) replaced by U+2581. */
void laya_metaspace_replace(const char *text, size_t size, laya_buffer *out);

/* The same, with one U+2581 in front unless the result begins with one. */
void laya_metaspace_prepend(const char *text, size_t size, laya_buffer *out);

/* The end of the word that begins at `at` < size: before the next U+2581. */
size_t laya_metaspace_word(const char *text, size_t size, size_t at);

#endif
