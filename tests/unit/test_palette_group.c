/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of small groups by hand arithmetic and by trying all divisions; rounding from float64 to half. */
#include "support.h"

#include "palette_group.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LIST(...) ((const double[]){__VA_ARGS__}), sizeof((const double[]){__VA_ARGS__}) / sizeof(double)
#define INDICES(...) ((const unsigned char[]){__VA_ARGS__}), sizeof((const unsigned char[]){__VA_ARGS__})

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
    /* every step is rounded: the float32 above 1/6, times 3, is 0.5 and a little; float32 makes 0.5 of it */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves_from_doubles), cmocka_unit_test(test_kmeans_by_hand),
        cmocka_unit_test(test_rounded_entries),     cmocka_unit_test(test_fewer_values),
        cmocka_unit_test(test_negative_zero),       cmocka_unit_test(test_uniform_by_hand),
        cmocka_unit_test(test_uniform_range),       cmocka_unit_test(test_subnormal_weights),
        cmocka_unit_test(test_not_finite),          cmocka_unit_test(test_too_many_values),
        cmocka_unit_test(test_sums_of_parts),       cmocka_unit_test(test_weighted_by_hand),
        cmocka_unit_test(test_least_energy),        cmocka_unit_test(test_weighted_is_the_optimum),
        cmocka_unit_test(test_groups_in_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
