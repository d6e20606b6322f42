/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run a package in the interpreter, for interpreter_oracle.py.
 *
 *   laya-run-package PACKAGE --numerics fp16|fp32|fp16-strict --inputs FILE --outputs FILE [--threads N]
 *   laya-run-package --operations        the operations that the interpreter has, a line each
 *
 * The files hold tensors, little-endian: 4 bytes count, then for each
 *
 *   4 bytes size of the name, the name, 4 bytes type (a MILSpec.DataType), 4 bytes rank, 8 bytes for each dimension, 4
 *   bytes for each element: float32 for floating types, int32 for all others
 *
 * The interpreter holds results that way, so that nothing is rounded on the way out.
 */
#include "base/error.h"
#include "coreml/package.h"
#include "interpreter/step.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *package, *inputs, *outputs;
    laya_numerics numerics;
    unsigned threads;
} options;

static bool parse_numerics(const char *name, laya_numerics *numerics)
{
    static const char *const names[] = {"fp16", "fp16-strict", "fp32"}; /* in the order of the enumeration */
    for (size_t at = 0; at < sizeof names / sizeof *names; at++) {
        if (strcmp(name, names[at]) != 0) continue;
        *numerics = (laya_numerics)at;
        return true;
    }
    return false;
}

static bool parse_options(int argc, char **argv, options *out)
{
    *out = (options){.threads = 1};
    for (int at = 1; at < argc; at++) {
        const char *value = at + 1 < argc ? argv[at + 1] : NULL;
        if (argv[at][0] != '-') {
            out->package = argv[at];
            continue;
        }
        if (!value) return false;
        if (strcmp(argv[at], "--inputs") == 0)
            out->inputs = value;
        else if (strcmp(argv[at], "--outputs") == 0)
            out->outputs = value;
        else if (strcmp(argv[at], "--threads") == 0)
            out->threads = (unsigned)strtoul(value, NULL, 10);
        else if (strcmp(argv[at], "--numerics") != 0 || !parse_numerics(value, &out->numerics))
            return false;
        at++;
    }
    return out->package && out->inputs && out->outputs && out->threads > 0;
}

static void list_operations(void)
{
    const laya_implementation *const tables[] = {laya_elementwise_implementations, laya_reduction_implementations,
                                                 laya_product_implementations, laya_shape_implementations};
    for (size_t table = 0; table < sizeof tables / sizeof *tables; table++) {
        for (const laya_implementation *at = tables[table]; at->type; at++) puts(at->type);
    }
}

/* ------------------------------------------------------------------ inputs */

/* A file that is read from its start; `failed` once it was too short. */
typedef struct cursor {
    const unsigned char *data;
    size_t left;
    bool failed;
} cursor;

static const unsigned char *take(cursor *in, size_t size)
{
    in->failed = in->failed || size > in->left;
    if (in->failed) return NULL;
    const unsigned char *at = in->data;
    in->data += size;
    in->left -= size;
    return at;
}

static uint64_t take_number(cursor *in, unsigned bytes)
{
    const unsigned char *at = take(in, bytes);
    uint64_t number = 0;
    for (unsigned byte = 0; at && byte < bytes; byte++) number |= (uint64_t)at[byte] << (8 * byte);
    return number;
}

static laya_array *find_input(laya_interpreter *interpreter, const char *name, size_t size)
{
    for (uint32_t at = 0; at < laya_interpreter_input_count(interpreter); at++) {
        const char *known;
        laya_array *array = laya_interpreter_input(interpreter, at, &known);
        if (strlen(known) == size && memcmp(known, name, size) == 0) return array;
    }
    return NULL;
}

static laya_status read_tensor(cursor *in, laya_interpreter *interpreter, laya_error *error)
{
    size_t size = (size_t)take_number(in, 4);
    const char *name = (const char *)take(in, size);
    laya_mil_type type = {.kind = LAYA_MIL_TENSOR, .dtype = (laya_mil_dtype)take_number(in, 4)};
    type.rank = (uint32_t)take_number(in, 4);
    if (in->failed || type.rank > LAYA_MIL_MAX_RANK)
        return laya_fail(error, LAYA_ERROR_FORMAT, "the file of inputs is malformed");
    for (uint32_t axis = 0; axis < type.rank; axis++) type.dims[axis] = (int64_t)take_number(in, 8);
    laya_array *array = find_input(interpreter, name, size);
    if (!array || !laya_mil_type_equal(&array->type, &type))
        return laya_fail(error, LAYA_ERROR_FORMAT, "no input '%.*s' of this type", (int)size, name);
    for (uint64_t i = 0; i < array->count; i++) {
        uint32_t bits = (uint32_t)take_number(in, 4);
        memcpy(array->values ? (void *)&array->values[i] : (void *)&array->integers[i], &bits, sizeof bits);
    }
    if (in->failed) return laya_fail(error, LAYA_ERROR_FORMAT, "the file of inputs ends in '%.*s'", (int)size, name);
    return LAYA_OK;
}

