/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#if defined(LAYA_HAVE_X86)
#include "kernels/x86/cpu.h"
#endif

/* Best first. */
static const laya_kernels *const tables[] = {
#if defined(LAYA_HAVE_X86)
    &laya_kernels_avx2,
#endif
    &laya_kernels_portable,
};

uint32_t laya_cpu_features(uint32_t mask)
{
#if defined(LAYA_HAVE_X86)
    return laya_x86_features() & mask;
#else
    (void)mask;
    return 0;
#endif
}

const laya_kernels *laya_kernels_select(uint32_t mask)
{
    uint32_t features = laya_cpu_features(mask);
    size_t i = 0;
    while ((tables[i]->cpu & features) != tables[i]->cpu) i++; /* the portable table needs nothing */
    return tables[i];
}

const laya_kernels *laya_kernels_at(size_t index)
{
    return index < sizeof tables / sizeof *tables ? tables[index] : NULL;
}
