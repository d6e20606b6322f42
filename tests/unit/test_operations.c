/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types of MIL operations. The rows give an operation's parameters in a small notation (see parse_operand) and the
 * output types, or a part of the error message. Output types were computed by coremltools 9.0 for the same parameters;
 * rules that it does not check are those of the package format and of the framework's other writers.
 */
#include "support.h"

#include "mil/infer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OPERANDS 16
#define MAX_OUTPUTS 8

/* One operation with all that it points to. */
typedef struct made_op {
    laya_mil_op op, expander; /* a constexpr operation, which makes some of the operands */
    laya_mil_argument arguments[MAX_OPERANDS];
    laya_mil_attribute attributes[MAX_OPERANDS];
    laya_mil_binding bindings[MAX_OPERANDS];
    laya_mil_value values[MAX_OPERANDS];
    laya_mil_constant constants[MAX_OPERANDS];
    const char *strings[MAX_OPERANDS];
    unsigned char *bytes[MAX_OPERANDS]; /* each in a block of its exact size */
    uint32_t operands;
    laya_mil_value outputs[MAX_OUTPUTS];
    laya_mil_value *output_pointers[MAX_OUTPUTS];
    char text[1024];
} made_op;

struct row {
    int opset;
    const char *type;
    const char *parameters;
    const char *expected; /* "fp16 [1, 2]", several outputs with " | "; "!part of a FORMAT error"; "?…UNSUPPORTED" */
};

/* ------------------------------------------------------------------ notation */

static laya_mil_dtype find_dtype(const char *name, size_t size)
{
    for (int dtype = 1; dtype <= LAYA_MIL_FLOAT8E5M2; dtype++) {
        const char *known = laya_mil_dtype_name((laya_mil_dtype)dtype);
        if (strlen(known) == size && memcmp(known, name, size) == 0) return (laya_mil_dtype)dtype;
    }
    fail_msg("no dtype: %s", name);
    return LAYA_MIL_NO_DTYPE;
}

/* "fp16[1,?,3]" or "fp16" */
static laya_mil_type parse_type(const char *text)
{
    laya_mil_type type = {.kind = LAYA_MIL_TENSOR};
    size_t size = strcspn(text, "[");
    type.dtype = find_dtype(text, size);
    for (const char *at = text + size; *at == '[' || *at == ',';) {
        char *end;
        if (*++at == ']') break;
        int64_t dim = strtoll(at, &end, 10);
        bool unknown = *at == '?';
        assert_true(type.rank < LAYA_MIL_MAX_RANK);
        type.dims[type.rank++] = unknown ? LAYA_MIL_UNKNOWN : dim;
        at = unknown ? at + 1 : end;
    }
    return type;
}

/* Little-endian elements of a list; returns the list's end. */
static void parse_list(made_op *made, uint32_t at, laya_mil_dtype dtype, const char *text)
{
    laya_mil_constant *constant = &made->constants[at];
    unsigned width = laya_mil_dtype_bits(dtype) / 8;
    bool scalar = *text == '#';
    unsigned char elements[256];
    size_t count = 0;
    for (const char *from = scalar ? text + 1 : text; *from && *from != '(';) {
        char *end;
        long long element = strtoll(from, &end, 10);
        assert_ptr_not_equal(end, from);
        for (unsigned byte = 0; byte < width; byte++)
            elements[count * width + byte] = (unsigned char)((unsigned long long)element >> (8 * byte));
        count++;
        from = *end == ',' ? end + 1 : end;
    }
    constant->type = scalar ? laya_mil_scalar(dtype) : laya_mil_vector(dtype, (int64_t)count);
    constant->size = count * width;
    made->bytes[at] = malloc(count * width + !count);
    assert_non_null(made->bytes[at]);
    memcpy(made->bytes[at], elements, count * width);
    constant->bytes = made->bytes[at];
}

/* A constant: 'text', #5 (int32 scalar), 1,2,3 (int32 vector), () (empty), bool:1,0, uint32:5,6, int8:#3 */
static void parse_constant(made_op *made, uint32_t at, char *text)
{
    laya_mil_constant *constant = &made->constants[at];
    if (*text == '\'') {
        text[strlen(text) - 1] = '\0';
        made->strings[at] = text + 1;
        constant->type = laya_mil_scalar(LAYA_MIL_STRING);
        constant->strings = &made->strings[at];
        constant->string_count = 1;
        return;
    }
    char *colon = strchr(text, ':');
    laya_mil_dtype dtype = colon ? find_dtype(text, (size_t)(colon - text)) : LAYA_MIL_INT32;
    parse_list(made, at, dtype, colon ? colon + 1 : text);
}

/*
 * What follows a parameter's name:
 *   :fp16[1,2]   a value          :@fp16[1,2]  a constant whose bytes are not at hand
 *   :%fp16[1,2]  made by a constexpr operation            :$fp16[1,2]  a state
 *   :list        a list           :!           a name that nothing defines
 *   =…           a constant, as parse_constant says; =[…] the same by the name of a const operation
 */
static void parse_operand(made_op *made, char *text)
{
    uint32_t at = made->operands++;
    assert_true(at < MAX_OPERANDS);
    laya_mil_binding *binding = &made->bindings[at];
    laya_mil_value *value = &made->values[at];
    value->name = binding->name = "operand";
    binding->value = value;
    if (*text == '=') {
        bool named = text[1] == '[';
        if (named) text[strlen(text) - 1] = '\0';
        parse_constant(made, at, text + 1 + named);
        value->type = made->constants[at].type;
        value->constant = &made->constants[at];
        if (named) return;
        binding->name = NULL;
        binding->value = NULL;
        binding->constant = &made->constants[at];
    } else if (text[1] == '!') {
        binding->name = "nowhere";
        binding->value = NULL;
    } else if (strcmp(text + 1, "list") == 0) {
        value->type.kind = LAYA_MIL_LIST;
    } else {
        bool marked = text[1] == '@' || text[1] == '%' || text[1] == '$';
        value->type = parse_type(text + 1 + marked);
        if (text[1] == '$') value->type.kind = LAYA_MIL_STATE;
        if (text[1] == '%') value->op = &made->expander;
        made->constants[at].type = value->type;
        if (text[1] == '@') value->constant = &made->constants[at];
    }
}

/* One parameter: "name" and its operands; several are joined by "+". ".name" is an attribute. */
static void parse_parameter(made_op *made, char *text)
{
    char *operand = text + strcspn(text, ":="), mark = *operand;
    char *name = text;
    uint32_t first = made->operands;
    for (char *next = operand; next;) {
        char *plus = strchr(next + 1, '+');
        if (plus) *plus = '\0';
        *next = mark;
        parse_operand(made, next);
        next = plus;
    }
    *operand = '\0';
    if (*name == '.') {
        made->attributes[made->op.attribute_count].name = name + 1;
        made->attributes[made->op.attribute_count++].value = &made->constants[first];
        return;
    }
    laya_mil_argument *argument = &made->arguments[made->op.input_count++];
    *argument = (laya_mil_argument){name, &made->bindings[first], made->operands - first};
}

static void make_op(made_op *made, const char *type, const char *parameters, uint32_t outputs)
{
    *made = (made_op){.expander = {.type = "constexpr_lut_to_dense"}};
    made->op = (laya_mil_op){.type = type,
                             .name = "here",
                             .inputs = made->arguments,
                             .attributes = made->attributes,
                             .outputs = made->output_pointers,
                             .output_count = outputs};
    for (uint32_t at = 0; at < outputs && at < MAX_OUTPUTS; at++) {
        made->outputs[at].name = "output";
        made->output_pointers[at] = &made->outputs[at];
    }
    assert_true(strlen(parameters) < sizeof made->text);
    strcpy(made->text, parameters);
    for (char *at = made->text; *at;) {
        size_t size = strcspn(at, " ");
        char *next = at[size] ? at + size + 1 : at + size;
        at[size] = '\0';
        parse_parameter(made, at);
        at = next;
    }
}

static void release_op(made_op *made)
{
    for (uint32_t at = 0; at < MAX_OPERANDS; at++) free(made->bytes[at]);
}

/* ------------------------------------------------------------------ rows */

static uint32_t count_outputs(const char *expected)
{
    uint32_t count = *expected != '\0';
    for (const char *at = strstr(expected, " | "); at; at = strstr(at + 1, " | ")) count++;
    return count;
}

static void run_row(const struct row *row)
{
    made_op made;
    laya_mil_type outputs[MAX_OUTPUTS];
    laya_error error = {LAYA_OK, ""};
    char found[1024] = "";
    bool fails = *row->expected == '!' || *row->expected == '?';
    make_op(&made, row->type, row->parameters, count_outputs(row->expected));
    laya_status status = laya_mil_infer(&made.op, (laya_mil_opset)(row->opset + 1), outputs, &error);
    laya_status wanted = *row->expected == '!'   ? LAYA_ERROR_FORMAT
                         : *row->expected == '?' ? LAYA_ERROR_UNSUPPORTED
                                                 : LAYA_OK;
    for (uint32_t at = 0; at < made.op.output_count && status == LAYA_OK; at++) {
        char text[LAYA_MIL_TYPE_TEXT];
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s", at ? " | " : "",
                 laya_mil_type_text(&outputs[at], text));
    }
    bool right = status == wanted && error.status == wanted &&
                 (fails ? test_contains(error.message, row->expected + 1) : strcmp(found, row->expected) == 0);
    if (!right) {
        fail_msg("CoreML%d %s %s\n  expected %s\n  found %s%s", row->opset, row->type, row->parameters, row->expected,
                 found, error.message);
    }
    if (fails) {
        char label[64];
        snprintf(label, sizeof label, "here (%s): ", row->type);
        assert_contains(error.message, label);
    }
    assert_int_equal(laya_mil_infer(&made.op, (laya_mil_opset)(row->opset + 1), outputs, NULL), wanted);
    release_op(&made);
}

#define RUN(rows)                                                                                                    \
    for (size_t at = 0; at < sizeof(rows) / sizeof *(rows); at++) run_row(&(rows)[at])

