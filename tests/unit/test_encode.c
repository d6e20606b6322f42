/* SPDX-License-Identifier: Apache-2.0 */
/* The model file: golden bytes, and programs written and read back. */
#include "messages.h"

#include <stdio.h>

/* ------------------------------------------------------------------ golden bytes */

/* relu of x, fp16 [1, 4, 1, 8], to y; built by hand. */
typedef struct relu {
    laya_mil_program program;
    laya_mil_function function;
    laya_mil_interface interface;
    laya_mil_feature input, output;
    laya_mil_value x, y, *inputs[1], *outputs[1];
    laya_mil_binding use, result;
    laya_mil_argument argument;
    laya_mil_op op;
} relu;

static void make_relu(relu *r, const laya_allocator *allocator)
{
    laya_mil_type type = laya_mil_tensor4(LAYA_MIL_FP16, 1, 4, 1, 8);
    *r = (relu){.x = {.name = "x", .type = type}, .y = {.name = "y", .type = type, .op = &r->op}};
    r->inputs[0] = &r->x;
    r->outputs[0] = &r->y;
    r->use = (laya_mil_binding){.name = "x", .value = &r->x};
    r->result = (laya_mil_binding){.name = "y", .value = &r->y};
    r->argument = (laya_mil_argument){.name = "x", .bindings = &r->use, .count = 1};
    r->op = (laya_mil_op){.type = "relu",
                          .name = "y",
                          .inputs = &r->argument,
                          .input_count = 1,
                          .outputs = r->outputs,
                          .output_count = 1};
    r->input = (laya_mil_feature){.name = "x", .kind = "multiArray", .type = type};
    r->output = (laya_mil_feature){.name = "y", .kind = "multiArray", .type = type};
    r->interface = (laya_mil_interface){
        .name = "main", .inputs = &r->input, .outputs = &r->output, .input_count = 1, .output_count = 1};
    r->function = (laya_mil_function){
        .name = "main",
        .opset_name = "CoreML6",
        .opset = LAYA_MIL_COREML6,
        .inputs = r->inputs,
        .input_count = 1,
        .body = {.first = &r->op, .last = &r->op, .op_count = 1, .outputs = &r->result, .output_count = 1},
        .specialization_count = 1,
        .specialization_name = "CoreML6"};
    laya_mil_program_init(&r->program, allocator);
    r->program.specification_version = 7;
    r->program.functions = &r->function;
    r->program.function_count = 1;
    r->program.interfaces = &r->interface;
    r->program.interface_count = 1;
}

static void test_golden_model(void **unused)
{
    (void)unused;
    relu r;
    laya_buffer message, expected;
    laya_mil_program program;
    laya_error error;
    laya_buffer_init(&message, NULL);
    laya_buffer_init(&expected, NULL);
    put_hex(&expected, golden, false);
    assert_int_equal(expected.size, 204);
    make_relu(&r, NULL);
    assert_int_equal(laya_model_encode(&r.program, &message, &error), LAYA_OK);
    assert_bytes(&message, &expected);

    assert_int_equal(decode(&program, &expected, NULL, 0, &error), LAYA_OK);
    assert_int_equal(program.specification_version, 7);
    assert_int_equal(program.version, 1);
    assert_int_equal(program.function_count, 1);
    const laya_mil_function *function = &program.functions[0];
    assert_string_equal(function->name, "main");
    assert_int_equal(function->opset, LAYA_MIL_COREML6);
    assert_string_equal(function->specialization_name, "CoreML6");
    assert_int_equal(function->specialization_count, 1);
    assert_int_equal(function->input_count, 1);
    assert_true(laya_mil_type_equal(&function->inputs[0]->type, &r.x.type));
    assert_null(function->inputs[0]->op);
    const laya_mil_op *op = function->body.first;
    assert_int_equal(function->body.op_count, 1);
    assert_ptr_equal(op, function->body.last);
    assert_string_equal(op->type, "relu");
    assert_string_equal(op->name, "y");
    assert_int_equal(op->attribute_count, 0);
    assert_ptr_equal(laya_mil_find_argument(op, "x")->bindings[0].value, function->inputs[0]);
    assert_ptr_equal(function->body.outputs[0].value, op->outputs[0]);
    assert_ptr_equal(op->outputs[0]->op, op);
    assert_int_equal(program.interface_count, 1);
    assert_string_equal(program.interfaces[0].name, "main");
    assert_string_equal(program.interfaces[0].outputs[0].kind, "multiArray");
    assert_true(laya_mil_type_equal(&program.interfaces[0].outputs[0].type, &r.x.type));
    assert_null(program.default_function);
    laya_mil_program_close(&program);
    laya_mil_program_close(&r.program);
    laya_buffer_close(&message);
    laya_buffer_close(&expected);
}

