/* SPDX-License-Identifier: Apache-2.0 */
#include "base/dtype.h"

#include "base/half.h"

#include <string.h>

#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define FILE_ORDER_IS_NATIVE 0
#else
#define FILE_ORDER_IS_NATIVE 1
#endif

size_t laya_dtype_size(laya_dtype dtype)
{
    return dtype == LAYA_F32 ? 4 : 2;
}

const char *laya_dtype_name(laya_dtype dtype)
{
    switch (dtype) {
    case LAYA_F16: return "F16";
    case LAYA_BF16: return "BF16";
    case LAYA_F32: return "F32";
    }
    return "unknown";
}

static uint16_t read16(const unsigned char *bytes)
{
#if FILE_ORDER_IS_NATIVE
    uint16_t bits;
    memcpy(&bits, bytes, sizeof bits);
    return bits;
#else
    return (uint16_t)(bytes[0] | bytes[1] << 8);
#endif
}

void laya_widen(const unsigned char *in, laya_dtype dtype, size_t count, float *out)
{
    switch (dtype) {
    case LAYA_F16:
        for (size_t i = 0; i < count; i++) out[i] = laya_half_to_float(read16(in + 2 * i));
        break;
    case LAYA_BF16:
        for (size_t i = 0; i < count; i++) out[i] = laya_bfloat_to_float(read16(in + 2 * i));
        break;
    case LAYA_F32:
#if FILE_ORDER_IS_NATIVE
        if (count) memcpy(out, in, count * sizeof *out);
#else
        for (size_t i = 0; i < count; i++) {
            uint32_t low = read16(in + 4 * i), high = read16(in + 4 * i + 2);
            out[i] = laya_float_of_bits(low | high << 16);
        }
#endif
        break;
    }
}
