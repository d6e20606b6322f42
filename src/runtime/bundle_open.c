/* SPDX-License-Identifier: Apache-2.0 */
/* Opening bundles: found, verified, the host's model, then what executes. */
#include "base/error.h"
#include "export/export.h"
#include "runtime/bundle.h"

#include <string.h>

void laya_bundle_options_init(laya_bundle_options *options)
{
    *options = (laya_bundle_options){.size = sizeof *options, .units = LAYA_UNITS_CPU_NE};
}

static laya_status check_options(const laya_bundle_options *options, laya_error *error)
{
    if (options->size != sizeof *options)
        return laya_fail(error, LAYA_ERROR_ARGUMENT,
                         "laya_bundle_open: options.size is %zu, expected %zu; call laya_bundle_options_init first",
                         options->size, sizeof *options);
    if (options->threads > LAYA_MAX_THREADS)
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_bundle_open: %u threads asked for, at most %u are allowed",
                         options->threads, LAYA_MAX_THREADS);
    if (options->backend != LAYA_BACKEND_INTERPRETER && options->backend != LAYA_BACKEND_COREML)
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_bundle_open: unknown backend %d", (int)options->backend);
    if (!laya_interpreter_executor_name(options->numerics))
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_bundle_open: unknown numerics %d", (int)options->numerics);
    if (!laya_coreml_executor_name(options->units))
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_bundle_open: unknown compute units %d",
                         (int)options->units);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ the host's model */

/* The checkpoint directory; NULL: the first bundle stands alone. */
static laya_status find_checkpoint(const laya_bundle *bundle, const laya_bundle_options *options,
                                   const char **directory, laya_error *error)
{
    const laya_bucket *first = &bundle->buckets[0];
    *directory = options->model_directory;
    if (*directory || first->manifest.standalone) return LAYA_OK;
    *directory = first->manifest.source_directory;
    if (!*directory)
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "%s: " LAYA_BUNDLE_MANIFEST
                         " does not say where the checkpoint is; name its directory with --model DIR",
                         first->directory);
    if (laya_path_is_directory(*directory)) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_IO,
                     "%s: the checkpoint that %s was made from is not there; name its directory with --model DIR",
                     *directory, first->directory);
}

static laya_status open_model(laya_bundle *bundle, const laya_bundle_options *options, laya_error *error)
{
    const char *checkpoint;
    laya_model_options model;
    LAYA_TRY(find_checkpoint(bundle, options, &checkpoint, error));
    LAYA_TRY(laya_buckets_verify(bundle, checkpoint, error));
    laya_model_options_init(&model);
    model.allocator = options->allocator;
    model.logger = options->logger;
    model.lang_temperatures = options->lang_temperatures;
    if (checkpoint) return laya_model_open(checkpoint, &model, &bundle->model, error);
    return laya_model_open_host(bundle->buckets[0].directory, LAYA_BUNDLE_HOST_WEIGHTS, &model, &bundle->model,
                                error);
}

/* ------------------------------------------------------------------ packages */

/* The package's own Manifest.json names the files that were hashed. */
static laya_status check_paths(const laya_bundle *bundle, const laya_bucket *bucket, laya_error *error)
{
    const laya_package *package = bucket->package;
    char *model = laya_path_join(&bundle->allocator, package->path, LAYA_PACKAGE_MODEL);
    char *weights = laya_path_join(&bundle->allocator, package->path, LAYA_PACKAGE_WEIGHTS);
    laya_status status = LAYA_OK;
    if (!model || !weights)
        status = laya_fail_memory(error, 0);
    else if (strcmp(package->model_path, model) != 0)
        status = laya_fail(error, LAYA_ERROR_FORMAT, "expected the model file %s, found %s", model,
                           package->model_path);
    else if (package->weights_path && strcmp(package->weights_path, weights) != 0)
        status = laya_fail(error, LAYA_ERROR_FORMAT, "expected the weight file %s, found %s", weights,
                           package->weights_path);
    laya_release(&bundle->allocator, model);
    laya_release(&bundle->allocator, weights);
    return status;
}

static laya_status check_package(const laya_bundle *bundle, const laya_bucket *bucket, laya_error *error)
{
    const laya_config *config = &bundle->model->config;
    laya_mil_dtype dtype = bucket->manifest.precision == LAYA_PACKAGE_FP16 ? LAYA_MIL_FP16 : LAYA_MIL_FP32;
    if (bucket->shape.length > config->max_positions)
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "expected a length of at most %lu, the positions of the checkpoint, found %lu",
                         (unsigned long)config->max_positions, (unsigned long)bucket->shape.length);
    LAYA_TRY(check_paths(bundle, bucket, error));
    return laya_body_check(&bucket->package->program, &bucket->shape, dtype, error);
}

static laya_status open_executor(laya_bundle *bundle, laya_bucket *bucket, const laya_bundle_options *options,
                                 laya_error *error)
{
    if (bundle->backend == LAYA_BACKEND_COREML)
        return laya_executor_open_coreml(bucket->package, bucket->manifest.package_sha256, &bucket->shape,
                                         options->units, options->cache_directory, &bundle->allocator,
                                         &bucket->executor, error);
    return laya_executor_open_interpreter(bucket->package, &bucket->shape, options->numerics, bundle->pool,
                                          &bundle->allocator, &bucket->executor, error);
}

