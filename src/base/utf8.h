/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8: validation and decoding. */
#ifndef LAYA_BASE_UTF8_H
#define LAYA_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Length of the valid prefix: `size` when all is well-formed UTF-8 (no surrogates, no overlong forms). */
size_t laya_utf8_valid(const char *text, size_t size);
/* Decode one character of valid UTF-8 and advance *at. */
uint32_t laya_utf8_next(const char *text, size_t *at);
/* Encode a scalar value; returns 1..4 bytes written. */
size_t laya_utf8_put(char out[4], uint32_t code);

#endif
