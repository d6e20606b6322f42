/* SPDX-License-Identifier: Apache-2.0 */
#include "coreml/weight_file.h"

#include "base/error.h"

#include <inttypes.h>

static uint32_t read32(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static uint64_t read64(const unsigned char *bytes)
{
    return read32(bytes) | (uint64_t)read32(bytes + 4) << 32;
}

static laya_status read_header(const unsigned char *file, uint64_t size, uint32_t *count, laya_error *error)
{
    if (size < LAYA_BLOB_ALIGNMENT) {
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "weight file: %" PRIu64 " bytes, expected a header of %u; the file is cut short", size,
                         LAYA_BLOB_ALIGNMENT);
    }
    uint32_t version = read32(file + 4);
    *count = read32(file);
    if (version == LAYA_BLOB_VERSION) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_FORMAT, "weight file: version %" PRIu32 ", expected %u", version,
                     LAYA_BLOB_VERSION);
}

/* The type of a code in a record; LAYA_MIL_NO_DTYPE: unknown. */
static laya_mil_dtype find_dtype(uint32_t code)
{
    for (int dtype = LAYA_MIL_BOOL; dtype <= LAYA_MIL_FLOAT8E5M2; dtype++) {
        if (code != 0 && laya_mil_blob_dtype((laya_mil_dtype)dtype) == code) return (laya_mil_dtype)dtype;
    }
    return LAYA_MIL_NO_DTYPE;
}

/* The data are whole elements and, for elements smaller than a byte, fewer than 8 unused bits. */
static bool size_fits(uint64_t size, uint64_t padding, unsigned bits)
{
    if (bits >= 8) return padding == 0 && size % (bits / 8) == 0;
    return padding < 8 && (size > 0 || padding == 0) && (size % bits * 8 + bits * 8 - padding) % bits == 0;
}

laya_status laya_blob_read(const unsigned char *file, uint64_t size, uint64_t record, laya_blob *blob,
                           laya_error *error)
{
    *blob = (laya_blob){.dtype = LAYA_MIL_NO_DTYPE};
    uint32_t count;
    LAYA_TRY(read_header(file, size, &count, error));
    if (record % LAYA_BLOB_ALIGNMENT != 0 || record < LAYA_BLOB_ALIGNMENT || record > size - LAYA_BLOB_ALIGNMENT) {
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "weight file: offset %" PRIu64 ": expected a record at a multiple of %u from %u to %" PRIu64,
                         record, LAYA_BLOB_ALIGNMENT, LAYA_BLOB_ALIGNMENT, size - LAYA_BLOB_ALIGNMENT);
    }
    const unsigned char *fields = file + record;
    uint32_t sentinel = read32(fields), code = read32(fields + 4);
    uint64_t bytes = read64(fields + 8), data = read64(fields + 16), padding = read64(fields + 24);
    uint64_t expected = record + LAYA_BLOB_ALIGNMENT;
    if (sentinel != LAYA_BLOB_SENTINEL) {
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "weight file: record at %" PRIu64 ": sentinel 0x%08" PRIx32 ", expected 0x%08x", record,
                         sentinel, LAYA_BLOB_SENTINEL);
    }
    laya_mil_dtype dtype = find_dtype(code);
    if (dtype == LAYA_MIL_NO_DTYPE) {
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "weight file: record at %" PRIu64 ": type code %" PRIu32 ", expected one of 1 to 17", record,
                         code);
    }
    if (data != expected) {
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "weight file: record at %" PRIu64 ": data at %" PRIu64 ", expected %" PRIu64, record, data,
                         expected);
    }
    if (bytes > size - data) {
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "weight file: record at %" PRIu64 ": %" PRIu64 " bytes of data, but the file has %" PRIu64
                         " from there; it is cut short",
                         record, bytes, size - data);
    }
    if (!size_fits(bytes, padding, laya_mil_dtype_bits(dtype))) {
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "weight file: record at %" PRIu64 ": %" PRIu64 " bytes less %" PRIu64
                         " bits of padding are not whole values of type %s",
                         record, bytes, padding, laya_mil_dtype_name(dtype));
    }
    *blob = (laya_blob){dtype, (uint32_t)padding, record, file + data, bytes};
    return LAYA_OK;
}

static laya_status check_zeros(const unsigned char *file, uint64_t begin, uint64_t end, laya_error *error)
{
    for (uint64_t at = begin; at < end; at++) {
        if (file[at] != 0) {
            return laya_fail(error, LAYA_ERROR_FORMAT,
                             "weight file: byte 0x%02x at %" PRIu64 ", between blobs; expected 0", file[at], at);
        }
    }
    return LAYA_OK;
}

laya_status laya_weight_file_walk(const unsigned char *file, uint64_t size,
                                  laya_status (*visit)(void *user, const laya_blob *blob, laya_error *error),
                                  void *user, uint32_t *count, laya_error *error)
{
    *count = 0;
    uint32_t blobs;
    LAYA_TRY(read_header(file, size, &blobs, error));
    uint64_t end = LAYA_BLOB_ALIGNMENT; /* of what was read so far */
    for (uint32_t at = 0; at < blobs; at++) {
        uint64_t gap = (LAYA_BLOB_ALIGNMENT - end % LAYA_BLOB_ALIGNMENT) % LAYA_BLOB_ALIGNMENT;
        if (gap >= size - end) {
            return laya_fail(error, LAYA_ERROR_FORMAT,
                             "weight file: the header counts %" PRIu32 " blobs, the file holds %" PRIu32, blobs, at);
        }
        laya_blob blob;
        LAYA_TRY(check_zeros(file, end, end + gap, error));
        LAYA_TRY(laya_blob_read(file, size, end + gap, &blob, error));
        if (visit) LAYA_TRY(visit(user, &blob, error));
        end = blob.record + LAYA_BLOB_ALIGNMENT + blob.size;
    }
    if (size - end >= LAYA_BLOB_ALIGNMENT) {
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "weight file: %" PRIu64 " bytes after the %" PRIu32 " blobs that the header counts",
                         size - end, blobs);
    }
    LAYA_TRY(check_zeros(file, end, size, error));
    *count = blobs;
    return LAYA_OK;
}
