/* SPDX-License-Identifier: Apache-2.0 */
/* Palettes as the inspector shows them: both forms, tables, entries used, bytes, and errors by hand arithmetic. */
#include "mil_run.h"
#include "tree.h"

#include "base/json.h"
#include "coreml/inspect.h"
#include "mil/builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ------------------------------------------------------------------ programs */

/* A function that does nothing of note. */
static void begin(laya_mil_program *program, laya_mil_opset opset)
{
    laya_mil_builder b;
    laya_error error;
    laya_mil_program_init(program, NULL);
    laya_mil_begin(&b, program, opset, &error);
    laya_mil_output(&b, laya_mil_relu(&b, "first", laya_mil_input(&b, "zero", laya_mil_vector(LAYA_MIL_FP32, 1))));
    assert_int_equal(laya_mil_finish(&b), LAYA_OK);
}

static laya_mil_type type_of(laya_mil_dtype dtype, const char *dims)
{
    laya_mil_type type = {.kind = LAYA_MIL_TENSOR, .dtype = dtype};
    for (char *at = (char *)dims; *at; at += *at == ',') type.dims[type.rank++] = strtol(at, &at, 10);
    return type;
}

/* A parameter with these bytes, an attribute or an input. */
static void add_bytes(laya_mil_program *program, laya_mil_op *op, const char *name, laya_mil_type type,
                      const void *bytes)
{
    if (test_main_function(program)->opset >= LAYA_MIL_COREML8)
        test_bind_constant(program, test_add_input(program, op, name), type, bytes);
    else
        test_add_attribute(program, op, name, test_make_constant(program, type, bytes));
}

static void add_values(laya_mil_program *program, laya_mil_op *op, const char *name, laya_mil_type type,
                       const double *values)
{
    unsigned char bytes[1024];
    uint64_t size;
    assert_true(laya_mil_type_size(&type, &size) && size <= sizeof bytes);
    test_encode(&type, values, bytes);
    add_bytes(program, op, name, type, bytes);
}

#define ADD_BYTES(program, op, name, dtype, dims, ...)                                                               \
    add_bytes(program, op, name, type_of(dtype, dims), (const unsigned char[]){__VA_ARGS__})
#define ADD_VALUES(program, op, name, dtype, dims, ...)                                                              \
    add_values(program, op, name, type_of(dtype, dims), (const double[]){__VA_ARGS__})

static laya_mil_op *add_palette(laya_mil_program *program, const char *name, laya_mil_dtype dtype, const char *dims)
{
    return test_append_op(program, "constexpr_lut_to_dense", name, type_of(dtype, dims));
}

/* A const operation. */
static void add_dense(laya_mil_program *program, const char *name, laya_mil_type type, const double *values)
{
    unsigned char bytes[1024];
    laya_mil_op *op = test_append_op(program, "const", name, type);
    test_encode(&type, values, bytes);
    laya_mil_constant *constant = test_make_constant(program, type, bytes);
    test_add_attribute(program, op, "val", constant);
    op->outputs[0]->constant = constant;
}

#define ADD_DENSE(program, name, dtype, dims, ...)                                                                   \
    add_dense(program, name, type_of(dtype, dims), (const double[]){__VA_ARGS__})

/* -1 0 .5 2 | 2 -1 0 0: indices 0 1 2 3 | 3 0 1 1 into one table of four entries */
static void add_packed(laya_mil_program *program)
{
    laya_mil_op *op = add_palette(program, "w", LAYA_MIL_FP16, "4,2,1,1");
    ADD_BYTES(program, op, "indices", LAYA_MIL_UINT8, "2", 0xe4, 0x53);
    ADD_VALUES(program, op, "lut", LAYA_MIL_FP16, "4", -1, 0, 0.5, 2);
    ADD_BYTES(program, op, "shape", LAYA_MIL_UINT32, "4", 4, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0);
}

/* 1 2 3 4 | 5 5 -1 -2: indices 0 1 2 3 | 7 7 0 1 into a table for each half of the channels */
static void add_grouped(laya_mil_program *program)
{
    laya_mil_op *op = add_palette(program, "g", LAYA_MIL_FP16, "4,2,1,1");
    ADD_BYTES(program, op, "indices", LAYA_MIL_UINT3, "4,2,1,1", 0x88, 0xf6, 0x23);
    ADD_VALUES(program, op, "lut", LAYA_MIL_FP16, "2,1,1,1,8,1", 1, 2, 3, 4, 0, 0, 0, 0, -1, -2, 0, 0, 0, 0, 0, 5);
}

