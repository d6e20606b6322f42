/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Character classes as Hugging Face's tokenizers sees them, independent of the system's Unicode version:
 * its regular expressions follow Unicode 16, its NFC follows Unicode 9.
 */
#ifndef LAYA_TEXT_UNICODE_TABLES_H
#define LAYA_TEXT_UNICODE_TABLES_H

#include <stdint.h>

enum {
    LAYA_UNICODE_LETTER = 1,       /* \p{L} */
    LAYA_UNICODE_NUMBER = 2,       /* \p{N} */
    LAYA_UNICODE_SPACE = 4,        /* \s */
    LAYA_UNICODE_WORD = 8,         /* \w */
    LAYA_UNICODE_NFC_STARTER = 16, /* may be changed by an NFC_ACTIVE character that follows */
    LAYA_UNICODE_NFC_ACTIVE = 32   /* combines, is reordered, or is never kept by NFC */
};

/* The flags of a code point, by binary search. */
unsigned laya_unicode_search(uint32_t code);

/* The flags of a code point. */
static inline unsigned laya_unicode_flags(uint32_t code)
{
    if (code >= 0x80) return laya_unicode_search(code);
    if ((code | 0x20) - 'a' < 26) return LAYA_UNICODE_LETTER | LAYA_UNICODE_WORD | LAYA_UNICODE_NFC_STARTER;
    if (code - '0' < 10) return LAYA_UNICODE_NUMBER | LAYA_UNICODE_WORD;
    if (code == ' ' || code - '\t' < 5) return LAYA_UNICODE_SPACE;
    if (code == '_') return LAYA_UNICODE_WORD;
    return code - '<' < 3 ? LAYA_UNICODE_NFC_STARTER : 0;
}

#endif
