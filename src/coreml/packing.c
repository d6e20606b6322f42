/* SPDX-License-Identifier: Apache-2.0 */
#include "coreml/weight_file.h"

#include <string.h>

unsigned laya_unpack_bits(const unsigned char *packed, uint64_t at, unsigned bits)
{
    uint64_t first = at * bits;
    const unsigned char *byte = packed + first / 8;
    unsigned shift = (unsigned)(first % 8);
    unsigned value = (unsigned)byte[0] >> shift;
    if (shift + bits > 8) value |= (unsigned)byte[1] << (8 - shift);
    return value & ((1u << bits) - 1);
}

/* Eight elements are `bits` whole bytes. */
static void unpack_eight(const unsigned char *packed, unsigned bits, unsigned char *out)
{
    uint64_t window = 0;
    for (unsigned byte = 0; byte < bits; byte++) window |= (uint64_t)packed[byte] << (8 * byte);
    for (unsigned i = 0; i < 8; i++) out[i] = (unsigned char)(window >> (i * bits) & ((1u << bits) - 1));
}

void laya_unpack_range(const unsigned char *packed, unsigned bits, uint64_t first, size_t count, unsigned char *out)
{
    if (bits == 8) {
        memcpy(out, packed + first, count);
        return;
    }
    size_t at = 0;
    for (; count - at >= 8; at += 8) unpack_eight(packed + (first + at) / 8 * bits, bits, out + at);
    for (; at < count; at++) out[at] = (unsigned char)laya_unpack_bits(packed, first + at, bits);
}

void laya_pack_bits(const unsigned char *values, uint64_t count, unsigned bits, unsigned char *packed)
{
    unsigned window = 0, held = 0; /* bits not stored yet, and how many */
    for (uint64_t at = 0; at < count; at++) {
        window |= (values[at] & ((1u << bits) - 1)) << held;
        held += bits;
        if (held >= 8) {
            *packed++ = (unsigned char)window;
            window >>= 8;
            held -= 8;
        }
    }
    if (held > 0) *packed = (unsigned char)window;
}
