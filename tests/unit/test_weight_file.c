/* SPDX-License-Identifier: Apache-2.0 */
/* weight.bin: packing, the writer's bytes, the reader against good and hostile files. */
#include "support.h"

#include "base/file.h"
#include "base/output.h"
#include "coreml/weight_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ------------------------------------------------------------------ packing */

/* Bytes of Apple's writer. */
static const struct golden {
    unsigned bits, count, code, padding;
    unsigned char values[10];
    unsigned size;
    unsigned char packed[4];
} golden[] = {
    {1, 10, 9, 6, {1, 0, 1, 1, 0, 0, 0, 1, 1, 1}, 2, {0x8d, 0x03}},
    {2, 5, 10, 6, {0, 3, 2, 1, 3}, 2, {0x6c, 0x03}},
    {3, 5, 12, 1, {1, 2, 3, 4, 5}, 2, {0xd1, 0x58}},
    {4, 5, 11, 4, {1, 2, 3, 4, 5}, 3, {0x21, 0x43, 0x05}},
    {6, 5, 13, 2, {1, 2, 3, 40, 63}, 4, {0x81, 0x30, 0xa0, 0x3f}},
    {4, 3, 8, 4, {0xf8, 7, 0xff}, 2, {0x78, 0x0f}}, /* int4 -8, 7, -1 */
};

static void test_packing(void **state)
{
    (void)state;
    for (size_t row = 0; row < sizeof golden / sizeof *golden; row++) {
        unsigned char packed[5];
        memset(packed, 0xAA, sizeof packed);
        laya_pack_bits(golden[row].values, golden[row].count, golden[row].bits, packed);
        assert_memory_equal(packed, golden[row].packed, golden[row].size);
        assert_int_equal(packed[golden[row].size], 0xAA);
        unsigned mask = (1u << golden[row].bits) - 1;
        for (unsigned i = 0; i < golden[row].count; i++) {
            unsigned value = laya_unpack_bits(golden[row].packed, i, golden[row].bits);
            assert_int_equal(value, golden[row].values[i] & mask);
        }
    }
    static const unsigned char bytes[] = {0, 1, 0x80, 0xff};
    unsigned char packed[4];
    laya_pack_bits(bytes, 4, 8, packed);
    assert_memory_equal(packed, bytes, 4);
    assert_int_equal(laya_unpack_bits(bytes, 2, 8), 0x80);
    laya_pack_bits(NULL, 0, 3, NULL);
    /* uint3 0, 5, 2, 7, 3, 1, as the format's documentation of immediate values has it; the last byte is full */
    static const unsigned char threes[] = {0, 5, 2, 7, 3, 1, 6, 4};
    static const unsigned char three_bytes[] = {0xa8, 0xbe, 0x98};
    laya_pack_bits(threes, 8, 3, packed);
    assert_memory_equal(packed, three_bytes, 3);
    assert_int_equal(laya_unpack_bits(three_bytes, 7, 3), 4);
}

/* ------------------------------------------------------------------ programs by hand */

enum { MAX_OPS = 8 };

typedef struct test_program {
    laya_mil_program program;
    laya_mil_function functions[2];
    laya_mil_constant constants[MAX_OPS];
    laya_mil_attribute attributes[MAX_OPS];
    laya_mil_op ops[MAX_OPS];
    unsigned count;
    char directory[TEST_PATH_SIZE], path[TEST_PATH_SIZE + 16];
    uint32_t blobs;
    laya_written written;
    laya_error error;
} test_program;

static int make_program(void **state)
{
    test_program *test = calloc(1, sizeof *test);
    if (!test) return -1;
    laya_mil_program_init(&test->program, NULL);
    test->program.functions = test->functions;
    test->program.function_count = 1;
    const char *temporary = getenv("TMPDIR");
    snprintf(test->directory, sizeof test->directory, "%s/laya-test-XXXXXX",
             temporary && *temporary ? temporary : "/tmp");
    *state = test;
    if (!mkdtemp(test->directory)) return -1;
    snprintf(test->path, sizeof test->path, "%s/weight.bin", test->directory);
    return 0;
}

