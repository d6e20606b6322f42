/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics, power and comparisons against hand numbers; a benchmark of the demo model as far as it does not depend on
 * the clock.
 */
#include "bundles.h"
#include "support.h"
#include "tree.h"

#include "gate/benchmark.h"
#include "gate/sampler.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void expect_near(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance)) fail_msg("%.12g instead of %.12g", found, expected);
}

/* ------------------------------------------------------------------ statistics */

static void test_order_statistics(void **state)
{
    (void)state;
    /* numpy.percentile([15, 20, 35, 40, 50], [5, 50, 95]) = 16, 35, 48; of [1, 2, 3, 4]: 1.15, 2.5, 3.85 */
    double five[] = {50, 15, 40, 35, 20}, four[] = {4, 1, 3, 2}, one[] = {7};
    laya_summary s = laya_summarize(five, 5);
    assert_int_equal(s.count, 5);
    expect_near(s.mean, 32, 1e-12);
    expect_near(s.median, 35, 1e-12);
    expect_near(s.p95, 48, 1e-12);
    expect_near(s.least, 15, 0);
    expect_near(s.largest, 50, 0);
    expect_near(laya_quantile(five, 5, 0.05), 16, 1e-12);
    s = laya_summarize(four, 4);
    expect_near(s.median, 2.5, 1e-12);
    expect_near(s.p95, 3.85, 1e-12);
    expect_near(laya_quantile(four, 4, 0), 1, 0);
    expect_near(laya_quantile(four, 4, 1), 4, 0);
    s = laya_summarize(one, 1);
    expect_near(s.median, 7, 0);
    expect_near(s.p95, 7, 0);
}

static void test_student(void **state)
{
    (void)state;
    expect_near(laya_student_975(1), 12.706, 0);
    expect_near(laya_student_975(5), 2.571, 0);
    expect_near(laya_student_975(30), 2.042, 0);
    expect_near(laya_student_975(39), 2.042, 0); /* no narrower than tabulated */
    expect_near(laya_student_975(40), 2.021, 0);
    expect_near(laya_student_975(100000), 1.98, 0);
    assert_true(isinf(laya_student_975(0)));
}

static void test_paired_ratio(void **state)
{
    (void)state;
    /* Ratios 2, 2, 8: logs 0.693147, 0.693147, 2.079442; mean 1.155245, s = 0.800377, s / sqrt(3) = 0.462098;
       t(2) = 4.303: half width 1.988408. */
    const double numerators[] = {4, 6, 8}, denominators[] = {2, 3, 1};
    laya_ratio r = laya_paired_ratio(numerators, denominators, 3);
    assert_int_equal(r.pairs, 3);
    expect_near(r.estimate, 3.174802, 1e-6); /* the cube root of 32 */
    expect_near(r.low, exp(1.155245 - 1.988408), 1e-5);
    expect_near(r.high, exp(1.155245 + 1.988408), 1e-4);
    const double same[] = {3, 3, 3, 3}, half[] = {6, 6, 6, 6};
    r = laya_paired_ratio(same, half, 4);
    expect_near(r.estimate, 0.5, 1e-12);
    expect_near(r.low, 0.5, 1e-12);
    expect_near(r.high, 0.5, 1e-12);
    r = laya_paired_ratio(same, half, 1);
    expect_near(r.estimate, 0.5, 1e-12);
    assert_true(r.low == 0 && isinf(r.high)); /* one pair says nothing about spread */
}

/* ------------------------------------------------------------------ power */

#define INTEGRATE(SAMPLES, FROM, TO) integrate(SAMPLES, sizeof(SAMPLES) / sizeof *(SAMPLES), FROM, TO)

static laya_status status_of;
static laya_error error_of;

static double integrate(const laya_power_sample *samples, size_t count, double from, double to)
{
    double joules;
    status_of = laya_power_integrate(samples, count, 0.5, from, to, &joules, &error_of);
    return joules;
}

static void expect_rejected(const char *rule)
{
    assert_int_equal(status_of, LAYA_ERROR_INPUT);
    assert_contains(error_of.message, rule);
}