/* 1 3 | 2 4 | 3 1 | 4 2: indices 0 1 | 1 0 of pairs along axis 0 */
static void add_vectors(laya_mil_program *program)
{
    laya_mil_op *op = add_palette(program, "v", LAYA_MIL_FP32, "4,2,1,1");
    ADD_BYTES(program, op, "indices", LAYA_MIL_UINT1, "2,2,1,1", 0x06);
    ADD_VALUES(program, op, "lut", LAYA_MIL_FP32, "1,1,1,1,2,2", 1, 2, 3, 4);
    ADD_VALUES(program, op, "vector_axis", LAYA_MIL_INT32, "", 0);
}

/* ------------------------------------------------------------------ reports */

static char *report(const laya_mil_program *program, const laya_mil_program *parent, const char *manifest)
{
    laya_package package = test_in_memory(program), other = {0};
    laya_file file = {(const unsigned char *)manifest, manifest ? strlen(manifest) : 0};
    laya_error error;
    char *json = NULL;
    if (parent) {
        other = test_in_memory(parent);
        other.path = (char *)"parent.mlpackage";
    }
    if (laya_inspect_palette_report(&package, parent ? &other : NULL, manifest ? &file : NULL, &json, &error) !=
        LAYA_OK)
        fail_msg("%s", error.message);
    return json;
}

static void refuse(const laya_mil_program *program, const laya_mil_program *parent, const char *manifest,
                   laya_status status, const char *text)
{
    laya_package package = test_in_memory(program), other = {0};
    laya_file file = {(const unsigned char *)manifest, manifest ? strlen(manifest) : 0};
    laya_error error;
    char *json = NULL;
    if (parent) {
        other = test_in_memory(parent);
        other.path = (char *)"parent.mlpackage";
    }
    assert_int_equal(
        laya_inspect_palette_report(&package, parent ? &other : NULL, manifest ? &file : NULL, &json, &error),
        status);
    assert_contains(error.message, text);
    assert_null(json);
}

static char *describe(const laya_mil_program *program)
{
    laya_package package = test_in_memory(program);
    laya_error error;
    char *json;
    package.model_path = (char *)"model.mlmodel";
    if (laya_package_describe(&package, 0, &json, &error) != LAYA_OK) fail_msg("%s", error.message);
    return json;
}

/* The report or description holds each text; both are released. */
static void expect(char *json, const char *const *texts)
{
    laya_json doc;
    assert_int_equal(laya_json_parse(&doc, json, strlen(json), NULL, NULL), LAYA_OK);
    laya_json_close(&doc);
    for (; *texts; texts++) assert_contains(json, *texts);
    free(json);
}

#define EXPECT_TEXTS(json, ...) expect(json, (const char *const[]){__VA_ARGS__, NULL})

/* ------------------------------------------------------------------ what is there */

static void test_packed_form(void **state)
{
    (void)state;
    laya_mil_program program;
    begin(&program, LAYA_MIL_COREML6);
    add_packed(&program);
    EXPECT_TEXTS(describe(&program),
                 "  \"palettes\": {\n"
                 "    \"count\": 1,\n"
                 "    \"bits\": {\"2\":1},\n"
                 "    \"index_bytes\": 2,\n"
                 "    \"table_bytes\": 8,\n"
                 "    \"stored_bytes\": 10,\n"
                 "    \"dense_bytes\": 16,\n"
                 "    \"ratio\": 1.6,\n"
                 "    \"weights\": [\n"
                 "      {\"name\":\"w\",\"form\":\"CoreML6\",\"type\":\"fp16 [4, 2, 1, 1]\",\"bits\":2,"
                 "\"groups\":1,\"entries\":4,\"used_least\":4,\"used_most\":4,\"unreferenced\":0,"
                 "\"index_bytes\":2,\"table_bytes\":8,\"dense_bytes\":16}\n"
                 "    ]\n"
                 "  },\n");
    EXPECT_TEXTS(report(&program, NULL, NULL),
                 "{\n"
                 "  \"package\": \"model.mlpackage\",\n"
                 "  \"palettes\": {\n"
                 "    \"count\": 1,\n",
                 "        \"dense_bytes\": 16,\n"
                 "        \"tables\": [\n"
                 "          {\"used\":4,\"values\":[-1.0,0.0,0.5,2.0]}\n"
                 "        ]\n"
                 "      }\n");
    laya_mil_program_close(&program);
}

