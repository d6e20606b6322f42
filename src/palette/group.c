/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of a group. All modes work on the distinct values and how often they occur; an element's index is looked
 * up by its value. fp16 values are counted in an array of all 65,536 of them, float32 values are sorted.
 */
#include "palette/group.h"

#include "base/error.h"
#include "base/half.h"
#include "palette/kmeans.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HALVES 65536u
#define LEAST_ENERGY 1e-6 /* of an element, as a part of the mean */

/*
 * Keys are the bits of a value, changed so that they ascend with it: the sign bit is inverted, and all others where
 * it was set.
 */
#define HALF_ZERO 0x8000u  /* +0; -0 is the key before */
#define HALF_FIRST 0x0400u /* finite values … */
#define HALF_LAST 0xfbffu

struct laya_grouper {
    laya_allocator allocator;
    uint64_t largest;
    /* by key, fp16 */
    uint32_t *counts;
    double *sums;
    unsigned char *entries; /* table entry of each value */
    /* by element, float32 */
    uint32_t *sorted;
    /* by distinct value, ascending; `capacity` of each */
    uint32_t capacity, distinct;
    uint32_t *keys;
    double *values, *occurs, *energies; /* energies: sums over the elements, where the source has energies */
    unsigned char *entry;
    laya_kmeans *solver;
};

void laya_palette_error_add(laya_palette_error *whole, const laya_palette_error *part)
{
    whole->sse += part->sse;
    whole->energy += part->energy;
    whole->weighted_sse += part->weighted_sse;
    whole->weighted_energy += part->weighted_energy;
    if (part->largest > whole->largest) whole->largest = part->largest;
}

/* ------------------------------------------------------------------ memory */

laya_status laya_grouper_open(uint64_t largest, const laya_allocator *allocator, laya_grouper **out,
                              laya_error *error)
{
    *out = NULL;
    if (largest >= UINT32_MAX) /* what a counter holds */
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "a group of %" PRIu64 " weights; expected fewer than %" PRIu32 ", use smaller groups",
                         largest, UINT32_MAX);
    *out = laya_alloc_zero(allocator, 1, sizeof **out);
    if (!*out) return laya_fail_memory(error, sizeof **out);
    (*out)->allocator = *allocator;
    (*out)->largest = largest;
    return LAYA_OK;
}

static void release(laya_grouper *grouper)
{
    void *const blocks[] = {grouper->counts, grouper->sums,   grouper->entries,  grouper->sorted, grouper->keys,
                            grouper->values, grouper->occurs, grouper->energies, grouper->entry};
    for (size_t at = 0; at < sizeof blocks / sizeof *blocks; at++) laya_release(&grouper->allocator, blocks[at]);
    laya_kmeans_close(grouper->solver);
    *grouper = (laya_grouper){.allocator = grouper->allocator, .largest = grouper->largest};
}

void laya_grouper_close(laya_grouper *grouper)
{
    if (!grouper) return;
    const laya_allocator allocator = grouper->allocator;
    release(grouper);
    laya_release(&allocator, grouper);
}

/* Arrays for so many distinct values. What was there is lost. */
static laya_status reserve(laya_grouper *grouper, uint32_t capacity, laya_error *error)
{
    const laya_allocator *allocator = &grouper->allocator;
    if (capacity <= grouper->capacity) return LAYA_OK;
    release(grouper);
    grouper->keys = laya_alloc(allocator, capacity, sizeof *grouper->keys);
    grouper->values = laya_alloc(allocator, capacity, sizeof *grouper->values);
    grouper->occurs = laya_alloc(allocator, capacity, sizeof *grouper->occurs);
    grouper->energies = laya_alloc(allocator, capacity, sizeof *grouper->energies);
    grouper->entry = laya_alloc(allocator, capacity, 1);
    if (!grouper->keys || !grouper->values || !grouper->occurs || !grouper->energies || !grouper->entry)
        return laya_fail_memory(error, (size_t)capacity * 29);
    LAYA_TRY(laya_kmeans_open(capacity, allocator, &grouper->solver, error));
    grouper->capacity = capacity;
    return LAYA_OK;
}

static laya_status reserve_halves(laya_grouper *grouper, laya_error *error)
{
    const laya_allocator *allocator = &grouper->allocator;
    LAYA_TRY(reserve(grouper, HALVES, error));
    if (!grouper->counts) grouper->counts = laya_alloc_zero(allocator, HALVES, sizeof *grouper->counts);
    if (!grouper->sums) grouper->sums = laya_alloc_zero(allocator, HALVES, sizeof *grouper->sums);
    if (!grouper->entries) grouper->entries = laya_alloc(allocator, HALVES, 1);
    if (grouper->counts && grouper->sums && grouper->entries) return LAYA_OK;
    return laya_fail_memory(error, HALVES * (sizeof *grouper->counts + sizeof *grouper->sums + 1));
}