static void test_conv(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        {6, "conv", "x:fp16[1,4,1,8] weight:@fp16[6,4,1,1]", "fp16 [1, 6, 1, 8]"},
        {6, "conv",
         "x:fp16[1,768,1,96] weight:@fp16[2304,768,1,1] bias:@fp16[2304] strides=[1,1] pad_type='valid' pad=0,0,0,0 "
         "dilations=1,1 groups=#1",
         "fp16 [1, 2304, 1, 96]"},
        {6, "conv", "x:fp32[2,6,20] weight:@fp32[8,3,5] groups=#2 strides=3 dilations=2", "fp32 [2, 8, 4]"},
        {6, "conv", "x:fp16[1,4,9,8] weight:@fp16[6,4,3,3] strides=2,2 pad_type='same'", "fp16 [1, 6, 5, 4]"},
        {6, "conv", "x:fp16[1,4,9,8] weight:@fp16[6,4,3,3] strides=2,2 pad_type='same_lower'", "fp16 [1, 6, 5, 4]"},
        {6, "conv", "x:fp16[1,4,9,8] weight:@fp16[6,4,3,5] pad_type='custom' pad=0,1,2,3", "fp16 [1, 6, 8, 9]"},
        {6, "conv", "x:fp16[1,4,9,8] weight:@fp16[6,4,3,5] pad_type='valid' pad=0,1,2,3", "fp16 [1, 6, 7, 4]"},
        {6, "conv", "x:fp16[1,4,?,8] weight:@fp16[6,4,3,5]", "fp16 [1, 6, ?, 4]"},
        {6, "conv", "x:fp16[?,4,3,4,5] weight:@fp16[6,4,3,2,1]", "fp16 [?, 6, 1, 3, 5]"},
        {6, "conv", "x:fp16[1,4,1,8] weight:%fp16[6,4,1,1]", "fp16 [1, 6, 1, 8]"},
        {7, "conv", "x:fp16[1,4,1,8] weight:@fp32[6,4,1,1] bias:fp32[6]", "fp16 [1, 6, 1, 8]"},

        {6, "conv", "x:fp16[1,768,1,96] weight:@fp16[768,767,1,1]",
         "!parameter 'weight': expected fp16 [768, 768, 1, 1], found fp16 [768, 767, 1, 1]"},
        {6, "conv", "x:fp16[1,4,1,8] weight:@fp16[6,4,1,1] bias:@fp16[5]",
         "!parameter 'bias': expected fp16 [6], found fp16 [5]"},
        {6, "conv", "x:fp16[1,4,1,8] weight:@fp16[6,4,1,1] bias:@fp16[1,6]", "!parameter 'bias': expected fp16 [6]"},
        {6, "conv", "x:fp16[1,4,1,8] weight:@fp16[6,4,1,1] bias:fp16[6]", "!parameter 'bias': expected a constant"},
        {6, "conv", "x:fp16[1,4,1,8] weight:@fp32[6,4,1,1]", "!parameter 'weight': expected fp16 as 'x', found fp32"},
        {7, "conv", "x:fp16[1,4,1,8] weight:@fp32[6,4,1,1] bias:@fp16[6]",
         "!parameter 'bias': expected fp32 as 'weight', found fp16"},
        {6, "conv", "x:int32[1,4,1,8] weight:@int32[6,4,1,1]",
         "!parameter 'x': expected fp16 or fp32, found int32 [1, 4, 1, 8]"},
        {6, "conv", "x:fp16[4,8] weight:@fp16[6,4]", "!parameter 'x': expected a rank of 3 to 5, found fp16 [4, 8]"},
        {6, "conv", "x:fp16[1,4,1,8] weight:@fp16[6,4,1]",
         "!parameter 'weight': expected rank 4, found fp16 [6, 4, 1]"},
        {5, "conv", "x:fp16[1,4,1,8] weight:@fp16[6,4,1,1] pad_type='same_lower'",
         "!parameter 'pad_type': expected valid, custom, same, found 'same_lower'"},
        {6, "conv", "x:fp16[1,4,1,8] weight:@fp16[6,4,1,1] pad_type='full'",
         "!parameter 'pad_type': expected valid, custom, same or same_lower, found 'full'"},
        {6, "conv", "x:fp16[1,4,1,8] weight:@fp16[6,4,1,1] pad=0,0", "!parameter 'pad': expected 4 values, found 2"},
        {6, "conv", "x:fp16[1,4,1,8] weight:@fp16[6,4,1,1] pad_type='custom' pad=0,0,0,-1",
         "!parameter 'pad': expected no negative value, found -1"},
        {6, "conv", "x:fp16[1,4,1,8] weight:@fp16[6,4,1,1] strides=1,0",
         "!parameter 'strides': expected positive values, found 0"},
        {6, "conv", "x:fp16[1,4,9,8] weight:fp16[6,4,2,1] dilations=2,1",
         "!parameter 'dilations': expected ones, as 'weight' is no constant"},
        {6, "conv", "x:fp16[1,4,9,8] weight:%fp16[6,4,2,1] dilations=2,1", "fp16 [1, 6, 7, 8]"},
        {6, "conv", "x:fp16[1,4,1,8] weight:@fp16[6,4,1,1] dilations=1", "!parameter 'dilations': expected 2 values"},
        {6, "conv", "x:fp16[1,4,1,8] weight:@fp16[6,4,1,1] groups=#3",
         "!parameter 'groups': 3 does not divide the 4"},
        {6, "conv", "x:fp16[1,4,1,8] weight:@fp16[6,4,1,1] groups=#0", "!parameter 'groups': 0 does not divide"},
        {6, "conv", "x:fp16[1,4,1,8] weight:@fp16[6,4,1,1] groups=1", "!parameter 'groups': expected rank 0"},
        {6, "conv", "x:fp16[1,4,1,8] weight:@fp16[6,4,2,1]", "!a kernel of 2 does not fit into the 1 elements"},
        {6, "conv", "x:fp16[1,4,1,8] weight:@fp16[6,4,0,1]", "!a kernel of 0 does not fit"},
        {6, "conv", "x:fp16[1,4,1,8] weight:@fp16[6,4,1,1] strides:@int32[2]",
         "!parameter 'strides': its values cannot be read"},
        {6, "conv", "x:fp16[1,4,1,8] weight:@fp16[6,4,1,1] strides:%int32[2]",
         "!parameter 'strides': its values cannot be read"},
        {6, "conv", "x:fp16[1,4,1,8] weight:@fp16[6,4,1,1] strides:int32[2]",
         "!parameter 'strides': expected a constant, found the value 'operand'"},
        {6, "conv", "x:fp16[1,4,1,8] weight:@fp16[6,4,1,1] groups:%int32", "!parameter 'groups': expected a const"},
        {6, "conv", "x:fp16[1,4,1,8] weight:@fp16[6,4,1,1] pad_type:@string",
         "!parameter 'pad_type': its value cannot be read"},
        {6, "conv", "x:fp16[1,4,1,2147483647] weight:@fp16[1,4,1,1] pad_type='custom' pad=0,0,0,1",
         "!axis 3 of the output has 2147483648 elements"},
        {6, "conv", "x:fp16[1,4,1,8]", "!parameter 'weight' is missing"},
    };
    RUN(rows);
}

static void test_products(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        {6, "linear", "x:fp16[2,5,8] weight:@fp16[3,8] bias:@fp16[3]", "fp16 [2, 5, 3]"},
        {6, "linear", "x:int32[8] weight:@int32[3,8]", "int32 [3]"},
        {7, "linear", "x:fp16[?,8] weight:%fp32[3,8]", "fp16 [?, 3]"},
        {6, "linear", "x:fp16[2,5,8] weight:fp16[3,8]", "!parameter 'weight': expected a constant"},
        {6, "linear", "x:fp16[2,5,8] weight:@fp16[3,7]",
         "!parameter 'weight': expected fp16 [3, 8], found fp16 [3, 7]"},
        {6, "linear", "x:fp16[2,5,8] weight:@fp16[3,8] bias:@fp16[8]", "!parameter 'bias': expected fp16 [3]"},
        {6, "linear", "x:fp16[1,2,5,8] weight:@fp16[3,8]", "!parameter 'x': expected a rank of 1 to 3"},
        {6, "linear", "x:fp16[5,8] weight:@fp16[3,8,1]", "!parameter 'weight': expected rank 2"},

        {6, "matmul", "x:fp16[10,4,3] y:fp16[5,10,3,2]", "fp16 [5, 10, 4, 2]"},
        {6, "matmul", "x:fp16[3,4] y:fp16[2,3] transpose_x=bool:#1 transpose_y=bool:#1", "fp16 [4, 2]"},
        {6, "matmul", "x:fp16[4] y:fp16[4,2]", "fp16 [2]"},
        {6, "matmul", "x:fp16[4] y:fp16[10,4,3]", "fp16 [10, 3]"}, /* as documented; its inference gives [1, 3] */
        {6, "matmul", "x:fp16[10,3,4] y:fp16[4]", "fp16 [10, 3]"}, /* as documented; its inference fails */
        {6, "matmul", "x:fp16[1,?,3] y:fp16[5,3,?]", "fp16 [5, ?, ?]"},
        {7, "matmul", "x:@fp32[4,3] y:fp16[3,2]", "fp16 [4, 2]"},
        {7, "matmul", "x:fp16[4,3] y:@fp32[3,2]", "fp16 [4, 2]"},
        {6, "matmul", "x:fp16[4,3] y:@fp32[3,2]", "!parameter 'y': expected fp16 as 'x', found fp32"},
        {7, "matmul", "x:fp16[4,3] y:fp32[3,2]", "!parameter 'y': expected fp16 as 'x', found fp32"},
        {7, "matmul", "x:@fp16[4,3] y:@fp32[3,2]", "!parameter 'y': expected fp16 as 'x', found fp32"},
        {6, "matmul", "x:fp16[4,3] y:fp16[4,2]", "!the rows of x have 3 elements, the columns of y 4"},
        {6, "matmul", "x:fp16[2,4,3] y:fp16[3,3,2]", "!cannot be broadcast to each other: fp16 [2] and fp16 [3]"},
        {6, "matmul", "x:fp16[4] y:fp16[4,2] transpose_x=bool:#1", "!parameter 'x': expected a vector that is not"},
        {6, "matmul", "x:fp16 y:fp16[4,2]", "!parameter 'x': expected a vector"},

        {6, "einsum", "values:fp16[1,96,12,64]+fp16[1,64,12,96] equation='nchw,nwhu->nchu'", "fp16 [1, 96, 12, 96]"},
        {6, "einsum", "values:fp16[1,96,12,64]+fp16[1,64,12,96] equation='bkhd,bdhq->bkhq'", "fp16 [1, 96, 12, 96]"},
        {6, "einsum", "values:fp16[2,3,1,4]+fp16[1,4,6,5] equation='nchw,nwhu->nchu'", "fp16 [2, 3, 6, 5]"},
        {6, "einsum", "values:fp32[3,1,4]+fp32[4,6,5] equation='chw,whr->chr'", "fp32 [3, 6, 5]"},
        {6, "einsum", "values:fp32[3,?,4]+fp32[?,6,5] equation='chw,whr->chr'", "fp32 [3, 6, 5]"},
        {6, "einsum", "values:fp16[1,3,2,4]+fp16[1,5,2,5] equation='nchw,nwhu->nchu'",
         "!shapes that do not fit 'nchw,nwhu->nchu': fp16 [1, 3, 2, 4] and fp16 [1, 5, 2, 5]"},
        {6, "einsum", "values:fp16[1,3,3,4]+fp16[1,4,2,5] equation='nchw,nwhu->nchu'", "!shapes that do not fit"},
        {6, "einsum", "values:fp16[3,3,2,4]+fp16[2,4,2,5] equation='nchw,nwhu->nchu'", "!shapes that do not fit"},
        {6, "einsum", "values:fp16[1,3,2,4]+fp32[1,4,2,5] equation='nchw,nwhu->nchu'",
         "!parameter 'values': expected fp16 as 'values', found fp32"},
        {6, "einsum", "values:fp16[1,3,2,4]+fp16[4,2,5] equation='nchw,nwhu->nchu'", "!two tensors of rank 3 or 4"},
        {6, "einsum", "values:fp16[3,4]+fp16[4,5] equation='nc,ch->nh'", "!two tensors of rank 3 or 4"},
        {6, "einsum", "values:fp16[1,3,2,4] equation='nchw,nwhu->nchu'", "!expected 2 values, found 1"},
        {6, "einsum", "values:fp16[1,3,2,4]+fp16[1,4,2,5] equation='nchw,nhwu->nchu'",
         "!parameter 'equation': expected 'nchw,nwhu->nchu', found 'nchw,nhwu->nchu'"},
        {6, "einsum", "values:fp16[1,3,2,4]+fp16[1,4,2,5] equation='nnnn,nnnn->nnnn'", "!parameter 'equation'"},
        {6, "einsum", "values:fp16[1,3,2,4]+fp16[1,4,2,5] equation='nchw,nwhw->nchw'", "!parameter 'equation'"},
        {6, "einsum", "values:fp16[1,3,2,4]+fp16[1,4,2,5] equation='1234,1435->1235'", "!parameter 'equation'"},
        {6, "einsum", "values:fp16[1,3,2,4]+fp16[1,4,2,5] equation='nchw,nwhu->nchu,'", "!parameter 'equation'"},
        {6, "einsum", "values:fp16[3,2,4]+fp16[4,2,5] equation='nchw,nwhu->nchu'", "!parameter 'equation'"},
        {6, "einsum", "values:fp16[3,2,4]+fp16[4,2,5] equation:string", "!parameter 'equation': expected a constant"},

        {8, "scaled_dot_product_attention", "query:fp16[2,4,7,8] key:fp16[2,4,5,8] value:fp16[2,4,5,9]",
         "fp16 [2, 4, 7, 9]"},
        {8, "scaled_dot_product_attention",
         "query:fp16[2,4,7,8] key:fp16[2,4,5,8] value:fp16[2,4,5,9] attn_mask:bool[7,5]", "fp16 [2, 4, 7, 9]"},
        {8, "scaled_dot_product_attention",
         "query:fp16[2,7,8] key:fp16[2,5,8] value:fp16[2,5,9] attn_mask:fp32[2,1,5]", "fp16 [2, 7, 9]"},
        {7, "scaled_dot_product_attention", "query:fp16[2,4,7,8] key:fp16[2,4,5,8] value:fp16[2,4,5,9]",
         "?this operation needs CoreML8, the opset is CoreML7"},
        {8, "scaled_dot_product_attention", "query:fp16[7,8] key:fp16[5,8] value:fp16[5,9]",
         "!parameter 'query': expected a rank of 3 to 8"},
        {8, "scaled_dot_product_attention", "query:fp16[2,4,7,8] key:fp16[2,4,5,9] value:fp16[2,4,5,9]",
         "!parameter 'key': expected fp16 [2, 4, 5, 8], found fp16 [2, 4, 5, 9]"},
        {8, "scaled_dot_product_attention", "query:fp16[2,4,7,8] key:fp16[2,3,5,8] value:fp16[2,4,5,9]",
         "!parameter 'key': expected fp16 [2, 4, 5, 8]"},
        {8, "scaled_dot_product_attention", "query:fp16[2,4,7,8] key:fp16[2,4,5,8] value:fp16[2,4,6,9]",
         "!parameter 'value': expected fp16 [2, 4, 5, 9], found fp16 [2, 4, 6, 9]"},
        {8, "scaled_dot_product_attention",
         "query:fp16[2,4,7,8] key:fp16[2,4,5,8] value:fp16[2,4,5,9] attn_mask:bool[7,4]",
         "!parameter 'attn_mask': expected bool [7, 5], found bool [7, 4]"},
        {8, "scaled_dot_product_attention",
         "query:fp16[2,4,7,8] key:fp16[2,4,5,8] value:fp16[2,4,5,9] attn_mask:bool[6,5]", "!cannot be broadcast"},
        {8, "scaled_dot_product_attention",
         "query:fp16[2,1,7,8] key:fp16[2,1,5,8] value:fp16[2,1,5,9] attn_mask:bool[4,7,5]",
         "!parameter 'attn_mask': larger than the scores"},
        {8, "scaled_dot_product_attention",
         "query:fp16[2,4,7,8] key:fp16[2,4,5,8] value:fp16[2,4,5,9] attn_mask:int32[7,5]",
         "!parameter 'attn_mask': expected bool or fp16 or fp32"},
    };
    RUN(rows);
}

