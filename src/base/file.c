/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* madvise */
#include "base/file.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* strerror is not thread-safe everywhere; strerror_r has two signatures. The usual reasons suffice. */
static const char *reason(int code)
{
    switch (code) {
    case ENOENT: return "no such file or directory";
    case ENOTDIR: return "a part of the path is not a directory";
    case EACCES:
    case EPERM: return "permission denied";
    case EISDIR: return "it is a directory";
    case EMFILE:
    case ENFILE: return "too many open files";
    case ENAMETOOLONG: return "the path is too long";
    case ELOOP: return "too many symbolic links";
    case ENOMEM: return "the system is out of memory";
    case EIO: return "input/output error";
    case ENOSPC: return "no space left on the device";
    case EDQUOT: return "the disk quota is used up";
    case EFBIG: return "the file size limit is reached";
    case EROFS: return "the file system is read-only";
    case ENOTEMPTY:
    case EEXIST: return "it exists already";
    default: return NULL;
    }
}

laya_status laya_fail_file(laya_error *error, const char *path, const char *what, int code)
{
    const char *text = reason(code);
    if (text) return laya_fail(error, LAYA_ERROR_IO, "%s: %s: %s", path, what, text);
    return laya_fail(error, LAYA_ERROR_IO, "%s: %s: system error %d", path, what, code);
}

laya_status laya_file_map(laya_file *file, const char *path, laya_error *error)
{
    *file = (laya_file){NULL, 0};
    /* Without O_NONBLOCK the opening of a pipe would wait for its writer. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return laya_fail_file(error, path, "cannot be opened", errno);

    laya_status status = LAYA_OK;
    struct stat facts;
    if (fstat(descriptor, &facts) != 0) {
        status = laya_fail_file(error, path, "cannot be examined", errno);
    } else if (!S_ISREG(facts.st_mode)) {
        status = laya_fail(error, LAYA_ERROR_IO, "%s: expected a regular file", path);
    } else if ((uint64_t)facts.st_size > SIZE_MAX) {
        status = laya_fail(error, LAYA_ERROR_IO, "%s: too large for this machine's address space", path);
    } else if (facts.st_size > 0) {
        size_t size = (size_t)facts.st_size;
        void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (data == MAP_FAILED) {
            status = laya_fail_file(error, path, "cannot be mapped", errno);
        } else {
            file->data = data;
            file->size = size;
        }
    }
    close(descriptor);
    return status;
}

void laya_file_unmap(laya_file *file)
{
    if (file->data) munmap((void *)(uintptr_t)file->data, file->size);
    *file = (laya_file){NULL, 0};
}

void laya_file_forget(const void *data, size_t size)
{
    long page = sysconf(_SC_PAGESIZE);
    if (page <= 0) return;
    /* Only whole pages: the neighbours at both ends may be in use. A private mapping that nobody writes to loses
       nothing: the pages are read again from the file. */
    uintptr_t mask = (uintptr_t)page - 1, start = (uintptr_t)data, end = (start + size) & ~mask;
    uintptr_t first = (start + mask) & ~mask;
    if (first < end) madvise((void *)first, end - first, MADV_DONTNEED);
}

bool laya_path_is_directory(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

bool laya_path_exists(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0;
}

char *laya_path_join(const laya_allocator *allocator, const char *directory, const char *name)
{
    size_t first = strlen(directory), second = strlen(name);
    size_t slash = first > 0 && directory[first - 1] != '/';
    char *path = laya_alloc(allocator, first + slash + second + 1, 1);
    if (!path) return NULL;
    memcpy(path, directory, first);
    if (slash) path[first] = '/';
    memcpy(path + first + slash, name, second + 1);
    return path;
}

laya_status laya_sha256(const void *data, size_t size, char hex[65], laya_error *error)
{
    laya_hash *hash;
    hex[0] = '\0';
    LAYA_TRY(laya_hash_open(&hash, error));
    laya_status status = laya_hash_update(hash, data, size, error);
    if (status == LAYA_OK) return laya_hash_finish(hash, hex, error);
    laya_hash_close(hash);
    return status;
}