static void test_grouped_form(void **state)
{
    (void)state;
    laya_mil_program program;
    begin(&program, LAYA_MIL_COREML8);
    add_grouped(&program);
    add_vectors(&program);
    EXPECT_TEXTS(
        describe(&program), "\"count\": 2,\n    \"bits\": {\"1\":1,\"3\":1},\n", "\"index_bytes\": 4,\n",
        "\"table_bytes\": 48,\n", "\"stored_bytes\": 52,\n", "\"dense_bytes\": 48,\n", "\"ratio\": 0.9231,\n",
        "{\"name\":\"g\",\"form\":\"CoreML8\",\"type\":\"fp16 [4, 2, 1, 1]\",\"bits\":3,\"groups\":2,\"axis\":0,"
        "\"group_size\":2,\"entries\":8,\"used_least\":3,\"used_most\":4,\"unreferenced\":9,\"index_bytes\":3,"
        "\"table_bytes\":32,\"dense_bytes\":16}",
        "{\"name\":\"v\",\"form\":\"CoreML8\",\"type\":\"fp32 [4, 2, 1, 1]\",\"bits\":1,\"groups\":1,\"vector\":2,"
        "\"vector_axis\":0,\"entries\":2,\"used_least\":2,\"used_most\":2,\"unreferenced\":0,\"index_bytes\":1,"
        "\"table_bytes\":16,\"dense_bytes\":32}");
    EXPECT_TEXTS(report(&program, NULL, NULL),
                 "          {\"used\":4,\"values\":[1.0,2.0,3.0,4.0,0.0,0.0,0.0,0.0]},\n"
                 "          {\"used\":3,\"values\":[-1.0,-2.0,0.0,0.0,0.0,0.0,0.0,5.0]}\n",
                 "          {\"used\":2,\"values\":[[1.0,2.0],[3.0,4.0]]}\n");
    laya_mil_program_close(&program);
}

/* Tables on two axes: the rows' halves, the columns' thirds; and 256 entries that are all used. */
static void test_other_shapes(void **state)
{
    (void)state;
    laya_mil_program program;
    unsigned char all[256];
    double table[256];
    begin(&program, LAYA_MIL_COREML8);
    laya_mil_op *op = add_palette(&program, "both", LAYA_MIL_INT8, "4,3");
    ADD_BYTES(&program, op, "indices", LAYA_MIL_UINT1, "4,3", 0xff, 0x07);
    ADD_VALUES(&program, op, "lut", LAYA_MIL_INT8, "2,3,2,1", 1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12);
    op = add_palette(&program, "all", LAYA_MIL_UINT8, "256");
    for (unsigned at = 0; at < 256; at++) {
        all[at] = (unsigned char)(255 - at);
        table[at] = at;
    }
    add_bytes(&program, op, "indices", type_of(LAYA_MIL_UINT8, "256"), all);
    add_values(&program, op, "lut", type_of(LAYA_MIL_UINT8, "1,256,1"), table);
    EXPECT_TEXTS(
        describe(&program),
        "{\"name\":\"both\",\"form\":\"CoreML8\",\"type\":\"int8 [4, 3]\",\"bits\":1,\"groups\":6,\"group_shape\":"
        "[2,1],\"entries\":2,\"used_least\":1,\"used_most\":2,\"unreferenced\":5,\"index_bytes\":2,"
        "\"table_bytes\":12,\"dense_bytes\":12}",
        "\"bits\":8,\"groups\":1,\"entries\":256,\"used_least\":256,\"used_most\":256,\"unreferenced\":0,");
    EXPECT_TEXTS(report(&program, NULL, NULL), "        \"group_shape\": [2,1],\n", "{\"used\":1,\"values\":[9,-10]}",
                 "{\"used\":2,\"values\":[11,-12]}");
    laya_mil_program_close(&program);
}