static void test_norms(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        {6, "layer_norm", "x:fp16[1,768,1,96] axes=[1] gamma:@fp16[768] beta:@fp16[768] epsilon=fp16:#168",
         "fp16 [1, 768, 1, 96]"},
        {6, "layer_norm", "x:fp16[3,4,5,6] axes=2,3 gamma:@fp16[5,6]", "fp16 [3, 4, 5, 6]"},
        {6, "layer_norm", "x:fp16[3,4,5,6] axes=-2,-1 gamma:%fp16[5,6]", "fp16 [3, 4, 5, 6]"},
        {6, "layer_norm", "x:fp16[3,?] gamma:@fp16[3,4]", "fp16 [3, ?]"},
        {7, "layer_norm", "x:fp16[3,4] axes=1 gamma:@fp32[4] beta:@fp32[4] epsilon=fp32:#0", "fp16 [3, 4]"},
        {6, "layer_norm", "x:fp16[3,4] axes=1 gamma:@fp32[4]",
         "!parameter 'gamma': expected fp16 as 'x', found fp32"},
        {7, "layer_norm", "x:fp16[3,4] axes=1 gamma:@fp32[4] epsilon=fp16:#0",
         "!parameter 'epsilon': expected fp32 as 'gamma', found fp16"},
        {6, "layer_norm", "x:fp16[3,4] axes=1 gamma:@fp16[3]",
         "!parameter 'gamma': expected fp16 [4], found fp16 [3]"},
        {6, "layer_norm", "x:fp16[3,4] axes=1 beta:@fp16[1,4]", "!parameter 'beta': expected fp16 [4]"},
        {6, "layer_norm", "x:fp16[3,4] axes=1 gamma:fp16[4]", "!parameter 'gamma': expected a constant"},
        {6, "layer_norm", "x:fp16[3,4] axes=2", "!parameter 'axes': axis 2 is out of range for 2 axes"},
        {6, "layer_norm", "x:fp16[3,4] axes=-3", "!parameter 'axes': axis -3 is out of range for 2 axes"},
        {6, "layer_norm", "x:fp16[3,4] axes=1,0", "!parameter 'axes': expected ascending axes"},
        {6, "layer_norm", "x:fp16[3,4] axes=1,-1", "!parameter 'axes': axis 1 occurs twice"},
        {6, "layer_norm", "x:fp16[3,4] axes=()", "!parameter 'axes': expected at least one axis"},
        {6, "layer_norm", "x:fp16[3,4] axes=#1", "!parameter 'axes': expected rank 1, found int32"},
        {6, "layer_norm", "x:fp16[3,4] axes=0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0",
         "!parameter 'axes': expected at most 16 values, found 17"},
        {6, "layer_norm", "x:fp16[3,4] axes=1 epsilon=fp16:0",
         "!parameter 'epsilon': expected rank 0, found fp16 [1]"},
        {6, "layer_norm", "x:int32[3,4] axes=1", "!parameter 'x': expected fp16 or fp32"},

        {6, "batch_norm",
         "x:fp16[1,6,2,3] mean:@fp16[6] variance:@fp16[6] gamma:@fp16[6] beta:@fp16[6] epsilon=fp16:#1",
         "fp16 [1, 6, 2, 3]"},
        {7, "batch_norm", "x:fp16[1,6,2] mean:@fp32[6] variance:@fp32[6]", "fp16 [1, 6, 2]"},
        {6, "batch_norm", "x:fp16[1,6,2] mean:@fp16[6]", "!parameter 'variance' is missing"},
        {6, "batch_norm", "x:fp16[1,6,2] mean:@fp16[5] variance:@fp16[6]",
         "!parameter 'mean': expected fp16 [6], found fp16 [5]"},
        {6, "batch_norm", "x:fp16[1,6,2] mean:@fp16[6] variance:@fp16[6,1]",
         "!parameter 'variance': expected fp16 [6]"},
        {6, "batch_norm", "x:fp16[1,6,2] mean:@fp16[6] variance:@fp16[6] gamma:@fp16[2]", "!parameter 'gamma'"},
        {6, "batch_norm", "x:fp16[1,6,2] mean:@fp16[6] variance:@fp16[6] beta:@fp16", "!parameter 'beta'"},
        {6, "batch_norm", "x:fp16[6,2] mean:@fp16[2] variance:@fp16[2]", "!parameter 'x': expected a rank of 3 to 5"},
        {6, "batch_norm", "x:fp16[1,6,2] mean:fp16[6] variance:@fp16[6]", "!parameter 'mean': expected a constant"},

        {6, "instance_norm", "x:fp32[1,6,2] gamma:@fp32[6] beta:@fp32[6]", "fp32 [1, 6, 2]"},
        {6, "instance_norm", "x:fp32[1,6,2] gamma:@fp32[2]", "!parameter 'gamma': expected fp32 [6], found fp32 [2]"},
        {6, "instance_norm", "x:fp32[1,6,2,3,4]", "!parameter 'x': expected a rank of 3 to 4"},
        {6, "l2_norm", "x:fp16[2,3,4] epsilon=fp16:#1", "fp16 [2, 3, 4]"},
        {7, "l2_norm", "x:fp16[5,2,3,4] epsilon=fp32:#1", "fp16 [5, 2, 3, 4]"},
        {6, "l2_norm", "x:fp16[3,4]", "!parameter 'x': expected a rank of 3 to 8"},

        {6, "softmax", "x:fp16[1,96,1,96] axis=[#1]", "fp16 [1, 96, 1, 96]"},
        {6, "softmax", "x:fp32[2,?] axis=#-2", "fp32 [2, ?]"},
        {6, "softmax", "x:fp32[2,3]", "fp32 [2, 3]"},
        {6, "softmax", "x:fp16[2,3] axis=#2", "!parameter 'axis': axis 2 is out of range for 2 axes"},
        {6, "softmax", "x:fp16[2,3] axis=1", "!parameter 'axis': expected rank 0, found int32 [1]"},
        {6, "softmax", "x:fp16[2,3] axis:int32", "!parameter 'axis': expected a constant"},
        {6, "softmax", "x:fp16[2,3] axis=int8:#1", "!parameter 'axis': expected int32, found int8"},
        {6, "softmax", "x:fp16[2,3] axis='1'", "!parameter 'axis': expected int32, found string"},
        {6, "softmax", "x:fp16[2,3] axes=#1", "!unknown parameter 'axes': in CoreML6 it has no such parameter"},
        {6, "softmax", "x:int32[2,3]", "!parameter 'x': expected fp16 or fp32, found int32 [2, 3]"},

        {6, "reduce_mean", "x:fp16[2,3,4,5] axes=1 keep_dims=bool:#1", "fp16 [2, 1, 4, 5]"},
        {6, "reduce_sum", "x:fp16[2,3,4,5] axes=-1,0 keep_dims=bool:#0", "fp16 [3, 4]"},
        {6, "reduce_max", "x:int32[2,3] axes=0,1", "int32"},
        {6, "reduce_min", "x:fp32[2,3] keep_dims=bool:#1", "fp32 [1, 1]"},
        {6, "reduce_l2_norm", "x:fp32[2,?,4] axes=2", "fp32 [2, ?]"},
        {6, "reduce_sum_square", "x:fp32[2,?,4]", "fp32"},
        {6, "reduce_mean", "x:fp16[2,3] axes=2", "!parameter 'axes': axis 2 is out of range for 2 axes"},
        {6, "reduce_mean", "x:fp16[2,3] axes=0,-2", "!parameter 'axes': axis 0 occurs twice"},
        {6, "reduce_mean", "x:fp16[2,3] axes=()", "!parameter 'axes': expected at least one axis"},
        {6, "reduce_mean", "x:fp16", "!parameter 'x': expected a rank of 1 to 8, found fp16"},
        {6, "reduce_mean", "x:bool[2,3]", "!parameter 'x': expected fp16 or fp32 or int32"},
        {6, "reduce_mean", "x:fp16[2,3] keep_dims=#1", "!parameter 'keep_dims': expected bool, found int32"},
    };
    RUN(rows);
}

