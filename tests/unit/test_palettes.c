/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of small groups by hand arithmetic and by trying all divisions; the tables of many weights at once against
 * those of their groups one by one, whatever the number of threads; rounding from float64 to half.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#define _DARWIN_C_SOURCE

#include "support.h"

#include "base/half.h"
#include "base/memory.h"
#include "palette/palettes.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LIST(...) ((const double[]){__VA_ARGS__}), sizeof((const double[]){__VA_ARGS__}) / sizeof(double)
#define INDICES(...) ((const unsigned char[]){__VA_ARGS__}), sizeof((const unsigned char[]){__VA_ARGS__})
#define MOST 16384u /* elements of a group here */

static const unsigned widths[] = {1, 2, 3, 4, 6, 8};
#define WIDTHS (sizeof widths / sizeof *widths)

/* ------------------------------------------------------------------ float64 to half */

static void expect_half(double value, uint16_t expected)
{
    uint16_t found = laya_double_to_half(value), below = laya_double_to_half(-value);
    if (found != expected || below != (expected ^ 0x8000u))
        fail_msg("%a: %04x and %04x, expected %04x", value, found, below, expected);
}

/* Every half, the middle between it and the next one, and the nearest float64 on both sides of that. */
static void test_halves_from_doubles(void **state)
{
    (void)state;
    for (uint16_t half = 0; half < 0x7c00; half++) {
        double value = (double)laya_half_to_float(half);
        double next = half == 0x7bff ? 65536 : (double)laya_half_to_float((uint16_t)(half + 1));
        double middle = (value + next) / 2;
        uint16_t even = (uint16_t)(half + (half & 1));
        expect_half(value, half);
        expect_half(nextafter(middle, 0), half);
        expect_half(middle, even);
        expect_half(nextafter(middle, INFINITY), (uint16_t)(half + 1));
    }
    expect_half(0x1p-25, 0);
    expect_half(1e-300, 0);
    expect_half(DBL_TRUE_MIN, 0);
    expect_half(65536, 0x7c00);
    expect_half(FLT_MAX, 0x7c00);
    expect_half(1e300, 0x7c00);
    expect_half(INFINITY, 0x7c00);
    assert_int_equal(laya_double_to_half(NAN) & 0x7e00, 0x7e00);
    /* by way of float32 this one would be a tie, which goes to 1 */
    expect_half(1 + 0x1p-11 + 0x1p-40, 0x3c01);
}

/* ------------------------------------------------------------------ groups */

typedef struct group {
    laya_grouper *grouper;
    unsigned char bytes[4 * MOST], lut[4 * LAYA_PALETTE_MAX_ENTRIES], indices[MOST];
    float energies[MOST];
    laya_group_source source;
    laya_palette_error errors;
    laya_error error;
} group;

static group *open_group(void)
{
    group *g = calloc(1, sizeof *g);
    laya_allocator allocator = laya_allocator_or_default(NULL);
    assert_non_null(g);
    assert_int_equal(laya_grouper_open(MOST, &allocator, &g->grouper, NULL), LAYA_OK);
    return g;
}

static void close_group(group *g)
{
    laya_grouper_close(g->grouper);
    free(g);
}

static unsigned width_of(laya_mil_dtype dtype)
{
    return dtype == LAYA_MIL_FP16 ? 2 : 4;
}

static void put_value(unsigned char *bytes, laya_mil_dtype dtype, size_t at, double value)
{
    uint32_t bits = dtype == LAYA_MIL_FP16 ? laya_double_to_half(value) : laya_bits_of_float((float)value);
    for (unsigned byte = 0; byte < width_of(dtype); byte++)
        bytes[width_of(dtype) * at + byte] = (unsigned char)(bits >> 8 * byte & 0xff);
}

static double value_at(const unsigned char *bytes, laya_mil_dtype dtype, size_t at)
{
    uint32_t bits = 0;
    for (unsigned byte = 0; byte < width_of(dtype); byte++)
        bits |= (uint32_t)bytes[width_of(dtype) * at + byte] << 8 * byte;
    return (double)(dtype == LAYA_MIL_FP16 ? laya_half_to_float((uint16_t)bits) : laya_float_of_bits(bits));
}

/* Weights of `rows` output channels. The last byte of the block is the last one of the weights. */
static void set_group(group *g, laya_mil_dtype dtype, uint64_t rows, const double *values, size_t count)
{
    unsigned char *bytes = g->bytes + sizeof g->bytes - count * width_of(dtype);
    for (size_t at = 0; at < count; at++) {
        put_value(bytes, dtype, at, values[at]);
        if (isfinite(values[at])) assert_true(value_at(bytes, dtype, at) == values[at]); /* the type can hold it */
    }
    g->source = (laya_group_source){.bytes = bytes, .dtype = dtype, .rows = rows, .row = count / rows};
}

static void set_energies(group *g, const double *energies, size_t count)
{
    assert_int_equal(count, g->source.row);
    for (size_t at = 0; at < count; at++) g->energies[at] = (float)energies[at];
    g->source.energy = g->energies;
}

static laya_status make_group(group *g, laya_palette_mode mode, unsigned bits)
{
    memset(g->lut, 0xee, sizeof g->lut);
    memset(g->indices, 0xee, sizeof g->indices);
    return laya_group_make(g->grouper, &g->source, mode, bits, g->lut, g->indices, &g->errors, &g->error);
}

static void must_make(group *g, laya_palette_mode mode, unsigned bits)
{
    if (make_group(g, mode, bits) != LAYA_OK) fail_msg("%s", g->error.message);
}

/* All 2^bits entries, bit by bit: a zero is +0; nothing behind them was written. */
static void expect_table(const group *g, unsigned bits, const double *entries, size_t count)
{
    unsigned char expected[4 * LAYA_PALETTE_MAX_ENTRIES];
    size_t size = width_of(g->source.dtype) * count;
    assert_int_equal(count, 1u << bits);
    for (size_t at = 0; at < count; at++) {
        put_value(expected, g->source.dtype, at, entries[at]);
        if (value_at(g->lut, g->source.dtype, at) != entries[at])
            fail_msg("entry %zu: %a, expected %a", at, value_at(g->lut, g->source.dtype, at), entries[at]);
    }
    assert_memory_equal(g->lut, expected, size);
    for (size_t at = size; at < sizeof g->lut; at++) assert_int_equal(g->lut[at], 0xee);
}

static void expect_indices(const group *g, const unsigned char *indices, size_t count)
{
    assert_int_equal(count, g->source.rows * g->source.row);
    assert_memory_equal(g->indices, indices, count);
    assert_int_equal(g->indices[count], 0xee);
}