static void test_integral(void **state)
{
    (void)state;
    const laya_power_sample steady[] = {{0, 30}, {1, 30}, {2, 30}, {3, 30}};
    expect_near(INTEGRATE(steady, 0, 3), 90, 1e-12);
    expect_near(INTEGRATE(steady, 0.25, 2.75), 75, 1e-12);
    /* 10 -> 20 in the first second, 20 -> 60 in the second. From 0.5 (15 W) to 1.5 (40 W):
       (15 + 20) / 2 * 0.5 + (20 + 40) / 2 * 0.5 = 8.75 + 15 = 23.75 J. All of it: 15 + 40 = 55 J. */
    const laya_power_sample rising[] = {{0, 10}, {1, 20}, {2, 60}};
    expect_near(INTEGRATE(rising, 0.5, 1.5), 23.75, 1e-12);
    expect_near(INTEGRATE(rising, 0, 2), 55, 1e-12);
    /* Inside one interval: from 0.2 (12 W) to 0.6 (16 W). */
    expect_near(INTEGRATE(rising, 0.2, 0.6), 14 * 0.4, 1e-12);
    assert_int_equal(status_of, LAYA_OK);
}

static void test_rejections(void **state)
{
    (void)state;
    const laya_power_sample good[] = {{0, 30}, {1, 30}, {2, 30}};
    INTEGRATE(good, -0.1, 1);
    expect_rejected("missing");
    INTEGRATE(good, 1, 2.1);
    expect_rejected("missing");
    integrate(NULL, 0, 0, 1);
    expect_rejected("missing");
    INTEGRATE(good, 1, 1);
    expect_rejected("no length");
    const laya_power_sample zero[] = {{0, 30}, {1, 0}, {2, 30}}, negative[] = {{0, 30}, {1, -1}, {2, 30}};
    INTEGRATE(zero, 0, 2);
    expect_rejected("not positive");
    INTEGRATE(negative, 0, 2);
    expect_rejected("not positive");
    const laya_power_sample nan[] = {{0, 30}, {1, NAN}, {2, 30}}, huge[] = {{0, 30}, {1, INFINITY}, {2, 30}};
    INTEGRATE(nan, 0, 2);
    expect_rejected("not a finite number");
    INTEGRATE(huge, 0, 2);
    expect_rejected("not a finite number");
    /* 500 W is allowed, more is not; the study once saw 38,021 W. */
    const laya_power_sample most[] = {{0, 500}, {1, 500}}, more[] = {{0, 30}, {1, 38021}, {2, 30}};
    expect_near(INTEGRATE(most, 0, 1), 500, 1e-9);
    INTEGRATE(more, 0, 2);
    expect_rejected("above 500 W");
    /* The gap: 2 s at intervals up to 2/3 s, else three intervals. */
    const laya_power_sample two[] = {{0, 30}, {2, 30}}, longer[] = {{0, 30}, {2.01, 30}};
    expect_near(INTEGRATE(two, 0, 2), 60, 1e-12);
    INTEGRATE(longer, 0, 2);
    expect_rejected("gap of 2.010 s");
    double joules;
    assert_int_equal(laya_power_integrate(longer, 2, 1, 0, 2, &joules, &error_of), LAYA_OK);
    expect_near(laya_power_max_gap(0.5), 2, 0);
    expect_near(laya_power_max_gap(1), 3, 0);
    /* What lies outside the window does not count. */
    const laya_power_sample outside[] = {{-9, 0}, {0, 30}, {1, 30}, {2, 30}, {9, NAN}};
    expect_near(INTEGRATE(outside, 0.5, 1.5), 30, 1e-12);
}

/* ------------------------------------------------------------------ samplers */

/* Wait until a sampler's command has written its marker file. */
static void wait_for(const char *path)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    for (int at = 0; at < 3000 && access(path, F_OK) != 0; at++) nanosleep(&pause, NULL);
    assert_int_equal(access(path, F_OK), 0);
}

