/* SPDX-License-Identifier: Apache-2.0 */
#include "base/output.h"

#include "base/error.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAPPED_SLICE ((size_t)4 << 20) /* of a mapped file; a multiple of the page size */

/* ------------------------------------------------------------------ SHA-256 in pieces
 * A laya_hash is libcrypto's context under another name: the struct itself is never defined.
 */

static laya_status fail_hash(laya_error *error)
{
    return laya_fail(error, LAYA_ERROR_SYSTEM, "libcrypto could not compute a SHA-256");
}

laya_status laya_hash_open(laya_hash **hash, laya_error *error)
{
    *hash = NULL;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (!context) return laya_fail_memory(error, 0);
    if (EVP_DigestInit_ex(context, EVP_sha256(), NULL) != 1) {
        EVP_MD_CTX_free(context);
        return fail_hash(error);
    }
    *hash = (laya_hash *)context;
    return LAYA_OK;
}

laya_status laya_hash_update(laya_hash *hash, const void *data, size_t size, laya_error *error)
{
    if (size > 0 && EVP_DigestUpdate((EVP_MD_CTX *)hash, data, size) != 1) return fail_hash(error);
    return LAYA_OK;
}

laya_status laya_hash_finish(laya_hash *hash, char hex[65], laya_error *error)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    int done = EVP_DigestFinal_ex((EVP_MD_CTX *)hash, digest, &length);
    laya_hash_close(hash);
    hex[0] = '\0';
    if (done != 1 || length != 32) return fail_hash(error);
    for (unsigned at = 0; at < length; at++) {
        hex[2 * at] = digits[digest[at] >> 4];
        hex[2 * at + 1] = digits[digest[at] & 15];
    }
    hex[64] = '\0';
    return LAYA_OK;
}

void laya_hash_close(laya_hash *hash)
{
    EVP_MD_CTX_free((EVP_MD_CTX *)hash);
}

laya_status laya_meter_add(const laya_meter *meter, uint64_t bytes, laya_error *error)
{
    return meter && meter->report ? meter->report(meter->user, bytes, error) : LAYA_OK;
}

/* ------------------------------------------------------------------ a whole file */

enum { READ_BLOCK = 64 * 1024 };

static laya_status hash_descriptor(int descriptor, const char *path, laya_hash *hash, uint64_t *size,
                                   const laya_meter *meter, laya_error *error)
{
    unsigned char block[READ_BLOCK];
    struct stat facts;
    if (fstat(descriptor, &facts) != 0) return laya_fail_file(error, path, "cannot be examined", errno);
    if (!S_ISREG(facts.st_mode)) return laya_fail(error, LAYA_ERROR_IO, "%s: expected a regular file", path);
    for (;;) {
        ssize_t got = read(descriptor, block, sizeof block);
        if (got == 0) return LAYA_OK;
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return laya_fail_file(error, path, "cannot be read", errno);
        LAYA_TRY(laya_hash_update(hash, block, (size_t)got, error));
        LAYA_TRY(laya_meter_add(meter, (uint64_t)got, error));
        *size += (uint64_t)got;
    }
}