/* Figures that float64 holds. */
static void expect_errors(const group *g, double sse, double energy, double largest)
{
    if (g->errors.sse != sse || g->errors.energy != energy || g->errors.largest != largest)
        fail_msg("errors %a, %a, %a, expected %a, %a, %a", g->errors.sse, g->errors.energy, g->errors.largest, sse,
                 energy, largest);
}

static void expect_weighted_errors(const group *g, double sse, double energy)
{
    if (g->errors.weighted_sse != sse || g->errors.weighted_energy != energy)
        fail_msg("weighted errors %a, %a, expected %a, %a", g->errors.weighted_sse, g->errors.weighted_energy, sse,
                 energy);
}

static const laya_mil_dtype floats[] = {LAYA_MIL_FP16, LAYA_MIL_FP32};

static void test_kmeans_by_hand(void **state)
{
    (void)state;
    group *g = open_group();
    for (size_t type = 0; type < 2; type++) {
        set_group(g, floats[type], 2, LIST(11, 0, 1, 10));
        must_make(g, LAYA_PALETTE_KMEANS, 1);
        expect_table(g, 1, LIST(0.5, 10.5));
        expect_indices(g, INDICES(1, 0, 0, 1));
        expect_errors(g, 1, 222, 0.5);
        expect_weighted_errors(g, 1, 222);
        /* values count as often as they occur: the mean of 0, 0, 0 and 4 is 1 */
        set_group(g, floats[type], 1, LIST(0, 4, 0, 100, 0));
        must_make(g, LAYA_PALETTE_KMEANS, 1);
        expect_table(g, 1, LIST(1, 100));
        expect_indices(g, INDICES(0, 0, 0, 1, 0));
        expect_errors(g, 3 + 9, 16 + 10000, 3);
        /* negative ones are in order, too */
        set_group(g, floats[type], 3, LIST(-7, 3, -5, 9, -9, 3));
        must_make(g, LAYA_PALETTE_KMEANS, 2);
        expect_table(g, 2, LIST(-9, -6, 3, 9));
        expect_indices(g, INDICES(1, 2, 1, 3, 0, 2));
        expect_errors(g, 2, 49 + 9 + 25 + 81 + 81 + 9, 1);
    }
    close_group(g);
}

/* Entries are means, rounded once, ties to even. */
static void test_rounded_entries(void **state)
{
    (void)state;
    group *g = open_group();
    const double unit = 0x1p-10;
    set_group(g, LAYA_MIL_FP16, 1, LIST(1, 1, 1 + unit, 100));
    must_make(g, LAYA_PALETTE_KMEANS, 1);
    expect_table(g, 1, LIST(1, 100));
    expect_errors(g, unit * unit, 2 + (1 + unit) * (1 + unit) + 10000, unit);
    set_group(g, LAYA_MIL_FP16, 1, LIST(1, 1 + unit, 1 + unit, 100));
    must_make(g, LAYA_PALETTE_KMEANS, 1);
    expect_table(g, 1, LIST(1 + unit, 100));
    set_group(g, LAYA_MIL_FP16, 1, LIST(1, 1 + unit, 100));
    must_make(g, LAYA_PALETTE_KMEANS, 1);
    expect_table(g, 1, LIST(1, 100));
    set_group(g, LAYA_MIL_FP16, 1, LIST(1 + unit, 1 + 2 * unit, 100));
    must_make(g, LAYA_PALETTE_KMEANS, 1);
    expect_table(g, 1, LIST(1 + 2 * unit, 100));
    set_group(g, LAYA_MIL_FP32, 1, LIST(1 + 0x1p-23, 1 + 0x1p-22, 100));
    must_make(g, LAYA_PALETTE_KMEANS, 1);
    expect_table(g, 1, LIST(1 + 0x1p-22, 100));
    /* 4,999 times 1 and 5,000 times the next half: a little more than their middle, which float32 cannot tell */
    static double values[10000];
    for (size_t at = 0; at < 10000; at++) values[at] = at % 2 ? 1 + unit : 1;
    values[0] = 100;
    set_group(g, LAYA_MIL_FP16, 10, values, 10000);
    must_make(g, LAYA_PALETTE_KMEANS, 1);
    expect_table(g, 1, LIST(1 + unit, 100));
    close_group(g);
}

static void test_fewer_values(void **state)
{
    (void)state;
    static const laya_palette_mode modes[] = {LAYA_PALETTE_KMEANS, LAYA_PALETTE_WEIGHTED, LAYA_PALETTE_UNIQUE};
    group *g = open_group();
    for (size_t run = 0; run < 6; run++) {
        laya_mil_dtype dtype = floats[run % 2];
        laya_palette_mode mode = modes[run / 2];
        set_group(g, dtype, 1, LIST(2, 1, 2, -3));
        must_make(g, mode, 3);
        expect_table(g, 3, LIST(-3, 1, 2, 0, 0, 0, 0, 0));
        expect_indices(g, INDICES(2, 1, 2, 0));
        expect_errors(g, 0, 18, 0);
        expect_weighted_errors(g, 0, 18);
        set_group(g, dtype, 2, LIST(-2, -2)); /* a constant */
        must_make(g, mode, 2);
        expect_table(g, 2, LIST(-2, 0, 0, 0));
        expect_indices(g, INDICES(0, 0));
    }
    close_group(g);
}

static void test_negative_zero(void **state)
{
    (void)state;
    group *g = open_group();
    for (size_t type = 0; type < 2; type++) {
        uint32_t distinct = 0;
        set_group(g, floats[type], 1, LIST(-0.0, 0, 1, -0.0, -1));
        assert_int_equal(laya_group_distinct(g->grouper, &g->source, &distinct, &g->error), LAYA_OK);
        assert_int_equal(distinct, 3);
        must_make(g, LAYA_PALETTE_UNIQUE, 2);
        expect_table(g, 2, LIST(-1, 0, 1, 0));
        expect_indices(g, INDICES(1, 1, 2, 1, 0));
        must_make(g, LAYA_PALETTE_KMEANS, 2);
        expect_table(g, 2, LIST(-1, 0, 1, 0));
        expect_indices(g, INDICES(1, 1, 2, 1, 0));
        set_energies(g, LIST(1, 2, 4, 8, 16)); /* those of both zeros count: 11 * 0 and 4 * 1, mean 4 / 15 */
        must_make(g, LAYA_PALETTE_WEIGHTED, 1);
        expect_table(g, 1, LIST(-1, type ? (double)(float)(4 / 15.) : 0x1.11p-2));
        set_group(g, floats[type], 1, LIST(-0.0, -0.0));
        for (int mode = LAYA_PALETTE_UNIFORM; mode <= (int)LAYA_PALETTE_WEIGHTED; mode++) {
            must_make(g, (laya_palette_mode)mode, 1);
            expect_table(g, 1, LIST(0, 0));
            expect_indices(g, INDICES(0, 0));
        }
        set_group(g, floats[type], 1, LIST(-0.0, -2));
        must_make(g, LAYA_PALETTE_UNIQUE, 1);
        expect_table(g, 1, LIST(-2, 0));
        expect_indices(g, INDICES(1, 0));
    }
    close_group(g);
}