static void test_elementwise(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        {6, "add", "x:fp16[1,64,12,96] y:@fp16[1,64,1,96]", "fp16 [1, 64, 12, 96]"},
        {6, "mul", "x:fp16[3,1] y:fp16[2,1,4]", "fp16 [2, 3, 4]"},
        {6, "sub", "x:int32 y:int32[5]", "int32 [5]"},
        {6, "real_div", "x:fp32[?,4] y:fp32[3,1]", "fp32 [3, 4]"},
        {6, "maximum", "x:fp32[?,4] y:fp32[1,4]", "fp32 [?, 4]"},
        {6, "minimum", "x:fp32[1,4] y:fp32[?,4]", "fp32 [?, 4]"},
        {6, "pow", "x:fp32[2] y:fp32[2]", "fp32 [2]"},
        {6, "floor_div", "x:int32[2] y:int32", "int32 [2]"},
        {6, "mod", "x:int32 y:int32", "int32"},
        {6, "add", "x:fp16[2,3] y:fp16[2,4]", "!cannot be broadcast to each other: fp16 [2, 3] and fp16 [2, 4]"},
        {6, "add", "x:fp16[2,3] y:fp32[2,3]", "!parameter 'y': expected fp16 as 'x', found fp32"},
        {6, "mul", "x:bool[2,3] y:bool[2,3]", "!parameter 'x': expected fp16 or fp32 or int32, found bool [2, 3]"},
        {6, "sub", "x:fp16[2,3]", "!parameter 'y' is missing"},
        {6, "sub", "x:fp16[2,3] y:!", "!parameter 'y': 'nowhere' is not defined before"},
        {6, "sub", "x:fp16[2,3] y:list", "!parameter 'y': expected fp16 or fp32 or int32, found list"},
        {6, "sub", "x:fp16[2,3] y:$fp16[2,3]",
         "!parameter 'y': expected fp16 or fp32 or int32, found state fp16 [2, 3]"},
        {6, "sub", "x:fp16[2]+fp16[2] y:fp16[2]", "!parameter 'x': expected one value, found 2 values"},
        {6, "sub", "x:fp16[2] y:fp16[2] y:fp16[2]", "!parameter 'y' occurs twice"},
        {6, "sub", "x:fp16[2] y:fp16[2] z:fp16[2]", "!unknown parameter 'z'"},
        {6, "sub", "x:fp16[2] y:fp16[2] .y:@fp16[2]", "!unknown attribute 'y': in CoreML6 its parameters are inputs"},
        {6, "sub", "x:fp16[2147483648] y:fp16[1]", "!parameter 'x': an axis of more than 2147483647 elements"},
        {6, "sub", "x:fp16[-2] y:fp16[1]", "!parameter 'x': an axis of"},

        {6, "equal", "x:fp16[3,1] y:fp16[1,4]", "bool [3, 4]"},
        {6, "less", "x:int32[3] y:int32", "bool [3]"},
        {6, "greater_equal", "x:fp32[3] y:fp32[4]", "!cannot be broadcast"},
        {6, "not_equal", "x:bool[3] y:bool[3]", "!parameter 'x': expected fp16 or fp32 or int32"},
        {6, "logical_and", "x:bool[3,1] y:bool[4]", "bool [3, 4]"},
        {6, "logical_or", "x:fp16[3] y:fp16[3]", "!parameter 'x': expected bool, found fp16 [3]"},
        {6, "logical_not", "x:bool[3]", "bool [3]"},
        {6, "logical_not", "x:int32[3]", "!parameter 'x': expected bool"},

        {6, "relu", "x:fp16[1,4,1,8]", "fp16 [1, 4, 1, 8]"},
        {6, "sqrt", "x:fp32", "fp32"},
        {6, "abs", "x:int32[?]", "int32 [?]"},
        {6, "square", "x:int32[3]", "int32 [3]"},
        {6, "exp", "x:int32[3]", "!parameter 'x': expected fp16 or fp32, found int32 [3]"},
        {6, "tanh", "", "!parameter 'x' is missing"},
        {6, "rsqrt", "x:fp16[3] epsilon=fp16:#168", "fp16 [3]"},
        {7, "rsqrt", "x:fp16[3] epsilon=fp32:#168", "fp16 [3]"},
        {6, "rsqrt", "x:fp16[3] epsilon=fp32:#168", "!parameter 'epsilon': expected fp16 as 'x', found fp32"},
        {6, "inverse", "x:fp16[3] epsilon=fp16:1", "!parameter 'epsilon': expected rank 0, found fp16 [1]"},
        {6, "log", "x:fp16[3] epsilon:fp16", "!parameter 'epsilon': expected a constant"},
        {6, "clip", "x:fp16[3] alpha=fp16:#0 beta=fp16:#1", "fp16 [3]"},
        {6, "clip", "x:fp16[3] alpha=fp16:#0", "!parameter 'beta' is missing"},
        {6, "clip", "x:fp16[3] alpha=fp16:#0 beta=fp16:1,2,3", "!parameter 'beta': expected rank 0"},
        {6, "leaky_relu", "x:fp16[3] alpha=fp16:#0", "fp16 [3]"},
        {6, "gelu", "x:fp16[3] mode=['EXACT']", "fp16 [3]"},
        {6, "gelu", "x:fp16[3]", "fp16 [3]"},
        {6, "gelu", "x:fp16[3] mode='TANH_APPROXIMATION'", "fp16 [3]"},
        {6, "gelu", "x:fp16[3] mode='exact'", "!parameter 'mode': expected EXACT, TANH_APPROXIMATION or"},
        {6, "softplus", "x:fp16[3]", "fp16 [3]"},
        {6, "identity", "x:int8[3]", "int8 [3]"},
        {6, "identity", "x:list", "list"},

        {6, "cast", "x:fp32[1,3] dtype='fp16'", "fp16 [1, 3]"},
        {6, "cast", "x:bool dtype='int32'", "int32"},
        {7, "cast", "x:uint8[3] dtype='uint16'", "uint16 [3]"},
        {6, "cast", "x:fp32[3] dtype='int8'", "!parameter 'dtype': expected fp16, fp32, int32, bool, found 'int8'"},
        {7, "cast", "x:fp32[3] dtype='int64'", "!parameter 'dtype': expected fp16, fp32, int32, bool, int8"},
        {6, "cast", "x:int8[3] dtype='fp16'", "!parameter 'x': expected"},
        {6, "cast", "x:fp32[3] dtype:string", "!parameter 'dtype': expected a constant"},
        {6, "cast", "x:fp32[3] dtype:@string", "!parameter 'dtype': its value cannot be read"},

        {6, "select", "cond:bool[3,1] a:fp16[3,4] b:fp16", "fp16 [3, 4]"},
        {6, "select", "cond:bool[3,4] a:fp16[3,1] b:fp16[1,4]", "fp16 [3, 4]"},
        {6, "select", "cond:bool[3,4] a:fp16 b:fp16",
         "!parameter 'cond': expected a shape that fits into fp16, found bool [3, 4]"},
        {6, "select", "cond:bool[3,4] a:fp16[3,1] b:fp16", "!parameter 'cond': expected a shape that fits into"},
        {6, "select", "cond:fp16[3] a:fp16[3] b:fp16[3]", "!parameter 'cond': expected bool"},
        {6, "select", "cond:bool[3] a:fp16[3] b:fp32[3]", "!parameter 'b': expected fp16 as 'a', found fp32"},
    };
    RUN(rows);
}