static laya_status read_inputs(const char *path, laya_interpreter *interpreter, laya_error *error)
{
    laya_file file;
    LAYA_TRY(laya_file_map(&file, path, error));
    cursor in = {file.data, file.size, false};
    laya_status status = LAYA_OK;
    uint64_t count = take_number(&in, 4);
    if (count != laya_interpreter_input_count(interpreter))
        status = laya_fail(error, LAYA_ERROR_FORMAT, "the package has another number of inputs");
    for (uint64_t at = 0; status == LAYA_OK && at < count; at++) status = read_tensor(&in, interpreter, error);
    laya_file_unmap(&file);
    return status;
}

/* ------------------------------------------------------------------ outputs */

static void put_number(FILE *out, uint64_t number, unsigned bytes)
{
    for (unsigned byte = 0; byte < bytes; byte++) putc((int)(number >> (8 * byte) & 255u), out);
}

static void write_tensor(FILE *out, const char *name, const laya_array *array)
{
    put_number(out, strlen(name), 4);
    fputs(name, out);
    put_number(out, (uint64_t)array->type.dtype, 4);
    put_number(out, array->type.rank, 4);
    for (uint32_t axis = 0; axis < array->type.rank; axis++) put_number(out, (uint64_t)array->type.dims[axis], 8);
    for (uint64_t i = 0; i < array->count; i++) {
        uint32_t bits;
        memcpy(&bits, array->values ? (const void *)&array->values[i] : (const void *)&array->integers[i],
               sizeof bits);
        put_number(out, bits, 4);
    }
}

static laya_status write_outputs(const char *path, const laya_interpreter *interpreter, laya_error *error)
{
    FILE *out = fopen(path, "wb");
    if (!out) return laya_fail(error, LAYA_ERROR_IO, "%s cannot be written", path);
    uint32_t count = laya_interpreter_output_count(interpreter);
    put_number(out, count, 4);
    for (uint32_t at = 0; at < count; at++) {
        const char *name;
        const laya_array *array = laya_interpreter_output(interpreter, at, &name);
        write_tensor(out, name, array);
    }
    bool failed = ferror(out) != 0;
    failed = fclose(out) != 0 || failed;
    return failed ? laya_fail(error, LAYA_ERROR_IO, "%s cannot be written", path) : LAYA_OK;
}

/* ------------------------------------------------------------------ run */

static laya_status run_with(const options *asked, const laya_package *package, laya_pool *pool, laya_error *error)
{
    laya_interpreter *interpreter = NULL;
    LAYA_TRY(laya_interpreter_open(&package->program, NULL, asked->numerics, pool, NULL, &interpreter, error));
    laya_status status = read_inputs(asked->inputs, interpreter, error);
    if (status == LAYA_OK) status = laya_interpreter_run(interpreter, error);
    if (status == LAYA_OK) status = write_outputs(asked->outputs, interpreter, error);
    laya_interpreter_close(interpreter);
    return status;
}

static laya_status run_package(const options *asked, laya_error *error)
{
    laya_package *package = NULL;
    laya_pool *pool = NULL;
    laya_status status = laya_package_open(asked->package, NULL, &package, error);
    if (status == LAYA_OK) status = laya_pool_open(asked->threads, NULL, &pool, error);
    if (status == LAYA_OK) status = run_with(asked, package, pool, error);
    laya_pool_close(pool);
    laya_package_close(package);
    return status;
}

int main(int argc, char **argv)
{
    options asked;
    laya_error error;
    if (argc == 2 && strcmp(argv[1], "--operations") == 0) {
        list_operations();
        return 0;
    }
    if (!parse_options(argc, argv, &asked)) {
        fputs("usage: laya-run-package PACKAGE --numerics fp16|fp32|fp16-strict --inputs FILE --outputs FILE "
              "[--threads N]\n",
              stderr);
        return 2;
    }
    if (run_package(&asked, &error) == LAYA_OK) return 0;
    fprintf(stderr, "%s\n", error.message);
    return 1;
}