static int remove_program(void **state)
{
    test_program *test = *state;
    laya_mil_program_close(&test->program);
    unlink(test->path);
    int result = rmdir(test->directory);
    free(test);
    return result;
}

/* Append an operation with this attribute to a block. */
static laya_mil_constant *add_const(test_program *test, laya_mil_block *block, laya_mil_type type, const void *bytes)
{
    unsigned at = test->count++;
    assert_true(at < MAX_OPS);
    test->constants[at] = (laya_mil_constant){.type = type, .bytes = bytes};
    laya_mil_type_size(&type, &test->constants[at].size);
    test->attributes[at] = (laya_mil_attribute){"val", &test->constants[at]};
    test->ops[at] = (laya_mil_op){.type = "const", .attributes = &test->attributes[at], .attribute_count = 1};
    if (block->last)
        block->last->next = &test->ops[at];
    else
        block->first = &test->ops[at];
    block->last = &test->ops[at];
    block->op_count++;
    return &test->constants[at];
}

static laya_status write_meter(test_program *test, laya_mil_opset opset, const laya_meter *meter)
{
    unlink(test->path);
    return laya_weight_file_write(&test->program, opset, test->path, meter, &test->written, &test->blobs,
                                  &test->error);
}

static void write_file(test_program *test, laya_mil_opset opset)
{
    if (write_meter(test, opset, NULL) != LAYA_OK) fail_msg("%s", test->error.message);
}

/* The file is `expected`, and its size and hash are stated right. */
static void expect_file(test_program *test, const unsigned char *expected, size_t size)
{
    size_t got;
    char hex[65];
    char *file = test_read_file(test->path, &got);
    assert_int_equal(got, size);
    assert_memory_equal(file, expected, size);
    assert_int_equal(test->written.size, size);
    assert_int_equal(laya_sha256(file, got, hex, NULL), LAYA_OK);
    assert_string_equal(test->written.sha256, hex);
    free(file);
}

static const unsigned char ramp[64] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                       16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
                                       32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
                                       48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

/* ------------------------------------------------------------------ the writer */

static void test_policy(void **state)
{
    (void)state;
    static const laya_mil_dtype always[] = {LAYA_MIL_FP16, LAYA_MIL_FP32, LAYA_MIL_UINT8, LAYA_MIL_INT8};
    static const laya_mil_dtype later[] = {LAYA_MIL_INT16, LAYA_MIL_UINT16, LAYA_MIL_INT32, LAYA_MIL_UINT32,
                                           LAYA_MIL_INT4,  LAYA_MIL_UINT1,  LAYA_MIL_UINT2, LAYA_MIL_UINT3,
                                           LAYA_MIL_UINT4, LAYA_MIL_UINT6};
    static const laya_mil_dtype never[] = {LAYA_MIL_BOOL, LAYA_MIL_STRING, LAYA_MIL_FP64, LAYA_MIL_INT64,
                                           LAYA_MIL_UINT64};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) {
        laya_mil_type ten = laya_mil_tensor4(always[i], 1, 5, 1, 2), nine = laya_mil_vector(always[i], 9);
        assert_true(laya_constant_in_file(&ten, LAYA_MIL_COREML5));
        assert_true(laya_constant_in_file(&ten, LAYA_MIL_COREML8));
        assert_false(laya_constant_in_file(&nine, LAYA_MIL_COREML8));
    }
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        laya_mil_type ten = laya_mil_vector(later[i], 10), nine = laya_mil_vector(later[i], 9);
        assert_false(laya_constant_in_file(&ten, LAYA_MIL_COREML7));
        assert_true(laya_constant_in_file(&ten, LAYA_MIL_COREML8));
        assert_false(laya_constant_in_file(&nine, LAYA_MIL_COREML8));
    }
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        laya_mil_type ten = laya_mil_vector(never[i], 10);
        assert_false(laya_constant_in_file(&ten, LAYA_MIL_COREML9));
    }
    laya_mil_type unknown = laya_mil_vector(LAYA_MIL_FP16, LAYA_MIL_UNKNOWN);
    laya_mil_type state16 = laya_mil_vector(LAYA_MIL_FP16, 10);
    state16.kind = LAYA_MIL_STATE;
    assert_false(laya_constant_in_file(&unknown, LAYA_MIL_COREML8));
    assert_false(laya_constant_in_file(&state16, LAYA_MIL_COREML8));
}

