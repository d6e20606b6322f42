/* SPDX-License-Identifier: Apache-2.0 */
/* Binding tensors to the model: a complete file, and the four load checks with their texts. */
#include "support.h"

#include "model/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TENSORS 80

/* A model of two encoder layers and one head layer: d 4, I 3, V 7, three actions. */
static bool kinds[2] = {true, false};
static const laya_config config = {.vocab_size = 7,
                                   .hidden_size = 4,
                                   .encoder_layers = 2,
                                   .attention_heads = 1,
                                   .head_size = 4,
                                   .intermediate_size = 3,
                                   .local_attention = 4,
                                   .max_positions = 16,
                                   .norm_eps = 1e-5,
                                   .global_rope_theta = 1,
                                   .local_rope_theta = 1,
                                   .layer_is_global = kinds,
                                   .head_layers = 1,
                                   .head_heads = 1,
                                   .actions = 3,
                                   .max_len = 16,
                                   .head_max_len = 8};

typedef struct file {
    char names[MAX_TENSORS][64];
    laya_tensor_entry entries[MAX_TENSORS];
    unsigned char data[16]; /* every tensor's bytes: they are bound, not read */
    laya_safetensors tensors;
} file;

static void add(file *f, const char *name, uint32_t rows, uint32_t cols)
{
    uint32_t at = f->tensors.count++;
    assert_true(at < MAX_TENSORS);
    snprintf(f->names[at], sizeof f->names[at], "%s", name);
    f->entries[at] = (laya_tensor_entry){
        .name = f->names[at], .tensor = {f->data, LAYA_F16, rows ? rows : 1, cols}, .rank = rows ? 2 : 1};
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const laya_tensor_entry *)a)->name, ((const laya_tensor_entry *)b)->name);
}

static void sort(file *f)
{
    qsort(f->entries, f->tensors.count, sizeof *f->entries, by_name);
}

static file *make_file(void)
{
    file *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->tensors.entries = f->entries;
    add(f, "encoder.embeddings.tok_embeddings.weight", 7, 4);
    add(f, "encoder.embeddings.norm.weight", 0, 4);
    for (int i = 0; i < 2; i++) {
        static const struct {
            const char *name;
            uint32_t rows, cols;
        } parts[] = {
            {"attn_norm.weight", 0, 4}, {"attn.Wqkv.weight", 12, 4}, {"attn.Wo.weight", 4, 4},
            {"mlp_norm.weight", 0, 4},  {"mlp.Wi.weight", 6, 4},     {"mlp.Wo.weight", 4, 3},
        };
        for (size_t p = i == 0 ? 1 : 0; p < sizeof parts / sizeof *parts; p++) {
            char name[64];
            snprintf(name, sizeof name, "encoder.layers.%d.%s", i, parts[p].name);
            add(f, name, parts[p].rows, parts[p].cols);
        }
    }
    add(f, "encoder.final_norm.weight", 0, 4);
    add(f, "head.layers.0.self_attn.in_proj_weight", 12, 4);
    add(f, "head.layers.0.self_attn.in_proj_bias", 0, 12);
    add(f, "head.layers.0.self_attn.out_proj.weight", 4, 4);
    add(f, "head.layers.0.self_attn.out_proj.bias", 0, 4);
    add(f, "head.layers.0.linear1.weight", 16, 4);
    add(f, "head.layers.0.linear1.bias", 0, 16);
    add(f, "head.layers.0.linear2.weight", 4, 16);
    add(f, "head.layers.0.linear2.bias", 0, 4);
    add(f, "head.layers.0.norm1.weight", 0, 4);
    add(f, "head.layers.0.norm1.bias", 0, 4);
    add(f, "head.layers.0.norm2.weight", 0, 4);
    add(f, "head.layers.0.norm2.bias", 0, 4);
    add(f, "type_emb.weight", 3, 4);
    add(f, "scorer.0.weight", 0, 4);
    add(f, "scorer.0.bias", 0, 4);
    add(f, "scorer.1.weight", 4, 4);
    add(f, "scorer.1.bias", 0, 4);
    add(f, "scorer.3.weight", 1, 4);
    add(f, "scorer.3.bias", 0, 1);
    add(f, "act_head.0.weight", 256, 8);
    add(f, "act_head.0.bias", 0, 256);
    add(f, "act_head.2.weight", 3, 256);
    add(f, "act_head.2.bias", 0, 3);
    add(f, "temperature", 0, 3);
    sort(f);
    return f;
}

static laya_tensor_entry *find(file *f, const char *name)
{
    for (uint32_t i = 0; i < f->tensors.count; i++) {
        if (strcmp(f->entries[i].name, name) == 0) return &f->entries[i];
    }
    fail_msg("no %s", name);
    return NULL;
}

static void drop(file *f, const char *name)
{
    laya_tensor_entry *entry = find(f, name);
    size_t after = (size_t)(f->entries + f->tensors.count - (entry + 1));
    memmove(entry, entry + 1, after * sizeof *entry);
    f->tensors.count--;
}

/* Frees the file. */
static void expect(file *f, laya_status status, const char *text)
{
    laya_weights weights;
    laya_error error = {LAYA_OK, ""};
    laya_status got = laya_weights_bind(&weights, &f->tensors, &config, NULL, &error);
    if (got != status || strcmp(error.message, text) != 0) {
        fail_msg("expected %s: %s\ngot %s: %s", laya_status_name(status), text, laya_status_name(got), error.message);
    }
    laya_weights_close(&weights);
    laya_weights_close(&weights);
    free(f);
}