static void test_uniform_by_hand(void **state)
{
    (void)state;
    group *g = open_group();
    for (size_t type = 0; type < 2; type++) {
        set_group(g, floats[type], 2, LIST(0, 0.25, 0.5, 1));
        must_make(g, LAYA_PALETTE_UNIFORM, 1);
        expect_table(g, 1, LIST(0, 1));
        expect_indices(g, INDICES(0, 0, 0, 1)); /* 0.5 goes to the even one */
        expect_errors(g, 0.0625 + 0.25, 0.0625 + 0.25 + 1, 0.5);
        set_group(g, floats[type], 2, LIST(3, -2, 5, 1, 6, -1)); /* steps of 8 / 3 */
        must_make(g, LAYA_PALETTE_UNIFORM, 2);
        if (floats[type] == LAYA_MIL_FP16)
            expect_table(g, 2, LIST(-2, 0x1.554p-1, 0x1.aacp+1, 6)); /* 2/3 = 0x1.5555…p-1, 10/3 = 0x1.aaaa…p+1 */
        else
            expect_table(g, 2, LIST(-2, 0x1.555556p-1, 0x1.aaaaaap+1, 6));
        expect_indices(g, INDICES(2, 0, 3, 1, 3, 0));
        set_group(g, floats[type], 1, LIST(-3, -3, -3)); /* a constant */
        must_make(g, LAYA_PALETTE_UNIFORM, 2);
        expect_table(g, 2, LIST(-3, -3, -3, -3));
        expect_indices(g, INDICES(0, 0, 0));
        expect_errors(g, 0, 27, 0);
    }
    /* every step is rounded: the float32 above 1/6, times 3, is 0.5 and a little; float32 makes 0.5 of it, even is 0 */
    set_group(g, LAYA_MIL_FP32, 1, LIST(0, 0x1.555556p-3, 1));
    must_make(g, LAYA_PALETTE_UNIFORM, 2);
    expect_indices(g, INDICES(0, 0, 3));
    /* the same for halves: 0x1.558p-3 * 3 = 0x1.002p-1 is a tie between 0.5 and 0x1.004p-1 */
    set_group(g, LAYA_MIL_FP16, 1, LIST(0, 0x1.558p-3, 1));
    must_make(g, LAYA_PALETTE_UNIFORM, 2);
    expect_indices(g, INDICES(0, 0, 3));
    set_group(g, LAYA_MIL_FP16, 1, LIST(0, 0x1.55cp-3, 1));
    must_make(g, LAYA_PALETTE_UNIFORM, 2);
    expect_indices(g, INDICES(0, 1, 3));
    close_group(g);
}

/* Tables of equal steps that would hold infinity. */
static void test_uniform_range(void **state)
{
    (void)state;
    group *g = open_group();
    set_group(g, LAYA_MIL_FP16, 1, LIST(-65504, 0, 65504));
    assert_int_equal(make_group(g, LAYA_PALETTE_UNIFORM, 4), LAYA_ERROR_FORMAT);
    assert_contains(g->error.message, "from -65504 to 65504: their range is beyond fp16");
    assert_contains(g->error.message, "use --mode kmeans");
    must_make(g, LAYA_PALETTE_KMEANS, 2);
    expect_table(g, 2, LIST(-65504, 0, 65504, 0));
    /* 65504 - 48 is a tie that goes up to 65472, and 65472 + 48 one that goes to infinity */
    set_group(g, LAYA_MIL_FP16, 1, LIST(48, 65504));
    assert_int_equal(make_group(g, LAYA_PALETTE_UNIFORM, 1), LAYA_ERROR_FORMAT);
    assert_contains(g->error.message, "from 48 to 65504");
    set_group(g, LAYA_MIL_FP32, 1, LIST(-FLT_MAX, FLT_MAX));
    assert_int_equal(make_group(g, LAYA_PALETTE_UNIFORM, 1), LAYA_ERROR_FORMAT);
    assert_contains(g->error.message, "beyond fp32");
    close_group(g);
}

static void test_subnormal_weights(void **state)
{
    (void)state;
    group *g = open_group();
    const double unit = 0x1p-24;
    set_group(g, LAYA_MIL_FP16, 1,
              LIST(unit, 2 * unit, 1024 * unit, -3 * unit)); /* 1024 units: the first normal one */
    must_make(g, LAYA_PALETTE_UNIQUE, 2);
    expect_table(g, 2, LIST(-3 * unit, unit, 2 * unit, 1024 * unit));
    expect_indices(g, INDICES(1, 2, 3, 0));
    set_group(g, LAYA_MIL_FP16, 1, LIST(unit, 2 * unit, 1000 * unit));
    must_make(g, LAYA_PALETTE_KMEANS, 1); /* 1.5 units: the even one is 2 */
    expect_table(g, 1, LIST(2 * unit, 1000 * unit));
    expect_errors(g, unit * unit, (1 + 4 + 1e6) * unit * unit, unit);
    set_group(g, LAYA_MIL_FP16, 1, LIST(unit, 3 * unit, 4 * unit));
    must_make(g, LAYA_PALETTE_UNIFORM, 1); /* 2/3 of the range */
    expect_table(g, 1, LIST(unit, 4 * unit));
    expect_indices(g, INDICES(0, 1, 1));
    set_group(g, LAYA_MIL_FP32, 1, LIST(0x1p-149, 0x1p-148, 1));
    must_make(g, LAYA_PALETTE_KMEANS, 2);
    expect_table(g, 2, LIST(0x1p-149, 0x1p-148, 1, 0));
    close_group(g);
}