/* Every width, over more indices than are unpacked at once, in runs of every length; counted by plain loops. */
static void test_used_entries(void **state)
{
    (void)state;
    static const laya_mil_dtype types[] = {LAYA_MIL_UINT1, LAYA_MIL_UINT2, LAYA_MIL_UINT3,
                                           LAYA_MIL_UINT4, LAYA_MIL_UINT6, LAYA_MIL_UINT8};
    enum { ROWS = 6, COLUMNS = 1500, GROUPS = 3 };
    for (size_t kind = 0; kind < 2 * sizeof types / sizeof *types; kind++) {
        laya_mil_dtype dtype = types[kind / 2];
        unsigned bits = laya_mil_dtype_bits(dtype), entries = 1u << bits, least = entries, most = 0;
        bool seen[GROUPS][256] = {{false}};
        unsigned char *packed = calloc(ROWS * COLUMNS + 1, 1), *lut = calloc(GROUPS * 256, 1);
        assert_true(packed && lut);
        for (unsigned at = 0; at < ROWS * COLUMNS; at++) {
            unsigned row = at / COLUMNS, column = at % COLUMNS;
            unsigned group = kind % 2 ? column / (COLUMNS / GROUPS) : row / (ROWS / GROUPS);
            unsigned index = (at * 2654435761u >> 9) % (entries - (entries > 2 ? group : 0));
            seen[group][index] = true;
            for (unsigned bit = 0; bit < bits; bit++) {
                unsigned place = at * bits + bit;
                packed[place / 8] |= (unsigned char)((index >> bit & 1) << place % 8);
            }
        }
        for (unsigned group = 0; group < GROUPS; group++) {
            unsigned used = 0;
            for (unsigned at = 0; at < entries; at++) used += seen[group][at];
            if (used < least) least = used;
            if (used > most) most = used;
        }
        laya_mil_program program;
        char dims[32], expected[96];
        begin(&program, LAYA_MIL_COREML8);
        laya_mil_op *op = add_palette(&program, "w", LAYA_MIL_UINT8, "6,1500");
        add_bytes(&program, op, "indices", type_of(dtype, "6,1500"), packed);
        snprintf(dims, sizeof dims, kind % 2 ? "1,%d,%u,1" : "%d,1,%u,1", GROUPS, entries);
        add_bytes(&program, op, "lut", type_of(LAYA_MIL_UINT8, dims), lut);
        snprintf(expected, sizeof expected, "\"entries\":%u,\"used_least\":%u,\"used_most\":%u,", entries, least,
                 most);
        EXPECT_TEXTS(describe(&program), expected, kind % 2 ? "\"axis\":1,\"group_size\":500" : "\"axis\":0,");
        laya_mil_program_close(&program);
        free(packed);
        free(lut);
    }
}

static void test_no_palettes(void **state)
{
    (void)state;
    laya_mil_program program;
    begin(&program, LAYA_MIL_COREML6);
    EXPECT_TEXTS(report(&program, &program, NULL), "\"sse\": 0.0,\n", "\"count\": 0,\n", "\"ratio\": null,\n",
                 "\"weights\": []\n");
    laya_mil_program_close(&program);
}

/* ------------------------------------------------------------------ what cannot be read */

static void lose_bytes(laya_mil_op *op)
{
    ((laya_mil_constant *)op->inputs[0].bindings[0].constant)->bytes = NULL;
}

static void cut_bytes(laya_mil_op *op)
{
    ((laya_mil_constant *)op->inputs[1].bindings[0].constant)->size--;
}

static void lose_parameter(laya_mil_op *op)
{
    op->input_count--;
}

static void lose_output(laya_mil_op *op)
{
    op->output_count = 0;
}

static void declare_otherwise(laya_mil_op *op)
{
    op->outputs[0]->type.dims[0] = 5;
}

static void odd_groups(laya_mil_op *op)
{
    ((laya_mil_constant *)op->inputs[1].bindings[0].constant)->type.dims[0] = 3;
}

static void fewer_entries(laya_mil_op *op)
{
    ((laya_mil_constant *)op->inputs[1].bindings[0].constant)->type.dims[4] = 4;
}

static void huge_entries(laya_mil_op *op)
{
    ((laya_mil_constant *)op->inputs[1].bindings[0].constant)->type.dims[5] = INT64_MAX;
}

static void test_unreadable(void **state)
{
    (void)state;
    static const struct {
        void (*spoil)(laya_mil_op *op);
        bool vectors;
        const char *text;
    } cases[] = {
        {lose_bytes, false, "parameter 'indices': its bytes cannot be read"},
        {cut_bytes, false, "parameter 'lut': its bytes cannot be read"},
        {lose_parameter, false, "'lut' is missing"},
        {lose_output, false, "cannot be expanded in CoreML8"},
        {declare_otherwise, false, "the output is declared as fp16 [5, 2, 1, 1], expected fp16 [4, 2, 1, 1]"},
        {odd_groups, false, "3 groups do not divide the 4 elements of axis 0"},
        {fewer_entries, false, "expected 8 entries for indices of uint3, found 4"},
        {huge_entries, true, "an axis of more than 2147483647 elements"},
    };
    for (size_t at = 0; at < sizeof cases / sizeof *cases; at++) {
        laya_mil_program program;
        begin(&program, LAYA_MIL_COREML8);
        if (cases[at].vectors)
            add_vectors(&program);
        else
            add_grouped(&program);
        cases[at].spoil(test_main_function(&program)->body.last);
        EXPECT_TEXTS(describe(&program), "\"count\": 1,\n    \"unreadable\": 1,\n    \"bits\": {},\n",
                     "\"problem\":\"", cases[at].text);
        EXPECT_TEXTS(report(&program, NULL, NULL), "\"problem\":\"", cases[at].text);
        refuse(&program, &program, NULL, LAYA_ERROR_FORMAT, "this palette cannot be read");
        laya_mil_program_close(&program);
    }
    laya_mil_program program;
    begin(&program, LAYA_MIL_COREML5); /* has no such operation */
    add_packed(&program);
    EXPECT_TEXTS(describe(&program), "cannot be expanded in CoreML5");
    laya_mil_program_close(&program);
}

