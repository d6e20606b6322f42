/* SPDX-License-Identifier: Apache-2.0 */
#include "screen/origin.h"

#include "base/error.h"
#include "base/file.h"

static laya_status find(laya_origin *origin, const char *bundle, const char *model_directory, laya_error *error)
{
    LAYA_TRY(laya_buckets_find_one(&origin->found, bundle, error));
    LAYA_TRY(laya_bucket_require_body(&origin->found.buckets[0], error));
    origin->manifest = &origin->found.buckets[0].manifest;
    origin->directory = origin->found.buckets[0].directory;
    if (*origin->manifest->palette)
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED,
                         "%s: has palettes already (%s); name the bundle that it was made from", origin->directory,
                         origin->manifest->palette);
    origin->checkpoint = model_directory ? model_directory : origin->manifest->source_directory;
    if (!origin->checkpoint)
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "%s: " LAYA_BUNDLE_MANIFEST
                         " does not say where the checkpoint is; name its directory with --model DIR",
                         origin->directory);
    if (laya_path_is_directory(origin->checkpoint)) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_IO,
                     "%s: the checkpoint that %s was made from is not there; name its directory with --model DIR",
                     origin->checkpoint, origin->directory);
}

laya_status laya_origin_open(laya_origin *origin, const char *bundle, const char *model_directory,
                             const laya_allocator *allocator, laya_error *error)
{
    *origin = (laya_origin){.found = {.allocator = laya_allocator_or_default(allocator)}};
    laya_status status = find(origin, bundle, model_directory, error);
    if (status != LAYA_OK) laya_origin_close(origin);
    return status;
}

void laya_origin_close(laya_origin *origin)
{
    laya_buckets_close(&origin->found);
}
