/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every table of kernels that runs here against plain loops in float64: random shapes, every tail, guard bands around
 * what is written, NaN in everything that must not be read, and the same bits whatever the size of the tile.
 */
#include "support.h"

#include "base/half.h"
#include "kernels/kernels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 32 /* floats before and after a buffer */
#define GUARD_VALUE 12345.0f

static uint64_t seed = 1;

static uint32_t random_bits(void)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 32);
}

static size_t random_below(size_t limit)
{
    return random_bits() % limit;
}

/* Uniform in [-1, 1). */
static float random_float(void)
{
    return (float)((double)random_bits() / 2147483648.0 - 1);
}

/* A buffer with guard bands, filled with NaN. */
typedef struct guarded {
    float *all;
    float *data;
    size_t count;
} guarded;

static guarded make_guarded(size_t count)
{
    guarded g = {.all = malloc((count + 2 * GUARD) * sizeof *g.all), .count = count};
    assert_non_null(g.all);
    g.data = g.all + GUARD;
    for (size_t i = 0; i < count + 2 * GUARD; i++) g.all[i] = GUARD_VALUE;
    for (size_t i = 0; i < count; i++) g.data[i] = NAN;
    return g;
}

static void check_guarded(guarded *g)
{
    for (size_t i = 0; i < GUARD; i++) {
        assert_true(g->all[i] == GUARD_VALUE);
        assert_true(g->data[g->count + i] == GUARD_VALUE);
    }
    free(g->all);
}

/* ------------------------------------------------------------------ table */

static void test_table(void **unused)
{
    (void)unused;
    assert_ptr_equal(laya_kernels_select(0), &laya_kernels_portable);
    const laya_kernels *best = laya_kernels_select(LAYA_CPU_ALL);
    assert_int_equal(best->cpu & laya_cpu_features(LAYA_CPU_ALL), best->cpu);
    for (uint32_t bit = 1; bit <= LAYA_CPU_F16C; bit <<= 1) {
        const laya_kernels *without = laya_kernels_select(LAYA_CPU_ALL & ~bit);
        assert_false(without->cpu & bit);
    }
    size_t index = 0;
    while (laya_kernels_at(index)) {
        const laya_kernels *kernels = laya_kernels_at(index++);
        assert_true(kernels->mr >= 1 && kernels->mr <= LAYA_KERNEL_MAX_MR);
        assert_true(kernels->nr >= 1 && LAYA_KERNEL_MAX_NR % kernels->nr == 0);
        assert_true(strlen(kernels->name) > 0 && strlen(kernels->instruction_set) > 0);
    }
    assert_ptr_equal(laya_kernels_at(index - 1), &laya_kernels_portable);
}

/* ------------------------------------------------------------------ packing */