/* A table that another palette makes: its values are not at hand. */
static void test_chained(void **state)
{
    (void)state;
    laya_mil_program program;
    begin(&program, LAYA_MIL_COREML8);
    laya_mil_op *lut = add_palette(&program, "lut", LAYA_MIL_FP16, "1,2,1");
    ADD_BYTES(&program, lut, "indices", LAYA_MIL_UINT1, "1,2,1", 0x02);
    ADD_VALUES(&program, lut, "lut", LAYA_MIL_FP16, "1,1,1,2,1", 8, 9);
    laya_mil_op *op = add_palette(&program, "w", LAYA_MIL_FP16, "4");
    ADD_BYTES(&program, op, "indices", LAYA_MIL_UINT1, "4", 0x05);
    test_bind(test_add_input(&program, op, "lut")->bindings, lut->outputs[0]);
    EXPECT_TEXTS(describe(&program), "\"count\": 2,\n    \"unreadable\": 1,\n    \"bits\": {\"1\":1},\n",
                 "{\"name\":\"w\",\"problem\":\"parameter 'lut': its bytes cannot be read\"}",
                 "{\"name\":\"lut\",\"form\"");
    laya_mil_program_close(&program);
}

/* ------------------------------------------------------------------ computed figures */

static void test_computed(void **state)
{
    (void)state;
    laya_mil_program program, parent;
    begin(&program, LAYA_MIL_COREML6);
    begin(&parent, LAYA_MIL_COREML6);
    add_packed(&program);
    /* differences 0 .25 0 -.5 0 0 0 -.5: .0625 + .25 + .25; squares 1 + .0625 + .25 + 2.25 + 4 + 1 + .25 */
    ADD_DENSE(&parent, "w", LAYA_MIL_FP16, "4,2,1,1", -1, 0.25, 0.5, 1.5, 2, -1, 0, -0.5);
    EXPECT_TEXTS(
        report(&program, &parent, NULL),
        "  \"computed\": {\n"
        "    \"parent\": \"parent.mlpackage\",\n"
        "    \"sse\": 0.5625,\n"
        "    \"relative_error\": 0.06382978723404255,\n"
        "    \"largest_error\": 0.5\n"
        "  },\n",
        "        \"computed\": {\"sse\":0.5625,\"relative_error\":0.06382978723404255,\"largest_error\":0.5},\n");
    laya_mil_program_close(&program);
    laya_mil_program_close(&parent);
}

/* Groups, vectors, and the sums: 1 / 76, .25 / 61.25, 1.25 / 137.25. */
static void test_computed_groups(void **state)
{
    (void)state;
    laya_mil_program program, parent;
    begin(&program, LAYA_MIL_COREML8);
    begin(&parent, LAYA_MIL_COREML6);
    add_grouped(&program);
    add_vectors(&program);
    ADD_DENSE(&parent, "v", LAYA_MIL_FP32, "4,2,1,1", 1, 3, 2, 4, 3, 1.5, 4, 2);
    ADD_DENSE(&parent, "other", LAYA_MIL_FP32, "1", 7);
    ADD_DENSE(&parent, "g", LAYA_MIL_FP16, "4,2,1,1", 1, 2, 3, 4, 5, 4, -1, -2);
    EXPECT_TEXTS(report(&program, &parent, NULL),
                 "    \"sse\": 1.25,\n    \"relative_error\": 0.009107468123861567,\n    \"largest_error\": 1.0\n",
                 "{\"sse\":1.0,\"relative_error\":0.013157894736842105,\"largest_error\":1.0}",
                 "{\"sse\":0.25,\"relative_error\":0.004081632653061225,\"largest_error\":0.5}");
    laya_mil_program_close(&program);
    laya_mil_program_close(&parent);
}

/* One weight, a table of two entries that are chosen in turn: against two weights. */
static void measure_pair(laya_mil_dtype dtype, double a, double b, double dense_a, double dense_b, const char *text)
{
    laya_mil_program program, parent;
    begin(&program, LAYA_MIL_COREML8);
    begin(&parent, LAYA_MIL_COREML6);
    laya_mil_op *op = add_palette(&program, "w", dtype, "2");
    ADD_BYTES(&program, op, "indices", LAYA_MIL_UINT1, "2", 0x02);
    ADD_VALUES(&program, op, "lut", dtype, "1,2,1", a, b);
    ADD_DENSE(&parent, "w", dtype, "2", dense_a, dense_b);
    EXPECT_TEXTS(report(&program, &parent, NULL), text);
    laya_mil_program_close(&program);
    laya_mil_program_close(&parent);
}

