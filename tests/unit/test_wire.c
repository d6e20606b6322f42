/* SPDX-License-Identifier: Apache-2.0 */
/* Model files that are cut, changed, malformed, or made to exhaust the reader. */
#include "messages.h"

#define MAX_ITEMS ((size_t)8388608) /* fields and list elements of a message */

static void test_truncated(void **unused)
{
    (void)unused;
    laya_buffer message, cut;
    laya_mil_program program;
    laya_error error;
    laya_buffer_init(&message, NULL);
    laya_buffer_init(&cut, NULL);
    put_hex(&message, golden, false);
    size_t good = 0;
    for (size_t size = 0; size < message.size; size++) {
        laya_buffer_clear(&cut);
        laya_buffer_append(&cut, message.data, size);
        laya_status status = decode(&program, &cut, NULL, 0, &error);
        assert_true(status == LAYA_ERROR_FORMAT || status == LAYA_ERROR_UNSUPPORTED);
        if (status == LAYA_ERROR_UNSUPPORTED) good++; /* a whole message, but without the program */
        assert_true(*error.message != '\0');
        laya_mil_program_close(&program);
    }
    assert_int_equal(good, 3); /* of 0 and 2 bytes, and with the description */
    laya_buffer_close(&message);
    laya_buffer_close(&cut);
}

/* Every byte of the golden message replaced by a few others: an error or a program, which can be written. */
static void test_changed(void **unused)
{
    (void)unused;
    static const unsigned char others[] = {0x00, 0x01, 0x0a, 0x12, 0x1a, 0x22, 0x7f, 0x80, 0xff};
    laya_buffer message, again;
    laya_mil_program program;
    laya_error error;
    laya_buffer_init(&message, NULL);
    laya_buffer_init(&again, NULL);
    put_hex(&message, golden, false);
    for (size_t at = 0; at < message.size; at++) {
        char kept = message.data[at];
        for (size_t i = 0; i < sizeof others; i++) {
            message.data[at] = (char)others[i];
            laya_buffer_clear(&again);
            if (decode(&program, &message, NULL, 0, &error) == LAYA_OK) {
                laya_status status = laya_model_encode(&program, &again, &error);
                assert_true(status == LAYA_OK || status == LAYA_ERROR_UNSUPPORTED);
            } else {
                assert_true(*error.message != '\0');
            }
            laya_mil_program_close(&program);
        }
        message.data[at] = kept;
    }
    laya_buffer_close(&message);
    laya_buffer_close(&again);
}

