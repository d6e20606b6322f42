/* SPDX-License-Identifier: Apache-2.0 */
/* Describing and comparing packages: programs built here, a golden model file, packages written and read back. */
#include "support.h"
#include "tree.h"

#include "base/json.h"
#include "coreml/listing.h"
#include "coreml/package.h"
#include "mil/builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ programs */

enum { WEIGHTS = 16 };

/* What the programs below differ in. */
typedef struct variant {
    laya_mil_opset opset; /* 0: CoreML6 */
    laya_mil_dtype dtype; /* 0: fp16 */
    const char *scope;    /* of all names but the inputs' and the output's */
    const char *output;   /* NULL: "out" */
    int32_t axis;         /* of the softmax; 0: 1 */
    unsigned char last;   /* byte of the weights */
    bool crossed;         /* the two parts are joined the other way round */
    bool more;            /* one more relu */
    bool gelu;            /* in place of the relu */
} variant;

/* conv, relu, split, concat, softmax, add: operations 0 to 5. */
static void build_graph(laya_mil_builder *b, const variant *v)
{
    laya_mil_dtype dtype = v->dtype ? v->dtype : LAYA_MIL_FP16;
    laya_mil_type type = laya_mil_tensor4(dtype, 1, 4, 1, 8);
    unsigned char bytes[4 * WEIGHTS] = {0, 0x3c};
    size_t size = dtype == LAYA_MIL_FP32 ? 4 : 2;
    bytes[WEIGHTS * size - 1] = v->last;
    laya_mil_value *x = laya_mil_input(b, "x", type), *y = laya_mil_input(b, "y", type), *parts[2];
    size_t scope = laya_mil_enter(b, "%s", v->scope ? v->scope : "s");
    laya_mil_value *weight = laya_mil_const(b, "weight", laya_mil_tensor4(dtype, 4, 4, 1, 1), bytes);
    laya_mil_value *value = laya_mil_conv(b, "conv", x, weight, NULL);
    value = v->gelu ? laya_mil_gelu(b, "act", value) : laya_mil_relu(b, "act", value);
    if (v->more) value = laya_mil_relu(b, "act", value);
    laya_mil_split(b, "part", value, 1, 2, parts);
    laya_mil_value *const joined[2] = {parts[v->crossed], parts[!v->crossed]};
    value = laya_mil_concat(b, "joined", joined, 2, 1);
    value = laya_mil_softmax(b, "soft", value, v->axis ? v->axis : 1);
    laya_mil_leave(b, scope);
    laya_mil_output(b, laya_mil_add(b, v->output ? v->output : "out", value, y));
}

static void begin(laya_package *package)
{
    static char path[] = "no.mlpackage", model[] = "no.mlpackage/Data/model.mlmodel";
    *package = (laya_package){.allocator = laya_allocator_or_default(NULL), .path = path, .model_path = model};
    laya_mil_program_init(&package->program, NULL);
}

static void make(laya_package *package, variant v)
{
    laya_mil_builder builder;
    laya_error error;
    begin(package);
    laya_mil_begin(&builder, &package->program, v.opset ? v.opset : LAYA_MIL_COREML6, &error);
    build_graph(&builder, &v);
    laya_mil_metadata_add(&builder, "laya.key", "a \"text\"");
    if (laya_mil_finish(&builder) != LAYA_OK) fail_msg("%s", error.message);
}

/* Operation number `position` of those that are not const. */
static laya_mil_op *op_at(laya_package *package, uint32_t position)
{
    laya_mil_op *op = package->program.functions[0].body.first;
    for (;; op = op->next) {
        assert_non_null(op);
        if (laya_mil_is_const(op)) continue;
        if (position-- == 0) return op;
    }
}

static laya_mil_argument *argument(laya_mil_op *op, const char *name)
{
    for (uint32_t at = 0; at < op->input_count; at++) {
        if (strcmp(op->inputs[at].name, name) == 0) return &op->inputs[at];
    }
    fail_msg("no parameter %s", name);
    return NULL;
}

/* ------------------------------------------------------------------ reports */

static char *describe(const laya_package *package, int operations)
{
    char *json;
    laya_error error;
    if (laya_package_describe(package, operations, &json, &error) != LAYA_OK) fail_msg("%s", error.message);
    return json;
}

/* Compare; the differences are `count`, and the report holds the text. Both ways round. */
static void expect_differences(const laya_package *a, const laya_package *b, unsigned count, const char *text)
{
    char *json, counted[64];
    int equal = -1;
    laya_error error;
    if (laya_package_compare(a, b, &equal, &json, &error) != LAYA_OK) fail_msg("%s", error.message);
    snprintf(counted, sizeof counted, "\"difference_count\": %u,", count);
    assert_contains(json, counted);
    assert_contains(json, text);
    assert_int_equal(equal, count == 0);
    assert_contains(json, count == 0 ? "\"equal\": true" : "\"equal\": false");
    laya_package_release(a, json);
    if (laya_package_compare(b, a, &equal, &json, &error) != LAYA_OK) fail_msg("%s", error.message);
    assert_int_equal(equal, count == 0);
    assert_contains(json, counted);
    laya_package_release(b, json);
}

