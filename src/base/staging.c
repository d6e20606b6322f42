/* SPDX-License-Identifier: Apache-2.0 */
#include "base/staging.h"

#include "base/error.h"
#include "base/file.h"
#include "base/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SUFFIX ".partial-"
static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
enum { MARK_SIZE = 6, ATTEMPTS = 100, TREE_DESCRIPTORS = 16 };

laya_status laya_make_directory(const char *path, laya_error *error)
{
    return mkdir(path, 0755) == 0 ? LAYA_OK : laya_fail_file(error, path, "cannot be created", errno);
}

laya_status laya_make_temporary(const char *name, char *path, size_t size, laya_error *error)
{
    const char *folder = getenv("TMPDIR");
    int length = snprintf(path, size, "%s/%s-XXXXXX", folder && *folder ? folder : "/tmp", name);
    if (length >= 0 && (size_t)length < size && mkdtemp(path)) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_IO, "%s: a temporary folder cannot be made", path);
}

/* ------------------------------------------------------------------ whole trees
 * Symbolic links are not followed (FTW_PHYS).
 */

static int remove_entry(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts, (void)kind, (void)place;
    (void)remove(path); /* what cannot be removed stays, and with it the directories around it */
    return 0;
}

void laya_remove_tree(const char *path)
{
    (void)nftw(path, remove_entry, TREE_DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
}

/* errno's value when the contents cannot be brought to the device. */
static int sync_entry(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts, (void)place;
    if (kind != FTW_F && kind != FTW_DP) return 0;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0) return errno;
    int code = 0;
    do code = fsync(descriptor) == 0 ? 0 : errno;
    while (code == EINTR);
    close(descriptor);
    return code == EINVAL || code == ENOTSUP ? 0 : code; /* file systems that cannot do it for directories */
}

