/* SPDX-License-Identifier: Apache-2.0 */
/* The safetensors reader: good files, and one error per rule of the format. */
#include "support.h"

#include "model/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file of the given header and `bytes` data bytes 0, 1, 2, ... in a block of its exact size. */
static unsigned char *make_file(const char *header, size_t bytes, size_t *size)
{
    size_t length = strlen(header);
    *size = 8 + length + bytes;
    unsigned char *file = malloc(*size);
    assert_non_null(file);
    for (int i = 0; i < 8; i++) file[i] = (unsigned char)((uint64_t)length >> (8 * i));
    memcpy(file + 8, header, length);
    for (size_t i = 0; i < bytes; i++) file[8 + length + i] = (unsigned char)i;
    return file;
}

static void expect_error(const char *header, size_t bytes, laya_status status, const char *text)
{
    size_t size;
    unsigned char *file = make_file(header, bytes, &size);
    laya_safetensors tensors;
    laya_error error = {LAYA_OK, ""};
    laya_status got = laya_safetensors_read(&tensors, file, size, NULL, &error);
    if (got != status || error.status != status || !test_contains(error.message, text)) {
        fail_msg("header %.200s\nexpected %s with \"%s\", got %s: %s", header, laya_status_name(status), text,
                 laya_status_name(got), error.message);
    }
    assert_null(tensors.entries);
    assert_int_equal(laya_safetensors_read(&tensors, file, size, NULL, NULL), status);
    free(file);
}

#define F16_6 "{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[0,12]}"

static void test_good_file(void **unused)
{
    (void)unused;
    const char *header = "{\"__metadata__\":{\"format\":\"pt\",\"empty\":\"\"},"
                         "\"w\\u00e4\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[12,16]},"
                         "\"b\":" F16_6 ","
                         "\"c\":{\"shape\":[1],\"data_offsets\":[16,20],\"dtype\":\"F32\"}}    ";
    size_t size;
    unsigned char *file = make_file(header, 20, &size);
    laya_safetensors tensors;
    laya_error error;
    assert_int_equal(laya_safetensors_read(&tensors, file, size, NULL, &error), LAYA_OK);
    assert_int_equal(tensors.count, 3);
    const unsigned char *data = file + size - 20;
    const laya_tensor_entry *b = laya_safetensors_find(&tensors, "b");
    assert_non_null(b);
    assert_int_equal(b->rank, 2);
    assert_int_equal(b->tensor.rows, 2);
    assert_int_equal(b->tensor.cols, 3);
    assert_int_equal(b->tensor.dtype, LAYA_F16);
    assert_ptr_equal(b->tensor.data, data);
    const laya_tensor_entry *w = laya_safetensors_find(&tensors, "w\xc3\xa4");
    assert_non_null(w);
    assert_int_equal(w->rank, 1);
    assert_int_equal(w->tensor.rows, 1);
    assert_int_equal(w->tensor.cols, 2);
    assert_ptr_equal(w->tensor.data, data + 12);
    assert_ptr_equal(laya_safetensors_find(&tensors, "c")->tensor.data, data + 16);
    assert_null(laya_safetensors_find(&tensors, "d"));
    assert_null(laya_safetensors_find(&tensors, ""));
    assert_null(laya_safetensors_find(&tensors, "__metadata__"));
    laya_safetensors_close(&tensors);
    laya_safetensors_close(&tensors);
    free(file);
}

static void test_widen(void **unused)
{
    (void)unused;
    static const unsigned char half[] = {0x00, 0x3c, 0x00, 0xc0, 0x01, 0x00};       /* 1, -2, 2^-24 */
    static const unsigned char bfloat[] = {0x80, 0x3f, 0x20, 0xc1};                 /* 1, -10 */
    static const unsigned char full[] = {0, 0, 0x80, 0x3f, 0xdb, 0x0f, 0x49, 0x40}; /* 1, pi */
    float out[3];
    laya_tensor tensor = {half, LAYA_F16, 1, 3};
    laya_tensor_widen(&tensor, 0, 3, out);
    assert_true(out[0] == 1 && out[1] == -2 && out[2] == 0x1p-24f);
    laya_tensor_widen(&tensor, 1, 1, out);
    assert_true(out[0] == -2);
    tensor = (laya_tensor){bfloat, LAYA_BF16, 1, 2};
    laya_tensor_widen(&tensor, 0, 2, out);
    assert_true(out[0] == 1 && out[1] == -10);
    tensor = (laya_tensor){full, LAYA_F32, 1, 2};
    laya_tensor_widen(&tensor, 0, 2, out);
    assert_true(out[0] == 1 && out[1] == 0x1.921fb6p+1f);
    assert_int_equal(laya_dtype_size(LAYA_F16), 2);
    assert_int_equal(laya_dtype_size(LAYA_BF16), 2);
    assert_int_equal(laya_dtype_size(LAYA_F32), 4);
    assert_string_equal(laya_dtype_name(LAYA_BF16), "BF16");
}