/* A record, field by field, at file + at. */
static void put_record(unsigned char *file, size_t at, unsigned char code, unsigned char size, unsigned char padding)
{
    static const unsigned char sentinel[] = {0xef, 0xbe, 0xad, 0xde};
    memcpy(file + at, sentinel, 4);
    file[at + 4] = code;
    file[at + 8] = size;
    file[at + 16] = (unsigned char)((at + 64) & 255);
    file[at + 17] = (unsigned char)((at + 64) >> 8);
    file[at + 24] = padding;
}

/* Attributes, constants bound in place and nested blocks, in the order of the operations; the offsets and bytes are
   counted by hand. */
static void test_layout(void **state)
{
    test_program *test = *state;
    laya_mil_block *body = &test->functions[0].body;
    static const unsigned char ones[11] = {0x8d, 0x03};
    laya_mil_constant *a = add_const(test, body, laya_mil_vector(LAYA_MIL_UINT8, 13), ramp);
    laya_mil_constant *small = add_const(test, body, laya_mil_vector(LAYA_MIL_FP16, 9), ramp);
    small->in_file = true; /* as a program that was read may have it */
    small->offset = 64;
    laya_mil_constant *b = add_const(test, body, laya_mil_tensor4(LAYA_MIL_FP16, 2, 16, 1, 1), ramp);

    /* the last operation has two nested blocks and two constants bound in place, one of them known already */
    laya_mil_constant in_place = {.type = laya_mil_vector(LAYA_MIL_INT8, 10), .bytes = ramp + 1};
    laya_mil_constant again = {.type = laya_mil_vector(LAYA_MIL_FP16, 32), .bytes = ramp};
    laya_mil_binding bindings[] = {{"a", NULL, NULL}, {NULL, NULL, &in_place}, {NULL, NULL, &again}};
    laya_mil_argument inputs[] = {{"x", bindings, 1}, {"values", bindings + 1, 2}};
    laya_mil_block nested[2] = {{0}};
    laya_mil_constant *c = add_const(test, &nested[0], laya_mil_vector(LAYA_MIL_UINT1, 10), ones);
    laya_mil_constant *d = add_const(test, &nested[1], laya_mil_vector(LAYA_MIL_FP32, 10), ramp);
    test->attributes[test->count] = (laya_mil_attribute){"val", a};
    laya_mil_op *branch = &test->ops[test->count++];
    *branch = (laya_mil_op){.type = "cond", .inputs = inputs, .input_count = 2, .blocks = nested, .block_count = 2};
    body->last->next = branch;
    body->last = branch;
    laya_mil_constant *e = add_const(test, body, laya_mil_vector(LAYA_MIL_UINT8, 10), ramp + 1);
    test->program.function_count = 2;
    laya_mil_constant *f = add_const(test, &test->functions[1].body, laya_mil_vector(LAYA_MIL_UINT8, 13), ramp);

    write_file(test, LAYA_MIL_COREML8);
    assert_int_equal(test->blobs, 6);
    unsigned char expected[778 + 64] = {6, 0, 0, 0, 2};
    put_record(expected, 64, 3, 13, 0); /* a */
    memcpy(expected + 128, ramp, 13);
    put_record(expected, 192, 1, 64, 0); /* b: 256 to 319, so that no gap follows */
    memcpy(expected + 256, ramp, 64);
    put_record(expected, 320, 4, 10, 0); /* in_place */
    memcpy(expected + 384, ramp + 1, 10);
    put_record(expected, 448, 9, 2, 6); /* c */
    memcpy(expected + 512, ones, 2);
    put_record(expected, 576, 2, 40, 0); /* d */
    memcpy(expected + 640, ramp, 40);
    put_record(expected, 704, 3, 10, 0); /* e: the bytes of in_place, of another type */
    memcpy(expected + 768, ramp + 1, 10);
    expect_file(test, expected, 778);
    assert_int_equal(a->offset, 64);
    assert_int_equal(b->offset, 192);
    assert_int_equal(in_place.offset, 320);
    assert_int_equal(c->offset, 448);
    assert_int_equal(d->offset, 576);
    assert_int_equal(e->offset, 704);
    assert_int_equal(again.offset, 192);
    assert_int_equal(f->offset, 64);
    assert_true(a->in_file && b->in_file && c->in_file && d->in_file && e->in_file && f->in_file);
    assert_true(in_place.in_file && again.in_file);
    assert_false(small->in_file);
    write_file(test, LAYA_MIL_COREML8);
    expect_file(test, expected, 778);

    /* an older opset keeps the packed one in the model */
    write_file(test, LAYA_MIL_COREML7);
    assert_int_equal(test->blobs, 5);
    assert_false(c->in_file);
    assert_int_equal(d->offset, 448);
}

