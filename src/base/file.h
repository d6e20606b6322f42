/* SPDX-License-Identifier: Apache-2.0 */
/* Read-only files: mapped, joined paths, SHA-256. */
#ifndef LAYA_BASE_FILE_H
#define LAYA_BASE_FILE_H

#include "laya/base.h"

#include <stdbool.h>

typedef struct laya_file {
    const unsigned char *data; /* NULL for an empty file */
    size_t size;
} laya_file;

/* Map a regular file read-only. The message names the path and the system's reason. Errors: IO. */
laya_status laya_file_map(laya_file *file, const char *path, laya_error *error);
void laya_file_unmap(laya_file *file);
/* Give the pages of a range of a mapping back to the system; the next access reads them again. A hint. */
void laya_file_forget(const void *data, size_t size);
/* The status of a failed system call on a path: "PATH: WHAT: REASON". `code` is errno's. */
laya_status laya_fail_file(laya_error *error, const char *path, const char *what, int code);

bool laya_path_is_directory(const char *path);
bool laya_path_exists(const char *path);
/* directory + "/" + name, from the allocator; NULL when it fails. */
char *laya_path_join(const laya_allocator *allocator, const char *directory, const char *name);

/* SHA-256 of bytes as 64 lower-case hex digits and a NUL. */
laya_status laya_sha256(const void *data, size_t size, char hex[65], laya_error *error);

#endif