static void test_shapes(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        {6, "transpose", "x:fp16[1,64,12,96] perm=[0,3,2,1]", "fp16 [1, 96, 12, 64]"},
        {6, "transpose", "x:bool[2,3,4] perm=-1,0,-2", "bool [4, 2, 3]"},
        {7, "transpose", "x:int8[?,3] perm=1,0", "int8 [3, ?]"},
        {6, "transpose", "x:int8[2,3] perm=1,0", "!parameter 'x': expected"},
        {6, "transpose", "x:fp16[2,3] perm=1,0,2", "!parameter 'perm': expected 2 values, found 3"},
        {6, "transpose", "x:fp16[2,3] perm=1,1", "!parameter 'perm': axis 1 occurs twice"},
        {6, "transpose", "x:fp16[2,3] perm=1,2", "!parameter 'perm': axis 2 is out of range for 2 axes"},
        {6, "transpose", "x:fp16[2,3] perm:int32[2]", "!parameter 'perm': expected a constant"},
        {6, "transpose", "x:fp16[2,3] perm:%int32[2]", "!parameter 'perm': its values cannot be read"},

        {6, "reshape", "x:fp16[1,1536,1,96] shape=[1,64,24,96]", "fp16 [1, 64, 24, 96]"},
        {6, "reshape", "x:fp16[2,3,4] shape=4,-1", "fp16 [4, 6]"},
        {6, "reshape", "x:fp16[2,3,4] shape=0,-1,2", "fp16 [2, 6, 2]"},
        {6, "reshape", "x:fp16[2,3,4] shape=24", "fp16 [24]"},
        {6, "reshape", "x:fp16[1] shape=()", "fp16"},
        {6, "reshape", "x:fp16[2,3,4] shape:int32[2]", "fp16 [?, ?]"},
        {6, "reshape", "x:fp16[?,3,4] shape=-1,12", "fp16 [?, 12]"},
        {7, "reshape", "x:int16[2,3,4] shape=int8:4,6", "int16 [4, 6]"},
        {6, "reshape", "x:fp16[2,3,4] shape=int8:4,6", "!parameter 'shape': expected int32, found int8 [2]"},
        {6, "reshape", "x:fp16[2,3,4] shape=5,5",
         "!parameter 'shape': fp16 [2, 3, 4] cannot be reshaped to fp16 [5, 5]"},
        {6, "reshape", "x:fp16[2,3,4] shape=-1,-1", "!parameter 'shape': fp16 [2, 3, 4] cannot be reshaped"},
        {6, "reshape", "x:fp16[2,3,4] shape=-1,5", "!cannot be reshaped to fp16 [?, 5]"},
        {6, "reshape", "x:fp16[2,3,4] shape=-2,-12", "!cannot be reshaped"},
        {6, "reshape", "x:fp16[2,3,4] shape=0,-1", "!cannot be reshaped to fp16 [0, ?]"},
        {6, "reshape", "x:fp16[2,3,4] shape=1,1,1,1,1,1,1,1,24", "!the output has more than 8 axes"},
        {6, "reshape", "x:fp16[2147483647,2147483647,2147483647] shape=1,-1", "!cannot be reshaped"},
        {6, "reshape", "x:fp16[65536,65536] shape=-1", "!axis 0 of the output has 4294967296 elements"},
        {6, "reshape", "x:fp16[2,3,4] shape:int32[?]", "!parameter 'shape': expected a fixed length"},
        {6, "reshape", "x:fp16[2,3,4] shape:@int32[2]", "!parameter 'shape': its values cannot be read"},

        {6, "expand_dims", "x:fp16[2,3] axes=0,-1", "fp16 [1, 2, 3, 1]"},
        {6, "expand_dims", "x:fp16[2,?] axes=2", "fp16 [2, ?, 1]"},
        {6, "expand_dims", "x:fp16 axes=0", "fp16 [1]"},
        {6, "expand_dims", "x:fp16[2,3] axes=1,3", "fp16 [2, 1, 3, 1]"},
        {6, "expand_dims", "x:fp16[2,3] axes=3", "!parameter 'axes': axis 3 is out of range for 3 axes"},
        {6, "expand_dims", "x:fp16[2,3] axes=0,-4", "!parameter 'axes': axis 0 occurs twice"},
        {6, "expand_dims", "x:fp16[1,1,1,1,1,1,1] axes=0,1", "!the output has 9 axes, more than 8"},
        {6, "squeeze", "x:fp16[1,2,1,3] axes=0,2", "fp16 [2, 3]"},
        {6, "squeeze", "x:fp16[1,2,1,3] axes=0,1", "fp16 [2, 1, 3]"},
        {6, "squeeze", "x:fp16[1,2,?,1]", "fp16 [2, ?]"},
        {6, "squeeze", "x:fp16[1,1]", "fp16"},
        {6, "squeeze", "x:fp16[1,2] axes=2", "!parameter 'axes': axis 2 is out of range for 2 axes"},

        {6, "concat", "values:fp16[1,32,12,96]+fp16[1,32,12,96] axis=#1 interleave=bool:#0", "fp16 [1, 64, 12, 96]"},
        {6, "concat", "values:int8[2,3]+int8[2,4]+int8[2,5] axis=#-1", "int8 [2, 12]"},
        {6, "concat", "values:fp16[2,?]+fp16[?,4] axis=#1", "fp16 [2, ?]"},
        {6, "concat", "values:int32+int32+int32 axis=#0", "int32 [3]"},
        {6, "concat", "values:fp16[2,3]+fp16[2,3] axis=#0 interleave=bool:#1", "fp16 [4, 3]"},
        {6, "concat", "values:fp16[2,3]+fp16[1,3] axis=#0 interleave=bool:#1",
         "!parameter 'values': shapes that do not fit: fp16 [2, 3] and fp16 [1, 3]"},
        {6, "concat", "values:fp16[2,3]+fp16[1,3] axis=#1", "!shapes that do not fit: fp16 [2, 3] and fp16 [1, 3]"},
        {6, "concat", "values:fp16[2,3]+fp16[2,3,1] axis=#1", "!shapes that do not fit"},
        {6, "concat", "values:fp16[2,3]+fp32[2,3] axis=#1",
         "!parameter 'values': expected fp16 as 'values', found fp32"},
        {6, "concat", "values:fp16[2,3]+fp16[2,3] axis=#2", "!parameter 'axis': axis 2 is out of range for 2 axes"},
        {6, "concat", "values:fp16[2,3]+fp16[2,3]", "!parameter 'axis' is missing"},
        {6, "concat", "values:fp16[2147483647]+fp16[1] axis=#0", "!axis 0 of the output has 2147483648 elements"},
        {6, "stack", "values:fp16[2,3]+fp16[2,3]+fp16[2,3] axis=#1", "fp16 [2, 3, 3]"},
        {6, "stack", "values:fp16[2,?]+fp16[2,4] axis=#-1", "fp16 [2, 4, 2]"},
        {6, "stack", "values:fp16+fp16 axis=#0", "fp16 [2]"},
        {6, "stack", "values:fp16[2,3]+fp16[2,4] axis=#0", "!shapes that do not fit"},
        {6, "stack", "values:fp16[2,3]+fp16[2,3] axis=#3", "!parameter 'axis': axis 3 is out of range for 3 axes"},
        {6, "stack", "values:fp16[1,1,1,1,1,1,1,1] axis=#3", "!the output has more than 8 axes"},

        {6, "tile", "x:fp16[2,3] reps=3,1", "fp16 [6, 3]"},
        {6, "tile", "x:fp16[2,?] reps=1,1", "fp16 [2, ?]"},
        {6, "tile", "x:fp16[2,?] reps=1,2", "fp16 [2, ?]"},
        {6, "tile", "x:fp16[2,3] reps:int32[2]", "fp16 [?, ?]"},
        {6, "tile", "x:fp16[2,3] reps=3", "!parameter 'reps': expected 2 values, found 1"},
        {6, "tile", "x:fp16[2,3] reps=0,1", "!parameter 'reps': expected positive values, found 0"},
        {6, "tile", "x:fp16[65536] reps=65536", "!axis 0 of the output has 4294967296 elements"},
        {6, "fill", "shape=2,3 value=fp16:#0", "fp16 [2, 3]"},
        {6, "fill", "shape=2,3", "fp32 [2, 3]"},
        {6, "fill", "shape:int32[2] value=bool:#1", "bool [?, ?]"},
        {6, "fill", "shape=2,-1", "!parameter 'shape': expected no negative value, found -1"},
        {6, "fill", "shape=1,1,1,1,1,1,1,1,1", "!the output has more than 8 axes"},
        {6, "pad", "x:fp16[1,2,3,4] pad=1,2,0,3 mode='constant' constant_val=fp16:#0", "fp16 [1, 2, 6, 7]"},
        {6, "pad", "x:fp16[2,3] pad=1,0,0,0", "fp16 [3, 3]"},
        {6, "pad", "x:fp16[2,?] pad=1,1", "fp16 [2, ?]"},
        {6, "pad", "x:fp16[2,3] pad:int32[4]", "fp16 [?, ?]"},
        {6, "pad", "x:fp16[2,3] pad:int32[2]", "!parameter 'pad': expected two values for each"},
        {6, "pad", "x:fp16[2,3] pad=1,1,1",
         "!parameter 'pad': expected two values for each of at most 2 axes, found 3"},
        {6, "pad", "x:fp16[2,3] pad=1,1,1,1,1,1", "!parameter 'pad': expected two values for each of at most 2 axes"},
        {6, "pad", "x:fp16[2,3] pad=1,-1", "!parameter 'pad': expected no negative value, found -1"},
        {6, "pad", "x:fp16[2,3] pad=1,1 mode='wrap'", "!parameter 'mode': expected constant, reflect or replicate"},
        {6, "pad", "x:int32[2,3] pad=1,1", "!parameter 'x': expected fp16 or fp32"},
    };
    RUN(rows);
}