static void test_sampler_command(void **state)
{
    (void)state;
    char folder[TEST_PATH_SIZE], marker[TEST_PATH_SIZE], command[2 * TEST_PATH_SIZE];
    laya_sampler *sampler;
    laya_error error;
    size_t count;
    test_make_folder(folder);
    test_join(marker, folder, "ready");
    snprintf(command, sizeof command, "printf ' 25.5\\n26.5\\r\\n\\nbroken\\n1e999\\n'; echo >'%s'; exec sleep 1000",
             marker);
    assert_int_equal(laya_sampler_open(command, 0.1, NULL, &sampler, &error), LAYA_OK);
    wait_for(marker);
    assert_int_equal(laya_sampler_stop(sampler, &error), LAYA_OK); /* and does not wait for the sleep */
    const laya_power_sample *samples = laya_sampler_samples(sampler, &count);
    assert_int_equal(count, 4);
    expect_near(samples[0].watts, 25.5, 0);
    expect_near(samples[1].watts, 26.5, 0);
    assert_true(isnan(samples[2].watts) && isinf(samples[3].watts));
    assert_true(samples[3].seconds >= samples[0].seconds);
    laya_sampler_close(sampler);
    laya_sampler_close(NULL);
    test_remove_tree(folder);
}

/* A command that ends, or takes no notice of a polite request. */
static void test_sampler_ends(void **state)
{
    (void)state;
    laya_sampler *sampler;
    laya_error error;
    size_t count;
    assert_int_equal(laya_sampler_open("exit 3", 0.1, NULL, &sampler, &error), LAYA_OK);
    laya_sampler_close(sampler);
    assert_int_equal(
        laya_sampler_open("trap '' TERM; echo 5; while :; do sleep 0.1; done", 0.1, NULL, &sampler, &error), LAYA_OK);
    assert_int_equal(laya_sampler_stop(sampler, &error), LAYA_OK);
    (void)laya_sampler_samples(sampler, &count);
    laya_sampler_close(sampler);
}

static void write_counter(const char *root, unsigned package, const char *name, const char *value)
{
    char path[TEST_PATH_SIZE + 64];
    snprintf(path, sizeof path, "%s/intel-rapl:%u", root, package);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/intel-rapl:%u/%s", root, package, name);
    test_write_file(path, value, strlen(value));
}

static void test_powercap(void **state)
{
    (void)state;
    char root[TEST_PATH_SIZE];
    laya_powercap powercap;
    laya_error error;
    double joules;
    test_make_folder(root);
    assert_int_equal(laya_powercap_open(&powercap, root, &error), LAYA_ERROR_IO);
    assert_contains(error.message, "no energy counter");
    for (unsigned package = 0; package < 2; package++) {
        write_counter(root, package, "max_energy_range_uj", "10000000\n");
        write_counter(root, package, "energy_uj", "9000000\n");
    }
    assert_int_equal(laya_powercap_open(&powercap, root, &error), LAYA_OK);
    assert_int_equal(powercap.count, 2);
    /* One goes on by 0.5 J, the other starts again: 1 J to the end and 0.25 J more. */
    write_counter(root, 0, "energy_uj", "9500000\n");
    write_counter(root, 1, "energy_uj", "250000\n");
    assert_int_equal(laya_powercap_read(&powercap, &joules, &error), LAYA_OK);
    expect_near(joules, 1.75, 1e-9);
    assert_int_equal(laya_powercap_read(&powercap, &joules, &error), LAYA_OK);
    expect_near(joules, 0, 0);
    write_counter(root, 0, "energy_uj", "x\n");
    assert_int_equal(laya_powercap_read(&powercap, &joules, &error), LAYA_ERROR_IO);
    laya_powercap_close(&powercap);
    test_remove_tree(root);
}

/* ------------------------------------------------------------------ comparisons */

/* Two candidates, two cycles. Blocks are filled in by hand. */
typedef struct hand_made {
    laya_benchmark_options options;
    laya_block blocks[8];
    double seconds[8][2];
    laya_comparison comparison;
} hand_made;