/* The same bytes with another number of packed values: the record states how many bits are unused. */
static void test_same_bytes_other_padding(void **state)
{
    test_program *test = *state;
    laya_mil_block *body = &test->functions[0].body;
    static const unsigned char packed[6] = {0x21, 0x43, 0x65, 0x87, 0x09, 0x01};
    laya_mil_constant *odd = add_const(test, body, laya_mil_vector(LAYA_MIL_UINT4, 11), packed);
    laya_mil_constant *even = add_const(test, body, laya_mil_vector(LAYA_MIL_UINT4, 12), packed);
    write_file(test, LAYA_MIL_COREML8);
    assert_int_equal(test->blobs, 2);
    assert_int_equal(odd->offset, 64);
    assert_int_equal(even->offset, 192);
    unsigned char expected[262] = {2, 0, 0, 0, 2};
    put_record(expected, 64, 11, 6, 4);
    memcpy(expected + 128, packed, 6);
    put_record(expected, 192, 11, 6, 0);
    memcpy(expected + 256, packed, 6);
    expect_file(test, expected, sizeof expected);
}

static void test_nothing_to_write(void **state)
{
    test_program *test = *state;
    struct stat facts;
    add_const(test, &test->functions[0].body, laya_mil_vector(LAYA_MIL_FP16, 3), ramp);
    write_file(test, LAYA_MIL_COREML8);
    assert_int_equal(test->blobs, 0);
    assert_int_equal(test->written.size, 0);
    assert_string_equal(test->written.sha256, "");
    assert_int_not_equal(stat(test->path, &facts), 0);
    test->program.function_count = 0;
    write_file(test, LAYA_MIL_COREML8);
    assert_int_equal(test->blobs, 0);
}

/* ------------------------------------------------------------------ sources */

/* Bytes that depend on their place alone; every call is counted. */
typedef struct test_source {
    uint64_t row, rows; /* bytes of a row, rows */
    uint64_t next;      /* row expected next */
    unsigned calls, fail_at, forgotten;
    uint64_t largest; /* bytes of one call */
} test_source;

static unsigned char source_byte(uint64_t at)
{
    return (unsigned char)(at * 2654435761u >> 11);
}

static laya_status source_read(const void *user, uint64_t first, uint64_t count, unsigned char *out,
                               laya_error *error)
{
    test_source *source = *(test_source *const *)user;
    assert_int_equal(first, source->next);
    assert_true(count > 0 && first + count <= source->rows);
    source->next = (first + count) % source->rows;
    if (count * source->row > source->largest) source->largest = count * source->row;
    if (++source->calls == source->fail_at) {
        if (error) snprintf(error->message, sizeof error->message, "embeddings: too large for fp16");
        return LAYA_ERROR_FORMAT;
    }
    for (uint64_t i = 0; i < count * source->row; i++) out[i] = source_byte(first * source->row + i);
    return LAYA_OK;
}

static void source_forget(const void *user)
{
    (*(test_source *const *)user)->forgotten++;
}