static float widen(const unsigned char *data, laya_dtype dtype, size_t at)
{
    if (dtype == LAYA_F32) {
        const unsigned char *b = data + 4 * at;
        return laya_float_of_bits((uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24);
    }
    uint16_t bits = (uint16_t)(data[2 * at] | data[2 * at + 1] << 8);
    if (dtype == LAYA_BF16) return laya_bfloat_to_float(bits);
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    double value = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
    return (float)(bits >> 15 ? -value : value);
}

/* pack_rows and widen */
static void check_pack(const laya_kernels *kernels, laya_dtype dtype, size_t rows, size_t depth, size_t stride)
{
    /* The last row ends with the block, so that reading beyond it is seen by a sanitizer; misaligned by one byte. */
    size_t size = laya_dtype_size(dtype), bytes = ((rows - 1) * stride + depth) * size;
    unsigned char *block = malloc(bytes + 1);
    assert_non_null(block);
    unsigned char *data = block + 1;
    for (size_t i = 0; i < bytes; i++) data[i] = (unsigned char)random_bits();
    for (size_t i = 0; i < bytes / size; i++) { /* no NaN or infinity: those compare badly */
        unsigned char *high = data + i * size + size - 1;
        if (dtype == LAYA_F16)
            *high = (unsigned char)(*high & 0xbf);
        else
            *high = (unsigned char)(*high & 0xbe);
    }
    size_t nr = kernels->nr;
    guarded panel = make_guarded(depth * nr);
    kernels->pack_rows(data, dtype, stride, rows, depth, panel.data);
    for (size_t k = 0; k < depth; k++) {
        for (size_t j = 0; j < nr; j++) {
            float expected = j < rows ? widen(data, dtype, j * stride + k) : 0.0f;
            assert_int_equal(laya_bits_of_float(panel.data[k * nr + j]), laya_bits_of_float(expected));
        }
    }
    check_guarded(&panel);
    guarded row = make_guarded(depth); /* the last row */
    kernels->widen(data + (rows - 1) * stride * size, dtype, depth, row.data);
    for (size_t k = 0; k < depth; k++) {
        float expected = widen(data, dtype, (rows - 1) * stride + k);
        assert_int_equal(laya_bits_of_float(row.data[k]), laya_bits_of_float(expected));
    }
    check_guarded(&row);
    free(block);
}

static void test_widening(void **unused)
{
    (void)unused;
    static const laya_dtype types[] = {LAYA_F16, LAYA_BF16, LAYA_F32};
    size_t index = 0;
    for (const laya_kernels *kernels; (kernels = test_next_kernels(&index)) != NULL;) {
        for (size_t t = 0; t < 3; t++) {
            for (size_t rows = 1; rows <= kernels->nr; rows++) {
                for (size_t depth = 1; depth < 20; depth++) {
                    check_pack(kernels, types[t], rows, depth, depth + random_below(5));
                }
                check_pack(kernels, types[t], rows, LAYA_KERNEL_KC, LAYA_KERNEL_KC + random_below(100));
            }
        }
    }
}

/* All 65,536 halves; NaN payloads may be made quiet, so NaN is compared as NaN. */
static void test_every_half(void **unused)
{
    (void)unused;
    size_t index = 0;
    for (const laya_kernels *kernels; (kernels = test_next_kernels(&index)) != NULL;) {
        for (uint32_t first = 0; first < 65536; first += 256) {
            unsigned char data[512];
            float panel[256 * LAYA_KERNEL_MAX_NR], row[256];
            for (uint32_t i = 0; i < 256; i++) {
                data[2 * i] = (unsigned char)(first + i);
                data[2 * i + 1] = (unsigned char)((first + i) >> 8);
            }
            kernels->pack_rows(data, LAYA_F16, 256, 1, 256, panel);
            kernels->widen(data, LAYA_F16, 256, row);
            for (uint32_t i = 0; i < 256; i++) {
                float got = panel[i * kernels->nr];
                uint32_t magnitude = (first + i) & 0x7fff;
                if (magnitude > 0x7c00) {
                    assert_true(isnan(got) && isnan(row[i]));
                    continue;
                }
                assert_int_equal(laya_bits_of_float(row[i]), laya_bits_of_float(got));
                if (magnitude == 0x7c00) {
                    assert_true(isinf(got) && (signbit(got) != 0) == ((first + i) > 0x7fff));
                } else {
                    assert_int_equal(laya_bits_of_float(got), laya_bits_of_float(widen(data, LAYA_F16, i)));
                }
            }
        }
    }
}

static void test_pack_floats_and_cols(void **unused)
{
    (void)unused;
    size_t index = 0;
    for (const laya_kernels *kernels; (kernels = test_next_kernels(&index)) != NULL;) {
        size_t nr = kernels->nr;
        for (int round = 0; round < 200; round++) {
            size_t used = 1 + random_below(nr), depth = 1 + random_below(round < 100 ? 20 : 300);
            size_t row_stride = depth + random_below(7), col_stride = used + random_below(7);
            size_t count = (used - 1) * row_stride + depth;
            float *rows = malloc(count * sizeof *rows);
            assert_non_null(rows);
            for (size_t i = 0; i < count; i++) rows[i] = random_float();
            guarded panel = make_guarded(depth * nr);
            kernels->pack_floats(rows, row_stride, used, depth, panel.data);
            for (size_t i = 0; i < depth * nr; i++) {
                assert_true(panel.data[i] == (i % nr < used ? rows[i % nr * row_stride + i / nr] : 0.0f));
            }
            check_guarded(&panel);
            free(rows);

            count = (depth - 1) * col_stride + used;
            float *cols = malloc(count * sizeof *cols);
            assert_non_null(cols);
            for (size_t i = 0; i < count; i++) cols[i] = random_float();
            panel = make_guarded(depth * nr);
            kernels->pack_cols(cols, col_stride, depth, used, panel.data);
            for (size_t i = 0; i < depth * nr; i++) {
                assert_true(panel.data[i] == (i % nr < used ? cols[i / nr * col_stride + i % nr] : 0.0f));
            }
            check_guarded(&panel);
            free(cols);
        }
    }
}

/* ------------------------------------------------------------------ tile */

static void check_tile(const laya_kernels *kernels, size_t depth, bool add)
{
    size_t mr = kernels->mr, nr = kernels->nr, a_stride = depth + random_below(9), c_stride = nr + random_below(9);
    float *a = malloc(((mr - 1) * a_stride + depth) * sizeof *a), *panel = malloc(depth * nr * sizeof *panel);
    float *first = malloc(mr * nr * sizeof *first); /* the result of the full tile */
    assert_true(a && panel && first);
    for (size_t i = 0; i < (mr - 1) * a_stride + depth; i++) a[i] = NAN;
    for (size_t i = 0; i < mr; i++) {
        for (size_t k = 0; k < depth; k++) a[i * a_stride + k] = random_float();
    }
    for (size_t i = 0; i < depth * nr; i++) panel[i] = random_float();
    float start = random_float();
    for (size_t rows = mr; rows >= 1; rows--) {
        guarded c = make_guarded((rows - 1) * c_stride + nr);
        for (size_t i = 0; add && i < rows; i++) {
            for (size_t j = 0; j < nr; j++) c.data[i * c_stride + j] = start;
        }
        kernels->tile(rows, depth, a, a_stride, panel, c.data, c_stride, add);
        for (size_t i = 0; i < rows; i++) {
            for (size_t j = 0; j < nr; j++) {
                double sum = add ? (double)start : 0, size = fabs(sum);
                for (size_t k = 0; k < depth; k++) {
                    double product = (double)a[i * a_stride + k] * (double)panel[k * nr + j];
                    sum += product;
                    size += fabs(product);
                }
                float got = c.data[i * c_stride + j];
                /* depth roundings of partial sums and products, and the last addition */
                assert_true(fabs((double)got - sum) <= size * (double)(depth + 2) * 0x1p-24);
                if (rows == mr)
                    first[i * nr + j] = got;
                else
                    assert_int_equal(laya_bits_of_float(got), laya_bits_of_float(first[i * nr + j]));
            }
            for (size_t j = nr; i + 1 < rows && j < c_stride; j++) assert_true(isnan(c.data[i * c_stride + j]));
        }
        check_guarded(&c);
    }
    free(a);
    free(panel);
    free(first);
}

static void test_tile(void **unused)
{
    (void)unused;
    size_t index = 0;
    for (const laya_kernels *kernels; (kernels = test_next_kernels(&index)) != NULL;) {
        for (size_t depth = 1; depth <= 20; depth++) {
            check_tile(kernels, depth, false);
            check_tile(kernels, depth, true);
        }
        for (int round = 0; round < 20; round++) check_tile(kernels, 1 + random_below(LAYA_KERNEL_KC), round & 1);
        check_tile(kernels, LAYA_KERNEL_KC, true);
    }
}

/* ------------------------------------------------------------------ softmax, GELU */

static void check_softmax(const laya_kernels *kernels, size_t count, float scale, float spread)
{
    guarded x = make_guarded(count);
    double *expected = malloc(count * sizeof *expected), top = -INFINITY, sum = 0;
    assert_non_null(expected);
    for (size_t i = 0; i < count; i++) {
        x.data[i] = random_float() * spread;
        expected[i] = (double)(x.data[i] * scale); /* the product is rounded, as in the kernel */
        if (expected[i] > top) top = expected[i];
    }
    for (size_t i = 0; i < count; i++) sum += expected[i] = exp((double)(float)(expected[i] - top));
    kernels->softmax(x.data, count, scale);
    for (size_t i = 0; i < count; i++) {
        double p = expected[i] / sum;
        /* exp to 2 ulp, the sum of `count` terms in at least 8 parts, two more roundings; tails below e^-87 are 0 */
        double bound = p * (6 + (double)count / 8) * 0x1p-24 + 1.7e-38;
        if (fabs((double)x.data[i] - p) > bound) {
            fail_msg("%s: softmax of %zu values: %g, expected %g", kernels->name, count, (double)x.data[i], p);
        }
    }
    check_guarded(&x);
    free(expected);
}

static void test_softmax(void **unused)
{
    (void)unused;
    size_t index = 0;
    for (const laya_kernels *kernels; (kernels = test_next_kernels(&index)) != NULL;) {
        for (size_t count = 1; count <= 40; count++) {
            check_softmax(kernels, count, 0.125f, 8);
            check_softmax(kernels, count, 1.0f, 60);
            check_softmax(kernels, count, 0.5f, 1e4f);
        }
        check_softmax(kernels, 1000, 0.125f, 100);
        float equal[19];
        for (size_t i = 0; i < 19; i++) equal[i] = -3e4f;
        kernels->softmax(equal, 19, 1);
        for (size_t i = 0; i < 19; i++) assert_true(fabs((double)equal[i] - 1.0 / 19) < 1e-8);
        float broken[11] = {0};
        broken[3] = NAN;
        kernels->softmax(broken, 11, 1);
        for (size_t i = 0; i < 11; i++) assert_true(isnan(broken[i]));
    }
}

/* Each column's power to 2 units in the last place, sums exactly the powers added; limits, NaN. */
static void test_exp_columns(void **unused)
{
    (void)unused;
    size_t index = 0;
    for (const laya_kernels *kernels; (kernels = test_next_kernels(&index)) != NULL;) {
        for (size_t count = 1; count <= 40; count++) {
            guarded x = make_guarded(count), sums = make_guarded(count);
            float top[40], difference[40];
            for (size_t i = 0; i < count; i++) {
                top[i] = (float)i - 7.0f;
                x.data[i] = top[i] - (float)(i * i % 90);
                difference[i] = x.data[i] - top[i];
                sums.data[i] = (float)i;
            }
            kernels->exp_columns(x.data, top, sums.data, count);
            for (size_t i = 0; i < count; i++) {
                double p = difference[i] < -87.0f ? 0 : exp((double)difference[i]);
                assert_true(fabs((double)x.data[i] - p) <= 2.5e-7 * p);
                assert_true(sums.data[i] == (float)i + x.data[i]);
            }
            check_guarded(&x);
            check_guarded(&sums);
        }
        float x[9] = {0, -INFINITY, NAN}, sums[9] = {0};
        const float top[9] = {0};
        kernels->exp_columns(x, top, sums, 9);
        assert_true(x[0] == 1 && x[1] == 0 && isnan(x[2]) && isnan(sums[2]) && sums[8] == 1);
    }
}

/* All halves, what lies on and next to the ties between them, and specials; every count of a last part. */
static void test_round_half(void **unused)
{
    (void)unused;
    static const uint32_t special[] = {0x7f800001u, 0xffc12345u, 0x00000001u, 0x807fffffu, 0x7f7fffffu,
                                       0x33000000u, 0x33000001u, 0x477fefffu, 0x477ff000u, 0xc77ff000u};
    size_t index = 0;
    for (const laya_kernels *kernels; (kernels = test_next_kernels(&index)) != NULL;) {
        for (uint32_t half = 0; half < 65536; half++) {
            size_t count = 1 + half % 19;
            uint32_t bits = laya_bits_of_float(laya_half_to_float((uint16_t)half));
            guarded g = make_guarded(count);
            float before[19];
            for (uint32_t i = 0; i < count; i++) {
                uint32_t near = bits + (i % 4) * 0x800u + i / 4 - 2; /* quarters of a step of normal halves */
                before[i] = laya_float_of_bits(i == 18 ? special[half % 10] : near);
                g.data[i] = before[i];
            }
            kernels->round_half(g.data, count);
            for (size_t i = 0; i < count; i++) {
                float expected = laya_half_to_float(laya_float_to_half(before[i]));
                assert_int_equal(laya_bits_of_float(g.data[i]), laya_bits_of_float(expected));
            }
            check_guarded(&g);
        }
    }
}

/* Every 256th float of magnitude below 100, and large ones: absolute error, against erfc in float64. */
static void test_gelu(void **unused)
{
    (void)unused;
    enum { BATCH = 173 };
    size_t index = 0;
    for (const laya_kernels *kernels; (kernels = test_next_kernels(&index)) != NULL;) {
        double worst = 0;
        float in[BATCH], gate[BATCH], plain[BATCH];
        uint32_t bits = 0;
        while (bits <= 0x42c80000u) { /* 100.0 */
            for (size_t i = 0; i < BATCH; i++, bits += 512) {
                in[i] = laya_float_of_bits(bits);
                if (i & 1) in[i] = -in[i];
                gate[i] = random_float();
            }
            guarded out = make_guarded(BATCH);
            kernels->gelu(in, gate, out.data, BATCH);
            kernels->gelu(in, NULL, plain, BATCH);
            for (size_t i = 0; i < BATCH; i++) {
                double x = (double)in[i];
                double expected = x > 0 ? x - 0.5 * x * erfc(x / sqrt(2.0)) : 0.5 * x * erfc(-x / sqrt(2.0));
                double gap = fabs((double)plain[i] - expected) / (fabs(expected) > 1 ? fabs(expected) : 1);
                worst = gap <= worst ? worst : gap;
                assert_int_equal(laya_bits_of_float(out.data[i]), laya_bits_of_float(plain[i] * gate[i]));
            }
            check_guarded(&out);
        }
        print_message("%-8s GELU: error %.2e of max(1, |GELU|)\n", kernels->name, worst);
        assert_true(worst < 1e-7);
        float special[5] = {0.0f, -0.0f, 3e38f, -3e38f, NAN};
        kernels->gelu(special, NULL, special, 5); /* in place */
        assert_true(special[0] == 0 && special[1] == 0 && special[2] == 3e38f && special[3] == 0 &&
                    isnan(special[4]));
    }
}

/* A value's bits do not depend on its place: whole vectors and tails agree. */
static void test_gelu_place(void **unused)
{
    (void)unused;
    size_t index = 0;
    for (const laya_kernels *kernels; (kernels = test_next_kernels(&index)) != NULL;) {
        float in[64], all[64], part[64];
        for (size_t i = 0; i < 64; i++) in[i] = random_float() * 6;
        kernels->gelu(in, NULL, all, 64);
        for (size_t first = 0; first < 20; first++) {
            for (size_t count = 1; first + count <= 40; count++) {
                kernels->gelu(in + first, NULL, part, count);
                assert_memory_equal(part, all + first, count * sizeof *part);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),       cmocka_unit_test(test_widening),
        cmocka_unit_test(test_every_half),  cmocka_unit_test(test_pack_floats_and_cols),
        cmocka_unit_test(test_tile),        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_exp_columns), cmocka_unit_test(test_round_half),
        cmocka_unit_test(test_gelu),        cmocka_unit_test(test_gelu_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