static void test_computed_values(void **state)
{
    (void)state;
    const double infinity = 1e300 * 1e300;
    measure_pair(LAYA_MIL_INT8, -128, 3, -126, 3, "{\"sse\":4.0,\"relative_error\":0.00025180988");
    measure_pair(LAYA_MIL_UINT8, 200, 10, 210, 10, "{\"sse\":100.0,\"relative_error\":0.00226244343");
    measure_pair(LAYA_MIL_FP16, 0, 0, 0, 0, "{\"sse\":0.0,\"relative_error\":0.0,\"largest_error\":0.0}");
    measure_pair(LAYA_MIL_FP16, 0, 1, 0, 0, "{\"sse\":1.0,\"relative_error\":null,\"largest_error\":1.0}");
    measure_pair(LAYA_MIL_FP32, 1, 1, 1, infinity - infinity,
                 "{\"sse\":\"NaN\",\"relative_error\":null,\"largest_error\":\"NaN\"}");
    measure_pair(LAYA_MIL_FP32, 1, 1, 1, infinity,
                 "{\"sse\":\"Infinity\",\"relative_error\":\"NaN\",\"largest_error\":\"Infinity\"}");
    measure_pair(LAYA_MIL_FP32, 3, -infinity, 1, 1, "{\"sse\":\"Infinity\",\"relative_error\":\"Infinity\",");
}

static void test_wrong_parents(void **state)
{
    (void)state;
    laya_mil_program program, parent;
    begin(&program, LAYA_MIL_COREML6);
    add_packed(&program);
    begin(&parent, LAYA_MIL_COREML6);
    refuse(&program, &parent, NULL, LAYA_ERROR_FORMAT,
           "parent.mlpackage: 'w': not found; name the package that the palettes were made from");
    ADD_DENSE(&parent, "w", LAYA_MIL_FP16, "4,2,1", 1, 2, 3, 4, 5, 6, 7, 8);
    refuse(&program, &parent, NULL, LAYA_ERROR_FORMAT,
           "parent.mlpackage: 'w': expected fp16 [4, 2, 1, 1], found fp16 [4, 2, 1]");
    test_replace_constant(&parent, "w", type_of(LAYA_MIL_FP32, "4,2,1,1"), NULL);
    refuse(&program, &parent, NULL, LAYA_ERROR_FORMAT, "found fp32 [4, 2, 1, 1]");
    test_replace_constant(&parent, "w", type_of(LAYA_MIL_FP16, "4,2,1,1"), NULL);
    laya_mil_constant *constant = (laya_mil_constant *)test_find_value(&parent, "w")->constant;
    constant->size--;
    refuse(&program, &parent, NULL, LAYA_ERROR_FORMAT, "'w': its bytes cannot be read");
    constant->size++;
    constant->bytes = NULL;
    refuse(&program, &parent, NULL, LAYA_ERROR_FORMAT, "'w': its bytes cannot be read");
    laya_mil_program_close(&parent);
    refuse(&program, &program, NULL, LAYA_ERROR_FORMAT,
           "'w': expected a dense constant, found an output of constexpr_lut_to_dense");
    laya_mil_program_close(&program);
}

/* A second function, with the operations of the first. */
static void add_function(laya_mil_program *program, const char *first, const char *second)
{
    laya_mil_function *functions = test_take(program, 2 * sizeof *functions);
    functions[0] = functions[1] = program->functions[0];
    functions[0].name = first;
    functions[1].name = second;
    program->functions = functions;
    program->function_count = 2;
}

static void test_functions(void **state)
{
    (void)state;
    laya_mil_program program, parent;
    begin(&program, LAYA_MIL_COREML6);
    begin(&parent, LAYA_MIL_COREML6);
    add_packed(&program);
    ADD_DENSE(&parent, "w", LAYA_MIL_FP16, "4,2,1,1", -1, 0, 0.5, 2, 2, -1, 0, 3);
    add_function(&program, "short", "long");
    EXPECT_TEXTS(describe(&program), "\"count\": 2,\n    \"bits\": {\"2\":2},\n",
                 "{\"name\":\"w\",\"function\":\"short\",", "{\"name\":\"w\",\"function\":\"long\",");
    refuse(&program, &parent, NULL, LAYA_ERROR_FORMAT, "parent.mlpackage: function 'short' not found");
    add_function(&parent, "long", "short");
    EXPECT_TEXTS(report(&program, &parent, NULL), "    \"sse\": 18.0,\n", "\"computed\": {\"sse\":9.0,");
    laya_mil_program_close(&program);
    laya_mil_program_close(&parent);
}