static void check_source(test_program *test, laya_mil_type type, uint64_t row, uint64_t largest)
{
    test->functions[0].body = (laya_mil_block){0};
    test->count = 0;
    laya_mil_constant *constant = add_const(test, &test->functions[0].body, type, NULL);
    test_source source = {.row = row, .rows = (uint64_t)type.dims[0]}, *user = &source;
    laya_mil_source hooks = {&user, source_read, source_forget};
    constant->source = &hooks;
    write_file(test, LAYA_MIL_COREML8);
    assert_int_equal(source.next, 0);
    assert_int_equal(source.forgotten, 2);
    assert_int_equal(source.largest, largest);
    size_t size;
    char *file = test_read_file(test->path, &size);
    assert_int_equal(size, 128 + row * source.rows);
    for (uint64_t i = 0; i < row * source.rows; i++) {
        if ((unsigned char)file[128 + i] != source_byte(i)) fail_msg("byte %zu differs", (size_t)i);
    }
    free(file);
    hooks.forget = NULL;
    source.calls = 0;
    write_file(test, LAYA_MIL_COREML8);
    assert_int_equal(source.forgotten, 2);

    /* an error in the first or the second pass */
    unsigned calls = source.calls;
    for (unsigned fail = 1; fail <= calls; fail++) {
        source = (test_source){.row = row, .rows = source.rows, .fail_at = fail};
        assert_int_equal(write_meter(test, LAYA_MIL_COREML8, NULL), LAYA_ERROR_FORMAT);
        assert_string_equal(test->error.message, "embeddings: too large for fp16");
        assert_int_equal(test->blobs, 0);
        assert_int_equal(test->written.size, 0);
    }
}

/* Rows that fit into a block many times, once and not at all. */
static void test_sources(void **state)
{
    test_program *test = *state;
    check_source(test, laya_mil_vector(LAYA_MIL_FP16, 300001), 2, 262144);
    check_source(test, laya_mil_tensor4(LAYA_MIL_FP32, 7, 10007, 1, 1), 40028, 6 * 40028);
    check_source(test, laya_mil_tensor4(LAYA_MIL_FP16, 2, 200000, 1, 1), 400000, 400000);
    check_source(test, laya_mil_tensor4(LAYA_MIL_UINT4, 3, 6, 1, 1), 3, 9);
}

static void test_source_of_partial_bytes(void **state)
{
    test_program *test = *state;
    laya_mil_source hooks = {NULL, source_read, NULL};
    laya_mil_constant *constant = add_const(test, &test->functions[0].body,
                                            laya_mil_tensor4(LAYA_MIL_UINT1, 4, 7, 1, 1), NULL);
    constant->source = &hooks;
    assert_int_equal(write_meter(test, LAYA_MIL_COREML8, NULL), LAYA_ERROR_FORMAT);
    assert_contains(test->error.message, "type uint1 [4, 7, 1, 1] cannot be stored: its rows are not whole bytes");
}

/* ------------------------------------------------------------------ meter, failures */

typedef struct byte_counter {
    uint64_t bytes, limit;
} byte_counter;

static laya_status count_bytes(void *user, uint64_t bytes, laya_error *error)
{
    (void)error;
    byte_counter *counter = user;
    counter->bytes += bytes;
    return counter->bytes > counter->limit ? LAYA_ERROR_STOPPED : LAYA_OK;
}

static void add_three(test_program *test)
{
    laya_mil_block *body = &test->functions[0].body;
    add_const(test, body, laya_mil_vector(LAYA_MIL_UINT8, 64), ramp);
    add_const(test, body, laya_mil_vector(LAYA_MIL_FP16, 10), ramp);
    add_const(test, body, laya_mil_vector(LAYA_MIL_FP16, 10), ramp);
    add_const(test, body, laya_mil_vector(LAYA_MIL_FP16, 9), ramp);
}

static void test_meter(void **state)
{
    test_program *test = *state;
    byte_counter counter = {0, UINT64_MAX};
    laya_meter meter = {&counter, count_bytes};
    const uint64_t total = (64 + 20 + 20) * 2;
    add_three(test);
    assert_int_equal(write_meter(test, LAYA_MIL_COREML8, &meter), LAYA_OK);
    assert_int_equal(counter.bytes, total);
    for (uint64_t limit = 0; limit < total; limit += 20) {
        counter = (byte_counter){0, limit};
        assert_int_equal(write_meter(test, LAYA_MIL_COREML8, &meter), LAYA_ERROR_STOPPED);
        assert_int_equal(test->blobs, 0);
    }
}

