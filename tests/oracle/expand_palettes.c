/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The weights of a palettized package as the interpreter expands them, for palette_packages.py.
 *
 *   laya-expand-palettes PACKAGE OUTPUT
 *
 * OUTPUT receives, for each constexpr_lut_to_dense operation of the first function: 4 bytes size of the value's name,
 * the name, 8 bytes size of the elements, the elements as their type is stored, little-endian.
 */
#include "base/error.h"
#include "coreml/lut.h"
#include "coreml/package.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_number(FILE *out, uint64_t number, unsigned bytes)
{
    for (unsigned byte = 0; byte < bytes; byte++) putc((int)(number >> (8 * byte) & 255u), out);
}

static laya_status write_weight(FILE *out, const laya_mil_op *op, laya_mil_opset opset, laya_error *error)
{
    laya_constexpr from;
    uint64_t size;
    LAYA_TRY(laya_constexpr_read(op, opset, &from, error));
    if (!laya_mil_type_size(&from.type, &size) || size > SIZE_MAX)
        return laya_fail(error, LAYA_ERROR_FORMAT, "'%s' is too large", op->outputs[0]->name);
    unsigned char *elements = malloc((size_t)size);
    if (!elements) return laya_fail_memory(error, (size_t)size);
    laya_lut lut = laya_lut_of(&from);
    laya_lut_expand(&lut, elements);
    put_number(out, strlen(op->outputs[0]->name), 4);
    fputs(op->outputs[0]->name, out);
    put_number(out, size, 8);
    fwrite(elements, 1, (size_t)size, out);
    free(elements);
    return LAYA_OK;
}

static laya_status write_weights(const laya_package *package, const char *path, laya_error *error)
{
    const laya_mil_function *function = &package->program.functions[0];
    FILE *out = fopen(path, "wb");
    if (!out) return laya_fail(error, LAYA_ERROR_IO, "%s cannot be written", path);
    laya_status status = LAYA_OK;
    for (const laya_mil_op *op = function->body.first; op && status == LAYA_OK; op = op->next) {
        if (strcmp(op->type, "constexpr_lut_to_dense") == 0) status = write_weight(out, op, function->opset, error);
    }
    bool failed = ferror(out) != 0;
    failed = fclose(out) != 0 || failed;
    if (status == LAYA_OK && failed) status = laya_fail(error, LAYA_ERROR_IO, "%s cannot be written", path);
    return status;
}

int main(int argc, char **argv)
{
    laya_package *package = NULL;
    laya_error error;
    if (argc != 3) {
        fputs("usage: laya-expand-palettes PACKAGE OUTPUT\n", stderr);
        return 2;
    }
    laya_status status = laya_package_open(argv[1], NULL, &package, &error);
    if (status == LAYA_OK) status = write_weights(package, argv[2], &error);
    laya_package_close(package);
    if (status == LAYA_OK) return 0;
    fprintf(stderr, "%s\n", error.message);
    return 1;
}