static laya_status open_package(laya_bundle *bundle, laya_bucket *bucket, const laya_bundle_options *options,
                                laya_error *error)
{
    laya_body_shape_init(&bucket->shape, bundle->model->config.hidden_size, bucket->manifest.length,
                         bucket->manifest.markers);
    LAYA_TRY(laya_package_open(bucket->directory, &bundle->allocator, &bucket->package, error));
    laya_status status = check_package(bundle, bucket, error);
    if (status == LAYA_OK) status = open_executor(bundle, bucket, options, error);
    if (status != LAYA_OK && status != LAYA_ERROR_MEMORY) laya_error_prefix(error, "%s: ", bucket->package->path);
    return status;
}

/* ------------------------------------------------------------------ the bundle */

static laya_status open_parts(laya_bundle *bundle, const char *path, const laya_bundle_options *options,
                              laya_error *error)
{
    unsigned threads = options->threads ? options->threads : laya_online_cpus();
    LAYA_TRY(laya_pool_open(threads, &bundle->allocator, &bundle->pool, error));
    LAYA_TRY(laya_buckets_find(bundle, path, error));
    LAYA_TRY(open_model(bundle, options, error));
    for (size_t at = 0; at < bundle->count; at++)
        LAYA_TRY(open_package(bundle, &bundle->buckets[at], options, error));
    return LAYA_OK;
}

laya_status laya_bundle_open(const char *path, const laya_bundle_options *options, laya_bundle **bundle,
                             laya_error *error)
{
    laya_bundle_options defaults;
    laya_error_clear(error);
    if (!bundle) return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_bundle_open: bundle must not be NULL");
    *bundle = NULL;
    if (!path) return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_bundle_open: path must not be NULL");
    if (!options) {
        laya_bundle_options_init(&defaults);
        options = &defaults;
    }
    LAYA_TRY(check_options(options, error));
    laya_allocator allocator = laya_allocator_or_default(&options->allocator);
    laya_bundle *opened = laya_alloc_zero(&allocator, 1, sizeof *opened);
    if (!opened) return laya_fail_memory(error, sizeof *opened);
    opened->allocator = allocator;
    opened->backend = options->backend;
    opened->executor_name = options->backend == LAYA_BACKEND_COREML
                                ? laya_coreml_executor_name(options->units)
                                : laya_interpreter_executor_name(options->numerics);
    laya_status status = open_parts(opened, path, options, error);
    if (status == LAYA_OK)
        *bundle = opened;
    else
        laya_bundle_close(opened);
    return status;
}

void laya_bundle_close(laya_bundle *bundle)
{
    if (!bundle) return;
    laya_buckets_close(bundle);
    laya_model_close(bundle->model);
    laya_pool_close(bundle->pool);
    laya_allocator allocator = bundle->allocator;
    laya_release(&allocator, bundle);
}

/* ------------------------------------------------------------------ facts */

const laya_model *laya_bundle_model(const laya_bundle *bundle)
{
    return bundle->model;
}

size_t laya_bundle_buckets(const laya_bundle *bundle)
{
    return bundle->count;
}

int laya_bundle_bucket(const laya_bundle *bundle, size_t index, laya_bucket_info *info)
{
    if (index >= bundle->count) {
        *info = (laya_bucket_info){0};
        return 0;
    }
    const laya_bucket *bucket = &bundle->buckets[index];
    const laya_manifest *manifest = &bucket->manifest;
    *info = (laya_bucket_info){.directory = bucket->directory,
                               .package_sha256 = manifest->package_sha256,
                               .weights_sha256 = manifest->sources[LAYA_SOURCE_WEIGHTS],
                               .graph = laya_graph_name(manifest->graph),
                               .precision = laya_package_precision_name(manifest->precision),
                               .length = manifest->length,
                               .markers = manifest->markers,
                               .palette = *manifest->palette ? manifest->palette : NULL,
                               .operations = manifest->operations};
    return 1;
}

const char *laya_bundle_executor(const laya_bundle *bundle)
{
    return bundle->executor_name;
}

/* ------------------------------------------------------------------ compute plan */

laya_status laya_bundle_plan(laya_bundle *bundle, size_t index, char **json, laya_error *error)
{
    laya_error_clear(error);
    if (!json) return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_bundle_plan: json must not be NULL");
    *json = NULL;
    if (!bundle) return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_bundle_plan: bundle must not be NULL");
    if (index >= bundle->count)
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_bundle_plan: expected an index below %zu, found %zu",
                         bundle->count, index);
    const laya_bucket *bucket = &bundle->buckets[index];
    if (!bucket->executor->plan)
        return laya_fail(
            error, LAYA_ERROR_UNSUPPORTED,
            "%s: the interpreter has no compute plan; open the bundle with the Core ML backend, on macOS",
            bucket->directory);
    return bucket->executor->plan(bucket->executor, json, error);
}

void laya_bundle_release(const laya_bundle *bundle, char *text)
{
    if (bundle) laya_release(&bundle->allocator, text);
}
