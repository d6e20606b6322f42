/* SPDX-License-Identifier: Apache-2.0 */
/* The pool: every index once, workers apart, many short regions, pauses long enough to sleep. */
#include "support.h"

#include "base/threads.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST 1000

typedef struct tally {
    unsigned runs[MOST];    /* written without atomics: each index belongs to one task */
    unsigned char busy[16]; /* a worker's own memory */
    unsigned long by_worker[16];
    unsigned threads;
    atomic_uint wrong;
} tally;

static tally *make_tally(unsigned threads)
{
    tally *t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->threads = threads;
    return t;
}

static void count_run(void *argument, size_t index, unsigned worker)
{
    tally *t = argument;
    if (worker >= t->threads || t->busy[worker]) {
        atomic_fetch_add(&t->wrong, 1);
        return;
    }
    t->busy[worker] = 1;
    t->runs[index]++;
    t->by_worker[worker]++;
    t->busy[worker] = 0;
}

static void pause_for(long microseconds)
{
    struct timespec rest = {0, microseconds * 1000};
    nanosleep(&rest, NULL);
}

static laya_pool *open_pool(unsigned threads)
{
    laya_error error;
    laya_pool *pool;
    assert_int_equal(laya_pool_open(threads, NULL, &pool, &error), LAYA_OK);
    assert_int_equal(laya_pool_threads(pool), threads);
    return pool;
}

static void test_every_index_once(void **unused)
{
    (void)unused;
    static const unsigned threads[] = {1, 2, 3, 8};
    static const size_t counts[] = {0, 1, 2, 3, 7, 64, MOST};
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        laya_pool *pool = open_pool(threads[t]);
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            tally *state = make_tally(threads[t]);
            laya_pool_run(pool, counts[c], count_run, state);
            for (size_t i = 0; i < MOST; i++) assert_int_equal(state->runs[i], i < counts[c] ? 1 : 0);
            assert_int_equal(atomic_load(&state->wrong), 0);
            free(state);
        }
        laya_pool_close(pool);
    }
}

static void test_many_regions(void **unused)
{
    (void)unused;
    laya_pool *pool = open_pool(4);
    tally *state = make_tally(4);
    size_t expected = 0;
    for (size_t region = 0; region < 3000; region++) {
        size_t count = 1 + region % 9;
        laya_pool_run(pool, count, count_run, state);
        expected += count;
    }
    size_t sum = 0;
    for (size_t i = 0; i < MOST; i++) sum += state->runs[i];
    assert_int_equal(sum, expected);
    assert_int_equal(atomic_load(&state->wrong), 0);
    free(state);
    laya_pool_close(pool);
}

static void test_after_sleep(void **unused)
{
    (void)unused;
    laya_pool *pool = open_pool(3);
    tally *state = make_tally(3);
    for (unsigned round = 1; round <= 20; round++) {
        pause_for(round % 4 * 700); /* from no rest to well beyond the spin */
        laya_pool_run(pool, 100, count_run, state);
        for (size_t i = 0; i < 100; i++) assert_int_equal(state->runs[i], round);
    }
    assert_int_equal(atomic_load(&state->wrong), 0);
    free(state);
    laya_pool_close(pool);
}

/* The caller leaves the region only when the slowest worker has left it. */
static void slow_write(void *argument, size_t index, unsigned worker)
{
    (void)worker;
    if (index == 0) pause_for(3000);
    ((unsigned *)argument)[index] = 1;
}

static void test_waits_for_the_slowest(void **unused)
{
    (void)unused;
    laya_pool *pool = open_pool(3);
    for (int round = 0; round < 10; round++) {
        unsigned written[3] = {0};
        laya_pool_run(pool, 3, slow_write, written);
        for (size_t i = 0; i < 3; i++) assert_int_equal(written[i], 1);
    }
    laya_pool_close(pool);
}

static void test_open_and_close(void **unused)
{
    (void)unused;
    for (int i = 0; i < 50; i++) laya_pool_close(open_pool(1 + (unsigned)i % 5));
    laya_pool_close(NULL);
    laya_error error;
    laya_pool *pool;
    assert_int_equal(laya_pool_open(0, NULL, &pool, &error), LAYA_ERROR_ARGUMENT);
    assert_null(pool);
    assert_true(laya_online_cpus() >= 1);
}

static void test_failing_allocations(void **unused)
{
    (void)unused;
    laya_error error;
    laya_pool *pool;
    test_memory memory;
    test_memory_init(&memory);
    for (size_t fail_at = 1; fail_at <= 2; fail_at++) {
        test_memory_arm(&memory, fail_at);
        assert_int_equal(laya_pool_open(2, &memory.hooks, &pool, &error), LAYA_ERROR_MEMORY);
        assert_null(pool);
        assert_int_equal(memory.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_index_once), cmocka_unit_test(test_many_regions),
        cmocka_unit_test(test_after_sleep),      cmocka_unit_test(test_waits_for_the_slowest),
        cmocka_unit_test(test_open_and_close),   cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
