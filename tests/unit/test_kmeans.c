/* SPDX-License-Identifier: Apache-2.0 */
/*
 * k-means on a line against exhaustive search in exact integers, against two slow dynamic programmes, and against
 * divisions that are known beforehand.
 */
#include "support.h"

#include "kmeans_oracle.h"

#include "base/half.h"
#include "palette/kmeans.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_POINTS 63487u /* finite halves, -0 and +0 being one */
#define MOST_CLUSTERS 256u

/* Points of one call, and what comes of them. */
typedef struct points {
    laya_kmeans *solver;
    uint32_t count;
    double values[MOST_POINTS], weights[MOST_POINTS];
    uint32_t starts[MOST_CLUSTERS], expected[MOST_CLUSTERS];
} points;

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static int open_points(void **state)
{
    points *p = malloc(sizeof *p);
    laya_allocator allocator = laya_allocator_or_default(NULL);
    if (!p || laya_kmeans_open(MOST_POINTS, &allocator, &p->solver, NULL) != LAYA_OK) return -1;
    *state = p;
    return 0;
}

static int close_points(void **state)
{
    points *p = *state;
    laya_kmeans_close(p->solver);
    free(p);
    return 0;
}

static uint32_t random_below(uint32_t limit)
{
    static uint64_t seed = 20;
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((seed >> 32) * limit >> 32);
}

static double random_part(void)
{
    return (random_below(1u << 30) + 0.5) / (1u << 30);
}

/* About normal: the sum of four. */
static double random_bell(void)
{
    return random_part() + random_part() + random_part() + random_part() - 2;
}