static void test_not_finite(void **state)
{
    (void)state;
    static const double values[] = {NAN, INFINITY, -INFINITY};
    static const char *const names[] = {"the weight is nan", "the weight is inf", "the weight is -inf"};
    group *g = open_group();
    for (size_t run = 0; run < 6; run++) {
        laya_mil_dtype dtype = floats[run % 2];
        uint32_t distinct = 77;
        set_group(g, dtype, 2, (const double[]){1, 2, 3, 4, 5, values[run / 2], values[run / 2], 8}, 8);
        g->source.energy = run % 2 ? g->energies : NULL;
        for (int mode = LAYA_PALETTE_UNIFORM; mode <= (int)LAYA_PALETTE_WEIGHTED; mode++) {
            assert_int_equal(make_group(g, (laya_palette_mode)mode, 8), LAYA_ERROR_FORMAT);
            assert_contains(g->error.message, "row 1, column 1 of the group: ");
            assert_contains(g->error.message, names[run / 2]);
        }
        assert_int_equal(laya_group_distinct(g->grouper, &g->source, &distinct, &g->error), LAYA_ERROR_FORMAT);
        assert_contains(g->error.message, names[run / 2]);
        set_group(g, dtype, 1, LIST(5, 6)); /* nothing is left behind */
        must_make(g, LAYA_PALETTE_UNIQUE, 1);
        expect_table(g, 1, LIST(5, 6));
        expect_errors(g, 0, 61, 0);
    }
    close_group(g);
}

static void test_too_many_values(void **state)
{
    (void)state;
    group *g = open_group();
    set_group(g, LAYA_MIL_FP16, 1, LIST(1, 2, 3, 4, 5));
    assert_int_equal(make_group(g, LAYA_PALETTE_UNIQUE, 2), LAYA_ERROR_FORMAT);
    assert_contains(g->error.message, "5 distinct values do not fit a table of 4");
    close_group(g);
    laya_grouper *grouper;
    laya_error error;
    laya_allocator allocator = laya_allocator_or_default(NULL);
    assert_int_equal(laya_grouper_open(UINT32_MAX, &allocator, &grouper, &error), LAYA_ERROR_FORMAT);
    assert_contains(error.message, "a group of 4294967295 weights");
    assert_null(grouper);
    laya_grouper_close(NULL);
}

static void test_sums_of_parts(void **state)
{
    (void)state;
    laya_palette_error whole = {1, 2, 4, 8, 16};
    laya_palette_error_add(&whole, &(laya_palette_error){32, 64, 128, 256, 9});
    assert_true(whole.sse == 33 && whole.energy == 66 && whole.weighted_sse == 132 && whole.weighted_energy == 264);
    assert_true(whole.largest == 16);
    laya_palette_error_add(&whole, &(laya_palette_error){.largest = 17});
    assert_true(whole.largest == 17);
}

/* ------------------------------------------------------------------ energies */

static void test_weighted_by_hand(void **state)
{
    (void)state;
    group *g = open_group();
    for (size_t type = 0; type < 2; type++) {
        /* 0 with energy 3, 4 with energy 1: mean 1. By rows 0, 100 and 4, 100 */
        set_group(g, floats[type], 1, LIST(0, 4, 100, 100));
        set_energies(g, LIST(3, 1, 2, 0.5));
        must_make(g, LAYA_PALETTE_WEIGHTED, 1);
        expect_table(g, 1, LIST(1, 100));
        expect_indices(g, INDICES(0, 0, 1, 1));
        expect_errors(g, 1 + 9, 16 + 20000, 3);
        expect_weighted_errors(g, 3 * 1 + 1 * 9, 16 + 2.5 * 10000);
        /* the plain table of the same weights, with the same factors in its errors */
        must_make(g, LAYA_PALETTE_KMEANS, 1);
        expect_table(g, 1, LIST(2, 100));
        expect_errors(g, 8, 20016, 2);
        expect_weighted_errors(g, 4 * 4, 16 + 25000);
        /* energies go by columns: the same value in two of them has the sum. 8 once with 1 and 4, 0 with 5 */
        set_group(g, floats[type], 2, LIST(8, 0, 0, 8));
        set_energies(g, LIST(1, 4));
        must_make(g, LAYA_PALETTE_WEIGHTED, 1);
        expect_weighted_errors(g, 0, 64 * 5);
        /* two neighbours that cost little are joined, whatever the distance */
        set_group(g, floats[type], 1, LIST(0, 10, 11));
        set_energies(g, LIST(0.0078125, 1, 100));
        must_make(g, LAYA_PALETTE_WEIGHTED, 1); /* {0, 10}: 100 / 129; {10, 11}: 100 / 101 */
        expect_indices(g, INDICES(0, 0, 1));
        must_make(g, LAYA_PALETTE_KMEANS, 1);
        expect_indices(g, INDICES(0, 1, 1));
    }
    close_group(g);
}

/* No weight counts nothing: a millionth of the mean at least; 1 where all energies are 0. */
static void test_least_energy(void **state)
{
    (void)state;
    group *g = open_group();
    for (size_t type = 0; type < 2; type++) {
        set_group(g, floats[type], 1, LIST(1000, 1, 2, 3));
        set_energies(g, LIST(0, 1, 2, 1));
        must_make(g, LAYA_PALETTE_WEIGHTED, 2);
        expect_table(g, 2, LIST(1, 2, 3, 1000));
        double energy = g->errors.weighted_energy, expected = 1e-6 * 1e6 + 1 + 8 + 9; /* the mean is 1 */
        assert_true(fabs(energy - expected) < 1e-12);
        set_energies(g, LIST(1e-7, 1, 2, 1)); /* below it, too */
        must_make(g, LAYA_PALETTE_WEIGHTED, 2);
        assert_true(fabs(g->errors.weighted_energy - expected) < 1e-6);
        set_group(g, floats[type], 1, LIST(0, 4, 8, 100));
        set_energies(g, LIST(0, 0, 0, 0));
        must_make(g, LAYA_PALETTE_WEIGHTED, 1);
        expect_table(g, 1, LIST(4, 100));
        expect_weighted_errors(g, 32, 16 + 64 + 10000);
    }
    close_group(g);
}

/* Whole numbers, so that sums are exact. */
typedef struct element {
    int value, energy;
} element;

static int by_value(const void *left, const void *right)
{
    return ((const element *)left)->value - ((const element *)right)->value;
}

/* Weighted squared error of some elements about their mean. */
static double spread(const element *elements, size_t count)
{
    double weight = 0, sum = 0, squares = 0;
    for (size_t at = 0; at < count; at++) {
        weight += elements[at].energy;
        sum += (double)elements[at].energy * elements[at].value;
        squares += (double)elements[at].energy * elements[at].value * elements[at].value;
    }
    return count ? squares - sum * sum / weight : 0;
}