/* ------------------------------------------------------------------ keys */

static inline uint32_t half_key(const unsigned char *bytes)
{
    uint32_t bits = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8;
    return bits ^ (0x8000u | (0x7fffu & (0u - (bits >> 15)))); /* no branch: signs are not to be predicted */
}

static inline double half_of_key(uint32_t key)
{
    return (double)laya_half_to_float((uint16_t)(key ^ (0x8000u | (0x7fffu & ((key >> 15) - 1)))));
}

static inline uint32_t float_bits(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static inline uint32_t float_key(const unsigned char *bytes)
{
    uint32_t bits = float_bits(bytes);
    if (bits == 0x80000000u) bits = 0; /* -0 */
    return bits & 0x80000000u ? ~bits : bits ^ 0x80000000u;
}

static inline double float_of_key(uint32_t key)
{
    return (double)laya_float_of_bits(key & 0x80000000u ? key ^ 0x80000000u : ~key);
}

static float element(const laya_group_source *source, uint64_t at)
{
    if (source->dtype != LAYA_MIL_FP16) return laya_float_of_bits(float_bits(source->bytes + 4 * at));
    return (float)half_of_key(half_key(source->bytes + 2 * at));
}

/* Names the first weight that is not finite; there is one. */
static laya_status fail_value(const laya_group_source *source, laya_error *error)
{
    uint64_t at = 0;
    while (isfinite(element(source, at))) at++;
    return laya_fail(error, LAYA_ERROR_FORMAT,
                     "row %" PRIu64 ", column %" PRIu64 " of the group: the weight is %g; expected finite weights, "
                     "export the checkpoint again or repair it",
                     at / source->row, at % source->row, (double)element(source, at));
}

/* ------------------------------------------------------------------ distinct values */

/* The least energy that an element counts with. */
static double least_energy(const laya_group_source *source)
{
    double sum = 0;
    for (uint64_t at = 0; at < source->row; at++) sum += (double)source->energy[at];
    return sum / (double)source->row * LEAST_ENERGY;
}

/* What an element of a column counts with; `least` is 0 where all energies are. */
static inline double column_energy(const laya_group_source *source, uint64_t column, double least)
{
    double energy = (double)source->energy[column];
    if (least == 0) return 1;
    return energy > least ? energy : least;
}

static void sum_half_energies(laya_grouper *grouper, const laya_group_source *source)
{
    double least = least_energy(source);
    for (uint64_t row = 0; row < source->rows; row++) {
        const unsigned char *bytes = source->bytes + 2 * row * source->row;
        for (uint64_t at = 0; at < source->row; at++)
            grouper->sums[half_key(bytes + 2 * at)] += column_energy(source, at, least);
    }
}

/* Collect what was counted, and clear the counters. */
static void collect_halves(laya_grouper *grouper, bool energies, uint32_t first, uint32_t last)
{
    uint32_t distinct = 0, *counts = grouper->counts;
    double *sums = grouper->sums;
    counts[HALF_ZERO] += counts[HALF_ZERO - 1];
    sums[HALF_ZERO] += sums[HALF_ZERO - 1];
    counts[HALF_ZERO - 1] = 0;
    sums[HALF_ZERO - 1] = 0;
    if (last == HALF_ZERO - 1) last = HALF_ZERO;
    for (uint32_t key = first; key <= last; key++) { /* without branches: each is as likely there as not */
        grouper->keys[distinct] = key;
        grouper->occurs[distinct] = counts[key];
        distinct += counts[key] != 0;
    }
    for (uint32_t at = 0; at < distinct; at++) {
        uint32_t key = grouper->keys[at];
        grouper->values[at] = half_of_key(key);
        grouper->energies[at] = energies ? sums[key] : grouper->occurs[at];
        sums[key] = 0;
    }
    memset(counts + first, 0, (last - first + 1) * sizeof *counts);
    grouper->distinct = distinct;
}

static laya_status count_halves(laya_grouper *grouper, const laya_group_source *source, laya_error *error)
{
    uint64_t elements = source->rows * source->row;
    uint32_t first = HALVES - 1, last = 0;
    LAYA_TRY(reserve_halves(grouper, error));
    for (uint64_t at = 0; at < elements; at++) {
        uint32_t key = half_key(source->bytes + 2 * at);
        first = key < first ? key : first;
        last = key > last ? key : last;
    }
    if (first < HALF_FIRST || last > HALF_LAST) return fail_value(source, error);
    for (uint64_t at = 0; at < elements; at++) grouper->counts[half_key(source->bytes + 2 * at)]++;
    if (source->energy) sum_half_energies(grouper, source);
    collect_halves(grouper, source->energy != NULL, first, last);
    return LAYA_OK;
}

static int by_key(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

/* Place of a float32 value among the distinct ones. */
static uint32_t find_key(const laya_grouper *grouper, uint32_t key)
{
    uint32_t low = 0, high = grouper->distinct;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (grouper->keys[middle] <= key)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void sum_float_energies(laya_grouper *grouper, const laya_group_source *source)
{
    double least = least_energy(source);
    memset(grouper->energies, 0, grouper->distinct * sizeof *grouper->energies);
    for (uint64_t row = 0; row < source->rows; row++) {
        const unsigned char *bytes = source->bytes + 4 * row * source->row;
        for (uint64_t at = 0; at < source->row; at++)
            grouper->energies[find_key(grouper, float_key(bytes + 4 * at))] += column_energy(source, at, least);
    }
}

static laya_status sort_floats(laya_grouper *grouper, const laya_group_source *source, laya_error *error)
{
    uint64_t elements = source->rows * source->row;
    uint32_t distinct = 0;
    LAYA_TRY(reserve(grouper, (uint32_t)grouper->largest, error));
    if (!grouper->sorted) grouper->sorted = laya_alloc(&grouper->allocator, grouper->capacity, sizeof(uint32_t));
    if (!grouper->sorted) return laya_fail_memory(error, grouper->capacity * sizeof(uint32_t));
    for (uint64_t at = 0; at < elements; at++) {
        if (!isfinite(element(source, at))) return fail_value(source, error);
        grouper->sorted[at] = float_key(source->bytes + 4 * at);
    }
    qsort(grouper->sorted, (size_t)elements, sizeof *grouper->sorted, by_key);
    for (uint64_t at = 0; at < elements; at++) {
        if (distinct == 0 || grouper->keys[distinct - 1] != grouper->sorted[at]) {
            grouper->keys[distinct] = grouper->sorted[at];
            grouper->values[distinct] = float_of_key(grouper->sorted[at]);
            grouper->occurs[distinct++] = 0;
        }
        grouper->occurs[distinct - 1]++;
    }
    grouper->distinct = distinct;
    if (source->energy)
        sum_float_energies(grouper, source);
    else
        memcpy(grouper->energies, grouper->occurs, distinct * sizeof *grouper->energies);
    return LAYA_OK;
}

static laya_status find_distinct(laya_grouper *grouper, const laya_group_source *source, laya_error *error)
{
    if (source->dtype == LAYA_MIL_FP16) return count_halves(grouper, source, error);
    return sort_floats(grouper, source, error);
}

laya_status laya_group_distinct(laya_grouper *grouper, const laya_group_source *source, uint32_t *distinct,
                                laya_error *error)
{
    LAYA_TRY(find_distinct(grouper, source, error));
    *distinct = grouper->distinct;
    return LAYA_OK;
}

/* ------------------------------------------------------------------ tables */

/* A number rounded to the weights' type. */
static double round_to(double value, laya_mil_dtype dtype)
{
    return dtype == LAYA_MIL_FP16 ? (double)laya_half_to_float(laya_double_to_half(value)) : (double)(float)value;
}

/* Equal steps (coreml.md, 5.1). Every result is rounded to the weights' type, the table's entries from float64. */
static laya_status make_uniform(laya_grouper *grouper, laya_mil_dtype dtype, uint32_t entries, double *table,
                                laya_error *error)
{
    double low = grouper->values[0], steps = entries - 1;
    double range = round_to(grouper->values[grouper->distinct - 1] - low, dtype);
    for (uint32_t at = 0; at < entries; at++) table[at] = round_to(at * (range / steps) + low, dtype);
    /* beyond the type, or rounded up so that it leads there */
    if (!isfinite(table[entries - 1]))
        return laya_fail(
            error, LAYA_ERROR_FORMAT,
            "weights from %g to %g: their range is beyond %s, so that uniform tables cannot be made; use "
            "--mode kmeans",
            low, grouper->values[grouper->distinct - 1], laya_mil_dtype_name(dtype));
    for (uint32_t at = 0; at < grouper->distinct; at++) {
        double place = range > 0 ? round_to(round_to(grouper->values[at] - low, dtype) / range, dtype) : 0;
        grouper->entry[at] = (unsigned char)rint(round_to(place * steps, dtype));
    }
    return LAYA_OK;
}

static laya_status make_kmeans(laya_grouper *grouper, laya_mil_dtype dtype, const double *weights, uint32_t entries,
                               double *table, laya_error *error)
{
    uint32_t starts[LAYA_PALETTE_MAX_ENTRIES + 1], distinct = grouper->distinct;
    uint32_t clusters = distinct < entries ? distinct : entries;
    LAYA_TRY(laya_kmeans_solve(grouper->solver, grouper->values, weights, distinct, clusters, starts, error));
    starts[clusters] = distinct;
    for (uint32_t c = 0; c < clusters; c++) {
        uint32_t count = starts[c + 1] - starts[c];
        table[c] = round_to(laya_kmeans_mean(grouper->values + starts[c], weights + starts[c], count), dtype);
        memset(grouper->entry + starts[c], (int)c, count);
    }
    return LAYA_OK;
}

static laya_status make_unique(laya_grouper *grouper, uint32_t entries, double *table, laya_error *error)
{
    if (grouper->distinct > entries)
        return laya_fail(error, LAYA_ERROR_FORMAT, "%" PRIu32 " distinct values do not fit a table of %" PRIu32,
                         grouper->distinct, entries);
    for (uint32_t at = 0; at < grouper->distinct; at++) {
        table[at] = grouper->values[at];
        grouper->entry[at] = (unsigned char)at;
    }
    return LAYA_OK;
}

/* ------------------------------------------------------------------ results */

static void measure(const laya_grouper *grouper, const double *table, laya_palette_error *errors)
{
    *errors = (laya_palette_error){0};
    for (uint32_t at = 0; at < grouper->distinct; at++) {
        double value = grouper->values[at], error = fabs(value - table[grouper->entry[at]]);
        errors->sse += grouper->occurs[at] * error * error;
        errors->energy += grouper->occurs[at] * value * value;
        errors->weighted_sse += grouper->energies[at] * error * error;
        errors->weighted_energy += grouper->energies[at] * value * value;
        if (error > errors->largest) errors->largest = error;
    }
}

static void store_table(const double *table, uint32_t entries, laya_mil_dtype dtype, unsigned char *lut)
{
    unsigned width = dtype == LAYA_MIL_FP16 ? 2 : 4;
    for (uint32_t at = 0; at < entries; at++) {
        uint32_t bits = width == 2 ? laya_double_to_half(table[at]) : laya_bits_of_float((float)table[at]);
        for (unsigned byte = 0; byte < width; byte++) *lut++ = (unsigned char)(bits >> (8 * byte) & 0xff);
    }
}

static void store_indices(const laya_grouper *grouper, const laya_group_source *source, unsigned char *indices)
{
    uint64_t elements = source->rows * source->row;
    if (source->dtype != LAYA_MIL_FP16) {
        for (uint64_t at = 0; at < elements; at++)
            indices[at] = grouper->entry[find_key(grouper, float_key(source->bytes + 4 * at))];
        return;
    }
    for (uint32_t at = 0; at < grouper->distinct; at++) grouper->entries[grouper->keys[at]] = grouper->entry[at];
    grouper->entries[HALF_ZERO - 1] = grouper->entries[HALF_ZERO];
    for (uint64_t at = 0; at < elements; at++) indices[at] = grouper->entries[half_key(source->bytes + 2 * at)];
}

laya_status laya_group_make(laya_grouper *grouper, const laya_group_source *source, laya_palette_mode mode,
                            unsigned bits, unsigned char *lut, unsigned char *indices, laya_palette_error *errors,
                            laya_error *error)
{
    double table[LAYA_PALETTE_MAX_ENTRIES] = {0};
    uint32_t entries = 1u << bits;
    laya_status status = LAYA_OK;
    LAYA_TRY(find_distinct(grouper, source, error));
    const double *weights = mode == LAYA_PALETTE_WEIGHTED ? grouper->energies : grouper->occurs;
    switch (mode) {
    case LAYA_PALETTE_UNIFORM: status = make_uniform(grouper, source->dtype, entries, table, error); break;
    case LAYA_PALETTE_UNIQUE: status = make_unique(grouper, entries, table, error); break;
    case LAYA_PALETTE_KMEANS:
    case LAYA_PALETTE_WEIGHTED: status = make_kmeans(grouper, source->dtype, weights, entries, table, error); break;
    }
    if (status != LAYA_OK) return status;
    measure(grouper, table, errors);
    store_table(table, entries, source->dtype, lut);
    store_indices(grouper, source, indices);
    return LAYA_OK;
}