static void test_golden_operations(void **unused)
{
    (void)unused;
    relu r;
    laya_buffer message;
    laya_error error;
    laya_mil_constant axis = {
        .type = laya_mil_scalar(LAYA_MIL_INT32), .bytes = (const unsigned char *)"\xff\xff\xff\xff", .size = 4};
    laya_mil_constant eps = {
        .type = laya_mil_scalar(LAYA_MIL_FP16), .bytes = (const unsigned char *)"\xa8\x00", .size = 2};
    laya_mil_attribute axis_val = {"val", &axis}, eps_val = {"val", &eps};
    laya_mil_value axis_value = {.name = "sm_axis", .type = axis.type, .constant = &axis}, *axis_out = &axis_value;
    laya_mil_value eps_value = {.name = "eps", .type = eps.type, .constant = &eps}, *eps_out = &eps_value;
    laya_mil_op second = {.type = "const",
                          .name = "eps",
                          .outputs = &eps_out,
                          .output_count = 1,
                          .attributes = &eps_val,
                          .attribute_count = 1};
    laya_mil_op first = {.next = &second,
                         .type = "const",
                         .name = "sm_axis",
                         .outputs = &axis_out,
                         .output_count = 1,
                         .attributes = &axis_val,
                         .attribute_count = 1};
    make_relu(&r, NULL);
    second.next = &r.op;
    r.function.body.first = &first;
    r.function.body.op_count = 3;
    laya_buffer_init(&message, NULL);
    assert_int_equal(laya_model_encode(&r.program, &message, &error), LAYA_OK);
    assert_true(has_bytes(&message, "1a58 0a05636f6e7374 1a0f0a07736d5f6178697312040a020817"
                                    "2a1d0a046e616d65121512040a0208021a0d0a0b22090a07736d5f61786973"
                                    "2a1f0a0376616c121812040a0208171a100a0e120c0a0affffffffffffffffff01"));
    assert_true(has_bytes(&message, "1a48 0a05636f6e7374 1a0b0a0365707312040a02080a"
                                    "2a190a046e616d65121112040a0208021a090a0722050a03657073"
                                    "2a170a0376616c121012040a02080a1a080a063a040a02a800"));
    laya_buffer_close(&message);
}

/* ------------------------------------------------------------------ constants */

static const struct immediate {
    const char *text;
    laya_mil_dtype dtype;
    uint32_t rank;
    const char *bytes; /* hex */
} immediates[] = {
    {CONST(SCALAR("1"), IN_PLACE("3{1#01}")), LAYA_MIL_BOOL, 0, "01"},
    {CONST(VECTOR("1", "3"), IN_PLACE("3{1#000100}")), LAYA_MIL_BOOL, 1, "000100"},
    {CONST(VECTOR("11", "2"), IN_PLACE("1{1#0000803f00000000}")), LAYA_MIL_FP32, 1, "0000803f00000000"},
    {CONST(SCALAR("12"), IN_PLACE("6{1#000000000000f03f}")), LAYA_MIL_FP64, 0, "000000000000f03f"},
    {CONST(SCALAR("10"), IN_PLACE("7{1#a800}")), LAYA_MIL_FP16, 0, "a800"},
    {CONST(SCALAR("13"), IN_PLACE("7{1#803f}")), LAYA_MIL_BF16, 0, "803f"},
    {CONST(VECTOR("23", "4"), IN_PLACE("2{1#0000057f}")), LAYA_MIL_INT32, 1, "0000000000000000050000007f000000"},
    {CONST(SCALAR("23"), IN_PLACE("2{1#ffffffffffffffffff01}")), LAYA_MIL_INT32, 0, "ffffffff"},
    {CONST(SCALAR("22"), IN_PLACE("2{1#feffffffffffffffff01}")), LAYA_MIL_INT16, 0, "feff"},
    {CONST(SCALAR("32"), IN_PLACE("2{1#ffff03}")), LAYA_MIL_UINT16, 0, "ffff"},
    {CONST(SCALAR("24"), IN_PLACE("5{1#ffffffffffffffffff01}")), LAYA_MIL_INT64, 0, "ffffffffffffffff"},
    {CONST(SCALAR("34"), IN_PLACE("5{1#8002}")), LAYA_MIL_UINT64, 0, "0001000000000000"},
    {CONST(VECTOR("21", "2"), IN_PLACE("7{1#ff00}")), LAYA_MIL_INT8, 1, "ff00"},
    {CONST(VECTOR("31", "2"), IN_PLACE("7{1#ff00}")), LAYA_MIL_UINT8, 1, "ff00"},
    {CONST(VECTOR("33", "4"), IN_PLACE("7{1#60000000800000000100000001000000}")), LAYA_MIL_UINT32, 1,
     "60000000800000000100000001000000"},
    {CONST(VECTOR("25", "3"), IN_PLACE("7{1#780f}")), LAYA_MIL_INT4, 1, "780f"},
    {CONST(VECTOR("35", "5"), IN_PLACE("7{1#214305}")), LAYA_MIL_UINT4, 1, "214305"},
    {CONST(VECTOR("39", "6"), IN_PLACE("7{1#a8be00}")), LAYA_MIL_UINT3, 1, "a8be00"},
    {CONST(VECTOR("37", "10"), IN_PLACE("7{1#8d03}")), LAYA_MIL_UINT1, 1, "8d03"},
    {CONST(VECTOR("36", "5"), IN_PLACE("7{1#6c03}")), LAYA_MIL_UINT2, 1, "6c03"},
    {CONST(VECTOR("38", "5"), IN_PLACE("7{1#8130a03f}")), LAYA_MIL_UINT6, 1, "8130a03f"},
    {CONST(SCALAR("40"), IN_PLACE("7{1#38}")), LAYA_MIL_FLOAT8E4M3FN, 0, "38"},
    {CONST(SCALAR("41"), IN_PLACE("7{1#3c}")), LAYA_MIL_FLOAT8E5M2, 0, "3c"},
    {CONST("1{1=23 2=1 3{1{}}}", IN_PLACE("2{}")), LAYA_MIL_INT32, 1, ""}};

