/* SPDX-License-Identifier: Apache-2.0 */
/* The bundle that a screen works on, and the checkpoint that it was made from. */
#ifndef LAYA_SCREEN_ORIGIN_H
#define LAYA_SCREEN_ORIGIN_H

#include "runtime/bundle.h"

typedef struct laya_origin {
    laya_bundle found;             /* its one bucket, found but not opened */
    const laya_manifest *manifest; /* of that bucket */
    const char *directory;         /* of the bundle */
    const char *checkpoint;        /* a directory; nothing in it was looked at */
} laya_origin;

/*
 * Find a bundle of kind body and its checkpoint: model_directory, or NULL: what the manifest says. Errors: as
 * laya_bundle_open; ARGUMENT (a directory of several bundles); UNSUPPORTED also for a bundle that has palettes.
 */
laya_status laya_origin_open(laya_origin *origin, const char *bundle, const char *model_directory,
                             const laya_allocator *allocator, laya_error *error);
void laya_origin_close(laya_origin *origin);

#endif
