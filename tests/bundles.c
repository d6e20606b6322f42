/* SPDX-License-Identifier: Apache-2.0 */
#include "bundles.h"

#include "predict/context.h"

#include <stdlib.h>
#include <sys/stat.h>

void test_export(const char *directory, laya_graph graph, laya_package_precision precision, uint32_t length,
                 bool standalone, const char *output)
{
    laya_model *model;
    laya_error error;
    laya_export_options options;
    laya_export_options_init(&options);
    options.graph = graph;
    options.precision = precision;
    options.length = length;
    options.standalone = standalone;
    if (laya_model_open(directory, NULL, &model, &error) != LAYA_OK) fail_msg("%s", error.message);
    if (laya_model_export(model, &options, output, &error) != LAYA_OK) fail_msg("%s", error.message);
    laya_model_close(model);
}

laya_bundle *test_open_bundle(const char *path, laya_numerics numerics, unsigned threads)
{
    laya_bundle *bundle;
    laya_error error;
    laya_bundle_options options;
    laya_bundle_options_init(&options);
    options.numerics = numerics;
    options.threads = threads;
    if (laya_bundle_open(path, &options, &bundle, &error) != LAYA_OK) fail_msg("%s", error.message);
    return bundle;
}

laya_context *test_bundle_context(laya_bundle *bundle, bool long_native)
{
    laya_context *context;
    laya_error error;
    laya_context_options options;
    laya_context_options_init(&options);
    options.threads = 2;
    options.bundle = bundle;
    options.long_native = long_native;
    if (laya_context_open(laya_bundle_model(bundle), &options, &context, &error) != LAYA_OK)
        fail_msg("%s", error.message);
    context->arena.poison = true;
    return context;
}

void test_copy_checkpoint(const char *directory, const char *output)
{
    static const char *const names[] = {"rl_agent_config.json", "model.safetensors", "encoder/config.json",
                                        "tokenizer/tokenizer.json", "tokenizer/tokenizer_config.json"};
    char path[TEST_PATH_SIZE];
    assert_int_equal(mkdir(output, 0700), 0);
    assert_int_equal(mkdir(test_join(path, output, "encoder"), 0700), 0);
    assert_int_equal(mkdir(test_join(path, output, "tokenizer"), 0700), 0);
    for (size_t at = 0; at < sizeof names / sizeof *names; at++) {
        size_t size;
        char *data = test_read_file(test_join(path, directory, names[at]), &size);
        test_write_file(test_join(path, output, names[at]), data, size);
        free(data);
    }
}

void test_flip_byte(const char *path)
{
    size_t size;
    char *data = test_read_file(path, &size);
    assert_true(size > 0);
    data[size / 2] = (char)(data[size / 2] ^ 1);
    test_write_file(path, data, size);
    free(data);
}