static void test_path_errors(void **state)
{
    test_program *test = *state;
    add_three(test);
    write_file(test, LAYA_MIL_COREML8);
    assert_int_equal(laya_weight_file_write(&test->program, LAYA_MIL_COREML8, test->path, NULL, &test->written,
                                            &test->blobs, &test->error),
                     LAYA_ERROR_IO);
    assert_contains(test->error.message, "weight.bin: cannot be created: it exists already");
    assert_int_equal(test->blobs, 0);
    assert_int_equal(test->written.size, 0);
}

static void test_no_memory(void **state)
{
    test_program *test = *state;
    test_memory memory;
    test_source source = {.row = 2, .rows = 20}, *user = &source;
    laya_mil_source hooks = {&user, source_read, source_forget};
    add_three(test);
    add_const(test, &test->functions[0].body, laya_mil_vector(LAYA_MIL_FP16, 20), NULL)->source = &hooks;
    test_memory_init(&memory);
    test->program.arena.allocator = memory.hooks;
    size_t fail = 0;
    do {
        test_memory_arm(&memory, ++fail);
        laya_status status = write_meter(test, LAYA_MIL_COREML8, NULL);
        assert_int_equal(status, memory.failed ? LAYA_ERROR_MEMORY : LAYA_OK);
        assert_int_equal(memory.live, 0);
    } while (memory.failed);
    assert_true(fail > 5);
    assert_int_equal(test->blobs, 3);
}

/* ------------------------------------------------------------------ the reader */

typedef struct seen {
    laya_blob blobs[8];
    unsigned count, stop_at;
} seen;

static laya_status see(void *user, const laya_blob *blob, laya_error *error)
{
    (void)error;
    seen *all = user;
    assert_true(all->count < 8);
    all->blobs[all->count++] = *blob;
    return all->count == all->stop_at ? LAYA_ERROR_STOPPED : LAYA_OK;
}

/* Apple's record of fp16 1.0, -2.0, 0.5, first in the file, then the packed rows. */
static size_t make_golden_file(unsigned char *file)
{
    static const unsigned char halves[] = {0x00, 0x3c, 0x00, 0xc0, 0x00, 0x38};
    static const unsigned char record[] = {0xef, 0xbe, 0xad, 0xde, 1,    0, 0, 0, 6, 0, 0, 0,
                                           0,    0,    0,    0,    0x80, 0, 0, 0, 0, 0, 0, 0};
    size_t at = 192;
    file[0] = 7;
    file[4] = 2;
    memcpy(file + 64, record, sizeof record);
    memcpy(file + 128, halves, 6);
    for (size_t row = 0; row < 6; row++, at += 128) {
        put_record(file, at, (unsigned char)golden[row].code, (unsigned char)golden[row].size,
                   (unsigned char)golden[row].padding);
        memcpy(file + at + 64, golden[row].packed, golden[row].size);
    }
    return at - 64 + golden[5].size;
}