/* The least error of a division of sorted elements into four parts, or two, some of which may be empty. */
static double least_error(const element *sorted, size_t count, unsigned bits)
{
    double least = INFINITY;
    for (size_t a = 0; a <= count; a++)
        for (size_t b = a; b <= count; b++)
            for (size_t c = b; c <= count; c++) {
                if (bits == 1 && (a > 0 || c < count)) continue;
                double error = spread(sorted, a) + spread(sorted + a, b - a) + spread(sorted + b, c - b) +
                               spread(sorted + c, count - c);
                if (error < least) least = error;
            }
    return least;
}

/* The error of the division that indices make, about exact means; entries are those, rounded. */
static double error_of_indices(const group *g, const element *elements, size_t count, unsigned bits)
{
    double error = 0;
    for (unsigned entry = 0; entry < 1u << bits; entry++) {
        element part[12];
        size_t size = 0;
        double weight = 0, sum = 0;
        for (size_t at = 0; at < count; at++) {
            if (g->indices[at] != entry) continue;
            part[size++] = elements[at];
            weight += elements[at].energy;
            sum += (double)elements[at].energy * elements[at].value;
        }
        double expected = size ? (double)laya_half_to_float(laya_double_to_half(sum / weight)) : 0;
        if (fabs(value_at(g->lut, LAYA_MIL_FP16, entry) - expected) > 0x1p-10 * fabs(expected))
            fail_msg("entry %u: %g, expected %g", entry, value_at(g->lut, LAYA_MIL_FP16, entry), expected);
        error += spread(part, size);
    }
    return error;
}

static int random_below(int limit)
{
    static uint64_t seed = 5;
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((seed >> 33) % (uint64_t)limit);
}

/* What errors say, element by element. */
static void expect_sums(const group *g, const element *elements, size_t count)
{
    laya_palette_error sums = {0};
    for (size_t at = 0; at < count; at++) {
        double value = elements[at].value, away = fabs(value - value_at(g->lut, LAYA_MIL_FP16, g->indices[at]));
        sums.sse += away * away;
        sums.energy += value * value;
        sums.weighted_sse += elements[at].energy * away * away;
        sums.weighted_energy += elements[at].energy * value * value;
        if (away > sums.largest) sums.largest = away;
    }
    assert_true(fabs(g->errors.sse - sums.sse) <= 1e-12 * sums.sse);
    assert_true(fabs(g->errors.weighted_sse - sums.weighted_sse) <= 1e-12 * sums.weighted_sse);
    assert_true(g->errors.energy == sums.energy);
    assert_true(g->errors.weighted_energy == sums.weighted_energy);
    assert_true(g->errors.largest == sums.largest);
}

/* 12 weights in three rows; energies by column. */
static void test_weighted_is_the_optimum(void **state)
{
    (void)state;
    group *g = open_group();
    unsigned others = 0;
    for (unsigned run = 0; run < 400; run++) {
        element elements[12], sorted[12];
        double values[12], energies[4];
        unsigned bits = 1 + run % 2;
        for (size_t at = 0; at < 4; at++) energies[at] = 1 + random_below(run % 3 ? 9 : 200);
        for (size_t at = 0; at < 12; at++) {
            values[at] = random_below(41) - 20;
            elements[at] = (element){(int)values[at], (int)energies[at % 4]};
        }
        memcpy(sorted, elements, sizeof sorted);
        qsort(sorted, 12, sizeof *sorted, by_value);
        double least = least_error(sorted, 12, bits);
        set_group(g, LAYA_MIL_FP16, 3, values, 12);
        set_energies(g, energies, 4);
        must_make(g, LAYA_PALETTE_KMEANS, bits);
        others += g->errors.weighted_sse > least * 1.01;
        must_make(g, LAYA_PALETTE_WEIGHTED, bits);
        double error = error_of_indices(g, elements, 12, bits);
        if (fabs(error - least) > 1e-9) fail_msg("run %u: error %.12g, the least is %.12g", run, error, least);
        expect_sums(g, elements, 12);
    }
    assert_true(others > 100); /* plain tables are other ones: the energies matter */
    close_group(g);
}

/* A grouper remembers nothing of the group before. */
static void test_groups_in_a_row(void **state)
{
    (void)state;
    group *g = open_group();
    set_group(g, LAYA_MIL_FP16, 1, LIST(1, 2, 3, 4));
    set_energies(g, LIST(9, 9, 9, 9));
    must_make(g, LAYA_PALETTE_WEIGHTED, 1);
    set_group(g, LAYA_MIL_FP32, 1, LIST(-1, -2, 3));
    must_make(g, LAYA_PALETTE_KMEANS, 2);
    expect_table(g, 2, LIST(-2, -1, 3, 0));
    set_group(g, LAYA_MIL_FP16, 1, LIST(2, 5, 9));
    set_energies(g, LIST(1, 2, 1));
    must_make(g, LAYA_PALETTE_WEIGHTED, 1); /* {2, 5}: 6; {5, 9}: 32 / 3 */
    expect_table(g, 1, LIST(4, 9));
    expect_weighted_errors(g, 4 + 2, 4 + 50 + 81);
    close_group(g);
}

/* ------------------------------------------------------------------ all weights */

#define MOST_WEIGHTS 8u

typedef struct set {
    laya_palette_weight weights[MOST_WEIGHTS];
    laya_mil_constant constants[MOST_WEIGHTS];
    unsigned char *bytes[MOST_WEIGHTS];
    char names[MOST_WEIGHTS][16];
    float energies[MOST];
    uint32_t count;
} set;

/* A weight of `channels` rows in groups, all 0. */
static laya_palette_weight *add_weight(set *s, laya_mil_dtype dtype, uint32_t channels, uint64_t row, uint32_t size)
{
    uint32_t at = s->count++;
    assert_true(at < MOST_WEIGHTS);
    s->bytes[at] = calloc(channels * row, width_of(dtype));
    assert_non_null(s->bytes[at]);
    s->constants[at].type = laya_mil_tensor4(dtype, channels, (int64_t)row, 1, 1);
    s->constants[at].bytes = s->bytes[at];
    s->constants[at].size = channels * row * width_of(dtype);
    snprintf(s->names[at], sizeof s->names[at], "weight_%" PRIu32, at);
    s->weights[at] = (laya_palette_weight){.name = s->names[at],
                                           .constant = &s->constants[at],
                                           .channels = channels,
                                           .row = row,
                                           .group = size,
                                           .bits = 4};
    return &s->weights[at];
}

static void set_weight(set *s, uint32_t at, size_t place, double value)
{
    put_value(s->bytes[at], s->constants[at].type.dtype, place, value);
}

