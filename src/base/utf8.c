/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <string.h>

/* Length of the well-formed sequence at p (Unicode 15.0, table 3-7), or 0. */
static size_t sequence(const unsigned char *p, size_t left)
{
    unsigned char lead = p[0];
    if (lead < 0x80) return 1;
    size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || left < length) return 0;
    unsigned char low = 0x80, high = 0xBF;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
    if (p[1] < low || p[1] > high) return 0;
    for (size_t at = 2; at < length; at++) {
        if ((p[at] & 0xC0) != 0x80) return 0;
    }
    return length;
}

size_t laya_utf8_valid(const char *text, size_t size)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t at = 0;
    while (at < size) {
        uint64_t eight;
        while (size - at >= sizeof eight) {
            memcpy(&eight, p + at, sizeof eight);
            if (eight & UINT64_C(0x8080808080808080)) break;
            at += sizeof eight;
        }
        if (at == size) break;
        size_t length = sequence(p + at, size - at);
        if (length == 0) return at;
        at += length;
    }
    return size;
}

uint32_t laya_utf8_next(const char *text, size_t *at)
{
    const unsigned char *p = (const unsigned char *)text + *at;
    if (p[0] < 0x80) {
        *at += 1;
        return p[0];
    }
    if (p[0] < 0xE0) {
        *at += 2;
        return (uint32_t)(p[0] & 0x1F) << 6 | (uint32_t)(p[1] & 0x3F);
    }
    if (p[0] < 0xF0) {
        *at += 3;
        return (uint32_t)(p[0] & 0x0F) << 12 | (uint32_t)(p[1] & 0x3F) << 6 | (uint32_t)(p[2] & 0x3F);
    }
    *at += 4;
    return (uint32_t)(p[0] & 0x07) << 18 | (uint32_t)(p[1] & 0x3F) << 12 | (uint32_t)(p[2] & 0x3F) << 6 |
           (uint32_t)(p[3] & 0x3F);
}

size_t laya_utf8_put(char out[4], uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xC0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xE0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3F));
        out[2] = (char)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3F));
    out[2] = (char)(0x80 | (code >> 6 & 0x3F));
    out[3] = (char)(0x80 | (code & 0x3F));
    return 4;
}