static void test_read_golden(void **state)
{
    (void)state;
    static const laya_mil_dtype dtypes[] = {LAYA_MIL_FP16,  LAYA_MIL_UINT1, LAYA_MIL_UINT2, LAYA_MIL_UINT3,
                                            LAYA_MIL_UINT4, LAYA_MIL_UINT6, LAYA_MIL_INT4};
    unsigned char space[960] = {0};
    size_t size = make_golden_file(space);
    unsigned char *file = malloc(size); /* of the exact size */
    assert_non_null(file);
    memcpy(file, space, size);
    seen all = {.count = 0};
    uint32_t count;
    laya_error error;
    if (laya_weight_file_walk(file, size, see, &all, &count, &error) != LAYA_OK) fail_msg("%s", error.message);
    assert_int_equal(count, 7);
    assert_int_equal(all.count, 7);
    for (unsigned i = 0; i < 7; i++) {
        const laya_blob *blob = &all.blobs[i];
        assert_int_equal(blob->dtype, dtypes[i]);
        assert_int_equal(blob->record, 64 + 128 * i);
        assert_ptr_equal(blob->data, file + 128 + 128 * i);
        assert_int_equal(blob->size, i ? golden[i - 1].size : 6);
        assert_int_equal(blob->padding_bits, i ? golden[i - 1].padding : 0);
        laya_blob again;
        assert_int_equal(laya_blob_read(file, size, blob->record, &again, &error), LAYA_OK);
        assert_memory_equal(&again.data, &blob->data, sizeof blob->data);
        assert_int_equal(again.dtype, blob->dtype);
    }
    assert_int_equal(laya_weight_file_walk(file, size, NULL, NULL, &count, NULL), LAYA_OK);
    assert_int_equal(count, 7);
    all = (seen){.stop_at = 3};
    assert_int_equal(laya_weight_file_walk(file, size, see, &all, &count, NULL), LAYA_ERROR_STOPPED);
    assert_int_equal(all.count, 3);
    assert_int_equal(count, 0);

    /* reserved fields are ignored; zeros up to the next multiple of 64 may follow */
    memset(file + 8, 0xAA, 56);
    memset(file + 64 + 32, 0xAA, 32);
    assert_int_equal(laya_weight_file_walk(file, size, NULL, NULL, &count, NULL), LAYA_OK);
    free(file);
    assert_int_equal(laya_weight_file_walk(space, 960, NULL, NULL, &count, NULL), LAYA_OK);
}

static void test_read_own(void **state)
{
    test_program *test = *state;
    size_t size;
    uint32_t count;
    laya_error error;
    seen all = {.count = 0};
    add_three(test);
    write_file(test, LAYA_MIL_COREML8);
    char *file = test_read_file(test->path, &size);
    assert_int_equal(laya_weight_file_walk((unsigned char *)file, size, see, &all, &count, &error), LAYA_OK);
    assert_int_equal(count, 2);
    assert_int_equal(all.blobs[0].dtype, LAYA_MIL_UINT8);
    assert_int_equal(all.blobs[0].size, 64);
    assert_memory_equal(all.blobs[0].data, ramp, 64);
    assert_int_equal(all.blobs[1].dtype, LAYA_MIL_FP16);
    assert_memory_equal(all.blobs[1].data, ramp, 20);
    free(file);
}

/* One change of a good file (value 8 bytes little-endian at `at`), and what the walk says. */
static void expect_hostile(size_t at, uint64_t value, unsigned bytes, const char *text)
{
    unsigned char space[960] = {0};
    size_t size = make_golden_file(space);
    unsigned char *file = malloc(size);
    uint32_t count = 9;
    laya_error error;
    assert_non_null(file);
    for (unsigned i = 0; i < bytes; i++) space[at + i] = (unsigned char)(value >> 8 * i);
    memcpy(file, space, size);
    assert_int_equal(laya_weight_file_walk(file, size, NULL, NULL, &count, &error), LAYA_ERROR_FORMAT);
    assert_contains(error.message, text);
    assert_int_equal(count, 0);
    free(file);
}

