/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables, indices and errors of coremltools 9.0 for 16,384 made-up weights: hashes and figures that its own code gave
 * (palettize_weights; uniform with the float64 scale of NumPy 1.24).
 */
#include "support.h"

#include "base/half.h"
#include "base/memory.h"
#include "palette/group.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ROWS 128u
#define ROW 128u
#define COUNT (ROWS * ROW)

typedef struct golden {
    laya_palette_mode mode;
    unsigned bits;
    const char *sse; /* nine digits; NULL: not recorded */
    uint16_t lut[16];
    unsigned known; /* entries of lut */
    uint32_t indices_hash, lut_hash;
} golden;

static const golden goldens[] = {
    {LAYA_PALETTE_KMEANS, 1, "19.0373663", {0xa9fb, 0x29f7}, 2, 0xbca83e60, 0x2d90a949},
    {LAYA_PALETTE_KMEANS, 2, "5.86965809", {0xad6f, 0xa68c, 0x26aa, 0x2d78}, 4, 0xe5d887cd, 0x388ba978},
    {LAYA_PALETTE_KMEANS,
     3,
     "1.64052566",
     {0xaf6a, 0xacc0, 0xa95c, 0xa26f, 0x240b, 0x29ba, 0x2ced, 0x2fa6},
     8,
     0x8a55d510,
     0x8fc16568},
    {LAYA_PALETTE_KMEANS,
     4,
     "0.439021261",
     {0xb059, 0xaee0, 0xad79, 0xac44, 0xaa49, 0xa834, 0xa49d, 0x9c37, 0x2143, 0x2654, 0x291b, 0x2b1d, 0x2ca5, 0x2ddd,
      0x2f54, 0x30a4},
     16,
     0x3b1729a0,
     0x1cf7c285},
    {LAYA_PALETTE_KMEANS,
     6,
     "0.0282703255",
     {0xb17d, 0xb0ec, 0xb079, 0xb02e, 0xafd6, 0xaf64, 0xaee9, 0xae6b},
     8,
     0x724b145e,
     0x9fa8faaf},
    {LAYA_PALETTE_KMEANS,
     8,
     "0.00159845915",
     {0xb21f, 0xb18a, 0xb15b, 0xb123, 0xb10a, 0xb0f7, 0xb0e2, 0xb0c3},
     8,
     0x34ddc791,
     0xe331073b},
    {LAYA_PALETTE_UNIFORM, 1, NULL, {0}, 0, 0x1bb96f39, 0x2af79d52},
    {LAYA_PALETTE_UNIFORM, 2, "21.8408203", {0xb21f, 0xac2e, 0x2bc4, 0x31f9}, 4, 0x48f9e373, 0xa652e4e1},
    {LAYA_PALETTE_UNIFORM, 3, NULL, {0}, 0, 0xd720b074, 0x86114497},
    {LAYA_PALETTE_UNIFORM,
     4,
     "0.866269149",
     {0xb21f, 0xb151, 0xb082, 0xaf68, 0xadcb, 0xac2e, 0xa922, 0xa3a3, 0x2143, 0x288a, 0x2bc4, 0x2d7f, 0x2f1c, 0x305c,
      0x312b, 0x31f9},
     16,
     0xb6c4e8af,
     0x1d3ef4a4},
    {LAYA_PALETTE_UNIFORM, 6, NULL, {0}, 0, 0x482ad00d, 0x482c91bc},
    {LAYA_PALETTE_UNIFORM, 8, "0.00317551839", {0xb21f, 0xb213, 0xb207, 0xb1fb}, 4, 0xd7de295d, 0x93c51bf9},
};

/* FNV-1a, 32 bits. */
static uint32_t hash_of(const unsigned char *bytes, size_t size)
{
    uint32_t hash = UINT32_C(2166136261);
    for (size_t at = 0; at < size; at++) hash = (hash ^ bytes[at]) * UINT32_C(16777619);
    return hash;
}

static double random_at(uint32_t at)
{
    uint32_t hash = at * UINT32_C(2654435761) + 12345;
    hash ^= hash >> 16;
    hash *= UINT32_C(2246822519);
    hash ^= hash >> 13;
    return hash / 4294967296.0 - 0.5;
}

/* Sums of four even numbers, about normal. */
static void make_weights(unsigned char bytes[2 * COUNT])
{
    for (uint32_t at = 0; at < COUNT; at++) {
        double sum = random_at(4 * at) + random_at(4 * at + 1) + random_at(4 * at + 2) + random_at(4 * at + 3);
        uint16_t half = laya_double_to_half(sum * 0.1);
        bytes[2 * at] = (unsigned char)(half & 0xff);
        bytes[2 * at + 1] = (unsigned char)(half >> 8);
    }
}

static uint16_t half_at(const unsigned char *bytes, size_t at)
{
    return (uint16_t)(bytes[2 * at] | bytes[2 * at + 1] << 8);
}

typedef struct fixture {
    laya_grouper *grouper;
    unsigned char bytes[2 * COUNT], indices[COUNT], lut[2 * LAYA_PALETTE_MAX_ENTRIES];
    laya_group_source source;
} fixture;