static void test_parts(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        {6, "split", "x:fp16[1,64,24,96] axis=[#2] num_splits=[#2]", "fp16 [1, 64, 12, 96] | fp16 [1, 64, 12, 96]"},
        {6, "split", "x:fp16[1,10] axis=#-1 split_sizes=[5,3,2]", "fp16 [1, 5] | fp16 [1, 3] | fp16 [1, 2]"},
        {6, "split", "x:fp16[1,10] axis=#1 split_sizes=7,3 num_splits=#2", "fp16 [1, 7] | fp16 [1, 3]"},
        {6, "split", "x:fp16[1,?] axis=#1 num_splits=#2", "fp16 [1, ?] | fp16 [1, ?]"},
        {6, "split", "x:fp16[2] axis=#0 num_splits=#1", "fp16 [2]"},
        {6, "split", "x:fp16[2] axis=#0 num_splits=#2", "!expected 2 outputs, found 1"},
        {6, "split", "x:fp16[1,10] axis=#1 split_sizes=7,3", "!expected 2 outputs, found 1"},
        {6, "split", "x:fp16[1,10] axis=#1 split_sizes=9", "!parameter 'split_sizes': expected a sum of 10, found 9"},
        {6, "split", "x:fp16[1,10] axis=#1 split_sizes=-1", "!parameter 'split_sizes': expected no negative value"},
        {6, "split", "x:fp16[1,10] axis=#1 split_sizes:@int32[1]",
         "!parameter 'split_sizes': its values cannot be read"},
        {6, "split", "x:fp16[1,10] axis=#1 split_sizes=#10", "!parameter 'split_sizes': expected rank 1"},
        {6, "split", "x:fp16[1,10] axis=#1", "!one of 'num_splits' and 'split_sizes' is missing"},
        {6, "split", "x:fp16[1,10] axis=#2 num_splits=#1", "!parameter 'axis': axis 2 is out of range for 2 axes"},
        {6, "split", "x:fp16[1,10] num_splits=#1", "!parameter 'axis' is missing"},
        {6, "split", "x:int8[1,10] axis=#1 num_splits=#1", "!parameter 'x': expected"},

        {6, "slice_by_index", "x:fp16[4,6] begin=[1,0] end=[3,6]", "fp16 [2, 6]"},
        {6, "slice_by_index", "x:fp16[4,6] begin=-3,-4 end=-1,-2", "fp16 [2, 2]"},
        {6, "slice_by_index", "x:fp16[4,6] begin=0,1 end=0,0 stride=1,2 end_mask=bool:1,1", "fp16 [4, 3]"},
        {6, "slice_by_index", "x:fp16[4,6] begin=3,0 end=0,6 stride=-1,5", "fp16 [3, 2]"},
        {6, "slice_by_index", "x:fp16[4,6] begin=0,0 end=0,0 stride=-1,-4 begin_mask=bool:1,1 end_mask=bool:1,1",
         "fp16 [4, 2]"},
        {6, "slice_by_index", "x:fp16[4,6] begin=2,0 end=0,2 squeeze_mask=bool:1,0", "fp16 [2]"},
        {6, "slice_by_index", "x:fp16[4,6] begin=-1,5 end=0,0 squeeze_mask=bool:1,1", "fp16"},
        {6, "slice_by_index", "x:fp16[4,6] begin=0,0 end=100,2", "fp16 [4, 2]"},
        {6, "slice_by_index", "x:fp16[4,6] begin=-5,3 end=3,-9 stride=1,-1", "fp16 [3, 3]"},
        {6, "slice_by_index", "x:fp16[?,6] begin=0,0 end=1,2", "fp16 [1, 2]"},
        {6, "slice_by_index", "x:fp16[?,6] begin=0,0 end=0,2 begin_mask=bool:1,0 end_mask=bool:1,0", "fp16 [?, 2]"},
        {6, "slice_by_index", "x:fp16[4,6] begin:int32[2] end=2,2 begin_mask=bool:1,0", "fp16 [2, ?]"},
        {7, "slice_by_index", "x:uint16[4] begin=int8:1 end=int8:3 stride=int8:1", "uint16 [2]"},
        {7, "slice_by_index", "x:fp16[4] begin=int8:1 end=3",
         "!parameter 'end': expected int8 as 'begin', found int32"},
        {6, "slice_by_index", "x:fp16[4,6] begin=0,0 end=4", "!parameter 'end': expected 2 values, found 1"},
        {6, "slice_by_index", "x:fp16[4,6] begin=0,0 end=4,6 stride=1,0", "!parameter 'stride': expected no zero"},
        {6, "slice_by_index", "x:fp16[4,6] begin=0,3 end=4,3",
         "!begin 3, end 3, stride 1 take nothing from the 6 elements of axis 1"},
        {6, "slice_by_index", "x:fp16[4,6] begin=4,0 end=5,6", "!begin 4, end 5, stride 1 take nothing"},
        {6, "slice_by_index", "x:fp16[4,6] begin=0,0 end=-4,6", "!begin 0, end -4, stride 1 take nothing"},
        {6, "slice_by_index", "x:fp16[4,6] begin=-1,0 end=0,6", "!begin -1, end 0, stride 1 take nothing"},
        {6, "slice_by_index", "x:fp16[4,6] begin=4,0 end=0,6 squeeze_mask=bool:1,0",
         "!parameter 'begin': 4 is out of range for the 4 elements of axis 0"},
        {6, "slice_by_index", "x:fp16[4,6] begin=0,0 end=4,6 begin_mask=bool:1",
         "!parameter 'begin_mask': expected 2"},
        {6, "slice_by_index", "x:fp16[4,6] begin=0,0 end=4,6 end_mask=1,1", "!parameter 'end_mask': expected bool"},
        {6, "slice_by_index", "x:fp16[4,6] begin=0,0 end=4,6 stride:int32[2]",
         "!parameter 'stride': expected a const"},
        {6, "slice_by_index", "x:fp16 begin=() end=()", "!parameter 'x': expected a rank of 1 to 8"},

        {6, "slice_by_size", "x:fp16[4,6] begin=1,2 size=2,-1", "fp16 [2, 4]"},
        {6, "slice_by_size", "x:fp16[4,?] begin=1,2 size=2,-1", "fp16 [2, ?]"},
        {6, "slice_by_size", "x:fp16[4,6] begin:int32[2] size=2,-1", "fp16 [2, ?]"},
        {6, "slice_by_size", "x:fp16[4,6] begin=1,2 size:int32[2]", "fp16 [?, ?]"},
        {6, "slice_by_size", "x:fp16[4,6] begin=3,2 size=2,1",
         "!begin 3, size 2 are out of range for the 4 elements of axis 0"},
        {6, "slice_by_size", "x:fp16[4,6] begin:int32[2] size=5,1", "!size 5 are out of range"},
        {6, "slice_by_size", "x:fp16[4,6] begin=4,2 size=-1,1", "!begin 4, size -1 are out of range"},
        {6, "slice_by_size", "x:fp16[4,6] begin=0,0 size=0,1", "!begin 0, size 0 are out of range"},
        {6, "slice_by_size", "x:fp16[4,6] begin=0,0 size=-2,1", "!begin 0, size -2 are out of range"},
        {6, "slice_by_size", "x:fp16[4,6] begin=0 size=1,1", "!parameter 'begin': expected 2 values, found 1"},

        {6, "gather", "x:fp16[1000,8] indices:int32[1,16] axis=#0 batch_dims=#0", "fp16 [1, 16, 8]"},
        {6, "gather", "x:fp16[2,3,4] indices:int32 axis=#-2", "fp16 [2, 4]"},
        {6, "gather", "x:fp16[2,3,4] indices:uint16[2,5,7] axis=#1 batch_dims=#1", "fp16 [2, 5, 7, 4]"},
        {6, "gather", "x:int32[3] indices:int32", "int32"},
        {5, "gather", "x:fp16[2,?] indices:int32[5] axis=#0", "fp16 [5, ?]"},
        {7, "gather", "x:int8[2,3] indices:uint8[5] validate_indices=bool:#0", "int8 [5, 3]"},
        {6, "gather", "x:fp16[3] indices=-1,2", "fp16 [2]"},
        {7, "gather", "x:fp16[3] indices=0,2 validate_indices=bool:#1", "fp16 [2]"},
        {7, "gather", "x:fp16[3] indices=-1,2", "!parameter 'indices': expected 0 to 2, found -1"},
        {6, "gather", "x:fp16[3] indices=0,3", "!parameter 'indices': expected -3 to 2, found 3"},
        {5, "gather", "x:fp16[2,3] indices:int32[5] batch_dims=#0", "!unknown parameter 'batch_dims'"},
        {6, "gather", "x:fp16[2,3] indices:int32[5] validate_indices=bool:#0",
         "!unknown parameter 'validate_indices'"},
        {5, "gather", "x:fp16[2,3] indices:int16[5]", "!parameter 'indices': expected int32, found int16 [5]"},
        {6, "gather", "x:int8[2,3] indices:int32[5]", "!parameter 'x': expected fp16 or fp32 or int32"},
        {6, "gather", "x:fp16[2,3] indices:int32[5] axis=#2", "!parameter 'axis': axis 2 is out of range"},
        {6, "gather", "x:fp16[2,3] indices:int32[2] axis=#0 batch_dims=#1", "!parameter 'batch_dims': expected 0 to"},
        {6, "gather", "x:fp16[2,3] indices:int32 axis=#1 batch_dims=#1", "!parameter 'batch_dims': expected 0 to"},
        {6, "gather", "x:fp16[2,3] indices:int32[2] axis=#1 batch_dims=#-1",
         "!parameter 'batch_dims': expected 0 to"},
        {6, "gather", "x:fp16[2,3] indices:int32[3] axis=#1 batch_dims=#1",
         "!parameter 'indices': expected 2 elements on batch axis 0, found 3"},
        {6, "gather", "x:fp16[1,1,1,1,1] indices:int32[1,1,1,1,1]", "!the output has more than 8 axes"},
        {6, "gather", "x:fp16 indices:int32[2]", "!parameter 'x': expected a rank of 1 to 8"},
    };
    RUN(rows);
}

static void test_constants(void **unused)
{
    (void)unused;
    static const struct row rows[] = {
        {5, "const", ".val:@fp16[3]", "fp16 [3]"},
        {9, "const", ".val=#5", "int32"},
        {6, "const", ".val='text'", "string"},
        {6, "const", "", "!attribute 'val' is missing"},
        {6, "const", "val:@fp16[3]", "!unknown parameter 'val': in CoreML6 its parameters are attributes"},
        {6, "const", ".val:@fp16[3] .other:@fp16[3]",
         "!unknown attribute 'other': in CoreML6 it has no such attribute"},
        {6, "const", ".val:@fp16[3] .val:@fp16[4]", "!attribute 'val' occurs twice"},

        {6, "constexpr_lut_to_dense", ".indices:@uint8[8] .lut:@fp16[16] .shape=uint32:4,2,2,1", "fp16 [4, 2, 2, 1]"},
        {7, "constexpr_lut_to_dense", ".indices:@uint8[3] .lut:@uint8[64] .shape=uint32:4", "uint8 [4]"},
        {6, "constexpr_lut_to_dense", ".indices:@uint8[1] .lut:@int8[2] .shape=uint32:5", "int8 [5]"},
        {6, "constexpr_lut_to_dense", ".indices:@uint8[4] .lut:@fp16[8] .shape=uint32:10",
         "!attribute 'lut': expected 2, 4, 16, 64 or 256 entries, found 8"},
        {6, "constexpr_lut_to_dense", ".indices:@uint8[7] .lut:@fp16[16] .shape=uint32:4,2,2,1",
         "!parameter 'indices': expected uint8 [8], found uint8 [7]"},
        {6, "constexpr_lut_to_dense", ".indices:@uint8[8] .lut:@fp16[16]", "!attribute 'shape' is missing"},
        {6, "constexpr_lut_to_dense", ".indices:@uint8[8] .lut:@fp16[16] .shape=4,2,2,1",
         "!parameter 'shape': expected uint32, found int32 [4]"},
        {6, "constexpr_lut_to_dense", ".indices:@uint8[8] .lut:@fp16[16] .shape:@uint32[4]",
         "!parameter 'shape': its values cannot be read"},
        {6, "constexpr_lut_to_dense",
         ".indices:@uint8[8] .lut:@fp16[16] .shape=uint32:4294967295,4294967295,4294967295",
         "!parameter 'shape': more elements than can be counted"},
        {6, "constexpr_lut_to_dense", ".indices:@uint8[8] .lut:@fp16[4,4] .shape=uint32:16",
         "!parameter 'lut': expected rank 1"},
        {6, "constexpr_lut_to_dense", "indices:@uint8[8] lut:@fp16[16] shape=uint32:16",
         "!unknown parameter 'indices': in CoreML6 its parameters are attributes"},
        {5, "constexpr_lut_to_dense", ".indices:@uint8[8] .lut:@fp16[16] .shape=uint32:16",
         "?this operation needs CoreML6, the opset is CoreML5"},

        {8, "constexpr_lut_to_dense", "indices:@uint4[96,128,1,1] lut:@fp16[1,1,1,1,16,1]", "fp16 [96, 128, 1, 1]"},
        {8, "constexpr_lut_to_dense", "indices:@uint3[96,128] lut:@fp16[12,1,8,1]", "fp16 [96, 128]"},
        {8, "constexpr_lut_to_dense", "indices:@uint8[6,4] lut:%int8[1,2,256,3] vector_axis=#-1", "int8 [6, 12]"},
        {8, "constexpr_lut_to_dense", "indices:@uint4[96,128,1,1] lut:@fp16[16]",
         "!parameter 'lut': expected rank 6"},
        {8, "constexpr_lut_to_dense", "indices:@uint4[96,128] lut:@fp16[5,1,16,1]",
         "!parameter 'lut': 5 groups do not divide the 96 elements of axis 0"},
        {8, "constexpr_lut_to_dense", "indices:@uint4[96,128] lut:@fp16[0,1,16,1]", "!0 groups do not divide"},
        {8, "constexpr_lut_to_dense", "indices:@uint4[96,128] lut:@fp16[1,1,8,1]",
         "!parameter 'lut': expected 16 entries for indices of uint4, found 8"},
        {8, "constexpr_lut_to_dense", "indices:@uint4[96,128] lut:@fp16[1,1,15,1]", "!expected 16 entries"},
        {8, "constexpr_lut_to_dense", "indices:@uint4[96,128] lut:@fp16[1,1,16,0]", "!at least one element"},
        {8, "constexpr_lut_to_dense", "indices:@uint4[96,128] lut:@fp16[1,1,16,2]",
         "!parameter 'vector_axis' is missing: entries of 'lut' have 2 elements"},
        {8, "constexpr_lut_to_dense", "indices:@uint4[96,128] lut:@fp16[1,1,16,2] vector_axis=#2",
         "!parameter 'vector_axis': axis 2 is out of range for 2 axes"},
        {8, "constexpr_lut_to_dense", "indices:@int4[96,128] lut:@fp16[1,1,16,1]", "!parameter 'indices': expected"},
        {8, "constexpr_lut_to_dense", "indices:uint4[96,128] lut:@fp16[1,1,16,1]",
         "!parameter 'indices': expected a constant"},
        {8, "constexpr_lut_to_dense", ".indices:@uint8[8] .lut:@fp16[16] .shape=uint32:16",
         "!unknown attribute 'indices': in CoreML8 its parameters are inputs"},

        {6, "constexpr_affine_dequantize", ".quantized_data:@int8[6,4] .zero_point=int8:#0 .scale:@fp16[6] .axis=#0",
         "fp16 [6, 4]"},
        {8, "constexpr_affine_dequantize", ".quantized_data:@uint8[6,4] .zero_point:@uint8[4] .scale:@fp32 .axis=#-1",
         "fp32 [6, 4]"},
        {6, "constexpr_affine_dequantize", ".quantized_data:@int8[6,4] .zero_point:@int8 .scale:@fp16[4] .axis=#0",
         "!parameter 'scale': expected fp16 [6], found fp16 [4]"},
        {6, "constexpr_affine_dequantize", ".quantized_data:@int8[6,4] .zero_point:@int8[1,6] .scale:@fp16 .axis=#0",
         "!parameter 'zero_point': expected int8 [6]"},
        {6, "constexpr_affine_dequantize", ".quantized_data:@int8[6,4] .zero_point:@int8 .scale:@fp16 .axis=#2",
         "!parameter 'axis': axis 2 is out of range for 2 axes"},
        {6, "constexpr_affine_dequantize", ".quantized_data:@int8[6,4] .scale:@fp16 .axis=#0",
         "!attribute 'zero_point' is missing"},

        {8, "constexpr_blockwise_shift_scale", "data:@int4[64,32] scale:@fp16[64,2]", "fp16 [64, 32]"},
        {8, "constexpr_blockwise_shift_scale", "data:%uint8[64,32] scale:@fp32[1,1] offset:@uint8[1,1]",
         "fp32 [64, 32]"},
        {8, "constexpr_blockwise_shift_scale", "data:@int4[64,32] scale:@fp16[64,2] offset:@fp32[64,2]",
         "fp16 [64, 32]"},
        {8, "constexpr_blockwise_shift_scale", "data:@int4[64,32] scale:@fp16[64,3]",
         "!parameter 'scale': 3 groups do not divide the 32 elements of axis 1"},
        {8, "constexpr_blockwise_shift_scale", "data:@int4[64,32] scale:@fp16[64]",
         "!parameter 'scale': expected rank 2"},
        {8, "constexpr_blockwise_shift_scale", "data:@int4[64,32] scale:@fp16[64,2] offset:@int4[64,1]",
         "!parameter 'offset': expected int4 [64, 2], found int4 [64, 1]"},
        {8, "constexpr_blockwise_shift_scale", "data:@int4[64,32] scale:@fp16[64,2] offset:@uint4[64,2]",
         "!parameter 'offset': expected fp16, fp32 or int4, found uint4"},
        {7, "constexpr_blockwise_shift_scale", "data:@int4[64,32] scale:@fp16[64,2]", "?needs CoreML8"},

        {6, "constexpr_cast", ".source_val:@fp16[3] .output_dtype='fp32'", "fp32 [3]"},
        {8, "constexpr_cast", "source_val:@fp16[3] output_dtype='fp32'", "fp32 [3]"},
        {6, "constexpr_cast", ".source_val:@fp16[3] .output_dtype='int8'",
         "!parameter 'output_dtype': expected fp32"},
        {6, "constexpr_sparse_to_dense", ".nonzero_data:@fp16[3] .mask=uint8:7,0 .shape=uint32:3,4", "fp16 [3, 4]"},
        {6, "constexpr_sparse_to_dense", ".nonzero_data:@fp16[3] .mask=uint8:7,1 .shape=uint32:3,4",
         "!parameter 'nonzero_data': expected 4 values as 'mask' says, found 3"},
        {6, "constexpr_sparse_to_dense", ".nonzero_data:@fp16[3] .mask=uint8:7 .shape=uint32:3,4",
         "!parameter 'mask': expected uint8 [2], found uint8 [1]"},
        {8, "constexpr_sparse_to_dense", "nonzero_data:@int8[3] mask:@uint1[3,4]", "int8 [3, 4]"},

        {8, "read_state", "input:$fp16[1,8]", "fp16 [1, 8]"},
        {8, "read_state", "input:fp16[1,8]", "!parameter 'input': expected a state of"},
        {7, "read_state", "input:$fp16[1,8]", "?needs CoreML8"},
        {8, "write_state", "input:$fp16[1,8] data:fp16[1,8]", ""},
        {8, "write_state", "input:$fp16[1,8] data:fp16[1,8]", "!expected no output, found 1 outputs"},

        {6, "local_response_norm", "x:fp16[1,2,3]", "?this operation is not known here"},
        {4, "relu", "x:fp16[1]", "?this operation needs CoreML5, the opset is not known"},
        {10, "relu", "x:fp16[1]", "?this operation needs CoreML5, the opset is not known"},
    };
    RUN(rows);
}

