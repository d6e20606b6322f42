/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include "base/error.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
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
    default: return NULL;
    }
}

static laya_status fail_file(laya_error *error, const char *path, const char *what, int code)
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
    if (descriptor < 0) return fail_file(error, path, "cannot be opened", errno);

    laya_status status = LAYA_OK;
    struct stat facts;
    if (fstat(descriptor, &facts) != 0) {
        status = fail_file(error, path, "cannot be examined", errno);
    } else if (!S_ISREG(facts.st_mode)) {
        status = laya_fail(error, LAYA_ERROR_IO, "%s: expected a regular file", path);
    } else if ((uint64_t)facts.st_size > SIZE_MAX) {
        status = laya_fail(error, LAYA_ERROR_IO, "%s: too large for this machine's address space", path);
    } else if (facts.st_size > 0) {
        size_t size = (size_t)facts.st_size;
        void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (data == MAP_FAILED) {
            status = fail_file(error, path, "cannot be mapped", errno);
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
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    static const unsigned char nothing[1] = {0};
    hex[0] = '\0';
    if (EVP_Digest(size ? data : nothing, size, digest, &length, EVP_sha256(), NULL) != 1 || length != 32)
        return laya_fail(error, LAYA_ERROR_SYSTEM, "libcrypto could not compute a SHA-256");
    for (unsigned at = 0; at < length; at++) {
        hex[2 * at] = digits[digest[at] >> 4];
        hex[2 * at + 1] = digits[digest[at] & 15];
    }
    hex[64] = '\0';
    return LAYA_OK;
}
