/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "kernels/kernels.h"
#include "predict/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ------------------------------------------------------------------ files */

const char *test_source_dir(void)
{
    const char *named = getenv("LAYA_SOURCE_DIR");
    return named && *named ? named : LAYA_SOURCE_DIR;
}

static const char *join(char out[TEST_PATH_SIZE], const char *directory, const char *name)
{
    int size = snprintf(out, TEST_PATH_SIZE, "%s/%s", directory, name);
    assert_true(size > 0 && size < TEST_PATH_SIZE);
    return out;
}

const char *test_path(char out[TEST_PATH_SIZE], const char *relative)
{
    return join(out, test_source_dir(), relative);
}

char *test_read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s: cannot be opened", path);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long length = ftell(file);
    assert_true(length >= 0);
    rewind(file);
    char *data = malloc((size_t)length + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)length, file), length);
    fclose(file);
    data[length] = '\0';
    if (size) *size = (size_t)length;
    return data;
}

void test_write_file(const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (!file) fail_msg("%s: cannot be written", path);
    if (size) assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* ------------------------------------------------------------------ memory */

static void *allocate(void *user, size_t size)
{
    test_memory *memory = user;
    assert_true(size > 0);
    if (++memory->made == memory->fail_at) {
        memory->failed = true;
        return NULL;
    }
    unsigned char *block = malloc(size);
    if (block) {
        memset(block, 0xFF, size); /* memory that is used unset shows */
        memory->live++;
    }
    return block;
}

static void release(void *user, void *block)
{
    test_memory *memory = user;
    assert_non_null(block);
    assert_true(memory->live > 0);
    memory->live--;
    free(block);
}

void test_memory_init(test_memory *memory)
{
    *memory = (test_memory){.hooks = {memory, allocate, release}};
}

void test_memory_arm(test_memory *memory, size_t fail_at)
{
    memory->made = 0;
    memory->fail_at = fail_at;
    memory->failed = false;
}

/* ------------------------------------------------------------------ models */

laya_model *test_open_model(const char *relative)
{
    char path[TEST_PATH_SIZE];
    laya_model *model;
    laya_error error;
    if (laya_model_open(test_path(path, relative), NULL, &model, &error) != LAYA_OK) fail_msg("%s", error.message);
    return model;
}

laya_context *test_open_context(const laya_model *model, unsigned threads)
{
    laya_context *context;
    laya_context_options options;
    laya_error error;
    laya_context_options_init(&options);
    options.threads = threads;
    if (laya_context_open(model, &options, &context, &error) != LAYA_OK) fail_msg("%s", error.message);
    context->arena.poison = true;
    return context;
}

static const char *const checkpoint_files[] = {"rl_agent_config.json", "model.safetensors", "encoder/config.json",
                                               "tokenizer/tokenizer.json", "tokenizer/tokenizer_config.json"};
enum { CHECKPOINT_FILES = sizeof checkpoint_files / sizeof *checkpoint_files };

char *test_make_checkpoint(void)
{
    char path[TEST_PATH_SIZE], source[TEST_PATH_SIZE], name[TEST_PATH_SIZE];
    const char *temporary = getenv("TMPDIR");
    char *directory = malloc(TEST_PATH_SIZE);
    assert_non_null(directory);
    join(directory, temporary && *temporary ? temporary : "/tmp", "laya-test-XXXXXX");
    assert_non_null(mkdtemp(directory));
    assert_int_equal(mkdir(join(path, directory, "encoder"), 0700), 0);
    assert_int_equal(mkdir(join(path, directory, "tokenizer"), 0700), 0);
    for (size_t i = 0; i < CHECKPOINT_FILES; i++) {
        snprintf(name, sizeof name, TEST_DEMO "/%s", checkpoint_files[i]);
        assert_int_equal(symlink(test_path(source, name), join(path, directory, checkpoint_files[i])), 0);
    }
    return directory;
}

void test_change_file(const char *directory, const char *name, const void *data, size_t size)
{
    char path[TEST_PATH_SIZE];
    join(path, directory, name);
    unlink(path); /* the link, never what it points to */
    if (data) test_write_file(path, data, size);
}

void test_edit_file(const char *directory, const char *name, const char *from, const char *to)
{
    char path[TEST_PATH_SIZE];
    size_t size;
    char *text = test_read_file(join(path, directory, name), &size);
    char *hit = strstr(text, from);
    if (!hit) fail_msg("%s does not hold %s", name, from);
    size_t before = (size_t)(hit - text), after = size - before - strlen(from);
    char *edited = malloc(size + strlen(to) + 1);
    assert_non_null(edited);
    memcpy(edited, text, before);
    memcpy(edited + before, to, strlen(to));
    memcpy(edited + before + strlen(to), hit + strlen(from), after);
    test_change_file(directory, name, edited, before + strlen(to) + after);
    free(edited);
    free(text);
}

void test_remove_checkpoint(char *directory)
{
    char path[TEST_PATH_SIZE];
    for (size_t i = 0; i < CHECKPOINT_FILES; i++) unlink(join(path, directory, checkpoint_files[i]));
    rmdir(join(path, directory, "encoder"));
    rmdir(join(path, directory, "tokenizer"));
    assert_int_equal(rmdir(directory), 0);
    free(directory);
}

/* ------------------------------------------------------------------ kernels */

const laya_kernels *test_next_kernels(size_t *index)
{
    const laya_kernels *kernels;
    while ((kernels = laya_kernels_at((*index)++)) != NULL) {
        if ((kernels->cpu & laya_cpu_features(LAYA_CPU_ALL)) == kernels->cpu) return kernels;
    }
    return NULL;
}

/* ------------------------------------------------------------------ texts */

bool test_contains(const char *text, const char *part)
{
    return text && strstr(text, part) != NULL;
}