/* ------------------------------------------------------------------ the rest of the interface */

/* It has no output. */
static void test_write_state(void **unused)
{
    (void)unused;
    made_op made;
    laya_error error;
    make_op(&made, "write_state", "input:$fp16[1,8] data:fp16[1,9]", 0);
    assert_int_equal(laya_mil_infer(&made.op, LAYA_MIL_COREML8, NULL, &error), LAYA_ERROR_FORMAT);
    assert_string_equal(error.message,
                        "here (write_state): parameter 'data': expected fp16 [1, 8], found fp16 [1, 9]");
    make_op(&made, "write_state", "input:$fp16[1,8] data:fp32[1,8]", 0);
    assert_int_equal(laya_mil_infer(&made.op, LAYA_MIL_COREML8, NULL, &error), LAYA_ERROR_FORMAT);
    assert_contains(error.message, "parameter 'data': expected fp16 as 'input', found fp32");
}

static void test_output_count(void **unused)
{
    (void)unused;
    made_op made;
    laya_mil_type outputs[MAX_OUTPUTS];
    laya_error error;
    make_op(&made, "relu", "x:fp16[2]", 2);
    assert_int_equal(laya_mil_infer(&made.op, LAYA_MIL_COREML6, outputs, &error), LAYA_ERROR_FORMAT);
    assert_string_equal(error.message, "here (relu): expected one output, found 2 outputs");
    made.op.output_count = 0;
    made.op.name = NULL;
    assert_int_equal(laya_mil_infer(&made.op, LAYA_MIL_COREML6, outputs, &error), LAYA_ERROR_FORMAT);
    assert_string_equal(error.message, "relu (relu): expected one output, found 0 outputs");
    make_op(&made, "split", "x:fp16[10] axis=#0 num_splits=#3", 3);
    assert_int_equal(laya_mil_infer(&made.op, LAYA_MIL_COREML6, outputs, &error), LAYA_ERROR_FORMAT);
    assert_contains(error.message, "parameter 'num_splits': 10 elements cannot be split into 3 equal parts");
    release_op(&made);
    make_op(&made, "split", "x:fp16[10] axis=#0 split_sizes=4,7", 2);
    assert_int_equal(laya_mil_infer(&made.op, LAYA_MIL_COREML6, outputs, &error), LAYA_ERROR_FORMAT);
    assert_contains(error.message, "parameter 'split_sizes': expected a sum of 10, found 11");
    release_op(&made);
    make_op(&made, "relu", "x:fp16[2]", 1);
    made.arguments[0].count = 0;
    assert_int_equal(laya_mil_infer(&made.op, LAYA_MIL_COREML6, outputs, &error), LAYA_ERROR_FORMAT);
    assert_contains(error.message, "parameter 'x': expected one value, found 0 values");
}

static void test_label(void **unused)
{
    (void)unused;
    made_op made;
    make_op(&made, "relu", "x:fp16[2]", 1);
    assert_string_equal(laya_mil_op_label(&made.op), "here");
    made.op.name = NULL;
    assert_string_equal(laya_mil_op_label(&made.op), "output");
    made.op.output_count = 0;
    assert_string_equal(laya_mil_op_label(&made.op), "relu");
}

static unsigned flags_of(const char *type, laya_mil_opset opset, const char *name)
{
    const laya_mil_operation *operation = laya_mil_operation_find(type, opset);
    assert_non_null(operation);
    for (const laya_mil_parameter *at = operation->parameters; at->name; at++) {
        if (strcmp(at->name, name) == 0) return at->flags;
    }
    fail_msg("%s has no parameter %s", type, name);
    return 0;
}

static void test_find(void **unused)
{
    (void)unused;
    assert_null(laya_mil_operation_find("constexpr_lut_to_dense", LAYA_MIL_COREML5));
    assert_true(laya_mil_operation_find("constexpr_lut_to_dense", LAYA_MIL_COREML7)->in_attributes);
    assert_false(laya_mil_operation_find("constexpr_lut_to_dense", LAYA_MIL_COREML8)->in_attributes);
    assert_true(laya_mil_operation_find("constexpr_affine_dequantize", LAYA_MIL_COREML9)->in_attributes);
    assert_null(laya_mil_operation_find("relu", (laya_mil_opset)0));
    assert_null(laya_mil_operation_find("", LAYA_MIL_COREML6));
    assert_int_equal(laya_mil_operation_since("conv"), LAYA_MIL_COREML5);
    assert_int_equal(laya_mil_operation_since("constexpr_cast"), LAYA_MIL_COREML6);
    assert_int_equal(laya_mil_operation_since("scaled_dot_product_attention"), LAYA_MIL_COREML8);
    assert_int_equal(laya_mil_operation_since("frobnicate"), 0);
    /* what a package states, and what it may leave out */
    unsigned stated = LAYA_MIL_DEFAULTED | LAYA_MIL_CONSTANT;
    static const char *const conv[] = {"strides", "pad_type", "pad", "dilations", "groups"};
    for (size_t at = 0; at < sizeof conv / sizeof *conv; at++)
        assert_int_equal(flags_of("conv", LAYA_MIL_COREML6, conv[at]), stated);
    assert_int_equal(flags_of("conv", LAYA_MIL_COREML6, "bias"), LAYA_MIL_CONSTANT);
    assert_int_equal(flags_of("conv", LAYA_MIL_COREML7, "bias"), 0);
    assert_int_equal(flags_of("conv", LAYA_MIL_COREML6, "x"), LAYA_MIL_REQUIRED);
    assert_int_equal(flags_of("layer_norm", LAYA_MIL_COREML6, "axes"), stated);
    assert_int_equal(flags_of("layer_norm", LAYA_MIL_COREML6, "epsilon"), stated);
    assert_int_equal(flags_of("layer_norm", LAYA_MIL_COREML6, "gamma"), LAYA_MIL_CONSTANT);
    assert_int_equal(flags_of("concat", LAYA_MIL_COREML6, "interleave"), stated);
    assert_int_equal(flags_of("concat", LAYA_MIL_COREML6, "values"), LAYA_MIL_REQUIRED | LAYA_MIL_VARIADIC);
    assert_int_equal(flags_of("gelu", LAYA_MIL_COREML6, "mode"), stated);
    assert_int_equal(flags_of("gather", LAYA_MIL_COREML7, "validate_indices"), stated);
    assert_int_equal(flags_of("linear", LAYA_MIL_COREML6, "bias"), stated);
    assert_int_equal(flags_of("slice_by_index", LAYA_MIL_COREML6, "stride"), LAYA_MIL_CONSTANT);
    assert_int_equal(flags_of("read_state", LAYA_MIL_COREML8, "input"), LAYA_MIL_REQUIRED | LAYA_MIL_OF_STATE);
}