static void make_comparison(hand_made *h)
{
    *h = (hand_made){0};
    laya_benchmark_options_init(&h->options);
    h->options.cycles = 2;
    h->comparison = (laya_comparison){.options = &h->options,
                                      .count = 2,
                                      .allocator = laya_allocator_or_default(NULL),
                                      .blocks = h->blocks,
                                      .block_count = 8};
    /* 0 1 | 1 0 | 0 1 | 1 0. A block of the first takes 2 s in two calls of 1 s, of the second two of 0.5 s, a rest 1 s
       before each. */
    static const size_t order[] = {0, 1, 1, 0, 0, 1, 1, 0};
    double time = 100;
    for (size_t at = 0; at < 8; at++) {
        double call = order[at] == 0 ? 1 : 0.5;
        h->seconds[at][0] = h->seconds[at][1] = call;
        h->blocks[at] = (laya_block){.candidate = order[at],
                                     .pair = at / 2,
                                     .series = {.seconds = h->seconds[at], .count = 2},
                                     .idle_from = time,
                                     .idle_to = time + 1,
                                     .from = time + 1,
                                     .to = time + 1 + 2 * call};
        time = h->blocks[at].to;
    }
}

/* 10 W at rest, 40 W in blocks of the first, 30 W of the second; steps, so that samples stand on both sides of an edge. */
static size_t make_samples(const hand_made *h, laya_power_sample *samples)
{
    size_t count = 0;
    for (size_t at = 0; at < 8; at++) {
        const laya_block *block = &h->blocks[at];
        double watts = block->candidate == 0 ? 40 : 30;
        samples[count++] = (laya_power_sample){block->idle_from, 10};
        samples[count++] = (laya_power_sample){block->idle_to, 10};
        samples[count++] = (laya_power_sample){block->from, watts};
        samples[count++] = (laya_power_sample){block->to, watts};
    }
    return count;
}

static void test_energy(void **state)
{
    (void)state;
    hand_made h;
    laya_power_sample samples[32];
    laya_error error;
    make_comparison(&h);
    size_t count = make_samples(&h, samples);
    assert_int_equal(laya_comparison_energy(&h.comparison, samples, count, &error), LAYA_OK);
    assert_string_equal(h.comparison.rejected, "");
    expect_near(h.comparison.idle_watts, 10, 1e-9);
    const laya_energy *first = &h.comparison.energies[0], *second = &h.comparison.energies[1];
    /* First: 4 blocks of 2 s at 40 W = 320 J in 8 decisions; idling would have taken 80 J. */
    assert_int_equal(first->decisions, 8);
    expect_near(first->seconds, 1, 1e-12);
    expect_near(first->watts, 40, 1e-9);
    expect_near(first->gross, 40, 1e-9);
    expect_near(first->net, 30, 1e-9);
    /* Second: 4 blocks of 1 s at 30 W = 120 J in 8 decisions; idling 40 J. */
    expect_near(second->gross, 15, 1e-9);
    expect_near(second->net, 10, 1e-9);
    /* The identity: 15 / 40 = 0.5 x 0.75. */
    expect_near(second->gross / first->gross, second->seconds / first->seconds * (second->watts / first->watts),
                1e-12);
    free(h.comparison.energies);
}

static void test_rejected_energy(void **state)
{
    (void)state;
    hand_made h;
    laya_power_sample samples[32];
    laya_error error;
    make_comparison(&h);
    size_t count = make_samples(&h, samples);
    samples[13].watts = 38021;
    assert_int_equal(laya_comparison_energy(&h.comparison, samples, count, &error), LAYA_OK);
    assert_null(h.comparison.energies);
    assert_contains(h.comparison.rejected, "above 500 W");
}

static void test_block_ratio(void **state)
{
    (void)state;
    hand_made h;
    laya_ratio ratio;
    laya_error error;
    make_comparison(&h);
    assert_int_equal(laya_comparison_ratio(&h.comparison, 1, &ratio, &error), LAYA_OK);
    assert_int_equal(ratio.pairs, 4);
    expect_near(ratio.estimate, 0.5, 1e-12);
    expect_near(ratio.low, 0.5, 1e-12);
    /* Pair 2 alone: its medians become 2 and 1.5; log ratios 3 x ln 0.5 and ln 0.75. */
    h.seconds[4][0] = 1, h.seconds[4][1] = 3;
    h.seconds[5][0] = 1, h.seconds[5][1] = 2;
    assert_int_equal(laya_comparison_ratio(&h.comparison, 1, &ratio, &error), LAYA_OK);
    expect_near(ratio.estimate, exp((3 * log(0.5) + log(0.75)) / 4), 1e-12);
}

