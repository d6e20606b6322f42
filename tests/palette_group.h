/* SPDX-License-Identifier: Apache-2.0 */
/* A group of weights and its table, for the tests of groups and of whole weights. */
#ifndef LAYA_TEST_PALETTE_GROUP_H
#define LAYA_TEST_PALETTE_GROUP_H

#include "support.h"

#include "base/half.h"
#include "base/memory.h"
#include "palette/group.h"

#include <stdlib.h>
#include <string.h>

#define MOST 16384u /* elements of a group here */

typedef struct group {
    laya_grouper *grouper;
    unsigned char bytes[4 * MOST], lut[4 * LAYA_PALETTE_MAX_ENTRIES], indices[MOST];
    float energies[MOST];
    laya_group_source source;
    laya_palette_error errors;
    laya_error error;
} group;

static inline group *open_group(void)
{
    group *g = calloc(1, sizeof *g);
    laya_allocator allocator = laya_allocator_or_default(NULL);
    assert_non_null(g);
    assert_int_equal(laya_grouper_open(MOST, &allocator, &g->grouper, NULL), LAYA_OK);
    return g;
}

static inline void close_group(group *g)
{
    laya_grouper_close(g->grouper);
    free(g);
}

static inline unsigned width_of(laya_mil_dtype dtype)
{
    return dtype == LAYA_MIL_FP16 ? 2 : 4;
}

static inline void put_value(unsigned char *bytes, laya_mil_dtype dtype, size_t at, double value)
{
    uint32_t bits = dtype == LAYA_MIL_FP16 ? laya_double_to_half(value) : laya_bits_of_float((float)value);
    for (unsigned byte = 0; byte < width_of(dtype); byte++)
        bytes[width_of(dtype) * at + byte] = (unsigned char)(bits >> 8 * byte & 0xff);
}

static inline double value_at(const unsigned char *bytes, laya_mil_dtype dtype, size_t at)
{
    uint32_t bits = 0;
    for (unsigned byte = 0; byte < width_of(dtype); byte++)
        bits |= (uint32_t)bytes[width_of(dtype) * at + byte] << 8 * byte;
    return (double)(dtype == LAYA_MIL_FP16 ? laya_half_to_float((uint16_t)bits) : laya_float_of_bits(bits));
}

static inline laya_status make_group(group *g, laya_palette_mode mode, unsigned bits)
{
    memset(g->lut, 0xee, sizeof g->lut);
    memset(g->indices, 0xee, sizeof g->indices);
    return laya_group_make(g->grouper, &g->source, mode, bits, g->lut, g->indices, &g->errors, &g->error);
}

static inline void must_make(group *g, laya_palette_mode mode, unsigned bits)
{
    if (make_group(g, mode, bits) != LAYA_OK) fail_msg("%s", g->error.message);
}

static inline int random_below(int limit)
{
    static uint64_t seed = 5;
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((seed >> 33) % (uint64_t)limit);
}

#endif