static void close_set(set *s)
{
    for (uint32_t at = 0; at < s->count; at++) free(s->bytes[at]);
    *s = (set){0};
}

static laya_status make_set(set *s, laya_palette_mode mode, bool three_bits, unsigned threads,
                            const laya_meter *meter, laya_error *error)
{
    laya_allocator allocator = laya_allocator_or_default(NULL);
    laya_pool *pool;
    assert_int_equal(laya_pool_open(threads, NULL, &pool, NULL), LAYA_OK);
    laya_status status = laya_palettes_make(s->weights, s->count, mode, three_bits, pool, &allocator, meter, error);
    laya_pool_close(pool);
    return status;
}

static void must_make_set(set *s, laya_palette_mode mode, bool three_bits, unsigned threads)
{
    laya_error error;
    if (make_set(s, mode, three_bits, threads, NULL, &error) != LAYA_OK) fail_msg("%s", error.message);
}

static void release_set(set *s)
{
    laya_allocator allocator = laya_allocator_or_default(NULL);
    laya_palettes_release(s->weights, s->count, &allocator);
    for (uint32_t at = 0; at < s->count; at++) {
        assert_null(s->weights[at].indices);
        assert_null(s->weights[at].lut);
    }
}

/* Bit `at` of packed bytes, the least significant one of each first. */
static unsigned bit_at(const unsigned char *bytes, uint64_t at)
{
    return bytes[at / 8] >> at % 8 & 1;
}

static unsigned index_at(const laya_palette_weight *weight, uint64_t at)
{
    unsigned index = 0;
    for (unsigned bit = 0; bit < weight->bits; bit++)
        index |= bit_at(weight->indices, at * weight->bits + bit) << bit;
    return index;
}

/* Three channels, three weights each, a table of 3 bits each: groups of 9 bits. */
static void test_packed_by_hand(void **state)
{
    (void)state;
    static const unsigned char packed[] = {0x88, 0x10, 0x21, 0x02}; /* 0 1 2 0 1 2 0 1 2, the last five bits are 0 */
    set s = {0};
    laya_palette_weight *weight = add_weight(&s, LAYA_MIL_FP16, 3, 3, 1);
    weight->bits = 3;
    for (size_t at = 0; at < 9; at++) set_weight(&s, 0, at, (double)at);
    must_make_set(&s, LAYA_PALETTE_KMEANS, true, 2);
    assert_int_equal(weight->indices_size, 4);
    assert_memory_equal(weight->indices, packed, 4);
    assert_int_equal(weight->lut_size, 3 * 8 * 2);
    for (size_t at = 0; at < 24; at++) {
        size_t expected = at % 8 < 3 ? at / 8 * 3 + at % 8 : 0;
        assert_true(value_at(weight->lut, LAYA_MIL_FP16, at) == (double)expected);
    }
    assert_true(weight->errors.sse == 0);
    assert_true(weight->errors.energy == 204); /* squares of 0 … 8 */
    release_set(&s);
    close_set(&s);
}

/* A weight against its groups one by one. */
static void expect_groups(const laya_palette_weight *weight, laya_palette_mode mode)
{
    group *g = open_group();
    laya_mil_dtype dtype = weight->constant->type.dtype;
    uint64_t elements = weight->group * weight->row, count = weight->channels * weight->row;
    size_t table = (size_t)width_of(dtype) << weight->bits;
    laya_palette_error errors = {0};
    assert_int_equal(weight->indices_size, (count * weight->bits + 7) / 8);
    assert_int_equal(weight->lut_size, weight->channels / weight->group * table);
    for (uint64_t at = 0; at < weight->channels / weight->group; at++) {
        g->source = (laya_group_source){.bytes = weight->constant->bytes + at * elements * width_of(dtype),
                                        .dtype = dtype,
                                        .rows = weight->group,
                                        .row = weight->row,
                                        .energy = weight->energy};
        must_make(g, mode, weight->bits);
        assert_memory_equal(weight->lut + at * table, g->lut, table);
        for (uint64_t i = 0; i < elements; i++) assert_int_equal(index_at(weight, at * elements + i), g->indices[i]);
        laya_palette_error_add(&errors, &g->errors);
    }
    for (uint64_t bit = count * weight->bits; bit < weight->indices_size * 8; bit++)
        assert_int_equal(bit_at(weight->indices, bit), 0);
    assert_memory_equal(&errors, &weight->errors, sizeof errors);
    close_group(g);
}

/* Groups that end within bytes, in both types, with a weight that stays as it is among them. */
static void fill_set(set *s, unsigned bits)
{
    static const struct {
        laya_mil_dtype dtype;
        uint32_t channels, group;
        uint64_t row;
    } shapes[] = {{LAYA_MIL_FP16, 19, 1, 3},   {LAYA_MIL_FP16, 42, 2, 35}, {LAYA_MIL_FP32, 9, 1, 13},
                  {LAYA_MIL_FP16, 8, 4, 64},   {LAYA_MIL_FP16, 12, 4, 5},  {LAYA_MIL_FP32, 6, 6, 7},
                  {LAYA_MIL_FP16, 33, 11, 11}, {LAYA_MIL_FP16, 5, 1, 1}};
    for (size_t at = 0; at < MOST; at++) s->energies[at] = (float)(1 + random_below(100));
    for (uint32_t at = 0; at < sizeof shapes / sizeof *shapes; at++) {
        laya_palette_weight *weight = add_weight(s, shapes[at].dtype, shapes[at].channels, shapes[at].row,
                                                 shapes[at].group);
        weight->bits = at == 3 ? LAYA_PALETTE_AS_IS : bits;
        weight->energy = at % 2 ? s->energies : NULL;
        for (uint64_t i = 0; i < weight->channels * weight->row; i++)
            set_weight(s, at, i, (random_below(4001) - 2000) / 1024.0);
    }
}

static void test_all_weights(void **state)
{
    (void)state;
    static const laya_palette_mode modes[] = {LAYA_PALETTE_KMEANS, LAYA_PALETTE_WEIGHTED, LAYA_PALETTE_UNIFORM};
    static const unsigned threads[] = {1, 2, 3, 8};
    for (size_t width = 0; width < WIDTHS; width++) {
        for (size_t run = 0; run < 12; run++) {
            set s = {0};
            fill_set(&s, widths[width]);
            must_make_set(&s, modes[run / 4], true, threads[run % 4]);
            for (uint32_t at = 0; at < s.count; at++) {
                if (at != 3) expect_groups(&s.weights[at], modes[run / 4]);
            }
            assert_null(s.weights[3].indices);
            assert_null(s.weights[3].lut);
            assert_true(s.weights[3].errors.energy == 0);
            assert_int_equal(s.weights[3].bits, LAYA_PALETTE_AS_IS);
            release_set(&s);
            close_set(&s);
        }
    }
}