/* ------------------------------------------------------------------ the order of calls */

typedef struct fake {
    char name;
    char *log; /* of all candidates */
    unsigned calls, changes_at;
    char text[32];
} fake;

static laya_status fake_predict(void *user, const laya_fixture_case *input, const laya_predict_options *options,
                                const char **result, size_t *size, laya_error *error)
{
    fake *f = user;
    (void)options, (void)error;
    assert_string_equal(input->name, "short");
    size_t used = strlen(f->log);
    f->log[used] = f->name;
    f->log[used + 1] = '\0';
    f->calls++;
    *size = (size_t)snprintf(f->text, sizeof f->text, "{\"a\": %d}", f->changes_at && f->calls >= f->changes_at);
    *result = f->text;
    return LAYA_OK;
}

static void test_alternation(void **state)
{
    (void)state;
    char log[256] = "";
    fake fakes[] = {{.name = 'A', .log = log}, {.name = 'B', .log = log, .changes_at = 9}, {.name = 'C', .log = log}};
    laya_candidate candidates[3], *pointers[3];
    laya_benchmark_options options;
    laya_workload workload;
    laya_error error;
    laya_benchmark_options_init(&options);
    options.cycles = 2;
    options.block_warmups = 1;
    options.block_calls = 2;
    assert_int_equal(laya_workload_open(&workload, 0, NULL, &error), LAYA_OK);
    for (size_t at = 0; at < 3; at++) {
        const laya_source source = {.user = &fakes[at], .predict = fake_predict};
        laya_candidate_init(&candidates[at], "x", &source, NULL);
        pointers[at] = &candidates[at];
    }
    laya_comparison c = {.options = &options,
                         .workload = &workload,
                         .candidates = pointers,
                         .count = 3,
                         .allocator = laya_allocator_or_default(NULL)};
    assert_int_equal(laya_comparison_run(&c, &error), LAYA_OK);
    assert_string_equal(log, "AAABBBCCC"
                             "CCCBBBAAA"
                             "AAABBBCCC"
                             "CCCBBBAAA");
    assert_int_equal(c.block_count, 12);
    assert_int_equal(c.blocks[7].candidate, 1);
    assert_int_equal(c.blocks[7].pair, 2);
    assert_int_equal(c.blocks[7].series.count, 2); /* the warm-up is not kept */
    assert_true(candidates[0].stable && candidates[2].stable);
    assert_false(candidates[1].stable);
    laya_comparison_close(&c);
    for (size_t at = 0; at < 3; at++) laya_candidate_close(&candidates[at]);
    laya_workload_close(&workload);
}

/* ------------------------------------------------------------------ the request */

static void test_workload(void **state)
{
    (void)state;
    laya_workload workload;
    laya_error error;
    /* printf '"Please refund the duplicate charge."\n{"refund": {"type": "noul", "instructions": "Does the user ask for
       money back?"}}' | sha256sum */
    assert_int_equal(laya_workload_open(&workload, 0, NULL, &error), LAYA_OK);
    assert_string_equal(workload.sha256, "3560766ab1ea473eafe02e41c8f4d5fb733c31376eb3237072e50c241d9c8baa");
    assert_int_equal(workload.options.max_len, 0);
    laya_workload_close(&workload);
    assert_int_equal(laya_workload_open(&workload, 64, NULL, &error), LAYA_OK);
    assert_int_equal(workload.options.max_len, 64);
    assert_true(workload.input.state_size > 64 * 8);
    assert_contains(workload.input.state, "\"The agent answered message 1 within an hour");
    laya_workload_close(&workload);
}

/* ------------------------------------------------------------------ the demo model */

static char shelter[TEST_PATH_SIZE];

