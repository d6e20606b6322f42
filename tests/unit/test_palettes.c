/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of many weights at once against those of their groups one by one, whatever the number of threads; bits
 * of UNIQUE; meter and failures.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#define _DARWIN_C_SOURCE

#include "support.h"

#include "palette/palettes.h"
#include "palette_group.h"

#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const unsigned widths[] = {1, 2, 3, 4, 6, 8};
#define WIDTHS (sizeof widths / sizeof *widths)

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