static void expect_variant(variant v, unsigned count, const char *text)
{
    laya_package a, b;
    make(&a, (variant){0});
    make(&b, v);
    expect_differences(&a, &b, count, text);
    laya_mil_program_close(&a.program);
    laya_mil_program_close(&b.program);
}

/* ------------------------------------------------------------------ describing */

static void test_description(void **unused)
{
    (void)unused;
    laya_package package;
    make(&package, (variant){0});
    char *json = describe(&package, 0);
    assert_contains(json, "\"specification_version\": 7,");
    assert_contains(json, "\"opset\": \"CoreML6\"");
    assert_contains(json,
                    "      \"inputs\": [\n"
                    "        {\"name\":\"x\",\"kind\":\"multiArray\",\"dtype\":\"fp16\",\"shape\":[1,4,1,8]},\n"
                    "        {\"name\":\"y\",\"kind\":\"multiArray\",\"dtype\":\"fp16\",\"shape\":[1,4,1,8]}\n"
                    "      ],\n"
                    "      \"outputs\": [\n"
                    "        {\"name\":\"out\",\"kind\":\"multiArray\",\"dtype\":\"fp16\",\"shape\":[1,4,1,8]}\n"
                    "      ],\n"
                    "      \"states\": [],\n");
    /* weight; conv: strides, pad_type, pad, dilations, groups; split: num_splits, axis; concat: interleave. The axes
       of split, concat and softmax are one. */
    assert_contains(json, "\"non_constant\": 6,\n        \"const\": 9,\n        \"constexpr\": 0,\n"
                          "        \"kinds\": {\n          \"const\": 9,\n          \"add\": 1,\n"
                          "          \"concat\": 1,\n          \"conv\": 1,\n          \"relu\": 1,\n"
                          "          \"softmax\": 1,\n          \"split\": 1\n        }");
    /* 32 (weight) + 8 + 5 ("valid") + 16 + 8 + 4 + 4 + 4 + 1 */
    assert_contains(json, "\"count\": 9,\n    \"bytes\": 82,\n    \"in_model\": {\"count\":9,\"bytes\":82},\n"
                          "    \"in_weight_file\": {\"count\":0,\"bytes\":0},\n"
                          "    \"distinct_blobs\": {\"count\":0,\"bytes\":0},\n    \"largest\": [\n"
                          "      {\"name\":\"s_weight\",\"type\":\"fp16 [4, 4, 1, 1]\",\"bytes\":32},\n");
    assert_contains(json, "\"metadata\": {\n    \"laya.key\": \"a \\\"text\\\"\"\n  }");
    assert_false(test_contains(json, "listing"));
    laya_package_release(&package, json);

    json = describe(&package, 1);
    assert_contains(json, "\n        {\"type\":\"const\",\"name\":\"s_weight\",\"attributes\":{\"val\":{\"type\":"
                          "\"fp16 [4, 4, 1, 1]\",\"bytes\":32}},\"outputs\":[{\"name\":\"s_weight\",\"type\":"
                          "\"fp16 [4, 4, 1, 1]\"}]},\n");
    assert_contains(json, "\"val\":{\"type\":\"string\",\"value\":\"valid\"}");
    assert_contains(json, "\"val\":{\"type\":\"int32 [4]\",\"value\":[0,0,0,0]}");
    assert_contains(json, "\"val\":{\"type\":\"bool\",\"value\":false}");
    assert_contains(json, "{\"type\":\"concat\",\"name\":\"s_joined\",\"inputs\":{\"values\":[\"s_part_0\","
                          "\"s_part_1\"],\"axis\":\"");
    laya_package_release(&package, json);
    laya_mil_program_close(&package.program);
}

