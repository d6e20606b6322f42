/* SPDX-License-Identifier: Apache-2.0 */
#include "predict/context.h"

#include "base/error.h"
#include "model/engine.h"
#include "runtime/bundle.h"

void laya_context_options_init(laya_context_options *options)
{
    *options = (laya_context_options){.size = sizeof *options};
}

static laya_status check_options(const laya_context_options *options, laya_error *error)
{
    if (options->size != sizeof *options)
        return laya_fail(error, LAYA_ERROR_ARGUMENT,
                         "laya_context_open: options.size is %zu, expected %zu; call laya_context_options_init first",
                         options->size, sizeof *options);
    if (options->threads > LAYA_MAX_THREADS)
        return laya_fail(error, LAYA_ERROR_ARGUMENT,
                         "laya_context_open: %u threads asked for, at most %u are allowed", options->threads,
                         LAYA_MAX_THREADS);
    if (options->precision != LAYA_PRECISION_FLOAT && options->precision != LAYA_PRECISION_DOUBLE)
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_context_open: unknown precision %d",
                         (int)options->precision);
    return LAYA_OK;
}

/* The model and the engines that may compute fit together. */
static laya_status check_bundle(const laya_model *model, const laya_context_options *options, laya_error *error)
{
    const laya_bundle *bundle = options->bundle;
    if (!bundle) {
        if (options->long_native)
            return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_context_open: long_native needs a bundle");
        return laya_check_weights(&model->weights, error);
    }
    if (model != bundle->model)
        return laya_fail(error, LAYA_ERROR_ARGUMENT,
                         "laya_context_open: model must be laya_bundle_model of options.bundle");
    if (options->precision != LAYA_PRECISION_FLOAT)
        return laya_fail(error, LAYA_ERROR_ARGUMENT,
                         "laya_context_open: precision is of the CPU engine; a bundle has its own numerics");
    if (options->long_native && model->host_only)
        return laya_fail(error, LAYA_ERROR_ARGUMENT,
                         "laya_context_open: long_native needs the whole checkpoint, and this bundle stands alone; "
                         "open the bundle with the checkpoint's directory");
    return LAYA_OK;
}

laya_status laya_context_open(const laya_model *model, const laya_context_options *options, laya_context **context,
                              laya_error *error)
{
    laya_context_options defaults;
    laya_error_clear(error);
    if (!context) return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_context_open: context must not be NULL");
    *context = NULL;
    if (!model) return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_context_open: model must not be NULL");
    if (!options) {
        laya_context_options_init(&defaults);
        options = &defaults;
    }
    LAYA_TRY(check_options(options, error));
    LAYA_TRY(check_bundle(model, options, error));
    laya_context *opened = laya_alloc_zero(&model->allocator, 1, sizeof *opened);
    if (!opened) return laya_fail_memory(error, sizeof *opened);
    opened->model = model;
    opened->precision = options->precision;
    opened->progress = options->progress;
    opened->interrupt = options->interrupt;
    opened->bundle = options->bundle;
    opened->long_native = options->long_native != 0;
    opened->kernels = laya_kernels_select(LAYA_CPU_ALL);
    laya_arena_init(&opened->arena, &model->allocator);
    laya_buffer_init(&opened->result, &model->allocator);
    unsigned threads = options->threads ? options->threads : laya_online_cpus();
    laya_status status = laya_pool_open(threads, &model->allocator, &opened->pool, error);
    if (status != LAYA_OK) {
        laya_context_close(opened);
        return status;
    }
    *context = opened;
    return LAYA_OK;
}

void laya_context_close(laya_context *context)
{
    if (!context) return;
    laya_pool_close(context->pool);
    laya_buffer_close(&context->result);
    laya_arena_close(&context->arena);
    laya_release(&context->model->allocator, context);
}

const laya_error *laya_context_error(const laya_context *context)
{
    return &context->error;
}