static int compare_values(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* Sort the values, drop repetitions. */
static void sort_points(points *p)
{
    uint32_t kept = 0;
    qsort(p->values, p->count, sizeof *p->values, compare_values);
    for (uint32_t at = 0; at < p->count; at++) {
        if (kept == 0 || p->values[at] != p->values[kept - 1]) p->values[kept++] = p->values[at];
    }
    p->count = kept;
}

/* The distinct halves among `count` samples, with the number of times that each occurs as weight. */
static void make_histogram(points *p, uint32_t count, double scale)
{
    static uint32_t counts[65536];
    memset(counts, 0, sizeof counts);
    for (uint32_t at = 0; at < count; at++) counts[laya_float_to_half((float)(random_bell() * scale))]++;
    counts[0] += counts[0x8000];
    counts[0x8000] = 0;
    p->count = 0;
    for (uint32_t key = 0; key < 65536; key++) {
        uint32_t half = key < 0x8000 ? 0xffff - key : key - 0x8000; /* in ascending order */
        if (!counts[half]) continue;
        p->values[p->count] = laya_half_to_float((uint16_t)half);
        p->weights[p->count++] = counts[half];
    }
}

static void solve(points *p, uint32_t clusters)
{
    laya_error error = {0};
    memset(p->starts, 0xff, sizeof p->starts);
    laya_status status = laya_kmeans_solve(p->solver, p->values, p->weights, p->count, clusters, p->starts, &error);
    if (status != LAYA_OK) fail_msg("%s", error.message);
    clusters = smaller(clusters, p->count);
    assert_int_equal(p->starts[0], 0);
    for (uint32_t c = 1; c < clusters; c++) assert_true(p->starts[c] > p->starts[c - 1]);
    assert_true(p->starts[clusters - 1] < p->count);
    for (uint32_t c = clusters; c < MOST_CLUSTERS; c++) assert_int_equal(p->starts[c], UINT32_MAX);
}

static void assert_expected(const points *p, uint32_t clusters, const char *what)
{
    for (uint32_t c = 0; c < clusters; c++) {
        if (p->starts[c] == p->expected[c]) continue;
        fail_msg("%s, %u points, %u clusters: cluster %u begins with point %u, expected %u", what, p->count, clusters,
                 c, p->starts[c], p->expected[c]);
    }
}

/* ------------------------------------------------------------------ exhaustive search */

/* Small integers: consecutive ones, gaps of 1 or 2, anything. */
static void make_integers(uint32_t count, int32_t *values, int32_t *weights)
{
    uint32_t gap = 1u + random_below(2) * random_below(9), heaviest = random_below(2) ? 1 : 36 / count;
    int32_t value = (int32_t)random_below(20) - 30;
    for (uint32_t at = 0; at < count; at++) {
        value += 1 + (int32_t)random_below(smaller(gap, 89 / count));
        values[at] = value;
        weights[at] = 1 + (int32_t)random_below(heaviest);
    }
}

/* All that is done to a number is exact for a power of two as factor. */
static void scale_integers(points *p, const int32_t *values, const int32_t *weights)
{
    int of_values = (int)random_below(40) - 24, of_weights = (int)random_below(80) - 40;
    for (uint32_t at = 0; at < p->count; at++) {
        p->values[at] = ldexp(values[at], of_values);
        p->weights[at] = ldexp(weights[at], of_weights);
    }
}

static void every_small_division(void **state)
{
    points *p = *state;
    uint32_t tied = 0, alone = 0;
    for (uint32_t round = 0; round < (TEST_SANITIZED ? 1200u : 6000u); round++) {
        int32_t values[KMEANS_EXHAUSTIVE_COUNT], weights[KMEANS_EXHAUSTIVE_COUNT];
        p->count = 1 + round % KMEANS_EXHAUSTIVE_COUNT;
        make_integers(p->count, values, weights);
        scale_integers(p, values, weights);
        for (uint32_t clusters = 1; clusters <= p->count; clusters++) {
            uint32_t equal = kmeans_exhaustive(values, weights, p->count, clusters, p->expected);
            solve(p, clusters);
            assert_expected(p, clusters, "exhaustive search");
            tied += equal > 1;
            alone += equal == 1;
        }
    }
    assert_true(tied > alone / 8); /* both kinds are there */
    assert_true(alone > tied / 8);
}

/* Hand arithmetic, so that the oracle itself is looked at. */
static void known_divisions(void **state)
{
    points *p = *state;
    static const double values[] = {0, 1, 3, 7, 8, 20}, weights[] = {1, 1, 1, 1, 1, 1};
    static const int32_t integers[] = {0, 1, 3, 7, 8, 20}, ones[] = {1, 1, 1, 1, 1, 1};
    static const uint32_t expected[4][4] = {{0}, {0, 5}, {0, 3, 5}, {0, 2, 3, 5}};
    p->count = 6;
    memcpy(p->values, values, sizeof values);
    memcpy(p->weights, weights, sizeof weights);
    for (uint32_t clusters = 1; clusters <= 4; clusters++) {
        memcpy(p->expected, expected[clusters - 1], clusters * sizeof(uint32_t));
        solve(p, clusters);
        assert_expected(p, clusters, "known");
        assert_int_equal(kmeans_exhaustive(integers, ones, 6, clusters, p->starts), 1);
        assert_expected(p, clusters, "exhaustive search");
    }
    /* 14/3 + 1/2 */
    assert_true(fabs(kmeans_error(values, weights, 6, expected[2], 3) - 31.0 / 6) < 1e-14);
    /* Three points with equal gaps: the cluster of two is the last one. */
    p->count = 3;
    for (uint32_t at = 0; at < 3; at++) p->values[at] = at;
    assert_int_equal(kmeans_exhaustive((const int32_t[]){0, 1, 2}, ones, 3, 2, p->expected), 2);
    assert_int_equal(p->expected[1], 1);
    solve(p, 2);
    assert_int_equal(p->starts[1], 1);
}

static void few_points(void **state)
{
    points *p = *state;
    for (p->count = 1; p->count <= 5; p->count++) {
        for (uint32_t at = 0; at < p->count; at++) {
            p->values[at] = at * at;
            p->weights[at] = 1 + at;
        }
        for (uint32_t clusters = p->count; clusters <= MOST_CLUSTERS; clusters += 50) {
            solve(p, clusters);
            for (uint32_t at = 0; at < p->count; at++) assert_int_equal(p->starts[at], at);
        }
        solve(p, 1);
    }
}

/* ------------------------------------------------------------------ equal gaps */

/*
 * m points with gaps of 1 have the squared error (m^3 - m) / 12, which is convex in m: sizes differ by one at most,
 * and the larger clusters are the last ones.
 */
static void expect_even(points *p, uint32_t clusters)
{
    uint32_t size = p->count / clusters, larger = p->count % clusters, start = 0;
    for (uint32_t c = 0; c < clusters; c++) {
        p->expected[c] = start;
        start += size + (c >= clusters - larger);
    }
}

static void equal_gaps(void **state)
{
    points *p = *state;
    static const uint32_t counts[] = {13, 100, 257, 1000, 2048, 3001};
    static const double gaps[] = {1, 0x1p-24, 32}, weights[] = {1, 7, 0x1p30};
    for (size_t at = 0; at < sizeof counts / sizeof *counts; at++) {
        p->count = counts[at];
        for (uint32_t i = 0; i < p->count; i++) {
            p->values[i] = gaps[at % 3] * ((double)i - counts[at % 2] / 2); // NOLINT(bugprone-integer-division)
            p->weights[i] = weights[at / 2];
        }
        for (uint32_t clusters = 1; clusters <= smaller(p->count, MOST_CLUSTERS); clusters++) {
            expect_even(p, clusters);
            solve(p, clusters);
            assert_expected(p, clusters, "equal gaps");
        }
    }
}

/* ------------------------------------------------------------------ dynamic programmes */

static double energy_of(const points *p)
{
    const uint32_t whole = 0;
    return kmeans_error(p->values, p->weights, p->count, &whole, 1);
}

/* As good as plain dynamic programming, and the same where no other division is about as good. Returns whether so. */
static bool check_plain(points *p, uint32_t clusters, const char *what)
{
    double second, energy = energy_of(p);
    double best = kmeans_plain(p->values, p->weights, p->count, clusters, p->expected, &second);
    assert_true(best >= 0);
    solve(p, clusters);
    double error = kmeans_error(p->values, p->weights, p->count, p->starts, clusters);
    if (!(error <= best + 1e-12 * energy) || !(error >= best - 1e-12 * energy))
        fail_msg("%s, %u points, %u clusters: %.17g, the optimum is %.17g", what, p->count, clusters, error, best);
    bool alone = second - best > 1e-12 * energy;
    if (alone) assert_expected(p, clusters, what);
    return alone;
}

static void check_plain_all(points *p, const char *what)
{
    static const uint32_t clusters[] = {2, 3, 4, 7, 8, 16, 33, 64, 256};
    for (size_t at = 0; at < sizeof clusters / sizeof *clusters; at++) {
        if (clusters[at] < p->count && (uint64_t)p->count * p->count * clusters[at] < 40000000)
            check_plain(p, clusters[at], what);
    }
}

static void fill(points *p, uint32_t count, double (*value)(uint32_t at), double (*weight)(void))
{
    p->count = count;
    for (uint32_t at = 0; at < count; at++) p->values[at] = value(at);
    sort_points(p);
    for (uint32_t at = 0; at < p->count; at++) p->weights[at] = weight();
}

static double value_bell(uint32_t at)
{
    (void)at;
    return random_bell();
}
static double value_uniform(uint32_t at)
{
    (void)at;
    return random_part();
}
static double value_grid(uint32_t at)
{
    return (double)at * 0.125 - 3;
}
static double value_geometric(uint32_t at)
{
    return pow(1.03, at);
}
static double value_geometric_both(uint32_t at)
{
    double size = ldexp(1, (int)(at / 16) - 24) * (1 + (at / 2 % 8) / 8.0);
    return at % 2 ? size : -size;
}
/* A few clusters, far from each other. */
static double value_gaps(uint32_t at)
{
    static const double centres[] = {-60000, -1, 0, 0.001, 3, 60000};
    return centres[at % 6] + random_bell() * 1e-4;
}
static double value_symmetric(uint32_t at)
{
    static double last;
    last = at % 2 ? -last : random_bell();
    return last;
}
static double value_largest(uint32_t at)
{
    (void)at;
    return laya_half_to_float((uint16_t)(0x7a00 + random_below(0x200)));
}
static double value_subnormal(uint32_t at)
{
    (void)at;
    return ldexp((double)random_below(2047) - 1023, -24);
}
static double value_few_gaps(uint32_t at)
{
    return at * 3 + random_below(2);
}

static double weight_one(void)
{
    return 1;
}
static double weight_small(void)
{
    return 1 + random_below(9);
}
static double weight_any(void)
{
    return random_part();
}
static double weight_wide(void)
{
    return pow(10, 12 * random_part() - 6);
}
static double weight_giant(void)
{
    return random_below(100) ? 1 : 1e9;
}

static void plain_programme(void **state)
{
    points *p = *state;
    static const struct {
        const char *name;
        double (*value)(uint32_t);
    } values[] = {{"bell", value_bell},
                  {"uniform", value_uniform},
                  {"grid", value_grid},
                  {"geometric", value_geometric},
                  {"both signs", value_geometric_both},
                  {"far apart", value_gaps},
                  {"symmetric", value_symmetric},
                  {"near the largest", value_largest},
                  {"subnormal", value_subnormal},
                  {"gaps of few kinds", value_few_gaps}};
    static double (*const weights[])(void) = {weight_one, weight_small, weight_any, weight_wide, weight_giant};
    static const uint32_t counts[] = {20, 75, TEST_SANITIZED ? 150 : 300};
    for (size_t at = 0; at < sizeof values / sizeof *values; at++) {
        for (size_t weight = 0; weight < sizeof weights / sizeof *weights; weight++) {
            for (size_t count = 0; count < sizeof counts / sizeof *counts; count++) {
                char what[64];
                snprintf(what, sizeof what, "%s, weights %zu", values[at].name, weight);
                fill(p, counts[count], values[at].value, weights[weight]);
                check_plain_all(p, what);
            }
        }
    }
}

/* Every number of clusters, so that those between two corners of the hull occur. */
static void every_number_of_clusters(void **state)
{
    points *p = *state;
    uint32_t alone = 0;
    fill(p, 120, value_bell, weight_one);
    for (uint32_t clusters = 1; clusters < p->count; clusters++) alone += check_plain(p, clusters, "bell");
    fill(p, 120, value_few_gaps, weight_small);
    for (uint32_t clusters = 1; clusters < p->count; clusters++)
        alone += check_plain(p, clusters, "gaps of few kinds");
    make_histogram(p, 200, 0.05);
    for (uint32_t clusters = 1; clusters < p->count; clusters++) alone += check_plain(p, clusters, "histogram");
    assert_true(alone > 200);
}

static void plain_programme_large(void **state)
{
    points *p = *state;
    fill(p, TEST_SANITIZED ? 1000 : 3000, value_bell, weight_small);
    assert_true(check_plain(p, 16, "bell"));
    make_histogram(p, 3000, 0.05);
    assert_true(check_plain(p, 6, "histogram"));
}

/* As many values as a group of 32 channels has. */
static void divide_and_conquer(void **state)
{
    points *p = *state;
    static const uint32_t clusters[] = {2, 4, 8, 16, 64, 256};
    for (size_t at = 0; at < sizeof clusters / sizeof *clusters; at++) {
        if (TEST_SANITIZED && clusters[at] > 16) break;
        make_histogram(p, 24576, 0.05);
        assert_true(p->count > 8000);
        assert_true(kmeans_divided(p->values, p->weights, p->count, clusters[at], p->expected));
        solve(p, clusters[at]);
        assert_expected(p, clusters[at], "histogram");
        fill(p, 12000, value_gaps, weight_small);
        solve(p, clusters[at]);
        assert_true(kmeans_divided(p->values, p->weights, p->count, clusters[at], p->expected));
        double error = kmeans_error(p->values, p->weights, p->count, p->starts, clusters[at]);
        double best = kmeans_error(p->values, p->weights, p->count, p->expected, clusters[at]);
        assert_true(fabs(error - best) <= 1e-12 * energy_of(p));
    }
}

/* Every finite half. */
static void every_half(void **state)
{
    points *p = *state;
    p->count = 0;
    for (uint32_t key = 0; key < 65536; key++) {
        uint32_t half = key < 0x8000 ? 0xffff - key : key - 0x8000;
        if ((half & 0x7c00) == 0x7c00 || half == 0x8000) continue;
        p->values[p->count] = laya_half_to_float((uint16_t)half);
        p->weights[p->count++] = 1;
    }
    assert_int_equal(p->count, MOST_POINTS);
    solve(p, MOST_CLUSTERS);
    solve(p, 16);
    assert_true(kmeans_divided(p->values, p->weights, p->count, 16, p->expected));
    double error = kmeans_error(p->values, p->weights, p->count, p->starts, 16);
    double best = kmeans_error(p->values, p->weights, p->count, p->expected, 16);
    assert_true(fabs(error - best) <= 1e-12 * energy_of(p));
}

/* ------------------------------------------------------------------ working memory, means */

/* What was solved before does not matter. */
static void solver_is_used_again(void **state)
{
    points *p = *state;
    make_histogram(p, 5000, 0.05);
    solve(p, 16);
    memcpy(p->expected, p->starts, sizeof p->expected);
    uint32_t count = p->count;
    solve(p, 200);
    p->count = 7;
    solve(p, 3);
    p->count = count;
    solve(p, 16);
    assert_expected(p, 16, "again");
}

static void memory_runs_out(void **state)
{
    points *p = *state;
    test_memory memory;
    laya_kmeans *solver = NULL;
    laya_error error;
    test_memory_init(&memory);
    for (size_t fail_at = 1;; fail_at++) {
        test_memory_arm(&memory, fail_at);
        laya_status status = laya_kmeans_open(100, &memory.hooks, &solver, &error);
        if (status == LAYA_OK) break;
        assert_int_equal(status, LAYA_ERROR_MEMORY);
        assert_null(solver);
        assert_int_equal(memory.live, 0);
    }
    p->count = 100;
    for (uint32_t at = 0; at < p->count; at++) {
        p->values[at] = at; /* equal gaps need more memory: no price leads to 30 clusters */
        p->weights[at] = 1;
    }
    expect_even(p, 30);
    size_t live = memory.live;
    bool failed = false;
    for (size_t fail_at = 1;; fail_at++) {
        test_memory_arm(&memory, fail_at);
        laya_status status = laya_kmeans_solve(solver, p->values, p->weights, p->count, 30, p->starts, &error);
        assert_int_equal(memory.live, live);
        if (status == LAYA_OK) break;
        assert_int_equal(status, LAYA_ERROR_MEMORY);
        failed = true;
    }
    assert_true(failed);
    assert_expected(p, 30, "after a failure");
    laya_kmeans_close(solver);
    laya_kmeans_close(NULL);
    assert_int_equal(memory.live, 0);
}

static void means(void **state)
{
    (void)state;
    static const double values[] = {-1, 0.5, 4}, weights[] = {1, 2, 5}, third[] = {1, 2, 4}, ones[] = {1, 1, 1};
    assert_true(laya_kmeans_mean(values, weights, 1) == -1);
    assert_true(laya_kmeans_mean(values, weights, 2) == 0);
    assert_true(laya_kmeans_mean(values, weights, 3) == 2.5);
    /* A running mean: 1.5 + (4 - 1.5) / 3 in float64, as Python prints it. */
    assert_true(laya_kmeans_mean(third, ones, 3) == 2.3333333333333335);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_divisions),
        cmocka_unit_test(few_points),
        cmocka_unit_test(every_small_division),
        cmocka_unit_test(equal_gaps),
        cmocka_unit_test(plain_programme),
        cmocka_unit_test(every_number_of_clusters),
        cmocka_unit_test(plain_programme_large),
        cmocka_unit_test(divide_and_conquer),
        cmocka_unit_test(every_half),
        cmocka_unit_test(solver_is_used_again),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(means),
    };
    return cmocka_run_group_tests(tests, open_points, close_points);
}