/* ------------------------------------------------------------------ recorded figures */

#define HEAD "{\"format\": \"laya-ane-research\", \"package\": \"model.mlpackage\", "

static const char manifest[] = HEAD
    "\"palette\": {\"mode\": \"kmeans\", \"parent_package_sha256\": \"ab12\", \"weights\": ["
    "{\"name\": \"other\", \"bits\": 6, \"sse\": 1}, "
    "{\"name\": \"w\", \"bits\": 2, \"groups\": 1, \"sse\": 0.25, \"relative_error\": 1e-3, "
    "\"weighted_relative_error\": 2e-3, \"largest_error\": 0.125}, "
    "{\"name\": \"w\", \"bits\": 2, \"sse\": 99}]}}";

static void test_recorded(void **state)
{
    (void)state;
    laya_mil_program program, parent;
    begin(&program, LAYA_MIL_COREML6);
    add_packed(&program);
    EXPECT_TEXTS(report(&program, NULL, manifest),
                 "  \"recorded\": {\n"
                 "    \"mode\": \"kmeans\",\n"
                 "    \"parent_package_sha256\": \"ab12\"\n"
                 "  },\n",
                 "\"recorded\": {\"sse\":0.25,\"relative_error\":0.001,\"weighted_relative_error\":0.002,"
                 "\"largest_error\":0.125},\n");
    EXPECT_TEXTS(report(&program, NULL,
                        HEAD "\"palette\": {\"weights\": [7, {\"sse\": 1}, {\"name\": \"w\", \"sse\": NaN, "
                             "\"relative_error\": [1], \"largest_error\": 1e999}]}}"),
                 "    \"mode\": null,\n",
                 "\"recorded\": {\"sse\":null,\"relative_error\":null,\"largest_error\":null},\n");
    refuse(&program, NULL, HEAD "\"palette\": {\"weights\": [{\"name\": \"w\", \"bits\": 3}]}}", LAYA_ERROR_FORMAT,
           "manifest.json: palette: 'w' has 3 bits, the package has 2; it was changed");
    /* with a parent the manifest is not looked at */
    begin(&parent, LAYA_MIL_COREML6);
    ADD_DENSE(&parent, "w", LAYA_MIL_FP16, "4,2,1,1", -1, 0, 0.5, 2, 2, -1, 0, 0);
    char *json = report(&program, &parent, manifest);
    assert_contains(json, "\"computed\": {\"sse\":0.0,");
    assert_false(test_contains(json, "recorded"));
    free(json);
    laya_mil_program_close(&program);
    laya_mil_program_close(&parent);
}

/* Manifests that say nothing of this package. */
static void test_not_recorded(void **state)
{
    (void)state;
    static const char *const manifests[] = {"{",
                                            "[]",
                                            "{}",
                                            HEAD "\"palette\": 7}",
                                            HEAD "\"bits\": 2}",
                                            "{\"format\": \"laya-ane-research\", \"package\": \"other.mlpackage\", "
                                            "\"palette\": {\"weights\": [{\"name\": "
                                            "\"w\"}]}}"};
    laya_mil_program program;
    begin(&program, LAYA_MIL_COREML6);
    add_packed(&program);
    for (size_t at = 0; at < sizeof manifests / sizeof *manifests; at++) {
        char *json = report(&program, NULL, manifests[at]);
        if (test_contains(json, "recorded")) fail_msg("recorded by %s", manifests[at]);
        free(json);
    }
    /* palettes, but not of this weight */
    char *json = report(&program, NULL, HEAD "\"palette\": {\"mode\": \"unique\", \"weights\": {\"name\": \"w\"}}}");
    assert_contains(json, "\"mode\": \"unique\"");
    assert_false(test_contains(json, "\"recorded\": {\"sse\""));
    free(json);
    laya_mil_program_close(&program);
}