static void test_element_texts(void **unused)
{
    (void)unused;
    static const struct {
        laya_mil_dtype dtype;
        const char *bytes;
        uint64_t at;
        const char *text;
    } cases[] = {
        {LAYA_MIL_FP16, "\xa8\x00\x00\xc0", 0, "1.00135803e-05"}, /* 168 * 2^-24 */
        {LAYA_MIL_FP16, "\xa8\x00\x00\xc0", 1, "-2.0"},
        {LAYA_MIL_FP16, "\x00\x7e", 0, "NaN"},
        {LAYA_MIL_FP16, "\x00\xfc", 0, "-Infinity"},
        {LAYA_MIL_BF16, "\x20\xc1", 0, "-10.0"},
        {LAYA_MIL_FP32, "\xdb\x0f\x49\x40", 0, "3.14159274"},
        {LAYA_MIL_FP64, "\x9a\x99\x99\x99\x99\x99\xb9\x3f", 0, "0.1"},
        {LAYA_MIL_INT8, "\x80", 0, "-128"},
        {LAYA_MIL_INT16, "\xff\xff", 0, "-1"},
        {LAYA_MIL_INT32, "\x01\x00\x00\x00\xfe\xff\xff\xff", 1, "-2"},
        {LAYA_MIL_INT64, "\x00\x00\x00\x00\x00\x00\x00\x80", 0, "-9223372036854775808"},
        {LAYA_MIL_UINT64, "\xff\xff\xff\xff\xff\xff\xff\xff", 0, "18446744073709551615"},
        {LAYA_MIL_UINT8, "\xff", 0, "255"},
        {LAYA_MIL_BOOL, "\x00\x01", 1, "true"},
        {LAYA_MIL_INT4, "\x78\x0f", 0, "-8"},
        {LAYA_MIL_INT4, "\x78\x0f", 1, "7"},
        {LAYA_MIL_INT4, "\x78\x0f", 2, "-1"},
        {LAYA_MIL_UINT3, "\xd1\x58", 2, "3"},
        {LAYA_MIL_UINT6, "\x81\x30\xa0\x3f", 3, "40"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[LAYA_ELEMENT_TEXT];
        laya_mil_constant constant = {.type = laya_mil_vector(cases[i].dtype, 5),
                                      .bytes = (const unsigned char *)cases[i].bytes};
        assert_true(laya_element_text(&constant, cases[i].at, text));
        assert_string_equal(text, cases[i].text);
    }
    laya_mil_constant constant = {.type = laya_mil_scalar(LAYA_MIL_FLOAT8E5M2), .bytes = (const unsigned char *)"x"};
    assert_int_equal(laya_few_elements(&constant), 0);
    constant.type = laya_mil_vector(LAYA_MIL_UINT8, 8);
    constant.bytes = (const unsigned char *)"12345678";
    assert_int_equal(laya_few_elements(&constant), 8);
    constant.type.dims[0] = 9;
    assert_int_equal(laya_few_elements(&constant), 0);
    constant.type.dims[0] = 0;
    assert_int_equal(laya_few_elements(&constant), 0);
}

/* What only foreign packages have: parameters in place, NaN, names that nothing makes, flexible inputs, escapes. */
static void test_foreign(void **unused)
{
    (void)unused;
    laya_package package;
    make(&package, (variant){0});
    laya_mil_constant values = {.type = laya_mil_vector(LAYA_MIL_FP16, 2),
                                .bytes = (const unsigned char *)"\x00\x7e\x00\x3c",
                                .size = 4,
                                .in_file = true,
                                .offset = 64};
    laya_mil_constant tuple = {.type = {.kind = LAYA_MIL_TUPLE}};
    laya_mil_binding *axis = argument(op_at(&package, 4), "axis")->bindings;
    *axis = (laya_mil_binding){.constant = &values};
    *argument(op_at(&package, 2), "axis")->bindings = (laya_mil_binding){.constant = &tuple};
    *argument(op_at(&package, 1), "x")->bindings = (laya_mil_binding){.name = "ghost"};
    op_at(&package, 5)->name = NULL;
    package.program.default_function = "main";
    laya_mil_feature *feature = &package.program.interfaces[0].inputs[0];
    feature->name = "x\x1b[31m";
    feature->flexible = feature->optional = true;
    feature->type.dims[3] = LAYA_MIL_UNKNOWN;
    feature[1] = (laya_mil_feature){.name = "y", .kind = "image"};
    char *json = describe(&package, 1);
    assert_contains(json, "\"default_function\": \"main\"");
    assert_contains(json, "{\"name\":\"x\\u001b[31m\",\"kind\":\"multiArray\",\"dtype\":\"fp16\","
                          "\"shape\":[1,4,1,null],\"flexible\":true,\"optional\":true}");
    assert_contains(json, "{\"name\":\"y\",\"kind\":\"image\"}");
    assert_contains(json, "\"axis\":{\"type\":\"fp16 [2]\",\"offset\":64,\"value\":[\"NaN\",1.0]}");
    assert_contains(json, "\"axis\":{\"type\":\"tuple\",\"bytes\":0}");
    assert_contains(json, "{\"type\":\"relu\",\"name\":\"s_act\",\"inputs\":{\"x\":\"ghost\"}");
    assert_contains(json, "{\"type\":\"add\",\"inputs\":");
    assert_contains(json, "\"in_weight_file\": {\"count\":1,\"bytes\":4},\n    \"distinct_blobs\": "
                          "{\"count\":1,\"bytes\":4}");
    assert_contains(json, "{\"name\":\"s_soft\",\"parameter\":\"axis\",\"type\":\"fp16 [2]\",\"bytes\":4}");
    laya_package_release(&package, json);
    laya_mil_program_close(&package.program);
}

/* ------------------------------------------------------------------ nested blocks */

typedef struct nested {
    laya_mil_op cond, inner[3];
    laya_mil_value values[6];
    laya_mil_value *outputs[6];
    laya_mil_block blocks[3];
    laya_mil_argument arguments[3];
    laya_mil_binding bindings[4];
} nested;

static void make_inner(nested *n, unsigned at, const char *type, laya_mil_value *x)
{
    n->bindings[at] = (laya_mil_binding){.name = x->name, .value = x};
    n->arguments[at] = (laya_mil_argument){"x", &n->bindings[at], 1};
    n->inner[at] = (laya_mil_op){.type = type,
                                 .name = n->values[at].name,
                                 .inputs = &n->arguments[at],
                                 .input_count = 1,
                                 .outputs = &n->outputs[at],
                                 .output_count = 1};
}

/* After the last operation a cond: an empty block, {p = relu(input); q = exp(p)} -> q, {r = relu(input of block)}. */
static void add_nested(laya_package *package, nested *n)
{
    static const char *const names[] = {"p", "q", "r", "chosen", "given", "other"};
    laya_mil_function *function = &package->program.functions[0];
    *n = (nested){0};
    for (unsigned at = 0; at < 6; at++) {
        n->values[at] = (laya_mil_value){.name = names[at], .type = laya_mil_scalar(LAYA_MIL_FP16)};
        n->outputs[at] = &n->values[at];
    }
    make_inner(n, 0, "relu", function->inputs[0]);
    make_inner(n, 1, "exp", &n->values[0]);
    make_inner(n, 2, "relu", &n->values[4]);
    n->inner[0].next = &n->inner[1];
    n->bindings[3] = (laya_mil_binding){.name = "q", .value = &n->values[1]};
    n->blocks[1] = (laya_mil_block){
        .first = &n->inner[0], .last = &n->inner[1], .op_count = 2, .outputs = &n->bindings[3], .output_count = 1};
    n->blocks[2] = (laya_mil_block){
        .inputs = &n->outputs[4], .input_count = 2, .first = &n->inner[2], .last = &n->inner[2], .op_count = 1};
    n->cond = (laya_mil_op){.type = "cond",
                            .name = "chosen",
                            .outputs = &n->outputs[3],
                            .output_count = 1,
                            .blocks = n->blocks,
                            .block_count = 3};
    function->body.last->next = &n->cond;
    function->body.last = &n->cond;
}

static void test_nested_listing(void **unused)
{
    (void)unused;
    laya_package package;
    nested n;
    make(&package, (variant){0});
    add_nested(&package, &n);
    char *json = describe(&package, 1);
    assert_contains(json, "\"non_constant\": 10,");
    assert_contains(json, "\"relu\": 3,");
    assert_contains(json,
                    "        {\"type\":\"cond\",\"name\":\"chosen\",\"outputs\":[{\"name\":\"chosen\",\"type\":"
                    "\"fp16\"}],\"blocks\":[{\"inputs\":[],\"outputs\":[]},{\"inputs\":[],\"outputs\":[\"q\"]},"
                    "{\"inputs\":[{\"name\":\"given\",\"type\":\"fp16\"},{\"name\":\"other\",\"type\":\"fp16\"}],"
                    "\"outputs\":[]}]},\n"
                    "        {\"type\":\"relu\",\"name\":\"p\",\"depth\":1,\"block\":1,\"inputs\":{\"x\":\"x\"},"
                    "\"outputs\":[{\"name\":\"p\",\"type\":\"fp16\"}]},\n"
                    "        {\"type\":\"exp\",\"name\":\"q\",\"depth\":1,\"block\":1,\"inputs\":{\"x\":\"p\"},"
                    "\"outputs\":[{\"name\":\"q\",\"type\":\"fp16\"}]},\n"
                    "        {\"type\":\"relu\",\"name\":\"r\",\"depth\":1,\"block\":2,\"inputs\":{\"x\":\"given\""
                    "},\"outputs\":[{\"name\":\"r\",\"type\":\"fp16\"}]}\n      ]");
    laya_package_release(&package, json);
    laya_mil_program_close(&package.program);
}

static void test_nested_differences(void **unused)
{
    (void)unused;
    laya_package a, b;
    nested in_a, in_b;
    make(&a, (variant){0});
    make(&b, (variant){.scope = "renamed"});
    add_nested(&a, &in_a);
    add_nested(&b, &in_b);
    expect_differences(&a, &b, 0, "\"differences\": []");
    in_b.bindings[2] = (laya_mil_binding){.name = "other", .value = &in_b.values[5]};
    expect_differences(&a, &b, 1, "\"what\":\"input x\",\"a\":\"given, made by operation 6 (cond)\"");
    in_b.bindings[2] = in_a.bindings[2];
    in_b.bindings[2].value = &in_b.values[4];
    in_b.bindings[3] = (laya_mil_binding){.name = "p", .value = &in_b.values[0]};
    expect_differences(&a, &b, 1,
                       "\"what\":\"block output 0\",\"a\":\"q, made by operation 8 (exp)\",\"b\":\"p, made "
                       "by operation 7 (relu)\"");
    in_b.bindings[3] = (laya_mil_binding){.name = "q", .value = &in_b.values[1]};
    in_b.values[5].type = laya_mil_scalar(LAYA_MIL_FP32);
    expect_differences(&a, &b, 1, "\"what\":\"type of block input 1\",\"a\":\"fp16\",\"b\":\"fp32\"");
    in_b.values[5].type = laya_mil_scalar(LAYA_MIL_FP16);
    in_b.cond.block_count = 2; /* the third block and its relu are gone */
    expect_differences(&a, &b, 2, "\"what\":\"number of blocks\",\"a\":\"3\",\"b\":\"2\"");
    laya_mil_program_close(&a.program);
    laya_mil_program_close(&b.program);
}

/* ------------------------------------------------------------------ comparing */

static void test_equal(void **unused)
{
    (void)unused;
    expect_variant((variant){0}, 0, "\"differences\": []");
    expect_variant((variant){.scope = "other_names"}, 0, "\"differences\": []");
}

/* A parameter in place equals one that a const operation gives; the order of maps and of inputs does not count. */
static void test_equal_forms(void **unused)
{
    (void)unused;
    laya_package a, b;
    make(&a, (variant){0});
    make(&b, (variant){0});
    laya_mil_binding *axis = argument(op_at(&b, 4), "axis")->bindings;
    *axis = (laya_mil_binding){.constant = axis->value->constant};
    laya_mil_op *conv = op_at(&b, 0);
    laya_mil_argument first = conv->inputs[0];
    conv->inputs[0] = conv->inputs[3];
    conv->inputs[3] = first;
    laya_mil_function *function = &b.program.functions[0];
    laya_mil_value *input = function->inputs[0];
    function->inputs[0] = function->inputs[1];
    function->inputs[1] = input;
    laya_mil_feature *features = b.program.interfaces[0].inputs, feature = features[0];
    features[0] = features[1];
    features[1] = feature;
    b.program.metadata_count = 0;
    expect_differences(&a, &b, 0, "\"differences\": []");
    /* and in place they can differ */
    laya_mil_constant other = *axis->constant;
    other.bytes = (const unsigned char *)"\x02\0\0\0";
    axis->constant = &other;
    expect_differences(&a, &b, 1, "\"what\":\"input axis\",\"a\":\"int32: 1\",\"b\":\"int32: 2\"}");
    laya_mil_program_close(&a.program);
    laya_mil_program_close(&b.program);
}

static void test_different(void **unused)
{
    (void)unused;
    expect_variant(
        (variant){.last = 0x40}, 1,
        "{\"where\":{\"a\":\"operation 0, conv s_conv\",\"b\":\"operation 0, conv s_conv\"},\"what\":\"input "
        "weight\",\"a\":\"fp16 [4, 4, 1, 1], element 15: 0.0\",\"b\":\"fp16 [4, 4, 1, 1], element 15: 2.0\"}");
    expect_variant((variant){.axis = 3}, 1, "\"what\":\"input axis\",\"a\":\"int32: 1\",\"b\":\"int32: 3\"}");
    expect_variant(
        (variant){.crossed = true}, 2,
        "\"what\":\"input values, tensor 0\",\"a\":\"s_part_0, made by operation 2 (split)\",\"b\":\"s_part_1,"
        " made by operation 2 (split)\"}");
    expect_variant(
        (variant){.gelu = true}, 1,
        "{\"where\":{\"a\":\"operation 1, relu s_act\",\"b\":\"operation 1, gelu s_act\"},\"what\":\"type of "
        "the operation\",\"a\":\"relu\",\"b\":\"gelu\"}");
    expect_variant((variant){.opset = LAYA_MIL_COREML8}, 2,
                   "\"what\":\"specification version\",\"a\":\"7\",\"b\":\"9\"}");
    expect_variant((variant){.opset = LAYA_MIL_COREML8}, 2,
                   "\"what\":\"opset\",\"a\":\"CoreML6\",\"b\":\"CoreML8\"}");
}

static void test_different_dtype(void **unused)
{
    (void)unused;
    static const char *const texts[] = {
        "\"b\":\"interface of main\"},\"what\":\"input x\",\"a\":\"multiArray fp16 [1, 4, 1, 8]\"",
        "\"what\":\"input y\",\"a\":\"multiArray fp16 [1, 4, 1, 8]\",\"b\":\"multiArray fp32 [1, 4, 1, 8]\"}",
        "\"what\":\"output out\",\"a\":\"multiArray fp16 [1, 4, 1, 8]\"",
        "\"what\":\"type of input y\",\"a\":\"fp16 [1, 4, 1, 8]\",\"b\":\"fp32 [1, 4, 1, 8]\"}",
        "\"what\":\"input weight\",\"a\":\"fp16 [4, 4, 1, 1]\",\"b\":\"fp32 [4, 4, 1, 1]\"}",
        "\"what\":\"type of output 1\",\"a\":\"fp16 [1, 2, 1, 8]\",\"b\":\"fp32 [1, 2, 1, 8]\"}"};
    /* three features, two inputs, the weight, seven outputs of six operations */
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect_variant((variant){.dtype = LAYA_MIL_FP32}, 13, texts[i]);
}

static void test_one_more_operation(void **unused)
{
    (void)unused;
    static const char *const texts[] = {
        "{\"where\":{\"a\":null,\"b\":\"operation 2, relu s_act_2\"},\"what\":\"operation\",\"a\":null,",
        "\"a\":\"s_act, made by operation 1 (relu)\",\"b\":\"s_act_2, made by operation 2 (relu)\"}",
        "{\"where\":{\"a\":\"operation 2, split s_part\",\"b\":\"operation 3, split s_part\"},\"what\":\"input x\",",
        "\"kinds\": {\n    \"relu\": {\n      \"a\": 1,\n      \"b\": 2\n    }\n  }"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) expect_variant((variant){.more = true}, 2, texts[i]);
}

static void test_other_parts(void **unused)
{
    (void)unused;
    laya_package a, b;
    make(&a, (variant){0});
    make(&b, (variant){.output = "result"});
    expect_differences(&a, &b, 4, "\"what\":\"output out\",\"a\":\"multiArray fp16 [1, 4, 1, 8]\",\"b\":null}");
    expect_differences(&a, &b, 4, "\"what\":\"result\",\"a\":\"out, made by operation 5 (add)\",\"b\":null}");
    laya_mil_program_close(&b.program);

    make(&b, (variant){0});
    b.program.functions[0].body.outputs[0].value = op_at(&b, 4)->outputs[0];
    expect_differences(&a, &b, 1,
                       "\"what\":\"result out\",\"a\":\"out, made by operation 5 (add)\",\"b\":\"out, made by "
                       "operation 4 (softmax)\"}");
    b.program.functions[0].body.outputs[0].value = op_at(&b, 5)->outputs[0];
    laya_mil_op *soft = op_at(&b, 4), *add = op_at(&b, 5);
    soft->input_count = 1;
    expect_differences(&a, &b, 1, "\"what\":\"input axis\",\"a\":\"constant int32: 1\",\"b\":null}");
    soft->input_count = 2;
    laya_mil_constant list = {.type = {.kind = LAYA_MIL_LIST}};
    soft->attributes = &(laya_mil_attribute){"extra", &list};
    soft->attribute_count = 1;
    expect_differences(&a, &b, 1, "\"what\":\"attribute extra\",\"a\":null,\"b\":\"list\"}");
    const laya_mil_constant *one = argument(soft, "axis")->bindings[0].value->constant;
    laya_mil_constant two = *one;
    two.bytes = (const unsigned char *)"\x02\0\0\0";
    op_at(&a, 4)->attributes = &(laya_mil_attribute){"extra", one};
    op_at(&a, 4)->attribute_count = 1;
    soft->attributes = &(laya_mil_attribute){"extra", one};
    expect_differences(&a, &b, 0, "\"differences\": []");
    soft->attributes = &(laya_mil_attribute){"extra", &two};
    expect_differences(&a, &b, 1, "\"what\":\"attribute extra\",\"a\":\"int32: 1\",\"b\":\"int32: 2\"}");
    op_at(&a, 4)->attribute_count = soft->attribute_count = 0;
    argument(op_at(&b, 3), "values")->count = 1;
    expect_differences(&a, &b, 1,
                       "\"what\":\"input values\",\"a\":\"s_part_0, made by operation 2 (split); s_part_1, made by "
                       "operation 2 (split)\",\"b\":\"s_part_0, made by operation 2 (split)\"}");
    argument(op_at(&b, 3), "values")->count = 2;
    *argument(add, "y")->bindings = (laya_mil_binding){.name = "x", .value = b.program.functions[0].inputs[0]};
    expect_differences(&a, &b, 1, "\"what\":\"input y\",\"a\":\"y, an input\",\"b\":\"x, an input\"}");
    *argument(add, "y")->bindings = (laya_mil_binding){.constant = one};
    expect_differences(&a, &b, 1, "\"what\":\"input y\",\"a\":\"y, an input\",\"b\":\"constant int32: 1\"}");
    b.program.default_function = "main";
    expect_differences(&a, &b, 2, "\"what\":\"default function\",\"a\":null,\"b\":\"main\"}");
    b.program.default_function = NULL;
    *argument(add, "y")->bindings = (laya_mil_binding){.name = "ghost"};
    expect_differences(&a, &b, 1, "\"what\":\"input y\",\"a\":\"y, an input\",\"b\":\"ghost, which nothing makes\"}");
    *argument(add, "y")->bindings = (laya_mil_binding){.name = "y", .value = b.program.functions[0].inputs[1]};
    b.program.interfaces[0].inputs[0].optional = true;
    expect_differences(&a, &b, 1, "\"b\":\"multiArray fp16 [1, 4, 1, 8], optional\"}");
    b.program.interfaces[0].inputs[0].optional = false;
    b.program.functions[0].name = "other";
    expect_differences(&a, &b, 2, "\"what\":\"function\",\"a\":\"main\",\"b\":null}");
    laya_mil_program_close(&a.program);
    laya_mil_program_close(&b.program);
}

static void make_chain(laya_package *package, bool gelu, unsigned length)
{
    laya_mil_builder b;
    laya_error error;
    begin(package);
    laya_mil_begin(&b, &package->program, LAYA_MIL_COREML6, &error);
    laya_mil_value *value = laya_mil_input(&b, "x", laya_mil_tensor4(LAYA_MIL_FP16, 1, 4, 1, 8));
    for (unsigned at = 0; at < length; at++)
        value = gelu ? laya_mil_gelu(&b, "y", value) : laya_mil_relu(&b, "y", value);
    laya_mil_output(&b, value);
    if (laya_mil_finish(&b) != LAYA_OK) fail_msg("%s", error.message);
}

static void test_many_differences(void **unused)
{
    (void)unused;
    laya_package a, b;
    char *json;
    int equal;
    make_chain(&a, false, 150);
    make_chain(&b, true, 150);
    assert_int_equal(laya_package_compare(&a, &b, &equal, &json, NULL), LAYA_OK);
    assert_contains(json, "\"difference_count\": 150,");
    unsigned lines = 0;
    for (const char *at = json; (at = strstr(at, "\"where\"")); at++) lines++;
    assert_int_equal(lines, 100);
    assert_false(test_contains(json, "\"kinds\""));
    laya_package_release(&a, json);
    laya_mil_program_close(&a.program);
    laya_mil_program_close(&b.program);
}

/* ------------------------------------------------------------------ packages on disk */

static char folder[TEST_PATH_SIZE];

/* 5 MiB of weights, more than is compared at once; the last byte differs where `last` does. */
static laya_package *write_and_open(const char *name, unsigned char last)
{
    enum { ROWS = 512, COLS = 5120 };
    char path[TEST_PATH_SIZE];
    laya_mil_program program;
    laya_mil_builder b;
    laya_error error;
    laya_package_files files;
    laya_package *package = NULL;
    unsigned char *bytes = calloc(ROWS * COLS, 2);
    assert_non_null(bytes);
    bytes[2 * ROWS * COLS - 1] = last;
    laya_mil_program_init(&program, NULL);
    laya_mil_begin(&b, &program, LAYA_MIL_COREML6, &error);
    laya_mil_value *x = laya_mil_input(&b, "x", laya_mil_tensor4(LAYA_MIL_FP16, 1, COLS, 1, 8));
    laya_mil_value *weight = laya_mil_const(&b, "w", laya_mil_tensor4(LAYA_MIL_FP16, ROWS, COLS, 1, 1), bytes);
    laya_mil_value *again = laya_mil_const(&b, "v", laya_mil_tensor4(LAYA_MIL_FP16, ROWS, COLS, 1, 1), bytes);
    laya_mil_value *left = laya_mil_conv(&b, "left", x, weight, NULL),
                   *right = laya_mil_conv(&b, "right", x, again, NULL);
    laya_mil_output(&b, laya_mil_add(&b, "y", left, right));
    laya_status status = laya_mil_finish(&b);
    if (status == LAYA_OK) status = laya_package_write(&program, test_join(path, folder, name), NULL, &files, &error);
    laya_mil_program_close(&program);
    free(bytes);
    if (status == LAYA_OK) status = laya_package_open(path, NULL, &package, &error);
    if (status != LAYA_OK) fail_msg("%s", error.message);
    return package;
}

static void test_written_packages(void **unused)
{
    (void)unused;
    test_make_folder(folder);
    laya_package *a = write_and_open("a.mlpackage", 0), *b = write_and_open("b.mlpackage", 0xc0);
    expect_differences(a, a, 0, "\"differences\": []");
    expect_differences(a, b, 2,
                       "\"what\":\"input weight\",\"a\":\"fp16 [512, 5120, 1, 1], element 2621439: 0.0\",\"b\":"
                       "\"fp16 [512, 5120, 1, 1], element 2621439: -2.0\"}");
    char *json = describe(a, 0);
    assert_contains(json, "\"in_weight_file\": {\"count\":2,\"bytes\":10485760},\n"
                          "    \"distinct_blobs\": {\"count\":1,\"bytes\":5242880},\n"
                          "    \"largest\": [\n"
                          "      {\"name\":\"w\",\"type\":\"fp16 [512, 5120, 1, 1]\",\"bytes\":5242880},\n"
                          "      {\"name\":\"v\",\"type\":\"fp16 [512, 5120, 1, 1]\",\"bytes\":5242880},\n");
    assert_contains(json, "{\"path\":\"Data/com.apple.CoreML/weights/weight.bin\",\"bytes\":5243008}");
    assert_contains(json, "{\"path\":\"Manifest.json\",\"bytes\":");
    assert_contains(json, "{\"path\":\"Data/com.apple.CoreML/model.mlmodel\",\"bytes\":");
    laya_package_release(a, json);
    laya_package_close(a);
    laya_package_close(b);
    test_remove_tree(folder);
}

/* ------------------------------------------------------------------ memory, arguments */

static void test_memory_failures(void **unused)
{
    (void)unused;
    laya_package a, b;
    test_memory memory;
    laya_error error;
    char *json;
    int equal;
    make(&a, (variant){0});
    make(&b, (variant){.dtype = LAYA_MIL_FP32, .more = true});
    test_memory_init(&memory);
    a.allocator = memory.hooks;
    for (size_t at = 1;; at++) {
        test_memory_arm(&memory, at);
        laya_status status = laya_package_describe(&a, 1, &json, &error);
        if (!memory.failed) break;
        assert_int_equal(status, LAYA_ERROR_MEMORY);
        assert_null(json);
        assert_int_equal(memory.live, 0);
    }
    laya_package_release(&a, json);
    assert_int_equal(memory.live, 0);
    for (size_t at = 1;; at++) {
        test_memory_arm(&memory, at);
        laya_status status = laya_package_compare(&a, &b, &equal, &json, &error);
        if (!memory.failed) break;
        assert_int_equal(status, LAYA_ERROR_MEMORY);
        assert_null(json);
        assert_int_equal(equal, 0);
        assert_int_equal(memory.live, 0);
    }
    laya_package_release(&a, json);
    assert_int_equal(memory.live, 0);
    laya_mil_program_close(&a.program);
    laya_mil_program_close(&b.program);
}

static void test_arguments(void **unused)
{
    (void)unused;
    laya_package package;
    laya_error error;
    char *json = (char *)&error;
    int equal = 1;
    begin(&package);
    assert_int_equal(laya_package_describe(NULL, 0, &json, &error), LAYA_ERROR_ARGUMENT);
    assert_null(json);
    assert_int_equal(laya_package_describe(&package, 0, NULL, &error), LAYA_ERROR_ARGUMENT);
    json = (char *)&error;
    assert_int_equal(laya_package_compare(&package, NULL, &equal, &json, &error), LAYA_ERROR_ARGUMENT);
    assert_null(json);
    assert_int_equal(equal, 0);
    assert_int_equal(laya_package_compare(NULL, &package, &equal, &json, &error), LAYA_ERROR_ARGUMENT);
    assert_int_equal(laya_package_compare(&package, &package, NULL, &json, NULL), LAYA_ERROR_ARGUMENT);
    assert_int_equal(laya_package_compare(&package, &package, &equal, NULL, NULL), LAYA_ERROR_ARGUMENT);
    laya_package_release(NULL, NULL);
    laya_package_release(&package, NULL);
    /* a program without functions */
    expect_differences(&package, &package, 0, "\"differences\": []");
    json = describe(&package, 1);
    assert_contains(json, "\"functions\": [],");
    laya_package_release(&package, json);
    laya_mil_program_close(&package.program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_description),
        cmocka_unit_test(test_element_texts),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_nested_listing),
        cmocka_unit_test(test_nested_differences),
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_equal_forms),
        cmocka_unit_test(test_different),
        cmocka_unit_test(test_different_dtype),
        cmocka_unit_test(test_one_more_operation),
        cmocka_unit_test(test_other_parts),
        cmocka_unit_test(test_many_differences),
        cmocka_unit_test(test_written_packages),
        cmocka_unit_test(test_memory_failures),
        cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