static void test_immediate_values(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof immediates / sizeof *immediates; i++) {
        const struct immediate *immediate = &immediates[i];
        laya_mil_program program;
        laya_buffer expected;
        laya_buffer_init(&expected, NULL);
        put_hex(&expected, immediate->bytes, false);
        read_message(&program, immediate->text, NULL, 0);
        const laya_mil_op *op = program.functions[0].body.first;
        const laya_mil_constant *constant = op->outputs[0]->constant;
        assert_non_null(constant);
        assert_ptr_equal(constant, laya_mil_find_attribute(op, "val"));
        assert_int_equal(constant->type.dtype, immediate->dtype);
        assert_int_equal(constant->type.rank, immediate->rank);
        assert_int_equal(constant->size, expected.size);
        assert_false(constant->in_file);
        if (expected.size > 0) assert_memory_equal(constant->bytes, expected.data, expected.size);
        laya_mil_program_close(&program);
        laya_buffer_close(&expected);
        expect_round_trip(immediate->text);
    }
}

static void test_strings(void **unused)
{
    (void)unused;
    const char *text = CONST(VECTOR("2", "3"), IN_PLACE("4{1\"a\" 1\"\" 1\"nchw,nwhu->nchu\"}"));
    laya_mil_program program;
    read_message(&program, text, NULL, 0);
    const laya_mil_constant *constant = program.functions[0].body.first->outputs[0]->constant;
    assert_int_equal(constant->string_count, 3);
    assert_string_equal(constant->strings[0], "a");
    assert_string_equal(constant->strings[1], "");
    assert_string_equal(constant->strings[2], "nchw,nwhu->nchu");
    assert_null(constant->bytes);
    laya_mil_program_close(&program);
    expect_round_trip(text);
    expect_round_trip(CONST(SCALAR("2"), IN_PLACE("4{1\"valid\"}")));
}

#define UINT3_BLOB CONST(VECTOR("39", "5"), "5{1\"@model_path/weights/weight.bin\" 2=64}")
#define FP16_BLOB(name, offset) CONST(VECTOR("10", "3"), "5{1\"" name "\" 2=" offset "}")
#define WEIGHTS "@model_path/weights/weight.bin"

static void test_weight_file(void **unused)
{
    (void)unused;
    size_t size;
    unsigned char *weights = make_weights(&size);
    laya_mil_program program;
    read_message(&program, UINT3_BLOB, weights, size);
    const laya_mil_constant *constant = program.functions[0].body.first->outputs[0]->constant;
    assert_true(constant->in_file);
    assert_int_equal(constant->offset, 64);
    assert_ptr_equal(constant->bytes, weights + 128);
    assert_int_equal(constant->size, 2);
    laya_mil_program_close(&program);
    /* Chromium's name for the file */
    read_message(&program, FP16_BLOB("@model_path/weights/weights.bin", "192"), weights, size);
    constant = program.functions[0].body.first->outputs[0]->constant;
    assert_ptr_equal(constant->bytes, weights + 256);
    laya_mil_program_close(&program);
    expect_round_trip(UINT3_BLOB);
    expect_round_trip(FP16_BLOB(WEIGHTS, "192"));

    expect_error(FP16_BLOB(WEIGHTS, "192"), NULL, 0, LAYA_ERROR_FORMAT, "there is no weight file");
    expect_error(FP16_BLOB("weights/weight.bin", "192"), weights, size, LAYA_ERROR_FORMAT,
                 "begins with @model_path/");
    expect_error(FP16_BLOB(WEIGHTS, "128"), weights, size, LAYA_ERROR_FORMAT, "operation \"c\"");
    expect_error(FP16_BLOB(WEIGHTS, "9223372036854775744"), weights, size, LAYA_ERROR_FORMAT, "function \"main\"");
    expect_error(FP16_BLOB(WEIGHTS, "192"), weights, size - 1, LAYA_ERROR_FORMAT, "operation \"c\"");
    expect_error(FP16_BLOB(WEIGHTS, "64"), weights, size, LAYA_ERROR_FORMAT,
                 "type fp16 [3] at offset 64 of the weight file, which has uint3 there");
    expect_error(CONST(VECTOR("10", "4"), "5{1\"" WEIGHTS "\" 2=192}"), weights, size, LAYA_ERROR_FORMAT,
                 "type fp16 [4] at offset 192 of the weight file, which has 6 bytes there");
    /* 4 and 5 elements of three bits both take two bytes */
    expect_error(CONST(VECTOR("39", "4"), "5{1\"" WEIGHTS "\" 2=64}"), weights, size, LAYA_ERROR_FORMAT,
                 "1 bits of padding; expected 4");
    expect_error(MAIN(NAMED(VECTOR("10", "3"), "5{1\"@model_path/a\" 2=192}")
                          NAMED(VECTOR("10", "3"), "5{1\"@model_path/b\" 2=192}")),
                 weights, size, LAYA_ERROR_UNSUPPORTED, "only one file can be read");
    free(weights);
}