static int open_fixture(void **state)
{
    static fixture f;
    const laya_allocator allocator = laya_allocator_or_default(NULL);
    make_weights(f.bytes);
    f.source = (laya_group_source){.bytes = f.bytes, .dtype = LAYA_MIL_FP16, .rows = ROWS, .row = ROW};
    *state = &f;
    return laya_grouper_open(COUNT, &allocator, &f.grouper, NULL) == LAYA_OK ? 0 : -1;
}

static int close_fixture(void **state)
{
    laya_grouper_close(((fixture *)*state)->grouper);
    return 0;
}

/* The weights themselves: what follows would say little of others. */
static void weights(void **state)
{
    fixture *f = *state;
    static const uint16_t first[] = {0xa9cf, 0x266f, 0x2a6b, 0xae33, 0x2edc, 0xa78a, 0x1eaf, 0xac53};
    for (size_t at = 0; at < 8; at++) assert_int_equal(half_at(f->bytes, at), first[at]);
    assert_int_equal(hash_of(f->bytes, sizeof f->bytes), 0x9fda1d5c);
    double sum = 0;
    for (size_t at = 0; at < COUNT; at++) sum += (double)laya_half_to_float(half_at(f->bytes, at));
    char text[32];
    snprintf(text, sizeof text, "%.15g", sum);
    assert_string_equal(text, "6.16908067464828");
    uint32_t distinct = 0;
    laya_error error;
    assert_int_equal(laya_group_distinct(f->grouper, &f->source, &distinct, &error), LAYA_OK);
    assert_int_equal(distinct, 8092);
}

static void make(fixture *f, laya_palette_mode mode, unsigned bits, laya_palette_error *errors)
{
    laya_error error;
    memset(f->lut, 0xee, sizeof f->lut);
    memset(f->indices, 0xee, sizeof f->indices);
    laya_status status = laya_group_make(f->grouper, &f->source, mode, bits, f->lut, f->indices, errors, &error);
    if (status != LAYA_OK) fail_msg("%s", error.message);
}

/* Figures of a table, added up element by element. */
static laya_palette_error measure(const fixture *f)
{
    laya_palette_error sums = {0};
    for (size_t at = 0; at < COUNT; at++) {
        double value = (double)laya_half_to_float(half_at(f->bytes, at));
        double away = value - (double)laya_half_to_float(half_at(f->lut, f->indices[at]));
        sums.sse += away * away;
        sums.energy += value * value;
        if (away < 0) away = -away;
        if (away > sums.largest) sums.largest = away;
    }
    return sums;
}

static void assert_close(double got, double expected)
{
    double away = got - expected;
    if (away > 1e-12 * expected || -away > 1e-12 * expected) fail_msg("%.17g, expected %.17g", got, expected);
}

static void check(fixture *f, const golden *expected)
{
    laya_palette_error errors;
    char text[32];
    make(f, expected->mode, expected->bits, &errors);
    for (unsigned at = 0; at < expected->known; at++) assert_int_equal(half_at(f->lut, at), expected->lut[at]);
    assert_int_equal(hash_of(f->lut, (size_t)2 << expected->bits), expected->lut_hash);
    assert_int_equal(hash_of(f->indices, sizeof f->indices), expected->indices_hash);
    for (size_t at = (size_t)2 << expected->bits; at < sizeof f->lut; at++) assert_int_equal(f->lut[at], 0xee);
    laya_palette_error sums = measure(f);
    assert_close(errors.sse, sums.sse);
    assert_close(errors.energy, sums.energy);
    assert_true(errors.weighted_sse == errors.sse);
    assert_true(errors.weighted_energy == errors.energy);
    assert_true(errors.largest == sums.largest);
    snprintf(text, sizeof text, "%.9g", errors.sse);
    if (expected->sse) assert_string_equal(text, expected->sse);
}

static void tables(void **state)
{
    for (size_t at = 0; at < sizeof goldens / sizeof *goldens; at++) check(*state, &goldens[at]);
}

/* A wrong order of the weights gives other hashes of the indices, the same table. */
static void order_matters(void **state)
{
    fixture *f = *state;
    laya_palette_error errors;
    unsigned char kept[2];
    memcpy(kept, f->bytes, 2);
    memcpy(f->bytes, f->bytes + 2, 2);
    memcpy(f->bytes + 2, kept, 2);
    make(f, LAYA_PALETTE_KMEANS, 4, &errors);
    assert_int_equal(hash_of(f->lut, 32), 0x1cf7c285);
    assert_int_not_equal(hash_of(f->indices, sizeof f->indices), 0x3b1729a0);
    make_weights(f->bytes);
}

/* A weighted table without energies, and with equal ones, is the plain one. */
static void equal_energies(void **state)
{
    fixture *f = *state;
    static float energies[ROW];
    for (size_t at = 0; at < ROW; at++) energies[at] = 3;
    for (int with = 0; with < 2; with++) {
        laya_palette_error errors;
        f->source.energy = with ? energies : NULL;
        make(f, LAYA_PALETTE_WEIGHTED, 4, &errors);
        f->source.energy = NULL;
        assert_int_equal(hash_of(f->lut, 32), 0x1cf7c285);
        assert_int_equal(hash_of(f->indices, sizeof f->indices), 0x3b1729a0);
        assert_close(errors.weighted_sse, (with ? 3 : 1) * errors.sse);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights),
        cmocka_unit_test(tables),
        cmocka_unit_test(order_matters),
        cmocka_unit_test(equal_energies),
    };
    return cmocka_run_group_tests(tests, open_fixture, close_fixture);
}
