/* SPDX-License-Identifier: Apache-2.0 */
/* What an x86 processor and its operating system allow. */
#ifndef LAYA_KERNELS_X86_CPU_H
#define LAYA_KERNELS_X86_CPU_H

#include "kernels/kernels.h"

#include <cpuid.h>

static inline uint32_t laya_x86_features(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
    uint32_t features = 0;
    if (c & (1u << 12)) features |= LAYA_CPU_FMA;
    if (c & (1u << 29)) features |= LAYA_CPU_F16C;
    bool saves = (c & (1u << 27)) != 0 && (c & (1u << 28)) != 0; /* OSXSAVE, AVX */
    if (!saves) return 0;
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 6u) != 6u) return 0; /* the system keeps the xmm and ymm registers of a thread */
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & (1u << 5))) features |= LAYA_CPU_AVX2;
    return features;
}

#endif
