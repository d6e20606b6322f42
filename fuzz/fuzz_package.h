/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The three files of a Core ML package in one input: the allocation that fails, the sizes of manifest and model (32
 * bits each, little-endian), Manifest.json, model.mlmodel, and weight.bin to the end.
 */
#ifndef LAYA_FUZZ_PACKAGE_H
#define LAYA_FUZZ_PACKAGE_H

#include "fuzz.h"

#define FUZZ_PACKAGE_HEAD 9u /* bytes before the files */

/* Blocks of the exact sizes, so that a read past the end of a file is seen. */
typedef struct fuzz_file {
    unsigned char *data;
    size_t size;
} fuzz_file;

typedef struct fuzz_package {
    fuzz_file manifest, model, weights;
} fuzz_package;

static inline fuzz_file fuzz_package_take(const uint8_t *data, size_t size, size_t *at, size_t wanted)
{
    fuzz_file taken = {NULL, wanted < size - *at ? wanted : size - *at};
    taken.data = malloc(taken.size ? taken.size : 1);
    if (!taken.data) abort();
    memcpy(taken.data, data + *at, taken.size);
    *at += taken.size;
    return taken;
}

static inline size_t fuzz_package_size(const uint8_t *data)
{
    return (size_t)data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16 | (size_t)data[3] << 24;
}

/* The files of an input of at least FUZZ_PACKAGE_HEAD bytes. */
static inline fuzz_package fuzz_package_open(const uint8_t *data, size_t size)
{
    size_t at = FUZZ_PACKAGE_HEAD;
    fuzz_package parts;
    parts.manifest = fuzz_package_take(data, size, &at, fuzz_package_size(data + 1));
    parts.model = fuzz_package_take(data, size, &at, fuzz_package_size(data + 5));
    parts.weights = fuzz_package_take(data, size, &at, size);
    return parts;
}

static inline void fuzz_package_close(fuzz_package *parts)
{
    free(parts->manifest.data);
    free(parts->model.data);
    free(parts->weights.data);
}

#endif