static int make_bundles(void **state)
{
    (void)state;
    char model[TEST_PATH_SIZE], output[TEST_PATH_SIZE];
    test_make_folder(shelter);
    test_path(model, TEST_DEMO);
    test_export(model, LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP16, 48, false, test_join(output, shelter, "lean"));
    test_export(model, LAYA_GRAPH_PER_HEAD, LAYA_PACKAGE_FP16, 48, false, test_join(output, shelter, "per-head"));
    test_path(model, TEST_TINY);
    test_export(model, LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP16, 48, false, test_join(output, shelter, "tiny"));
    return 0;
}

static int remove_bundles(void **state)
{
    (void)state;
    test_remove_tree(shelter);
    return 0;
}

static laya_json_value at(laya_json_value object, const char *name)
{
    laya_json_value value = laya_json_get(object, name);
    if (!laya_json_present(value)) fail_msg("no member %s", name);
    return value;
}

static void small_options(laya_benchmark_options *options)
{
    laya_benchmark_options_init(options);
    options->body_warmups = 1;
    options->body_calls = 2;
    options->warmups = 1;
    options->calls = 3;
    options->cycles = 1;
    options->block_warmups = 0;
    options->block_calls = 2;
}

static void expect_count(laya_json_value object, const char *name, uint32_t expected)
{
    uint32_t number;
    if (!laya_json_to_uint32(at(object, name), &number) || number != expected)
        fail_msg("%s is not %u", name, expected);
}

static void test_report(void **state)
{
    (void)state;
    char lean[TEST_PATH_SIZE], other[TEST_PATH_SIZE];
    const char *compare[] = {test_join(other, shelter, "per-head"), "native"};
    laya_benchmark_options options;
    laya_report *report;
    laya_error error;
    laya_json doc;
    size_t size;
    small_options(&options);
    options.long_request = 1;
    options.compare = compare;
    options.compare_count = 2;
    if (laya_benchmark(test_join(lean, shelter, "lean"), &options, &report, &error) != LAYA_OK)
        fail_msg("%s", error.message);
    const char *text = laya_report_json(report, &size);
    assert_int_equal(laya_json_parse(&doc, text, size, NULL, &error), LAYA_OK);
    laya_json_value root = laya_json_root(&doc), body = at(root, "body"), complete = at(root, "complete");
    assert_true(laya_report_passed(report));
    assert_true(laya_json_equals(at(root, "class"), "timed on this CPU"));
    assert_true(laya_json_equals(at(root, "executor"), "interpreter fp16"));
    assert_true(laya_json_equals(at(root, "power"), "not_measured"));
    assert_true(laya_json_equals(at(root, "placement"), "not_measured"));
    expect_count(at(root, "request"), "tokens", 48);
    assert_true(laya_json_equals(at(at(root, "request"), "kind"), "long"));
    expect_count(body, "calls", 2);
    assert_int_equal(laya_json_size(at(body, "seconds")), 2);
    assert_int_equal(laya_json_size(at(complete, "seconds")), 3);
    laya_json_iterator subject = laya_json_first(at(at(root, "comparison"), "subjects"));
    assert_false(laya_json_present(laya_json_get(subject.value, "time_ratio")));
    laya_json_next(&subject);
    assert_true(laya_json_equals(at(at(subject.value, "package"), "graph"), "per-head"));
    expect_count(at(subject.value, "time_ratio"), "pairs", 2);
    assert_true(laya_json_equals(at(subject.value, "energy"), "not_measured"));
    laya_json_next(&subject);
    assert_true(laya_json_equals(at(subject.value, "executor"), "native fp32 engine"));
    assert_int_equal(laya_json_typeof(at(subject.value, "package")), LAYA_JSON_NULL);
    expect_count(subject.value, "calls", 4);
    assert_int_equal(laya_json_size(at(at(root, "comparison"), "blocks")), 6);
    laya_json_close(&doc);
    laya_report_close(report);
}

