/* SPDX-License-Identifier: Apache-2.0 */
/* Directories and files that appear complete or not at all. */
#ifndef LAYA_BASE_STAGING_H
#define LAYA_BASE_STAGING_H

#include "base/memory.h"
#include "laya/base.h"

/*
 * A directory that becomes `target` in one step or not at all. It is a sibling, "TARGET.partial-XXXXXX", so that a
 * rename suffices. A killed process leaves such a sibling behind. It holds a lock while it lives: the next staging of
 * the same target removes the user's siblings that nobody locks (on a file system without locks they stay).
 *
 * All files are on the device before the rename, so that also after a loss of power the target is complete or absent.
 */
typedef struct laya_staging {
    laya_allocator allocator;
    char *target;
    char *directory; /* the staging directory; NULL: closed */
    int lock;        /* descriptor of the directory */
    size_t made;     /* bytes of target's prefix that name the first parent directory made here; 0: none */
} laya_staging;

/*
 * Make the staging directory, and the parents of target where they are missing. A target that exists, of whatever
 * kind, is an error that asks for another name. Errors: IO, MEMORY.
 */
laya_status laya_staging_open(laya_staging *staging, const char *target, const laya_allocator *allocator,
                              laya_error *error);
/* Turn it into target. An existing target is never replaced. Errors: IO; the staging directory is then removed. */
laya_status laya_staging_commit(laya_staging *staging, laya_error *error);
/* Remove the staging directory with all that is in it, and the parents made here if they are empty. Nothing happens
   after a commit. */
void laya_staging_discard(laya_staging *staging);

/*
 * The same for a single file: write it, and give it the name target. What exists by then is never replaced. The staging
 * is closed in any case. Errors: IO, MEMORY, SYSTEM.
 */
laya_status laya_staging_commit_file(laya_staging *staging, const void *data, size_t size, laya_error *error);

/* Make one directory inside, mode 0755 less the umask. Errors: IO. */
laya_status laya_make_directory(const char *path, laya_error *error);

/*
 * Make a folder for temporary files, "$TMPDIR/NAME-XXXXXX" (/tmp where TMPDIR is not set), for this user alone. `path`
 * has room for `size` bytes. Errors: IO.
 */
laya_status laya_make_temporary(const char *name, char *path, size_t size, laya_error *error);
/* Remove a directory with all that is in it, or a file. What cannot be removed stays; links are not followed. */
void laya_remove_tree(const char *path);

#endif