/* Written, read back, and the manifest found beside the package. */
static void test_files(void **state)
{
    (void)state;
    char folder[TEST_PATH_SIZE], path[TEST_PATH_SIZE], dense[TEST_PATH_SIZE];
    laya_mil_program program, parent;
    laya_package_files files;
    laya_package *package, *other;
    laya_error error;
    char *json;
    test_make_folder(folder);
    begin(&program, LAYA_MIL_COREML6);
    begin(&parent, LAYA_MIL_COREML6);
    add_packed(&program);
    ADD_DENSE(&parent, "w", LAYA_MIL_FP16, "4,2,1,1", -1, 0, 0.5, 2, 2, -1, 0, 3);
    test_join(path, folder, "model.mlpackage");
    test_join(dense, folder, "dense.mlpackage");
    if (laya_package_write(&program, path, NULL, &files, &error) != LAYA_OK) fail_msg("%s", error.message);
    if (laya_package_write(&parent, dense, NULL, &files, &error) != LAYA_OK) fail_msg("%s", error.message);
    laya_mil_program_close(&program);
    laya_mil_program_close(&parent);
    assert_int_equal(laya_package_open(folder, NULL, &package, &error), LAYA_OK);
    assert_int_equal(laya_package_open(dense, NULL, &other, &error), LAYA_OK);
    assert_int_equal(laya_package_palettes(package, other, &json, &error), LAYA_OK);
    assert_contains(json, "\"computed\": {\"sse\":9.0,");
    assert_contains(json, "dense.mlpackage\",\n");
    laya_package_release(package, json);
    assert_int_equal(laya_package_palettes(package, NULL, &json, &error), LAYA_OK);
    assert_false(test_contains(json, "recorded"));
    laya_package_release(package, json);
    char beside[TEST_PATH_SIZE];
    test_write_file(test_join(beside, folder, "manifest.json"), manifest, sizeof manifest - 1);
    assert_int_equal(laya_package_palettes(package, NULL, &json, &error), LAYA_OK);
    assert_contains(json, "\"recorded\": {\"sse\":0.25,");
    laya_package_release(package, json);
    assert_int_equal(remove(beside), 0);
    assert_int_equal(mkdir(beside, 0700), 0);
    assert_int_equal(laya_package_palettes(package, NULL, &json, &error), LAYA_ERROR_IO);
    assert_contains(error.message, "manifest.json");
    assert_null(json);
    laya_package_close(other);
    laya_package_close(package);
    test_remove_tree(folder);
}

/* ------------------------------------------------------------------ memory, arguments */

static void test_memory_failures(void **state)
{
    (void)state;
    laya_mil_program program, parent;
    test_memory memory;
    laya_error error;
    begin(&program, LAYA_MIL_COREML8);
    begin(&parent, LAYA_MIL_COREML6);
    add_grouped(&program);
    add_vectors(&program);
    ADD_DENSE(&parent, "v", LAYA_MIL_FP32, "4,2,1,1", 1, 3, 2, 4, 3, 1.5, 4, 2);
    ADD_DENSE(&parent, "g", LAYA_MIL_FP16, "4,2,1,1", 1, 2, 3, 4, 5, 4, -1, -2);
    laya_package package = test_in_memory(&program), other = test_in_memory(&parent);
    laya_file file = {(const unsigned char *)manifest, sizeof manifest - 1};
    test_memory_init(&memory);
    package.allocator = memory.hooks;
    for (int with_parent = 0; with_parent < 2; with_parent++) {
        for (size_t at = 1;; at++) {
            char *json = NULL;
            test_memory_arm(&memory, at);
            laya_status status = laya_inspect_palette_report(&package, with_parent ? &other : NULL, &file, &json,
                                                             &error);
            if (!memory.failed) {
                assert_int_equal(status, LAYA_OK);
                laya_package_release(&package, json);
                assert_true(at > 3);
                break;
            }
            assert_int_equal(status, LAYA_ERROR_MEMORY);
            assert_null(json);
            assert_int_equal(memory.live, 0);
        }
    }
    assert_int_equal(memory.live, 0);
    laya_mil_program_close(&program);
    laya_mil_program_close(&parent);
}

static void test_arguments(void **state)
{
    (void)state;
    laya_mil_program program;
    laya_error error;
    char *json = NULL;
    begin(&program, LAYA_MIL_COREML8);
    laya_package package = test_in_memory(&program);
    assert_int_equal(laya_package_palettes(NULL, NULL, &json, &error), LAYA_ERROR_ARGUMENT);
    assert_contains(error.message, "package must not be NULL");
    assert_int_equal(laya_package_palettes(&package, NULL, NULL, &error), LAYA_ERROR_ARGUMENT);
    assert_contains(error.message, "json must not be NULL");
    laya_mil_program_close(&program);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packed_form),     cmocka_unit_test(test_grouped_form),
        cmocka_unit_test(test_other_shapes),    cmocka_unit_test(test_used_entries),
        cmocka_unit_test(test_no_palettes),     cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_chained),         cmocka_unit_test(test_computed),
        cmocka_unit_test(test_computed_groups), cmocka_unit_test(test_computed_values),
        cmocka_unit_test(test_wrong_parents),   cmocka_unit_test(test_functions),
        cmocka_unit_test(test_recorded),        cmocka_unit_test(test_not_recorded),
        cmocka_unit_test(test_files),           cmocka_unit_test(test_memory_failures),
        cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