static void test_malformed(void **unused)
{
    (void)unused;
    static const struct {
        const char *hex, *message;
    } cases[] = {
        {"80", "a malformed field number"},
        {"00", "a malformed field number"},
        {"ffffffff7f00", "a malformed field number"},
        {"808080808000", "a malformed field number"},
        {"08", "a number that does not end"},
        {"08ffffffffffffffffffff01", "a number that does not end"},
        {"0d00000000", "byte 1 of the model: a field of another wire type than the format has in a message Model"},
        {"1001", "a field of another wire type"},
        {"08070808", "a second value of a field that has one"},
        {"12001200", "a second value of a field that has one"},
        {"1280", "a length that does not end"},
        {"12808080808001", "a length that does not end"},
        {"1203", "a field longer than the rest"},
        {"12ffffffff0f", "a field longer than the rest"},
        {"3d000000", "a field longer than the rest"},
        {"3900000000000000", "a field longer than the rest"},
        {"3b", "an unknown wire type"},
        {"12020a03", "a field longer than the rest in a message ModelDescription"},
        {"1204aa010261", "a field longer than the rest"},
        {"1204aa0101ff", "a text that is not UTF-8"},
        {"1204aa010100", "a text with a NUL byte"},
        {"120a0a081a062a040a018000", "a number that does not end in a message ArrayFeatureType"},
        {"120c0a0a1a082a06aa0100fa0100", "a second value of a field that has one"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        laya_buffer message;
        laya_mil_program program;
        laya_error error;
        laya_buffer_init(&message, NULL);
        put_hex(&message, cases[i].hex, false);
        assert_int_equal(decode(&program, &message, NULL, 0, &error), LAYA_ERROR_FORMAT);
        assert_contains(error.message, cases[i].message);
        laya_mil_program_close(&program);
        laya_buffer_close(&message);
    }
    /* A packed list of floats of six bytes. */
    expect_error(CONST(SCALAR("11"), IN_PLACE("1{1#000000000000}")), NULL, 0, LAYA_ERROR_FORMAT,
                 "a list that ends within an element in a message RepeatedFloats");
}

static void test_unknown_fields(void **unused)
{
    (void)unused;
    const char *plain = CONST(SCALAR("23"), IN_PLACE("2{1#05}"));
    /* isUpdatable, a docString, attributes, and elements one by one in place of a packed list */
    const char *more =
        "1=7 10=1 2{} 502{1=1 2{1\"main\" 2{2\"CoreML6\" 3{1\"CoreML6\" 2{3{1\"const\" 3{1\"c\" 2{1{1=23}}}"
        " 5{1\"val\" 2{1\"doc\" 2{1{1=23 4{}}} 3{1{2{1=5}}}}}}}}}} 4{1\"buildInfo\" 2{9=9}} 2047\"x\"}";
    laya_buffer message, again;
    laya_mil_program program;
    laya_error error;
    laya_buffer_init(&message, NULL);
    laya_buffer_init(&again, NULL);
    put_message(&message, plain);
    read_message(&program, more, NULL, 0);
    assert_int_equal(laya_model_encode(&program, &again, &error), LAYA_OK);
    assert_bytes(&again, &message);
    laya_mil_program_close(&program);
    laya_buffer_close(&message);
    laya_buffer_close(&again);
}

/* Operations with one nested block each, inside each other; in the innermost of `blocks` blocks an inline string. */
static void put_nested(laya_buffer *out, unsigned blocks)
{
    laya_buffer_init(out, NULL);
    put_message(out, "3{1\"relu\" 2{1\"x\" 2{1{2{2{1{1=2}} 3{1{4{1\"deep\"}}}}}}}}");
    for (unsigned i = 1; i < blocks; i++) {
        wrap(out, 4); /* a block in an operation in a block */
        wrap(out, 3);
    }
    static const unsigned outer[] = {2, 3, 2, 2, 502}; /* entry, function, entry, program, model */
    for (size_t at = 0; at < sizeof outer / sizeof *outer; at++) wrap(out, outer[at]);
}

static void test_depth(void **unused)
{
    (void)unused;
    laya_buffer message, again;
    laya_mil_program program;
    laya_error error;
    laya_buffer_init(&again, NULL);
    put_nested(&message, 26);
    assert_int_equal(decode(&program, &message, NULL, 0, &error), LAYA_OK);
    assert_int_equal(laya_model_encode(&program, &again, &error), LAYA_OK);
    laya_mil_program_close(&program);
    assert_int_equal(decode(&program, &again, NULL, 0, &error), LAYA_OK); /* what is written can be read */
    laya_mil_op deeper = {.type = "cond", .blocks = &program.functions[0].body, .block_count = 1};
    laya_mil_function function = {.name = "main",
                                  .opset_name = "CoreML6",
                                  .specialization_name = "CoreML6",
                                  .body = {.first = &deeper, .last = &deeper, .op_count = 1}};
    laya_mil_program outer = {.arena = program.arena, .functions = &function, .function_count = 1};
    assert_int_equal(laya_model_encode(&outer, &again, &error), LAYA_ERROR_UNSUPPORTED);
    assert_contains(error.message, "blocks inside each other more than 26 deep, which is the limit");
    laya_mil_program_close(&program);
    laya_buffer_close(&message);
    static const unsigned too_deep[] = {27, 28, 29, 30, 31, 32, 33, 100, 10000};
    for (size_t i = 0; i < sizeof too_deep / sizeof *too_deep; i++) {
        put_nested(&message, too_deep[i]);
        assert_int_equal(decode(&program, &message, NULL, 0, &error), LAYA_ERROR_FORMAT);
        assert_contains(error.message, "more than 64 deep, which is the limit");
        laya_mil_program_close(&program);
        laya_buffer_close(&message);
    }
    laya_buffer_close(&again);
}

static void test_size(void **unused)
{
    (void)unused;
    laya_buffer message;
    laya_mil_program program;
    laya_error error;
    laya_buffer_init(&message, NULL);
    /* Unknown fields of two bytes. */
    assert_true(laya_buffer_reserve(&message, 2 * MAX_ITEMS + 2));
    for (size_t i = 0; i <= MAX_ITEMS; i++) memcpy(message.data + 2 * i, "\x18\x00", 2);
    message.size = 2 * MAX_ITEMS + 2;
    assert_int_equal(decode(&program, &message, NULL, 0, &error), LAYA_ERROR_FORMAT);
    assert_contains(error.message, "more than 8388608 fields and list elements, which is the limit");
    laya_mil_program_close(&program);
    /* A list of numbers of one byte: description, input, type, array, shape. */
    size_t count = MAX_ITEMS;
    memset(message.data, 1, count);
    message.size = count;
    static const unsigned fields[] = {1, 5, 3, 1, 2};
    for (size_t at = 0; at < sizeof fields / sizeof *fields; at++) wrap(&message, fields[at]);
    assert_int_equal(decode(&program, &message, NULL, 0, &error), LAYA_ERROR_FORMAT);
    assert_contains(error.message, "more than 8388608 fields and list elements");
    laya_mil_program_close(&program);
    assert_int_equal(
        laya_model_decode(&program, (unsigned char *)message.data, (size_t)INT32_MAX + 1, NULL, 0, &error),
        LAYA_ERROR_FORMAT);
    assert_contains(error.message, "2147483648 bytes; protobuf's limit is 2147483647");
    laya_buffer_close(&message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truncated),      cmocka_unit_test(test_changed), cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_unknown_fields), cmocka_unit_test(test_depth),   cmocka_unit_test(test_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