static void test_no_weights(void **state)
{
    (void)state;
    set s = {0};
    must_make_set(&s, LAYA_PALETTE_KMEANS, true, 2);
    must_make_set(&s, LAYA_PALETTE_UNIQUE, true, 2);
    add_weight(&s, LAYA_MIL_FP16, 4, 4, 2)->bits = LAYA_PALETTE_AS_IS;
    must_make_set(&s, LAYA_PALETTE_KMEANS, true, 2);
    assert_null(s.weights[0].lut);
    close_set(&s);
}

/* ------------------------------------------------------------------ bits of UNIQUE */

static void expect_bits(unsigned distinct, unsigned with_three, unsigned without)
{
    for (int three = 0; three < 2; three++) {
        set s = {0};
        size_t most = three ? 300 : 0; /* begin of the group with the most values */
        laya_palette_weight *weight = add_weight(&s, LAYA_MIL_FP16, 4, 150, 2);
        for (size_t at = 0; at < 600; at++) set_weight(&s, 0, at, at % 300 ? 1 : 0); /* two in all groups … */
        if (distinct == 1) memset(s.bytes[0], 0, 1200);
        for (size_t at = 0; at < 300 && distinct > 2; at++) set_weight(&s, 0, most + at, (double)(at % distinct));
        must_make_set(&s, LAYA_PALETTE_UNIQUE, three, 3);
        unsigned expected = three ? with_three : without;
        if (weight->bits != expected) fail_msg("%u values: %u bits, expected %u", distinct, weight->bits, expected);
        assert_int_equal(weight->lut == NULL, expected == LAYA_PALETTE_AS_IS);
        for (size_t at = 0; at < 600 && weight->lut; at++) {
            size_t entry = (at / 300 << weight->bits) + index_at(weight, at);
            assert_true(value_at(weight->lut, LAYA_MIL_FP16, entry) == value_at(s.bytes[0], LAYA_MIL_FP16, at));
        }
        assert_true(weight->errors.sse == 0);
        release_set(&s);
        close_set(&s);
    }
}

static void test_unique_bits(void **state)
{
    (void)state;
    expect_bits(1, 1, 1);
    expect_bits(2, 1, 1);
    expect_bits(3, 2, 2);
    expect_bits(4, 2, 2);
    expect_bits(5, 3, 4);
    expect_bits(8, 3, 4);
    expect_bits(9, 4, 4);
    expect_bits(16, 4, 4);
    expect_bits(17, 6, 6);
    expect_bits(64, 6, 6);
    expect_bits(65, 8, 8);
    expect_bits(256, 8, 8);
    expect_bits(257, LAYA_PALETTE_AS_IS, LAYA_PALETTE_AS_IS);
}

/* One weight of many values does not keep the others from their tables; all keep their own number of bits. */
static void test_unique_weights(void **state)
{
    (void)state;
    set s = {0};
    add_weight(&s, LAYA_MIL_FP32, 1, 300, 1);
    add_weight(&s, LAYA_MIL_FP32, 5, 3, 1);
    add_weight(&s, LAYA_MIL_FP16, 1, 20, 1);
    for (size_t at = 0; at < 300; at++) set_weight(&s, 0, at, (double)at);
    for (size_t at = 0; at < 15; at++) set_weight(&s, 1, at, 1e-30 * (double)(at % 3));
    for (size_t at = 0; at < 20; at++) set_weight(&s, 2, at, (double)at);
    must_make_set(&s, LAYA_PALETTE_UNIQUE, true, 2);
    assert_int_equal(s.weights[0].bits, LAYA_PALETTE_AS_IS);
    assert_null(s.weights[0].indices);
    assert_int_equal(s.weights[1].bits, 2);
    assert_int_equal(s.weights[2].bits, 6);
    expect_groups(&s.weights[1], LAYA_PALETTE_UNIQUE);
    expect_groups(&s.weights[2], LAYA_PALETTE_UNIQUE);
    release_set(&s);
    close_set(&s);
}

/* ------------------------------------------------------------------ meter, failures */

typedef struct tally {
    atomic_ullong bytes;
    atomic_uint calls;
    unsigned stop_from; /* call that says stop first; 0: none */
} tally;

static laya_status refuse(laya_error *error, laya_status status, const char *message)
{
    snprintf(error->message, sizeof error->message, "%s", message);
    return error->status = status;
}

static laya_status report(void *user, uint64_t bytes, laya_error *error)
{
    tally *t = user;
    atomic_fetch_add(&t->bytes, bytes);
    unsigned call = atomic_fetch_add(&t->calls, 1) + 1;
    return t->stop_from && call >= t->stop_from ? refuse(error, LAYA_ERROR_STOPPED, "enough") : LAYA_OK;
}

static void test_meter(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 3; threads += 2) {
        for (int unique = 0; unique < 2; unique++) {
            set s = {0};
            tally t = {0};
            const laya_meter meter = {&t, report};
            laya_error error;
            uint64_t expected = 0;
            fill_set(&s, 2);
            laya_palette_mode mode = unique ? LAYA_PALETTE_UNIQUE : LAYA_PALETTE_KMEANS;
            assert_int_equal(make_set(&s, mode, true, threads, &meter, &error), LAYA_OK);
            for (uint32_t at = 0; at < s.count; at++) expected += s.weights[at].lut ? s.constants[at].size : 0;
            assert_true(expected > 0);
            assert_int_equal(atomic_load(&t.bytes), expected);
            release_set(&s);
            close_set(&s);
        }
    }
}

static void test_stop(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 3; threads++) {
        for (int unique = 0; unique < 2; unique++) {
            set s = {0};
            tally t = {.stop_from = 4};
            const laya_meter meter = {&t, report};
            laya_error error;
            fill_set(&s, 8);
            laya_palette_mode mode = unique ? LAYA_PALETTE_UNIQUE : LAYA_PALETTE_KMEANS;
            assert_int_equal(make_set(&s, mode, true, threads, &meter, &error), LAYA_ERROR_STOPPED);
            assert_string_equal(error.message, "enough");
            assert_in_range(atomic_load(&t.calls), 4, 3 + threads); /* who was told to stop begins nothing more */
            for (uint32_t at = 0; at < s.count; at++) assert_null(s.weights[at].lut);
            close_set(&s);
        }
    }
}

