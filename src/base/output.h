/* SPDX-License-Identifier: Apache-2.0 */
/* Writing files: hashed as they are written, a new file each; SHA-256 in pieces. */
#ifndef LAYA_BASE_OUTPUT_H
#define LAYA_BASE_OUTPUT_H

#include "base/memory.h"
#include "laya/base.h"

/* ------------------------------------------------------------------ SHA-256 in pieces */

typedef struct laya_hash laya_hash;
laya_status laya_hash_open(laya_hash **hash, laya_error *error);
laya_status laya_hash_update(laya_hash *hash, const void *data, size_t size, laya_error *error);
/* 64 lower-case hex digits and a NUL; the hash is closed in any case. */
laya_status laya_hash_finish(laya_hash *hash, char hex[65], laya_error *error);
/* Without a result. NULL is allowed. */
void laya_hash_close(laya_hash *hash);

/* Told how many more bytes were read or written. NULL `report`: nobody is told. */
typedef struct laya_meter {
    void *user;
    /* LAYA_OK, or a status that ends the work (LAYA_ERROR_STOPPED) */
    laya_status (*report)(void *user, uint64_t bytes, laya_error *error);
} laya_meter;
laya_status laya_meter_add(const laya_meter *meter, uint64_t bytes, laya_error *error);

/* SHA-256 and size of a regular file, read in blocks (not mapped). meter may be NULL. Errors: IO, MEMORY, SYSTEM. */
laya_status laya_hash_file(const char *path, char hex[65], uint64_t *size, const laya_meter *meter,
                           laya_error *error);

/* ------------------------------------------------------------------ one output file */

/* Buffered, hashed. After the first failure every call returns its status and leaves `error` as it is. */
typedef struct laya_output {
    laya_allocator allocator;
    int descriptor; /* -1: closed */
    char *path;
    unsigned char *block; /* LAYA_OUTPUT_BLOCK bytes */
    size_t filled;
    uint64_t size; /* bytes given to it so far; stays after finish */
    laya_hash *hash;
    laya_meter meter;   /* told of each block that is written */
    laya_status status; /* of the first failure */
} laya_output;

#define LAYA_OUTPUT_BLOCK (256u * 1024u)

/* Create a new file, mode 0644 less the umask; one that exists is an error. meter may be NULL. Errors: IO, MEMORY. */
laya_status laya_output_open(laya_output *output, const char *path, const laya_allocator *allocator,
                             const laya_meter *meter, laya_error *error);
laya_status laya_output_write(laya_output *output, const void *data, size_t size, laya_error *error);
/* Bytes of a mapped file, whose pages are given back when they were written. Meters are told of them in between. */
laya_status laya_output_mapped(laya_output *output, const unsigned char *data, size_t size, laya_error *error);
laya_status laya_output_zeros(laya_output *output, size_t size, laya_error *error);
/* Flush and close; hex may be NULL. Errors: IO (also what the system reports late, on close). */
laya_status laya_output_finish(laya_output *output, char hex[65], laya_error *error);
/* All of that at once: a new file with these contents. hex and meter may be NULL. */
laya_status laya_output_file(const char *path, const void *data, size_t size, const laya_allocator *allocator,
                             const laya_meter *meter, char hex[65], laya_error *error);
/* Close without a result; nothing happens when it is closed already. */
void laya_output_close(laya_output *output);

#endif