laya_status laya_hash_file(const char *path, char hex[65], uint64_t *size, const laya_meter *meter, laya_error *error)
{
    laya_hash *hash;
    hex[0] = '\0';
    *size = 0;
    LAYA_TRY(laya_hash_open(&hash, error));
    /* Without O_NONBLOCK the opening of a pipe would wait for its writer. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    laya_status status = LAYA_OK;
    if (descriptor < 0) {
        status = laya_fail_file(error, path, "cannot be opened", errno);
    } else {
        status = hash_descriptor(descriptor, path, hash, size, meter, error);
        close(descriptor);
    }
    if (status == LAYA_OK) return laya_hash_finish(hash, hex, error);
    laya_hash_close(hash);
    *size = 0;
    return status;
}

/* ------------------------------------------------------------------ one output file */

laya_status laya_output_open(laya_output *output, const char *path, const laya_allocator *allocator,
                             const laya_meter *meter, laya_error *error)
{
    size_t length = strlen(path) + 1;
    *output = (laya_output){.allocator = laya_allocator_or_default(allocator), .descriptor = -1};
    if (meter) output->meter = *meter;
    output->path = laya_alloc(&output->allocator, length, 1);
    output->block = laya_alloc(&output->allocator, LAYA_OUTPUT_BLOCK, 1);
    laya_status status = LAYA_OK;
    if (output->path && output->block) {
        memcpy(output->path, path, length);
        status = laya_hash_open(&output->hash, error);
    } else {
        status = laya_fail_memory(error, length + LAYA_OUTPUT_BLOCK);
    }
    if (status == LAYA_OK) {
        output->descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (output->descriptor < 0) status = laya_fail_file(error, path, "cannot be created", errno);
    }
    if (status != LAYA_OK) laya_output_close(output);
    output->status = status;
    return status;
}

/* Write bytes that are not in the block, or the block itself. */
static laya_status put(laya_output *output, const unsigned char *data, size_t size, laya_error *error)
{
    LAYA_TRY(laya_hash_update(output->hash, data, size, error));
    for (size_t done = 0; done < size;) {
        ssize_t written = write(output->descriptor, data + done, size - done);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return laya_fail_file(error, output->path, "cannot be written", errno);
        if (written == 0) return laya_fail_file(error, output->path, "cannot be written", ENOSPC);
        done += (size_t)written;
    }
    return laya_meter_add(&output->meter, size, error);
}

static laya_status flush(laya_output *output, laya_error *error)
{
    size_t filled = output->filled;
    output->filled = 0;
    return put(output, output->block, filled, error);
}

laya_status laya_output_write(laya_output *output, const void *data, size_t size, laya_error *error)
{
    const unsigned char *next = data;
    output->size += size;
    while (output->status == LAYA_OK && size > 0) {
        size_t part = LAYA_OUTPUT_BLOCK - output->filled;
        if (part > size) part = size;
        if (part == LAYA_OUTPUT_BLOCK) { /* a whole block needs no copy */
            output->status = put(output, next, part, error);
        } else {
            memcpy(output->block + output->filled, next, part);
            output->filled += part;
            if (output->filled == LAYA_OUTPUT_BLOCK) output->status = flush(output, error);
        }
        next += part;
        size -= part;
    }
    return output->status;
}

laya_status laya_output_mapped(laya_output *output, const unsigned char *data, size_t size, laya_error *error)
{
    for (size_t at = 0; at < size;) {
        size_t count = size - at < MAPPED_SLICE ? size - at : MAPPED_SLICE;
        LAYA_TRY(laya_output_write(output, data + at, count, error));
        laya_file_forget(data + at, count);
        at += count;
    }
    return LAYA_OK;
}

laya_status laya_output_zeros(laya_output *output, size_t size, laya_error *error)
{
    static const unsigned char zeros[64] = {0};
    while (size > sizeof zeros) {
        LAYA_TRY(laya_output_write(output, zeros, sizeof zeros, error));
        size -= sizeof zeros;
    }
    return laya_output_write(output, zeros, size, error);
}

laya_status laya_output_finish(laya_output *output, char hex[65], laya_error *error)
{
    char unused[65];
    if (!hex) hex = unused;
    hex[0] = '\0';
    if (output->status == LAYA_OK) output->status = flush(output, error);
    /* The descriptor is gone whatever close says; an interrupted close has lost nothing. */
    int closed = output->descriptor >= 0 ? close(output->descriptor) : 0;
    output->descriptor = -1;
    if (output->status == LAYA_OK && closed != 0 && errno != EINTR)
        output->status = laya_fail_file(error, output->path, "cannot be written", errno);
    if (output->status == LAYA_OK) {
        output->status = laya_hash_finish(output->hash, hex, error);
        output->hash = NULL;
    }
    laya_output_close(output);
    return output->status;
}

void laya_output_close(laya_output *output)
{
    if (output->descriptor >= 0) close(output->descriptor);
    laya_hash_close(output->hash);
    laya_release(&output->allocator, output->block);
    laya_release(&output->allocator, output->path);
    output->descriptor = -1;
    output->hash = NULL;
    output->block = NULL;
    output->path = NULL;
}

laya_status laya_output_file(const char *path, const void *data, size_t size, const laya_allocator *allocator,
                             const laya_meter *meter, char hex[65], laya_error *error)
{
    laya_output output;
    LAYA_TRY(laya_output_open(&output, path, allocator, meter, error));
    (void)laya_output_write(&output, data, size, error); /* finish tells what went wrong */
    return laya_output_finish(&output, hex, error);
}