static void test_complete(void **unused)
{
    (void)unused;
    file *f = make_file();
    laya_weights w;
    laya_error error;
    assert_int_equal(laya_weights_bind(&w, &f->tensors, &config, NULL, &error), LAYA_OK);
    assert_null(w.encoder[0].attn_norm.data);
    assert_non_null(w.encoder[1].attn_norm.data);
    assert_int_equal(w.encoder[1].mlp_in.rows, 6);
    assert_int_equal(w.head[0].linear2.cols, 16);
    assert_int_equal(w.action_in.cols, 8);
    assert_int_equal(w.temperature.cols, 3);
    uint64_t values = 0;
    for (uint32_t i = 0; i < f->tensors.count; i++) {
        values += (uint64_t)f->entries[i].tensor.rows * f->entries[i].tensor.cols;
    }
    assert_int_equal(w.parameters, values);
    laya_weights_close(&w);
    free(f);
}

static void test_groups(void **unused)
{
    (void)unused;
    static const char *const groups[] = {"encoder.", "type_emb.", "scorer.", "act_head."};
    for (size_t g = 0; g < 4; g++) {
        file *f = make_file();
        char text[256];
        for (uint32_t i = f->tensors.count; i-- > 0;) {
            if (strncmp(f->entries[i].name, groups[g], strlen(groups[g])) == 0) drop(f, f->entries[i].name);
        }
        snprintf(text, sizeof text,
                 "Incompatible model weights: checkpoint is missing '%s' parameters. Is this the model.safetensors "
                 "of a Laya "
                 "checkpoint?",
                 groups[g]);
        expect(f, LAYA_ERROR_FORMAT, text);
    }
}

static void test_shapes(void **unused)
{
    (void)unused;
    file *f = make_file();
    find(f, "encoder.layers.1.attn.Wqkv.weight")->tensor.rows = 13;
    find(f, "scorer.1.bias")->tensor.cols = 5;
    expect(f, LAYA_ERROR_FORMAT,
           "Model architecture mismatch:\n"
           "  - encoder.layers.1.attn.Wqkv.weight: expected (12, 4), found (13, 4)\n"
           "  - scorer.1.bias: expected (4,), found (5,)");
    f = make_file(); /* the same count, another rank */
    find(f, "scorer.3.weight")->rank = 1;
    expect(f, LAYA_ERROR_FORMAT, "Model architecture mismatch:\n  - scorer.3.weight: expected (1, 4), found (4,)");
    f = make_file(); /* a mismatch is reported before a missing tensor, and five are listed */
    drop(f, "temperature");
    for (uint32_t i = 0; i < f->tensors.count; i++) {
        if (strncmp(f->entries[i].name, "head.", 5) == 0) f->entries[i].tensor.cols = 99;
    }
    laya_weights weights;
    laya_error error;
    assert_int_equal(laya_weights_bind(&weights, &f->tensors, &config, NULL, &error), LAYA_ERROR_FORMAT);
    size_t lines = 0;
    for (const char *at = error.message; (at = strstr(at, "\n  - ")) != NULL; at++) lines++;
    assert_int_equal(lines, 5);
    free(f);
}

static void test_missing(void **unused)
{
    (void)unused;
    file *f = make_file();
    drop(f, "temperature");
    expect(f, LAYA_ERROR_FORMAT, "Model weights incomplete: missing 1 parameter tensors (e.g. ['temperature']).");
    f = make_file();
    drop(f, "encoder.layers.1.attn_norm.weight");
    drop(f, "head.layers.0.norm1.bias");
    expect(f, LAYA_ERROR_FORMAT,
           "Model weights incomplete: missing 2 parameter tensors (e.g. ['encoder.layers.1.attn_norm.weight', "
           "'head.layers.0.norm1.bias']).");
}

static void test_unexpected(void **unused)
{
    (void)unused;
    file *f = make_file();
    add(f, "encoder.layers.0.attn_norm.weight", 0, 4); /* layer 0 has none */
    add(f, "residual_adapters.branches.0.w", 4, 4);
    sort(f);
    expect(f, LAYA_ERROR_FORMAT,
           "Model architecture mismatch: 2 unexpected tensors (e.g. ['encoder.layers.0.attn_norm.weight', "
           "'residual_adapters.branches.0.w'])");
    f = make_file();
    add(f, "encoder.layers.2.attn.Wo.weight", 4, 4);
    sort(f);
    expect(f, LAYA_ERROR_FORMAT,
           "Model architecture mismatch: 1 unexpected tensors (e.g. ['encoder.layers.2.attn.Wo.weight'])");
}

static void test_failing_allocations(void **unused)
{
    (void)unused;
    for (int broken = 0; broken < 2; broken++) {
        file *f = make_file();
        if (broken) drop(f, "temperature");
        test_memory memory;
        test_memory_init(&memory);
        for (size_t fail_at = 1; fail_at <= 6; fail_at++) {
            laya_weights weights;
            laya_error error;
            test_memory_arm(&memory, fail_at);
            laya_status status = laya_weights_bind(&weights, &f->tensors, &config, &memory.hooks, &error);
            laya_status wanted = broken ? LAYA_ERROR_FORMAT : LAYA_OK;
            assert_int_equal(status, memory.failed ? LAYA_ERROR_MEMORY : wanted);
            if (fail_at <= 3) assert_true(memory.failed);
            if (fail_at == 6) assert_false(memory.failed);
            laya_weights_close(&weights);
            assert_int_equal(memory.live, 0);
        }
        free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_complete),   cmocka_unit_test(test_groups),
        cmocka_unit_test(test_shapes),     cmocka_unit_test(test_missing),
        cmocka_unit_test(test_unexpected), cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