static void test_hostile_records(void **state)
{
    (void)state;
    expect_hostile(4, 1, 4, "version 1, expected 2");
    expect_hostile(4, 3, 4, "version 3, expected 2");
    expect_hostile(0, 8, 4, "the header counts 8 blobs, the file holds 7");
    expect_hostile(0, UINT32_MAX, 4, "the header counts 4294967295 blobs, the file holds 7");
    expect_hostile(0, 6, 4, "bytes after the 6 blobs");
    expect_hostile(0, 0, 4, "bytes after the 0 blobs");
    expect_hostile(64, 0xDEADBEEE, 4, "record at 64: sentinel 0xdeadbeee, expected 0xdeadbeef");
    expect_hostile(192, 0, 4, "record at 192: sentinel 0x00000000");
    expect_hostile(68, 0, 4, "type code 0");
    expect_hostile(68, 18, 4, "type code 18");
    expect_hostile(68, UINT32_MAX, 4, "type code 4294967295");
    expect_hostile(72, 5, 8, "5 bytes less 0 bits of padding are not whole values of type fp16");
    expect_hostile(72, 10000, 8, "10000 bytes of data, but the file has");
    expect_hostile(72, UINT64_MAX - 1, 8, "18446744073709551614 bytes of data");
    expect_hostile(72, UINT64_MAX - 127, 8, "bytes of data");
    expect_hostile(72, 128, 8, "record at 256: sentinel 0x0000038d"); /* data over the next record */
    expect_hostile(80, 64, 8, "data at 64, expected 128");
    expect_hostile(80, 192, 8, "data at 192, expected 128");
    expect_hostile(80, UINT64_MAX, 8, "data at 18446744073709551615, expected 128");
    expect_hostile(80, UINT64_MAX - 63, 8, "expected 128");
    expect_hostile(88, 8, 8, "less 8 bits of padding");
    expect_hostile(88, 16, 8, "less 16 bits of padding");
    expect_hostile(135, 1, 1, "byte 0x01 at 135, between blobs; expected 0");
    expect_hostile(191, 0x80, 1, "byte 0x80 at 191");
    /* packed: uint1 at 192, uint3 at 448, uint6 at 704 */
    expect_hostile(192 + 24, 8, 8, "2 bytes less 8 bits of padding are not whole values of type uint1");
    expect_hostile(192 + 24, UINT64_MAX, 8, "bits of padding");
    expect_hostile(192 + 8, 0, 8, "0 bytes less 6 bits");
    expect_hostile(448 + 24, 0, 8, "2 bytes less 0 bits of padding are not whole values of type uint3");
    expect_hostile(704 + 24, 3, 8, "4 bytes less 3 bits of padding are not whole values of type uint6");
}

/* Every prefix of a good file is refused, and none is read beyond its end (each lies in a block of its size). */
static void test_truncated(void **state)
{
    (void)state;
    unsigned char space[960] = {0};
    size_t whole = make_golden_file(space);
    uint32_t count;
    laya_error error;
    assert_int_equal(laya_weight_file_walk(NULL, 0, NULL, NULL, &count, &error), LAYA_ERROR_FORMAT);
    assert_contains(error.message, "0 bytes, expected a header of 64; the file is cut short");
    for (size_t size = 1; size < whole; size++) {
        unsigned char *file = malloc(size);
        assert_non_null(file);
        memcpy(file, space, size);
        assert_int_equal(laya_weight_file_walk(file, size, NULL, NULL, &count, &error), LAYA_ERROR_FORMAT);
        free(file);
    }
}

static void test_bad_references(void **state)
{
    (void)state;
    static const uint64_t records[] = {
        0, 1, 63, 65, 128, 127, 896, 960, 1024, UINT64_MAX, UINT64_MAX - 63, (uint64_t)1 << 63};
    unsigned char file[960] = {0};
    size_t size = make_golden_file(file);
    laya_blob blob;
    laya_error error;
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        blob.data = file;
        assert_int_equal(laya_blob_read(file, size, records[i], &blob, &error), LAYA_ERROR_FORMAT);
        assert_null(blob.data);
        assert_int_equal(blob.size, 0);
    }
    assert_int_equal(laya_blob_read(file, 63, 64, &blob, &error), LAYA_ERROR_FORMAT);
    assert_int_equal(laya_blob_read(file, 127, 64, &blob, &error), LAYA_ERROR_FORMAT);
    assert_contains(error.message, "offset 64: expected a record at a multiple of 64");
}

int main(void)
{
#define WITH_PROGRAM(test) cmocka_unit_test_setup_teardown(test, make_program, remove_program)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packing),
        cmocka_unit_test(test_policy),
        WITH_PROGRAM(test_layout),
        WITH_PROGRAM(test_same_bytes_other_padding),
        WITH_PROGRAM(test_nothing_to_write),
        WITH_PROGRAM(test_sources),
        WITH_PROGRAM(test_source_of_partial_bytes),
        WITH_PROGRAM(test_meter),
        WITH_PROGRAM(test_path_errors),
        WITH_PROGRAM(test_no_memory),
        cmocka_unit_test(test_read_golden),
        WITH_PROGRAM(test_read_own),
        cmocka_unit_test(test_hostile_records),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_bad_references),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
