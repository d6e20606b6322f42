/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weight.bin, MIL Blob Storage version 2: a header of 64 bytes, then blobs, each a metadata record of 64 bytes and
 * its data, both at multiples of 64. Writer and reader share nothing but these constants.
 */
#ifndef LAYA_COREML_WEIGHT_FILE_H
#define LAYA_COREML_WEIGHT_FILE_H

#include "base/output.h"
#include "mil/program.h"

#define LAYA_BLOB_ALIGNMENT 64u /* also the size of the header and of a metadata record */
#define LAYA_BLOB_VERSION 2u
#define LAYA_BLOB_SENTINEL 0xDEADBEEFu
/* What Core ML calls the file; offsets in the model point to metadata records. */
#define LAYA_WEIGHT_FILE_NAME "@model_path/weights/weight.bin"

/* Whether a constant goes to the weight file: a numeric type that blobs have, at least ten elements (the types that
   specification version `opset` allows there). */
bool laya_constant_in_file(const laya_mil_type *type, laya_mil_opset opset);

/* A file's place, size and hash. */
typedef struct laya_written {
    uint64_t size;
    char sha256[65];
} laya_written;

/*
 * Write the weight file of a program: every constant of all blocks that laya_constant_in_file names, in the order
 * of the operations; constants of the same type, element count and bytes are stored once. Sets in_file and offset of
 * each constant. `count` receives the number of blobs; when it is 0 no file is made. Sources are read twice: once to
 * find equal contents, once to write. The meter (may be NULL) is told of twice the bytes of these constants, equal
 * ones included. Errors: IO, MEMORY, SYSTEM, FORMAT (of a source; its rows are not whole bytes).
 */
laya_status laya_weight_file_write(laya_mil_program *program, laya_mil_opset opset, const char *path,
                                   const laya_meter *meter, laya_written *written, uint32_t *count,
                                   laya_error *error);

/* ------------------------------------------------------------------ reading */

typedef struct laya_blob {
    laya_mil_dtype dtype;
    uint32_t padding_bits; /* unused high bits of the last byte */
    uint64_t record;       /* offset of the metadata record */
    const unsigned char *data;
    uint64_t size;
} laya_blob;

/*
 * The blob whose metadata record is at `record` of a weight file in memory. Checked: alignment, sentinel, type code,
 * ranges inside the file, padding. Errors: FORMAT.
 */
laya_status laya_blob_read(const unsigned char *file, uint64_t size, uint64_t record, laya_blob *blob,
                           laya_error *error);
/* Walk a whole file: header, count, each record in order, zero gaps. visit may be NULL. Errors: FORMAT. */
laya_status laya_weight_file_walk(const unsigned char *file, uint64_t size,
                                  laya_status (*visit)(void *user, const laya_blob *blob, laya_error *error),
                                  void *user, uint32_t *count, laya_error *error);

/* ------------------------------------------------------------------ sub-byte values */

/* Element `at` of packed values of `bits` (1, 2, 3, 4, 6, 8) bits, least significant bit first. */
unsigned laya_unpack_bits(const unsigned char *packed, uint64_t at, unsigned bits);
/* Elements first … first + count - 1, one a byte; first is a multiple of eight, or count is less than eight. */
void laya_unpack_range(const unsigned char *packed, unsigned bits, uint64_t first, size_t count, unsigned char *out);
/* Pack `count` values, one a byte, into ceil(count * bits / 8) bytes; unused high bits become zero. */
void laya_pack_bits(const unsigned char *values, uint64_t count, unsigned bits, unsigned char *packed);

#endif
