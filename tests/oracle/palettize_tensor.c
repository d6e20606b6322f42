/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of a raw tensor, for palette_oracle.py.
 *
 *   laya-palettize-tensor fp16|fp32 ROWS ROW GROUP MODE BITS INPUT OUTPUT [ENERGY]
 *
 * INPUT holds ROWS * ROW little-endian weights, ENERGY ROW floats; GROUP rows share a table. OUTPUT receives the tables
 * of all groups, then the indices of all weights, a byte each. A line for each group is printed: distinct values,
 * squared error.
 */
#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "palette/group.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
    laya_mil_dtype dtype;
    uint64_t rows, row, group;
    laya_palette_mode mode;
    unsigned bits;
    const char *input, *output, *energy;
} job;

static bool parse_mode(const char *name, laya_palette_mode *mode)
{
    static const char *const names[] = {"uniform", "kmeans", "unique",
                                        "weighted"}; /* in the order of the enumeration */
    for (size_t at = 0; at < sizeof names / sizeof *names; at++) {
        if (strcmp(name, names[at]) != 0) continue;
        *mode = (laya_palette_mode)at;
        return true;
    }
    return false;
}

static bool parse(int argc, char **argv, job *out)
{
    if (argc < 9 || argc > 10 || !parse_mode(argv[5], &out->mode)) return false;
    out->dtype = strcmp(argv[1], "fp16") == 0 ? LAYA_MIL_FP16 : LAYA_MIL_FP32;
    out->rows = strtoull(argv[2], NULL, 10);
    out->row = strtoull(argv[3], NULL, 10);
    out->group = strtoull(argv[4], NULL, 10);
    out->bits = (unsigned)strtoul(argv[6], NULL, 10);
    out->input = argv[7];
    out->output = argv[8];
    out->energy = argv[9]; /* NULL: none */
    return out->rows > 0 && out->row > 0 && out->group > 0 && out->rows % out->group == 0 && out->bits >= 1 &&
           out->bits <= LAYA_PALETTE_MAX_BITS;
}

static laya_status make_tables(const job *asked, const unsigned char *weights, const float *energy,
                               unsigned char *luts, unsigned char *indices, laya_grouper *grouper, laya_error *error)
{
    size_t width = asked->dtype == LAYA_MIL_FP16 ? 2 : 4;
    for (uint64_t first = 0; first < asked->rows; first += asked->group) {
        const laya_group_source source = {.bytes = weights + first * asked->row * width,
                                          .dtype = asked->dtype,
                                          .rows = asked->group,
                                          .row = asked->row,
                                          .energy = energy};
        uint32_t distinct = 0;
        laya_palette_error errors;
        LAYA_TRY(laya_group_distinct(grouper, &source, &distinct, error));
        LAYA_TRY(laya_group_make(grouper, &source, asked->mode, asked->bits,
                                 luts + first / asked->group * (width << asked->bits), indices + first * asked->row,
                                 &errors, error));
        printf("%" PRIu32 " %.17g\n", distinct, errors.sse);
    }
    return LAYA_OK;
}

static laya_status write_tables(const job *asked, const unsigned char *weights, const float *energy,
                                laya_error *error)
{
    const laya_allocator allocator = laya_allocator_or_default(NULL);
    size_t width = asked->dtype == LAYA_MIL_FP16 ? 2 : 4;
    size_t luts = (size_t)(asked->rows / asked->group) * (width << asked->bits);
    size_t count = (size_t)(asked->rows * asked->row);
    unsigned char *made = malloc(luts + count);
    laya_grouper *grouper = NULL;
    laya_status status = LAYA_OK;
    if (!made) status = laya_fail_memory(error, luts + count);
    if (status == LAYA_OK) status = laya_grouper_open(asked->group * asked->row, &allocator, &grouper, error);
    if (status == LAYA_OK) status = make_tables(asked, weights, energy, made, made + luts, grouper, error);
    FILE *file = status == LAYA_OK ? fopen(asked->output, "wb") : NULL;
    bool written = file && fwrite(made, 1, luts + count, file) == luts + count;
    if (file) written = fclose(file) == 0 && written;
    if (status == LAYA_OK && !written)
        status = laya_fail(error, LAYA_ERROR_IO, "%s cannot be written", asked->output);
    laya_grouper_close(grouper);
    free(made);
    return status;
}

static laya_status map_exactly(laya_file *file, const char *path, uint64_t size, laya_error *error)
{
    LAYA_TRY(laya_file_map(file, path, error));
    if (file->size == size) return LAYA_OK;
    laya_file_unmap(file);
    return laya_fail(error, LAYA_ERROR_FORMAT, "%s has %zu bytes, expected %" PRIu64, path, file->size, size);
}

static laya_status run(const job *asked, laya_error *error)
{
    laya_file input, energy = {0};
    uint64_t width = asked->dtype == LAYA_MIL_FP16 ? 2 : 4;
    LAYA_TRY(map_exactly(&input, asked->input, asked->rows * asked->row * width, error));
    laya_status status = LAYA_OK;
    if (asked->energy) status = map_exactly(&energy, asked->energy, asked->row * sizeof(float), error);
    if (status == LAYA_OK) {
        status = write_tables(asked, input.data, asked->energy ? (const float *)(const void *)energy.data : NULL,
                              error);
        if (asked->energy) laya_file_unmap(&energy);
    }
    laya_file_unmap(&input);
    return status;
}

int main(int argc, char **argv)
{
    job asked = {0};
    laya_error error;
    if (!parse(argc, argv, &asked)) {
        fputs("usage: laya-palettize-tensor fp16|fp32 ROWS ROW GROUP uniform|kmeans|unique|weighted BITS INPUT "
              "OUTPUT\n",
              stderr);
        return 2;
    }
    if (run(&asked, &error) == LAYA_OK) return 0;
    fprintf(stderr, "%s\n", error.message);
    return 1;
}