/* Energy end to end with a sampler that always says the same; blocks shorter than users have. */
static void test_report_with_power(void **state)
{
    (void)state;
    char lean[TEST_PATH_SIZE];
    laya_benchmark_options options;
    laya_report *report;
    laya_error error;
    laya_json doc;
    size_t size;
    small_options(&options);
    options.power = "while :; do echo 25; sleep 0.05; done";
    options.power_interval = 10; /* on a loaded machine the samples may be 30 s apart */
    options.block_seconds = 0.2;
    options.idle_seconds = 0.1;
    if (laya_benchmark(test_join(lean, shelter, "lean"), &options, &report, &error) != LAYA_OK)
        fail_msg("%s", error.message);
    const char *text = laya_report_json(report, &size);
    assert_int_equal(laya_json_parse(&doc, text, size, NULL, &error), LAYA_OK);
    laya_json_value root = laya_json_root(&doc);
    laya_json_iterator subject = laya_json_first(at(at(root, "comparison"), "subjects"));
    double watts, net;
    if (!laya_json_equals(at(at(root, "power"), "status"), "accepted")) fail_msg("%s", text);
    assert_true(laya_json_to_double(at(at(subject.value, "energy"), "watts"), &watts));
    assert_true(laya_json_to_double(at(at(subject.value, "energy"), "net_joules"), &net));
    expect_near(watts, 25, 1e-9);
    expect_near(net, 0, 1e-9);
    laya_json_close(&doc);
    laya_report_close(report);
    /* A sampler that says nonsense: rejected, and no energy. */
    options.power = "while :; do echo 38021; sleep 0.05; done";
    assert_int_equal(laya_benchmark(lean, &options, &report, &error), LAYA_OK);
    text = laya_report_json(report, &size);
    assert_contains(text, "\"status\": \"rejected\"");
    assert_contains(text, "above 500 W");
    assert_contains(text, "\"energy\": \"not_measured\"");
    laya_report_close(report);
}

static int stop(void *user)
{
    unsigned *left = user;
    return (*left)-- == 0;
}

static void test_refused(void **state)
{
    (void)state;
    char lean[TEST_PATH_SIZE], tiny[TEST_PATH_SIZE], output[TEST_PATH_SIZE];
    laya_benchmark_options options;
    laya_report *report;
    laya_error error;
    const char *compare[] = {test_join(tiny, shelter, "tiny")};
    test_join(lean, shelter, "lean");
    small_options(&options);
    options.compare = compare;
    options.compare_count = 1;
    assert_int_equal(laya_benchmark(lean, &options, &report, &error), LAYA_ERROR_FORMAT);
    assert_contains(error.message, "compare packages of one checkpoint");
    assert_null(report);
    options.compare_count = 0;
    options.length = 64;
    assert_int_equal(laya_benchmark(lean, &options, &report, &error), LAYA_ERROR_ARGUMENT);
    options.length = 0;
    options.calls = 0;
    assert_int_equal(laya_benchmark(lean, &options, &report, &error), LAYA_ERROR_ARGUMENT);
    options.calls = 1;
    options.output = test_join(output, shelter, "report.json");
    test_write_file(output, "mine", 4);
    assert_int_equal(laya_benchmark(lean, &options, &report, &error), LAYA_ERROR_IO);
    unlink(output);
    unsigned left = 2;
    options.interrupt = (laya_interrupt){.user = &left, .requested = stop};
    assert_int_equal(laya_benchmark(lean, &options, &report, &error), LAYA_ERROR_STOPPED);
    assert_int_not_equal(access(output, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order_statistics),
                                       cmocka_unit_test(test_student),
                                       cmocka_unit_test(test_paired_ratio),
                                       cmocka_unit_test(test_integral),
                                       cmocka_unit_test(test_rejections),
                                       cmocka_unit_test(test_sampler_command),
                                       cmocka_unit_test(test_sampler_ends),
                                       cmocka_unit_test(test_powercap),
                                       cmocka_unit_test(test_energy),
                                       cmocka_unit_test(test_rejected_energy),
                                       cmocka_unit_test(test_block_ratio),
                                       cmocka_unit_test(test_alternation),
                                       cmocka_unit_test(test_workload),
                                       cmocka_unit_test(test_report),
                                       cmocka_unit_test(test_report_with_power),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, make_bundles, remove_bundles);
}