static void test_readers(void **unused)
{
    (void)unused;
    static const unsigned char bytes[] = {0xff, 0xff, 0xff, 0xff, 0x01, 0x00, 0x00, 0x80};
    laya_mil_constant constant = {.type = laya_mil_vector(LAYA_MIL_INT32, 2), .bytes = bytes, .size = 8};
    int64_t out[4] = {0};
    size_t count = 9;
    assert_true(laya_mil_constant_integers(&constant, out, 4, &count));
    assert_int_equal(count, 2);
    assert_int_equal(out[0], -1);
    assert_int_equal(out[1], -2147483647);
    assert_false(laya_mil_constant_integers(&constant, out, 1, &count));
    assert_int_equal(count, 0);
    constant.type.dtype = LAYA_MIL_UINT32;
    assert_true(laya_mil_constant_integers(&constant, out, 4, &count));
    assert_int_equal(out[0], 4294967295);
    constant.type = laya_mil_vector(LAYA_MIL_INT16, 4);
    assert_true(laya_mil_constant_integers(&constant, out, 4, &count));
    assert_int_equal(out[3], -32768);
    constant.type = laya_mil_scalar(LAYA_MIL_INT64);
    assert_true(laya_mil_constant_integers(&constant, out, 4, &count));
    assert_int_equal(count, 1);
    assert_true(out[0] == INT64_C(-9223372028264841217)); /* 0x80000001ffffffff */
    constant.type.dtype = LAYA_MIL_UINT64;                /* does not fit */
    assert_false(laya_mil_constant_integers(&constant, out, 4, &count));
    constant.type.dtype = LAYA_MIL_FP64;
    assert_false(laya_mil_constant_integers(&constant, out, 4, &count));
    constant.type = laya_mil_vector(LAYA_MIL_BOOL, 8);
    int64_t eight[8];
    assert_true(laya_mil_constant_integers(&constant, eight, 8, &count));
    assert_int_equal(eight[0], 1);
    assert_int_equal(eight[5], 0);
    constant.type = laya_mil_vector(LAYA_MIL_UINT4, 2);
    constant.size = 1;
    assert_false(laya_mil_constant_integers(&constant, out, 4, &count));
    /* a size that is not the type's, no bytes, an unknown length */
    constant.type = laya_mil_vector(LAYA_MIL_INT32, 2);
    constant.size = 7;
    assert_false(laya_mil_constant_integers(&constant, out, 4, &count));
    constant.size = 8;
    constant.bytes = NULL;
    assert_false(laya_mil_constant_integers(&constant, out, 4, &count));
    constant.bytes = bytes;
    constant.type.dims[0] = LAYA_MIL_UNKNOWN;
    assert_false(laya_mil_constant_integers(&constant, out, 4, &count));
}

static void test_number_and_string(void **unused)
{
    (void)unused;
    static const unsigned char half[] = {0x00, 0xc0}, single[] = {0x00, 0x00, 0x20, 0x41};
    static const unsigned char real[] = {0, 0, 0, 0, 0, 0, 0xd0, 0x3f};
    laya_mil_constant constant = {.type = laya_mil_scalar(LAYA_MIL_FP16), .bytes = half, .size = 2};
    double out = 0.0;
    assert_true(laya_mil_constant_number(&constant, &out));
    assert_true(out == -2.0);
    constant.type = laya_mil_vector(LAYA_MIL_FP32, 1);
    assert_false(laya_mil_constant_number(&constant, &out));
    constant.bytes = single;
    constant.size = 4;
    assert_true(laya_mil_constant_number(&constant, &out));
    assert_true(out == 10.0);
    constant.type.dtype = LAYA_MIL_INT32;
    assert_false(laya_mil_constant_number(&constant, &out));
    constant = (laya_mil_constant){.type = laya_mil_scalar(LAYA_MIL_FP64), .bytes = real, .size = 8};
    assert_true(laya_mil_constant_number(&constant, &out));
    assert_true(out == 0.25);
    constant.type = laya_mil_vector(LAYA_MIL_FP16, 4);
    assert_false(laya_mil_constant_number(&constant, &out));
    constant.bytes = NULL;
    assert_false(laya_mil_constant_number(&constant, &out));

    const char *strings[] = {"one", "two"};
    constant = (laya_mil_constant){.type = laya_mil_scalar(LAYA_MIL_STRING), .strings = strings, .string_count = 1};
    assert_string_equal(laya_mil_constant_string(&constant), "one");
    constant.string_count = 0;
    assert_null(laya_mil_constant_string(&constant));
    constant.type = laya_mil_vector(LAYA_MIL_STRING, 2);
    constant.string_count = 2;
    assert_null(laya_mil_constant_string(&constant));
    constant.type = laya_mil_scalar(LAYA_MIL_FP16);
    assert_null(laya_mil_constant_string(&constant));
}

/* ------------------------------------------------------------------ operations made at random */

static uint64_t random_state;

static uint32_t draw(uint32_t limit)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % limit;
}

/* A dtype out of the parameter's own, now and then any. */
static laya_mil_dtype draw_dtype(const laya_mil_parameter *parameter)
{
    for (unsigned tries = 0; tries < 200 && draw(50); tries++) {
        uint32_t dtype = draw(LAYA_MIL_FLOAT8E5M2 + 1);
        if (parameter->dtypes == 0 || (parameter->dtypes >> dtype & 1)) return (laya_mil_dtype)dtype;
    }
    return (laya_mil_dtype)draw(64);
}

static laya_mil_type draw_type(const laya_mil_parameter *parameter)
{
    static const int64_t dims[] = {1, 1, 1, 2, 2, 3, 4, 4, 8, 16, 0, LAYA_MIL_UNKNOWN, 2147483647};
    laya_mil_type type = {.kind = parameter->flags & LAYA_MIL_OF_STATE ? LAYA_MIL_STATE : LAYA_MIL_TENSOR};
    if (!draw(50)) type.kind = (laya_mil_kind)draw(5);
    type.dtype = draw_dtype(parameter);
    bool listed = parameter->dtypes && !(parameter->dtypes & LAYA_MIL_FLOATS); /* axes, begin, …: mostly short */
    type.rank = draw(8) ? (listed ? draw(2) : 3 + draw(2)) : draw(LAYA_MIL_MAX_RANK + 1);
    for (uint32_t axis = 0; axis < type.rank; axis++)
        type.dims[axis] = listed ? (int64_t)draw(6) : dims[draw(sizeof dims / sizeof *dims)];
    return type;
}

/* Bytes of a small constant: mostly numbers near zero. */
static void draw_bytes(made_op *made, uint32_t at)
{
    laya_mil_constant *constant = &made->constants[at];
    uint64_t size;
    static const char *const words[] = {"valid",    "same", "custom",       "EXACT",
                                        "constant", "fp16", "chw,whr->chr", "nchw,nwhu->nchu"};
    made->strings[at] = words[draw(sizeof words / sizeof *words)];
    constant->strings = &made->strings[at];
    constant->string_count = 1;
    if (!laya_mil_type_size(&constant->type, &size) || size > 4096 || !draw(20)) return;
    unsigned width = laya_mil_dtype_bits(constant->type.dtype) / 8;
    made->bytes[at] = malloc((size_t)size + !size);
    assert_non_null(made->bytes[at]);
    for (uint64_t byte = 0; byte < size; byte++) {
        unsigned char value = (unsigned char)(draw(40) ? 0 : draw(256));
        if (width == 0 || byte % width == 0) value = (unsigned char)draw(5);
        made->bytes[at][byte] = value;
    }
    constant->bytes = made->bytes[at];
    constant->size = draw(20) ? size : draw(9);
    if (constant->size > size) constant->size = 0;
}

static void draw_operand(made_op *made, const laya_mil_parameter *parameter)
{
    uint32_t at = made->operands++;
    laya_mil_value *value = &made->values[at];
    value->name = made->bindings[at].name = "operand";
    made->bindings[at].value = draw(100) ? value : NULL;
    value->type = made->constants[at].type = draw_type(parameter);
    if (parameter->flags & LAYA_MIL_CONSTANT ? draw(30) : !draw(3)) {
        draw_bytes(made, at);
        value->constant = &made->constants[at];
    } else if (draw(2)) {
        value->op = &made->expander;
    }
}

static void draw_op(made_op *made, const laya_mil_operation *operation)
{
    make_op(made, operation->type, "", operation->outputs == LAYA_MIL_NO_OUTPUT ? 0 : 1 + !draw(4));
    for (const laya_mil_parameter *at = operation->parameters; at->name; at++) {
        uint32_t first = made->operands, count = at->flags & LAYA_MIL_VARIADIC ? 1 + draw(3) : 1;
        if (!(at->flags & LAYA_MIL_REQUIRED) && draw(2)) continue;
        for (uint32_t operand = 0; operand < count; operand++) draw_operand(made, at);
        if (operation->in_attributes) {
            made->attributes[made->op.attribute_count++] = (laya_mil_attribute){at->name, &made->constants[first]};
        } else {
            made->arguments[made->op.input_count++] = (laya_mil_argument){at->name, &made->bindings[first],
                                                                          made->operands - first};
        }
    }
}

/* Whatever the operation says, the answer is a type within limits or an error. */
static void test_random(void **unused)
{
    (void)unused;
    static const laya_mil_operation *const tables[] = {
        laya_mil_constant_operations, laya_mil_elementwise_operations, laya_mil_linear_operations,
        laya_mil_norm_operations,     laya_mil_shape_operations,       laya_mil_slice_operations,
    };
    random_state = 20240607;
    unsigned long good = 0, bad = 0;
    for (size_t table = 0; table < sizeof tables / sizeof *tables; table++) {
        for (const laya_mil_operation *operation = tables[table]; operation->type; operation++) {
            for (int round = 0; round < 400; round++) {
                made_op made;
                laya_mil_type outputs[MAX_OUTPUTS];
                laya_error error = {LAYA_OK, ""};
                draw_op(&made, operation);
                laya_status status = laya_mil_infer(&made.op, operation->since, outputs, &error);
                assert_true(status == LAYA_OK || status == LAYA_ERROR_FORMAT);
                assert_int_equal(*error.message == '\0', status == LAYA_OK);
                for (uint32_t at = 0; at < made.op.output_count && status == LAYA_OK; at++) {
                    assert_true(outputs[at].rank <= LAYA_MIL_MAX_RANK);
                    for (uint32_t axis = 0; axis < outputs[at].rank; axis++)
                        assert_in_range(outputs[at].dims[axis] + 1, 0, INT64_C(2147483648));
                }
                release_op(&made);
                *(status == LAYA_OK ? &good : &bad) += 1;
            }
        }
    }
    assert_true(good > 1000 && bad > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_norms),
        cmocka_unit_test(test_elementwise),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_constants),
        cmocka_unit_test(test_output_count),
        cmocka_unit_test(test_write_state),
        cmocka_unit_test(test_label),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_readers),
        cmocka_unit_test(test_number_and_string),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