static void test_wrong_constants(void **unused)
{
    (void)unused;
    static const struct {
        const char *text;
        laya_status status;
        const char *message;
    } cases[] = {
        {CONST(VECTOR("23", "3"), IN_PLACE("2{1#0001}")), LAYA_ERROR_FORMAT,
         "function \"main\": operation \"c\": a constant of type int32 [3] has 2 elements; expected 3"},
        {CONST(SCALAR("23"), IN_PLACE("2{}")), LAYA_ERROR_FORMAT, "int32 has 0 elements; expected 1"},
        {CONST(SCALAR("23"), IN_PLACE("")), LAYA_ERROR_FORMAT, "int32 has 0 elements; expected 1"},
        {CONST(SCALAR("2"), IN_PLACE("4{1\"a\" 1\"b\"}")), LAYA_ERROR_FORMAT, "string has 2 elements; expected 1"},
        {CONST(SCALAR("10"), IN_PLACE("7{1#a8}")), LAYA_ERROR_FORMAT, "fp16 has 1 bytes; expected 2"},
        {CONST(VECTOR("39", "6"), IN_PLACE("7{1#a8be}")), LAYA_ERROR_FORMAT, "uint3 [6] has 2 bytes; expected 3"},
        {CONST(SCALAR("23"), IN_PLACE("5{1#01}")), LAYA_ERROR_FORMAT,
         "int32 in field 5 of its value; expected field 2"},
        {CONST(SCALAR("31"), IN_PLACE("2{1#01}")), LAYA_ERROR_FORMAT,
         "uint8 in field 2 of its value; expected field 7"},
        {CONST(SCALAR("22"), IN_PLACE("2{1#808002}")), LAYA_ERROR_FORMAT, "an element 32768 of a constant"},
        {CONST(SCALAR("32"), IN_PLACE("2{1#ffffffffffffffffff01}")), LAYA_ERROR_FORMAT, "does not fit into uint16"},
        {CONST(SCALAR("99"), IN_PLACE("7{1#00}")), LAYA_ERROR_UNSUPPORTED, "data type 99"},
        {CONST("1{1=23 2=1 3{2{}}}", IN_PLACE("2{1#01}")), LAYA_ERROR_FORMAT, "int32 [?], which has no fixed size"},
        {CONST("1{1=23 2=2 3{1{1=4611686018427387904}} 3{1{1=16}}}", IN_PLACE("2{}")), LAYA_ERROR_FORMAT,
         "which has no fixed size"},
        {CONST(SCALAR("23"), "3{2#00}"), LAYA_ERROR_FORMAT, "int32 without a tensor value"},
        {CONST(SCALAR("23"), "3{}"), LAYA_ERROR_FORMAT, "int32 without a tensor value"},
        {CONST(SCALAR("23"), ""), LAYA_ERROR_FORMAT, "int32 without a tensor value"},
        {CONST("", IN_PLACE("2{1#01}")), LAYA_ERROR_FORMAT, "a value without a type"},
        {CONST("5{}", ""), LAYA_ERROR_FORMAT, "a state that is not of a tensor"},
        {CONST("5{1{2#}}", ""), LAYA_ERROR_FORMAT, "a state that is not of a tensor"},
        {CONST("1{1=23 2=2 3{1{1=1}}}", ""), LAYA_ERROR_FORMAT, "rank 2 has 1 dimensions"},
        {CONST("1{1=23 2=-1}", ""), LAYA_ERROR_UNSUPPORTED, "rank is not fixed"},
        {CONST("1{1=23 2=1 3{2{1=1}}}", ""), LAYA_ERROR_UNSUPPORTED, "rank is not fixed"},
        {CONST("1{1=23 2=1 3{}}", ""), LAYA_ERROR_FORMAT, "a dimension without a size"},
        {CONST("1{1=23 2=1 3{1{1=-1}}}", ""), LAYA_ERROR_FORMAT, "a dimension of 18446744073709551615 elements"},
        {CONST("1{1=23 2=9 3{1{}} 3{1{}} 3{1{}} 3{1{}} 3{1{}} 3{1{}} 3{1{}} 3{1{}} 3{1{}}}", ""),
         LAYA_ERROR_UNSUPPORTED, "rank 9; the limit is 8"},
        {MAIN("3{1\"const\" 3{1\"c\" 2{1{1=23}}} 5{1\"val\"}}"), LAYA_ERROR_FORMAT, "a value without a type"},
        {MAIN("3{1\"relu\" 5{1\"name\" 2{2{1{1=31}} 3{1{7{1#00}}}}}}"), LAYA_ERROR_FORMAT,
         "operation \"relu\": attribute \"name\" is not a text"},
        {MAIN("3{1\"relu\" 2{1\"x\"}}"), LAYA_ERROR_FORMAT, "parameter \"x\" is bound to nothing"},
        {MAIN("3{1\"relu\" 2{1\"x\" 2{}}}"), LAYA_ERROR_FORMAT, "parameter \"x\" is bound to nothing"},
        {MAIN("3{1\"relu\" 2{1\"x\" 2{1{}}}}"), LAYA_ERROR_FORMAT, "parameter \"x\" is bound to nothing"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_error(cases[i].text, NULL, 0, cases[i].status, cases[i].message);
}

/* Constants of a source: three rows of two int32 values, 10 * row + column. */
static laya_status read_rows(const void *user, uint64_t first, uint64_t count, unsigned char *out, laya_error *error)
{
    if (*(const bool *)user) return laya_fail(error, LAYA_ERROR_FORMAT, "tensor t has a bad value");
    for (uint64_t i = 0; i < 2 * count; i++) {
        out[4 * i] = (unsigned char)(10 * (first + i / 2) + i % 2);
        memset(out + 4 * i + 1, 0, 3);
    }
    return LAYA_OK;
}

static void test_source(void **unused)
{
    (void)unused;
    relu r;
    bool broken = false;
    laya_error error;
    laya_buffer message;
    laya_mil_source source = {.user = &broken, .read = read_rows};
    laya_mil_constant constant = {.type = {.dtype = LAYA_MIL_INT32, .rank = 2, .dims = {3, 2}}, .source = &source};
    make_relu(&r, NULL);
    r.use = (laya_mil_binding){.constant = &constant};
    laya_buffer_init(&message, NULL);
    assert_int_equal(laya_model_encode(&r.program, &message, &error), LAYA_OK);
    assert_true(has_bytes(&message, "12080a06 00010a0b1415"));
    laya_buffer_clear(&message);
    broken = true;
    assert_int_equal(laya_model_encode(&r.program, &message, &error), LAYA_ERROR_FORMAT);
    assert_string_equal(error.message, "tensor t has a bad value");
    assert_int_equal(message.size, 0);
    constant.source = NULL;
    assert_int_equal(laya_model_encode(&r.program, &message, &error), LAYA_ERROR_UNSUPPORTED);
    assert_contains(error.message, "a constant of type int32 [3, 2] cannot be written in place");
    laya_buffer_close(&message);
}

/* ------------------------------------------------------------------ operations */

static void test_arguments(void **unused)
{
    (void)unused;
    const char *text =
        "1=7 2{} 502{1=1 2{1\"main\" 2{1{1\"x\" 2{1{1=10}}} 2\"CoreML6\" 3{1\"CoreML6\" 2{2\"b\" 2\"missing\""
        " 3{1\"split\" 2{1\"x\" 2{1{1\"x\"}}} 2{1\"axis\" 2{1{2{2{1{1=23}} 3{1{2{1#01}}}}}}}"
        "    3{1\"a\" 2{1{1=10}}} 3{1\"b\" 2{1{1=10}}}}"
        " 3{1\"our_own\" 2{1\"values\" 2{1{1\"a\"} 1{1\"later\"} 1{1\"b\"}}} 3{1\"later\" 2{1{1=10}}}"
        "    5{1\"name\" 2{2{1{1=2}} 3{1{4{1\"n\"}}}}} 5{1\"extra\" 2{2{1{1=1}} 3{1{3{1#00}}}}}}"
        " 3{1\"relu\" 2{1\"x\" 2{1{1\"b\"}}} 3{1\"b\" 2{2#}}}}}}}}";
    laya_mil_program program;
    read_message(&program, text, NULL, 0);
    const laya_mil_function *function = &program.functions[0];
    const laya_mil_op *split = function->body.first, *own = split->next, *last = own->next;
    assert_int_equal(function->body.op_count, 3);
    assert_null(split->name);
    assert_ptr_equal(split->inputs[0].bindings[0].value, function->inputs[0]);
    assert_null(split->inputs[1].bindings[0].name);
    assert_memory_equal(split->inputs[1].bindings[0].constant->bytes, "\x01\0\0\0", 4);
    assert_int_equal(split->output_count, 2);
    const laya_mil_argument *values = laya_mil_find_argument(own, "values");
    assert_int_equal(values->count, 3);
    assert_ptr_equal(values->bindings[0].value, split->outputs[0]);
    assert_string_equal(values->bindings[1].name, "later"); /* not defined before */
    assert_null(values->bindings[1].value);
    assert_ptr_equal(values->bindings[2].value, split->outputs[1]);
    assert_string_equal(own->name, "n");
    assert_int_equal(own->attribute_count, 1);
    assert_string_equal(own->attributes[0].name, "extra");
    assert_ptr_equal(last->inputs[0].bindings[0].value, split->outputs[1]);
    assert_int_equal(last->outputs[0]->type.kind, LAYA_MIL_LIST);
    assert_ptr_equal(function->body.outputs[0].value, last->outputs[0]); /* the later of two of that name */
    assert_null(function->body.outputs[1].value);

    laya_buffer message;
    laya_error error;
    laya_buffer_init(&message, NULL);
    assert_int_equal(laya_model_encode(&program, &message, &error), LAYA_ERROR_UNSUPPORTED);
    assert_contains(error.message, "a value of type list cannot be written");
    assert_int_equal(message.size, 0);
    laya_buffer_close(&message);
    laya_mil_program_close(&program);
}

/* x, then cond with two blocks: the first defines x anew, the second sees the outer one; after it x is the outer. */
#define NESTED                                                                                                       \
    "1=7 2{} 502{1=1 2{1\"main\" 2{1{1\"x\" 2{1{1=10}}} 2\"CoreML6\" 3{1\"CoreML6\" 2{2\"x\" 2\"y\" 2\"inner\""      \
    " 3{1\"cond\" 2{1\"pred\" 2{1{1\"x\"}}} 3{1\"y\" 2{1{1=10}}}"                                                    \
    "    4{1{1\"arg\" 2{1{1=10}}} 2\"x\" 3{1\"relu\" 2{1\"x\" 2{1{1\"x\"}}} 3{1\"x\" 2{1{1=10}}}}"                   \
    "        3{1\"relu\" 2{1\"x\" 2{1{1\"arg\"}}} 3{1\"inner\" 2{1{1=10}}}}}"                                        \
    "    4{2\"x\" 2\"y\" 2\"arg\"}}"                                                                                 \
    " 3{1\"relu\" 2{1\"x\" 2{1{1\"y\"}}} 3{1\"z\" 2{1{1=10}}}}}}}}}"

static void test_nested_blocks(void **unused)
{
    (void)unused;
    laya_mil_program program;
    read_message(&program, NESTED, NULL, 0);
    const laya_mil_function *function = &program.functions[0];
    const laya_mil_op *cond = function->body.first;
    assert_int_equal(cond->block_count, 2);
    const laya_mil_block *first = &cond->blocks[0], *second = &cond->blocks[1];
    assert_int_equal(first->op_count, 2);
    assert_int_equal(first->input_count, 1);
    assert_ptr_equal(first->first->inputs[0].bindings[0].value, function->inputs[0]);
    assert_ptr_equal(first->outputs[0].value, first->first->outputs[0]);
    assert_ptr_equal(first->first->next->inputs[0].bindings[0].value, first->inputs[0]);
    assert_int_equal(second->op_count, 0);
    assert_ptr_equal(second->outputs[0].value, function->inputs[0]);
    assert_null(second->outputs[1].value); /* the operation's own output is not known in its blocks */
    assert_null(second->outputs[2].value); /* nor is what belongs to the other block */
    assert_ptr_equal(cond->next->inputs[0].bindings[0].value, cond->outputs[0]);
    assert_ptr_equal(function->body.outputs[0].value, function->inputs[0]);
    assert_ptr_equal(function->body.outputs[1].value, cond->outputs[0]);
    assert_null(function->body.outputs[2].value);
    laya_mil_program_close(&program);
    expect_round_trip(NESTED);
}

static void test_specializations(void **unused)
{
    (void)unused;
    laya_mil_program program;
    read_message(&program, "502{2{1\"f\" 2{2\"CoreML8\" 3{1\"CoreML7\" 2{}} 3{1\"CoreML8\" 2{2\"a\"}}}}}", NULL, 0);
    assert_string_equal(program.functions[0].specialization_name, "CoreML8");
    assert_int_equal(program.functions[0].specialization_count, 2);
    assert_int_equal(program.functions[0].body.output_count, 1);
    assert_int_equal(program.interface_count, 0);
    laya_mil_program_close(&program);
    read_message(&program, "502{2{1\"f\" 2{2\"CoreML99\" 3{1\"CoreML7\" 2{}} 3{1\"CoreML8\" 2{}}}}}", NULL, 0);
    assert_string_equal(program.functions[0].specialization_name, "CoreML7");
    assert_string_equal(program.functions[0].opset_name, "CoreML99");
    assert_int_equal(program.functions[0].opset, 0);
    laya_mil_program_close(&program);
    expect_error("502{2{1\"f\" 2{2\"CoreML8\"}}}", NULL, 0, LAYA_ERROR_FORMAT,
                 "function \"f\": the function has no block");
    expect_error("502{2{1\"f\" 2{3{1\"CoreML8\"}}}}", NULL, 0, LAYA_ERROR_FORMAT, "no block of operations");
    expect_error("502{2{1\"f\"}}", NULL, 0, LAYA_ERROR_FORMAT, "no block of operations");
    expect_error("1=7 2{}", NULL, 0, LAYA_ERROR_UNSUPPORTED, "not an ML Program");
    expect_error("1=4 500{1{}}", NULL, 0, LAYA_ERROR_UNSUPPORTED, "not an ML Program");
    expect_error("", NULL, 0, LAYA_ERROR_UNSUPPORTED, "not an ML Program");
}

/* ------------------------------------------------------------------ description */

#define FUNCTION(name) "2{1\"" name "\" 2{2\"CoreML8\" 3{1\"CoreML8\" 2{}}}}"
#define ONE_FUNCTION " 502{1=1 " FUNCTION("main") "}"

static void test_description(void **unused)
{
    (void)unused;
    const char *states =
        "1=9 2{1{1\"x\" 3{5{1#0108 2=131104} 1000=1}} 1{1\"e\" 3{5{2=65568}}} 10{1\"y\" 3{5{1#03 2=131080}}}"
        " 13{1\"s\" 3{8{1{1#0102 2=65552}}}} 100{1\"short\" 2\"v\" 3\"me\" 4\"MIT\""
        " 100{1\"b\" 2\"two\"} 100{1\"a\"}}}" ONE_FUNCTION;
    laya_mil_program program;
    read_message(&program, states, NULL, 0);
    const laya_mil_interface *interface = &program.interfaces[0];
    laya_mil_type x = {.dtype = LAYA_MIL_INT32, .rank = 2, .dims = {1, 8}};
    assert_int_equal(interface->input_count, 2);
    assert_true(laya_mil_type_equal(&interface->inputs[0].type, &x));
    assert_true(interface->inputs[0].optional);
    assert_int_equal(interface->inputs[1].type.rank, 0);
    assert_int_equal(interface->inputs[1].type.dtype, LAYA_MIL_FP32);
    assert_int_equal(interface->outputs[0].type.dtype, LAYA_MIL_INT8);
    assert_int_equal(interface->states[0].type.kind, LAYA_MIL_STATE);
    assert_int_equal(interface->states[0].type.dtype, LAYA_MIL_FP16);
    assert_string_equal(interface->states[0].kind, "state");
    static const char *const metadata[][2] = {{"shortDescription", "short"},
                                              {"versionString", "v"},
                                              {"author", "me"},
                                              {"license", "MIT"},
                                              {"b", "two"},
                                              {"a", ""}};
    assert_int_equal(program.metadata_count, 6);
    for (uint32_t i = 0; i < 6; i++) {
        assert_string_equal(program.metadata[i].key, metadata[i][0]);
        assert_string_equal(program.metadata[i].text, metadata[i][1]);
    }
    laya_mil_program_close(&program);
    expect_round_trip(states);
}

static void test_functions(void **unused)
{
    (void)unused;
    const char *text = "1=9 2{20{1\"len128\" 2{1\"x\" 3{5{1#08 2=65552}}} 3{1\"y\" 3{5{1#08 2=65600}}}}"
                       " 20{1\"len512\" 6{1\"s\" 3{8{1{1#08 2=65552}}}}} 21\"len512\"} 502{1=1 " FUNCTION("len128")
                           FUNCTION("len512") "}";
    laya_mil_program program;
    read_message(&program, text, NULL, 0);
    assert_int_equal(program.function_count, 2);
    assert_string_equal(program.functions[1].name, "len512");
    assert_int_equal(program.interface_count, 2);
    assert_string_equal(program.interfaces[0].name, "len128");
    assert_string_equal(program.interfaces[0].outputs[0].name, "y");
    assert_int_equal(program.interfaces[0].outputs[0].type.dtype, LAYA_MIL_FP64);
    assert_int_equal(program.interfaces[1].state_count, 1);
    assert_string_equal(program.default_function, "len512");
    laya_mil_program_close(&program);
    expect_round_trip(text);
    expect_error("1=9 2{1{1\"x\"} 20{1\"f\"}} 502{}", NULL, 0, LAYA_ERROR_FORMAT, "functions and also inputs");
}

static void test_features(void **unused)
{
    (void)unused;
    static const struct {
        const char *text, *kind;
        bool flexible;
    } cases[] = {{"2{1{1\"x\" 3{1{}}}}", "int64", false},         {"2{1{1\"x\" 3{2{}}}}", "double", false},
                 {"2{1{1\"x\" 3{3{}}}}", "string", false},        {"2{1{1\"x\" 3{4{1=5}}}}", "image", false},
                 {"2{1{1\"x\" 3{6{}}}}", "dictionary", false},    {"2{1{1\"x\" 3{7{}}}}", "sequence", false},
                 {"2{1{1\"x\" 3{}}}", "unknown", false},          {"2{1{1\"x\"}}", "unknown", false},
                 {"2{1{1\"x\" 3{5{21{}}}}}", "multiArray", true}, {"2{1{1\"x\" 3{5{31{}}}}}", "multiArray", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        laya_mil_program program;
        laya_buffer message;
        laya_error error;
        snprintf(text, sizeof text, "%s%s", cases[i].text, ONE_FUNCTION);
        read_message(&program, text, NULL, 0);
        assert_string_equal(program.interfaces[0].inputs[0].kind, cases[i].kind);
        assert_int_equal(program.interfaces[0].inputs[0].flexible, cases[i].flexible);
        laya_buffer_init(&message, NULL);
        assert_int_equal(laya_model_encode(&program, &message, &error), LAYA_ERROR_UNSUPPORTED);
        assert_contains(error.message, "\"x\" cannot be written as an input or output");
        laya_buffer_close(&message);
        laya_mil_program_close(&program);
    }
    expect_error("2{1{1\"x\" 3{5{1#010101010101010101}}}}" ONE_FUNCTION, NULL, 0, LAYA_ERROR_UNSUPPORTED,
                 "\"x\" of the description has rank 9; the limit is 8");
}

/* ------------------------------------------------------------------ memory */

static const char everything[] =
    "1=9 2{20{1\"main\" 2{1\"x\" 3{5{1#08 2=65552}}} 6{1\"s\" 3{8{1{1#08 2=65552}}}}} 20{1\"g\"} 21\"main\""
    " 100{1\"short\" 100{1\"k\" 2\"v\"}}} 502{1=1 2{1\"main\" 2{1{1\"x\" 2{1{1=10 2=1 3{2{}}}}}"
    " 1{1\"s\" 2{5{1{1{1=10 2=1 3{1{1=8}}}}}}} 2\"CoreML8\" 3{1\"CoreML8\" 2{2\"y\""
    " " NAMED(VECTOR("39", "5"), "5{1\"" WEIGHTS "\" 2=64}")
        NAMED(SCALAR("2"), IN_PLACE("4{1\"t\"}")) " " NAMED(SCALAR("11"), IN_PLACE("1{1#0000803f}"))
            NAMED(SCALAR("12"), IN_PLACE("6{1#000000000000f03f}")) " " NAMED(SCALAR("24"), IN_PLACE("5{1#05}"))
                NAMED(SCALAR("1"),
                      IN_PLACE("3{1#01}")) " 3{1\"cond\" 2{1\"pred\" 2{1{1\"x\"} 1{2{2{1{1=23}} 3{1{2{1#01}}}}}}} "
                                           "3{1\"y\" 2{1{1=10}}}"
                                           "    4{1{1\"arg\" 2{1{1=10}}} 2\"x\"} 4{3{1\"relu\" 3{1\"x\" 2{1{1=10}}}}}"
                                           "    5{1\"name\" 2{2{1{1=2}} 3{1{4{1\"n\"}}}}}}}}}} 2{1\"g\" "
                                           "2{2\"CoreML8\" 3{1\"CoreML8\" 2{}}}}}";

static void test_failing_memory(void **unused)
{
    (void)unused;
    size_t size, fail_at;
    unsigned char *weights = make_weights(&size);
    test_memory memory;
    laya_buffer message, again;
    laya_mil_program program;
    laya_error error;
    laya_status status;
    expect_round_trip(everything);
    laya_buffer_init(&message, NULL);
    put_message(&message, everything);
    test_memory_init(&memory);
    for (fail_at = 1;; fail_at++) {
        test_memory_arm(&memory, fail_at);
        laya_mil_program_init(&program, &memory.hooks);
        status = laya_model_decode(&program, (const unsigned char *)message.data, message.size, weights, size,
                                   &error);
        if (!memory.failed) break;
        assert_int_equal(status, LAYA_ERROR_MEMORY);
        assert_int_equal(error.status, LAYA_ERROR_MEMORY);
        laya_mil_program_close(&program);
        assert_int_equal(memory.live, 0);
    }
    assert_int_equal(status, LAYA_OK);
    assert_true(fail_at > 100);
    for (fail_at = 1;; fail_at++) {
        test_memory_arm(&memory, fail_at);
        laya_buffer_init(&again, &memory.hooks);
        status = laya_model_encode(&program, &again, &error);
        if (!memory.failed) break;
        assert_int_equal(status, LAYA_ERROR_MEMORY);
        assert_int_equal(again.size, 0);
        laya_buffer_close(&again);
    }
    assert_int_equal(status, LAYA_OK);
    assert_bytes(&again, &message);
    laya_buffer_close(&again);
    laya_mil_program_close(&program);
    assert_int_equal(memory.live, 0);
    laya_buffer_close(&message);
    free(weights);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_model),     cmocka_unit_test(test_golden_operations),
        cmocka_unit_test(test_immediate_values), cmocka_unit_test(test_strings),
        cmocka_unit_test(test_weight_file),      cmocka_unit_test(test_wrong_constants),
        cmocka_unit_test(test_source),           cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_nested_blocks),    cmocka_unit_test(test_specializations),
        cmocka_unit_test(test_description),      cmocka_unit_test(test_functions),
        cmocka_unit_test(test_features),         cmocka_unit_test(test_failing_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