/* Two threads that meet, so that either may be the one that takes the task after that; then both fail. */
typedef struct duel {
    atomic_uint met, later_failed;
    laya_status later; /* what the later task fails with */
} duel;

static laya_status fight(void *user, uint64_t bytes, laya_error *error)
{
    duel *d = user;
    if (bytes == 2) {
        atomic_fetch_add(&d->met, 1);
        while (atomic_load(&d->met) < 2) sched_yield();
        return LAYA_OK;
    }
    if (bytes == 4) {
        while (!atomic_load(&d->later_failed)) sched_yield();
        return refuse(error, LAYA_ERROR_IO, "earlier");
    }
    atomic_store(&d->later_failed, 1);
    return refuse(error, d->later, "later");
}

/* Of two tasks that fail the earlier one is told of, though it fails last; but a wish to stop comes first. */
static void test_first_failure(void **state)
{
    (void)state;
    for (unsigned run = 0; run < 200; run++) {
        set s = {0};
        duel d = {.later = run % 2 ? LAYA_ERROR_STOPPED : LAYA_ERROR_IO};
        const laya_meter meter = {&d, fight};
        laya_error error;
        add_weight(&s, LAYA_MIL_FP16, 2, 1, 1)->bits = 8; /* two groups of 2 bytes, one of 4, one of 8 */
        add_weight(&s, LAYA_MIL_FP16, 1, 2, 1)->bits = 8;
        add_weight(&s, LAYA_MIL_FP16, 1, 4, 1)->bits = 8;
        assert_int_equal(make_set(&s, LAYA_PALETTE_KMEANS, true, 2, &meter, &error), d.later);
        assert_string_equal(error.message, run % 2 ? "later" : "earlier");
        close_set(&s);
    }
}

/* Of two spoiled weights the first one is named, whoever is faster. */
static void test_spoiled_weights(void **state)
{
    (void)state;
    for (unsigned run = 0; run < 40; run++) {
        static const unsigned threads[] = {1, 2, 3, 8};
        static const laya_palette_mode modes[] = {LAYA_PALETTE_KMEANS, LAYA_PALETTE_UNIQUE};
        set s = {0};
        laya_error error;
        fill_set(&s, 3);
        set_weight(&s, 1, 35 * 9 + 4, INFINITY); /* groups of two channels */
        set_weight(&s, 1, 35 * 41, NAN);
        set_weight(&s, 2, 0, NAN);
        set_weight(&s, 7, 0, NAN);
        laya_status status = make_set(&s, modes[run / 4 % 2], true, threads[run % 4], NULL, &error);
        assert_int_equal(status, LAYA_ERROR_FORMAT);
        assert_contains(error.message,
                        "weight_1, output channels 8 to 9: row 1, column 4 of the group: the weight is inf");
        for (uint32_t at = 0; at < s.count; at++) {
            assert_null(s.weights[at].lut);
            assert_null(s.weights[at].indices);
        }
        close_set(&s);
    }
}

static void test_no_memory(void **state)
{
    (void)state;
    static const laya_palette_mode modes[] = {LAYA_PALETTE_KMEANS, LAYA_PALETTE_UNIQUE};
    for (size_t mode = 0; mode < 2; mode++) {
        test_memory memory;
        laya_pool *pool;
        set s = {0};
        laya_status status = LAYA_ERROR_MEMORY;
        size_t failures = 0;
        add_weight(&s, LAYA_MIL_FP16, 4, 10, 2);
        add_weight(&s, LAYA_MIL_FP32, 4, 10, 1);
        test_memory_init(&memory);
        assert_int_equal(laya_pool_open(1, NULL, &pool, NULL), LAYA_OK);
        for (size_t at = 1; status != LAYA_OK; at++) {
            laya_error error;
            test_memory_arm(&memory, at);
            status = laya_palettes_make(s.weights, 2, modes[mode], true, pool, &memory.hooks, NULL, &error);
            if (status == LAYA_OK) break;
            assert_int_equal(status, LAYA_ERROR_MEMORY);
            assert_contains(error.message, "out of memory");
            assert_int_equal(memory.live, 0);
            failures++;
        }
        assert_false(memory.failed);
        assert_true(failures > 20);
        assert_int_equal(memory.live, 4); /* tables and indices */
        laya_palettes_release(s.weights, 2, &memory.hooks);
        assert_int_equal(memory.live, 0);
        laya_pool_close(pool);
        close_set(&s);
    }
}

/*
 * Pages are given back only when all groups of the weight were read: these belong to no file, so that they come back
 * empty (where the system does that), and tables made from them would be, too.
 */
static void test_pages_given_back(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 3; threads++) {
        set s = {0}, copy = {0};
        size_t size = 256 * 256 * 2;
        unsigned char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(pages != MAP_FAILED);
        for (int at = 0; at < 2; at++) add_weight(at ? &copy : &s, LAYA_MIL_FP16, 256, 256, 4)->bits = 2;
        for (size_t at = 0; at < 256 * 256; at++) set_weight(&copy, 0, at, random_below(2000));
        memcpy(pages, copy.bytes[0], size);
        s.constants[0].bytes = pages;
        s.weights[0].mapped = true;
        must_make_set(&s, LAYA_PALETTE_KMEANS, true, threads);
        s.constants[0].bytes = copy.bytes[0];
        expect_groups(&s.weights[0], LAYA_PALETTE_KMEANS);
        release_set(&s);
        munmap(pages, size);
        close_set(&s);
        close_set(&copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves_from_doubles),
        cmocka_unit_test(test_kmeans_by_hand),
        cmocka_unit_test(test_rounded_entries),
        cmocka_unit_test(test_fewer_values),
        cmocka_unit_test(test_negative_zero),
        cmocka_unit_test(test_uniform_by_hand),
        cmocka_unit_test(test_uniform_range),
        cmocka_unit_test(test_subnormal_weights),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_too_many_values),
        cmocka_unit_test(test_sums_of_parts),
        cmocka_unit_test(test_weighted_by_hand),
        cmocka_unit_test(test_least_energy),
        cmocka_unit_test(test_weighted_is_the_optimum),
        cmocka_unit_test(test_groups_in_a_row),
        cmocka_unit_test(test_packed_by_hand),
        cmocka_unit_test(test_all_weights),
        cmocka_unit_test(test_no_weights),
        cmocka_unit_test(test_unique_bits),
        cmocka_unit_test(test_unique_weights),
        cmocka_unit_test(test_meter),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_first_failure),
        cmocka_unit_test(test_spoiled_weights),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_pages_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