static void test_header_size(void **unused)
{
    (void)unused;
    unsigned char file[32] = {0};
    laya_safetensors tensors;
    laya_error error;
    for (size_t size = 0; size < 8; size++) {
        assert_int_equal(laya_safetensors_read(&tensors, file, size, NULL, &error), LAYA_ERROR_FORMAT);
    }
    assert_int_equal(laya_safetensors_read(&tensors, NULL, 0, NULL, &error), LAYA_ERROR_FORMAT);
    assert_int_equal(laya_safetensors_read(&tensors, file, 32, NULL, &error), LAYA_ERROR_FORMAT); /* length 0 */
    for (int i = 0; i < 8; i++) file[i] = 0xff;
    assert_int_equal(laya_safetensors_read(&tensors, file, 32, NULL, &error), LAYA_ERROR_FORMAT);
    for (int i = 1; i < 8; i++) file[i] = 0;
    file[0] = 25; /* one more than there is */
    assert_int_equal(laya_safetensors_read(&tensors, file, 32, NULL, &error), LAYA_ERROR_FORMAT);
    assert_contains(error.message, "truncated");
}

static void test_bad_headers(void **unused)
{
    (void)unused;
    expect_error("[]", 0, LAYA_ERROR_FORMAT, "begin with '{'");
    expect_error(" {}", 0, LAYA_ERROR_FORMAT, "begin with '{'");
    expect_error("{}", 0, LAYA_ERROR_FORMAT, "no tensors");
    expect_error("{\"__metadata__\":{}}", 0, LAYA_ERROR_FORMAT, "no tensors");
    expect_error("{\"a\":" F16_6, 12, LAYA_ERROR_FORMAT, "not valid JSON");
    expect_error("{\"a\":" F16_6 "}x", 12, LAYA_ERROR_FORMAT, "not valid JSON");
    expect_error("{\"\xff\":" F16_6 "}", 12, LAYA_ERROR_FORMAT, "not valid JSON");
    expect_error("{\"\":" F16_6 "}", 12, LAYA_ERROR_FORMAT, "empty");
    expect_error("{\"a\\u0000b\":" F16_6 "}", 12, LAYA_ERROR_FORMAT, "NUL");
    expect_error("{\"a\":[]}", 0, LAYA_ERROR_FORMAT, "'a' must be an object, found list");
    expect_error("{\"__metadata__\":3,\"a\":" F16_6 "}", 12, LAYA_ERROR_FORMAT,
                 "__metadata__ must be an object of strings");
    expect_error("{\"__metadata__\":{\"n\":1},\"a\":" F16_6 "}", 12, LAYA_ERROR_FORMAT, "'n' is int");
    expect_error("{\"a\":" F16_6 ",\"a\":" F16_6 "}", 12, LAYA_ERROR_FORMAT, "twice");
    expect_error("{\"a\":" F16_6 ",\"\\u0061\":" F16_6 "}", 12, LAYA_ERROR_FORMAT, "twice");
    expect_error("{\"a\":{\"dtype\":\"F16\",\"shape\":[9],\"shape\":[2,3],\"data_offsets\":[0,12]}}", 12,
                 LAYA_ERROR_FORMAT, "twice");
    expect_error("{\"a\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[0,12],\"more\":1}}", 12,
                 LAYA_ERROR_FORMAT, "unknown field 'more'");
    /* Colons and quotes inside strings are no members. */
    expect_error("{\"a:\\\":\":" F16_6 "}", 11, LAYA_ERROR_FORMAT, "truncated");
}

static void test_bad_types(void **unused)
{
    (void)unused;
    static const char *const others[] = {"F64", "I64", "I32", "U8", "BOOL", "F8_E4M3", "f16", ""};
    char header[256];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char wanted[64];
        snprintf(header, sizeof header, "{\"layer.w\":{\"dtype\":\"%s\",\"shape\":[1],\"data_offsets\":[0,8]}}",
                 others[i]);
        snprintf(wanted, sizeof wanted, "tensor 'layer.w': dtype '%s' is not supported", others[i]);
        expect_error(header, 8, LAYA_ERROR_UNSUPPORTED, wanted);
    }
    expect_error("{\"a\":{\"dtype\":1,\"shape\":[1],\"data_offsets\":[0,2]}}", 2, LAYA_ERROR_FORMAT,
                 "'dtype' must be a string");
    expect_error("{\"a\":{\"shape\":[1],\"data_offsets\":[0,2]}}", 2, LAYA_ERROR_FORMAT, "found nothing");
}

static void expect_bad(const char *shape, const char *offsets, size_t bytes, const char *text)
{
    char header[256];
    snprintf(header, sizeof header, "{\"a\":{\"dtype\":\"F16\",\"shape\":%s,\"data_offsets\":%s}}", shape, offsets);
    expect_error(header, bytes, LAYA_ERROR_FORMAT, text);
}