static laya_status sync_tree(const char *path, laya_error *error)
{
    int code = nftw(path, sync_entry, TREE_DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
    if (code == 0) return LAYA_OK;
    return laya_fail_file(error, path, "cannot be written", code < 0 ? errno : code);
}

/* ------------------------------------------------------------------ the lock
 * A staging directory belongs to the process that locks its descriptor and finds that the name still means it. With
 * this second look no order of steps is wrong: who makes a directory and loses it to a cleaner before the lock sees
 * that and makes another; a cleaner that gets the lock after a commit sees that the name is gone. The descriptor is
 * closed with the process, also when it is killed.
 */

static bool names_descriptor(const char *path, int descriptor)
{
    struct stat named, held;
    return lstat(path, &named) == 0 && fstat(descriptor, &held) == 0 && named.st_dev == held.st_dev &&
           named.st_ino == held.st_ino;
}

static int open_directory(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Remove a sibling that nobody holds. One of another user could change meanwhile: it is for that user to remove. */
static void remove_stale(const char *path)
{
    struct stat facts;
    int descriptor = open_directory(path);
    if (descriptor < 0) return;
    bool stale = fstat(descriptor, &facts) == 0 && facts.st_uid == geteuid() &&
                 flock(descriptor, LOCK_EX | LOCK_NB) == 0 && names_descriptor(path, descriptor);
    if (stale) laya_remove_tree(path);
    close(descriptor);
}

/* "BASE.partial-" and six letters or digits, where base is base[0 .. size - 1] */
static bool is_sibling(const char *name, const char *base, size_t size)
{
    const size_t suffix = sizeof SUFFIX - 1;
    return strncmp(name, base, size) == 0 && strncmp(name + size, SUFFIX, suffix) == 0 &&
           strlen(name + size + suffix) == MARK_SIZE && strspn(name + size + suffix, letters) == MARK_SIZE;
}

/* A copy of path[0 .. size - 1], with room for `more` bytes. */
static char *copy_path(const laya_allocator *allocator, const char *path, size_t size, size_t more)
{
    char *copy = laya_alloc(allocator, size + more + 1, 1);
    if (!copy) return NULL;
    memcpy(copy, path, size);
    copy[size] = '\0';
    return copy;
}

/* Bytes of a path before its last part: "a/b" 2, "b" 0. */
static size_t parent_size(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash + 1 - path) : 0;
}

static laya_status remove_stale_siblings(const laya_staging *staging, laya_error *error)
{
    const laya_allocator *allocator = &staging->allocator;
    size_t parent = parent_size(staging->target);
    const char *base = staging->target + parent;
    char *directory = parent ? copy_path(allocator, staging->target, parent, 0) : copy_path(allocator, ".", 1, 0);
    if (!directory) return laya_fail_memory(error, parent + 1);
    laya_status status = LAYA_OK;
    DIR *entries = opendir(directory);
    struct dirent *entry;
    while (entries && status == LAYA_OK && (entry = readdir(entries)) != NULL) {
        if (!is_sibling(entry->d_name, base, strlen(base))) continue;
        char *path = laya_path_join(allocator, directory, entry->d_name);
        if (path)
            remove_stale(path);
        else
            status = laya_fail_memory(error, 0);
        laya_release(allocator, path);
    }
    if (entries) closedir(entries);
    laya_release(allocator, directory);
    return status;
}

/* ------------------------------------------------------------------ opening */

/* mkdtemp would give mode 0700, and the umask can only be asked by changing it for all threads. The name only has to
   be a free one: mkdir says so. */
static void make_mark(char mark[MARK_SIZE + 1], unsigned attempt)
{
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    uint64_t number = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    number = (number ^ (uint64_t)getpid() << 40 ^ (uint64_t)attempt << 56) * 0x9E3779B97F4A7C15u >> 16;
    for (int at = 0; at < MARK_SIZE; at++) {
        mark[at] = letters[number % (sizeof letters - 1)];
        number /= sizeof letters - 1;
    }
    mark[MARK_SIZE] = '\0';
}

/* Open and lock the directory just made. 0, EAGAIN: a cleaner was faster, or the reason for giving up. */
static int take_directory(const char *path, int *descriptor)
{
    *descriptor = open_directory(path);
    if (*descriptor < 0) {
        int code = errno;
        if (code == ENOENT) return EAGAIN;
        rmdir(path);
        return code;
    }
    /* Where locks do not exist, nobody can lock and thus nobody removes: going on without one is safe. */
    bool ours = flock(*descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (ours && names_descriptor(path, *descriptor)) return 0;
    close(*descriptor);
    return EAGAIN;
}

/* Make the staging directory and lock it. */
static laya_status make_locked(laya_staging *staging, laya_error *error)
{
    const size_t suffix = sizeof SUFFIX - 1;
    size_t size = strlen(staging->target);
    char *path = copy_path(&staging->allocator, staging->target, size, suffix + MARK_SIZE);
    if (!path) return laya_fail_memory(error, size + suffix + MARK_SIZE + 1);
    memcpy(path + size, SUFFIX, suffix);
    int code = EAGAIN;
    for (unsigned attempt = 0; attempt < ATTEMPTS && code == EAGAIN; attempt++) {
        make_mark(path + size + suffix, attempt);
        if (mkdir(path, 0755) == 0)
            code = take_directory(path, &staging->lock);
        else
            code = errno == EEXIST ? EAGAIN : errno;
    }
    if (code == 0) {
        staging->directory = path;
        return LAYA_OK;
    }
    staging->lock = -1;
    laya_status status = laya_fail_file(error, path, "cannot be created", code);
    laya_release(&staging->allocator, path);
    return status;
}

static laya_status check_absent(const char *target, laya_error *error)
{
    struct stat facts;
    if (lstat(target, &facts) == 0) {
        return laya_fail(error, LAYA_ERROR_IO,
                         "%s: exists already and is not overwritten; give another name or remove it first", target);
    }
    return errno == ENOENT ? LAYA_OK : laya_fail_file(error, target, "cannot be examined", errno);
}

/* Make the directories that target[0 .. parent_size - 1] names. */
static laya_status make_parents(laya_staging *staging, laya_error *error)
{
    char *path = staging->target;
    for (size_t at = 1; path[at]; at++) {
        if (path[at] != '/' || path[at - 1] == '/') continue;
        path[at] = '\0';
        laya_status status = LAYA_OK;
        if (!laya_path_is_directory(path)) {
            if (mkdir(path, 0755) == 0)
                staging->made = staging->made ? staging->made : at;
            else if (errno != EEXIST)
                status = laya_fail_file(error, path, "cannot be created", errno);
            else if (!laya_path_is_directory(path)) /* it may have come into being meanwhile */
                status = laya_fail(error, LAYA_ERROR_IO, "%s: expected a directory", path);
        }
        path[at] = '/';
        LAYA_TRY(status);
    }
    return LAYA_OK;
}

laya_status laya_staging_open(laya_staging *staging, const char *target, const laya_allocator *allocator,
                              laya_error *error)
{
    *staging = (laya_staging){.allocator = laya_allocator_or_default(allocator), .lock = -1};
    size_t size = strlen(target);
    while (size > 1 && target[size - 1] == '/') size--;
    if (size == 0) return laya_fail(error, LAYA_ERROR_IO, "the output has an empty name; give it one");
    staging->target = copy_path(&staging->allocator, target, size, 0);
    if (!staging->target) return laya_fail_memory(error, size + 1);
    laya_status status = make_parents(staging, error);
    if (status == LAYA_OK) status = check_absent(staging->target, error);
    if (status == LAYA_OK) status = remove_stale_siblings(staging, error);
    if (status == LAYA_OK) status = make_locked(staging, error);
    if (status != LAYA_OK) laya_staging_discard(staging);
    return status;
}

/* ------------------------------------------------------------------ the end */

static void close_staging(laya_staging *staging)
{
    if (staging->lock >= 0) close(staging->lock);
    laya_release(&staging->allocator, staging->directory);
    laya_release(&staging->allocator, staging->target);
    *staging = (laya_staging){.allocator = staging->allocator, .lock = -1};
}

laya_status laya_staging_commit(laya_staging *staging, laya_error *error)
{
    laya_status status = sync_tree(staging->directory, error);
    if (status == LAYA_OK) status = check_absent(staging->target, error);
    /* What comes into being here, after the check, makes the rename fail, unless it is an empty directory. */
    if (status == LAYA_OK && rename(staging->directory, staging->target) != 0)
        status = laya_fail_file(error, staging->target, "cannot be created", errno);
    if (status == LAYA_OK)
        close_staging(staging);
    else
        laya_staging_discard(staging);
    return status;
}

/* Give the file its second name, which fails where something has that name already. */
static laya_status link_target(const laya_staging *staging, const char *path, laya_error *error)
{
    if (link(path, staging->target) == 0) return LAYA_OK;
    int code = errno;
    LAYA_TRY(check_absent(staging->target, error));
    /* File systems without hard links: the check and the rename are two steps. */
    if ((code == EPERM || code == ENOTSUP || code == ENOSYS || code == EMLINK) && rename(path, staging->target) == 0)
        return LAYA_OK;
    return laya_fail_file(error, staging->target, "cannot be created", code);
}

laya_status laya_staging_commit_file(laya_staging *staging, const void *data, size_t size, laya_error *error)
{
    char *path = laya_path_join(&staging->allocator, staging->directory, "file");
    laya_status status = path ? laya_output_file(path, data, size, &staging->allocator, NULL, NULL, error)
                              : laya_fail_memory(error, 0);
    if (status == LAYA_OK) status = sync_tree(staging->directory, error);
    if (status == LAYA_OK) status = link_target(staging, path, error);
    laya_release(&staging->allocator, path);
    if (status == LAYA_OK) staging->made = 0; /* the parents stay */
    laya_staging_discard(staging);
    return status;
}

void laya_staging_discard(laya_staging *staging)
{
    if (staging->directory) laya_remove_tree(staging->directory);
    if (staging->made) {
        /* From the deepest parent to the first one made here; one that is not empty stays, and those around it. */
        char *path = staging->target, *slash;
        while ((slash = strrchr(path, '/')) != NULL && (size_t)(slash - path) >= staging->made) {
            *slash = '\0';
            if (slash[-1] != '/' && rmdir(path) != 0) break;
        }
    }
    close_staging(staging);
}
