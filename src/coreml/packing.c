/* SPDX-License-Identifier: Apache-2.0 */
#include "coreml/weight_file.h"

unsigned laya_unpack_bits(const unsigned char *packed, uint64_t at, unsigned bits)
{
    uint64_t first = at * bits;
    const unsigned char *byte = packed + first / 8;
    unsigned shift = (unsigned)(first % 8);
    unsigned value = (unsigned)byte[0] >> shift;
    if (shift + bits > 8) value |= (unsigned)byte[1] << (8 - shift);
    return value & ((1u << bits) - 1);
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