static void test_bad_shapes_and_offsets(void **unused)
{
    (void)unused;
    static const char *const shapes[] = {
        "[]",    "[1,1,1]", "3",       "{}",           "[0]",    "[2,0]", "[-1]",
        "[1.0]", "[true]",  "[\"1\"]", "[4294967296]", "[null]", "[1e1]", "[99999999999999999999999999]"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) expect_bad(shapes[i], "[0,2]", 2, "'shape'");
    static const char *const offsets[] = {"[]",
                                          "[0]",
                                          "[0,2,4]",
                                          "[2,0]",
                                          "[-2,0]",
                                          "[0.0,2]",
                                          "{\"a\":0,\"b\":2}",
                                          "[0,\"2\"]",
                                          "[false,2]",
                                          "null",
                                          "[0,18446744073709551616]",
                                          "[0,-0]"};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) expect_bad("[1]", offsets[i], 2, "'data_offsets'");
    expect_bad("[1]", "[0,3]", 3, "3 bytes between its offsets, but its shape has 1 values");
    expect_bad("[2]", "[0,2]", 2, "2 bytes");
    expect_bad("[1]", "[0,0]", 0, "0 bytes");
    /* rows * cols * 2 wraps around 2^64 to a small number */
    expect_bad("[4294967295,4294967295]", "[0,2]", 2, "2 bytes");
    expect_bad("[2147483648,4294967295]", "[0,18446744069414584320]", 2, "truncated");
    expect_bad("[1]", "[2,4]", 4, "gap");
    expect_bad("[1]", "[0,2]", 3, "the tensors end at byte 2 of the data, but the file holds 3");
    expect_bad("[2]", "[0,4]", 3, "truncated");
    expect_bad("[1]", "[18446744073709551613,18446744073709551615]", 2, "truncated");
    expect_error("{\"a\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,2]},"
                 "\"b\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[4,6]}}",
                 6, LAYA_ERROR_FORMAT, "'b' begins at byte 4 of the data, expected 2 (gap)");
    expect_error("{\"a\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]},"
                 "\"b\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[2,6]}}",
                 6, LAYA_ERROR_FORMAT, "expected 4 (overlap)");
    expect_error("{\"a\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,2]},"
                 "\"b\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,2]}}",
                 2, LAYA_ERROR_FORMAT, "overlap");
}

/*
 * Every prefix of a good file, and every single byte of its header changed, must be handled without reading beyond
 * the block.
 */
static void test_damage(void **unused)
{
    (void)unused;
    const char *header = "{\"__metadata__\":{\"k\":\"v\"},\"a\":" F16_6 ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],"
                         "\"data_offsets\":[12,16]}}";
    size_t size;
    unsigned char *file = make_file(header, 16, &size);
    laya_safetensors tensors;
    for (size_t cut = 0; cut < size; cut++) {
        unsigned char *copy = malloc(cut ? cut : 1);
        assert_non_null(copy);
        memcpy(copy, file, cut);
        assert_int_equal(laya_safetensors_read(&tensors, copy, cut, NULL, NULL), LAYA_ERROR_FORMAT);
        free(copy);
    }
    for (size_t at = 0; at < size - 16; at++) {
        unsigned char before = file[at];
        for (unsigned value = 0; value < 256; value += 5) {
            file[at] = (unsigned char)value;
            if (laya_safetensors_read(&tensors, file, size, NULL, NULL) == LAYA_OK) {
                for (uint32_t i = 0; i < tensors.count; i++) {
                    float last;
                    const laya_tensor *t = &tensors.entries[i].tensor;
                    laya_tensor_widen(t, (size_t)t->rows * t->cols - 1, 1, &last);
                }
                laya_safetensors_close(&tensors);
            }
        }
        file[at] = before;
    }
    free(file);
}

static void test_failing_allocations(void **unused)
{
    (void)unused;
    size_t size;
    unsigned char *file = make_file("{\"a\":" F16_6 "}", 12, &size);
    laya_status status = LAYA_ERROR_MEMORY;
    test_memory memory;
    test_memory_init(&memory);
    for (size_t fail_at = 1; status != LAYA_OK; fail_at++) {
        assert_true(fail_at <= 20);
        test_memory_arm(&memory, fail_at);
        laya_safetensors tensors;
        laya_error error;
        status = laya_safetensors_read(&tensors, file, size, &memory.hooks, &error);
        assert_int_equal(status, memory.failed ? LAYA_ERROR_MEMORY : LAYA_OK);
        if (status == LAYA_OK) laya_safetensors_close(&tensors);
        assert_int_equal(memory.live, 0);
    }
    free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_file),   cmocka_unit_test(test_widen),
        cmocka_unit_test(test_header_size), cmocka_unit_test(test_bad_headers),
        cmocka_unit_test(test_bad_types),   cmocka_unit_test(test_bad_shapes_and_offsets),
        cmocka_unit_test(test_damage),      cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
