/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds every tensor of the model in a checkpoint, in the order of upstream's load checks: the four name groups,
 * shapes, missing tensors, unexpected tensors.
 */
#include "model/weights.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>

#define LISTED 5           /* names that a message lists */
#define ACTION_HIDDEN 256u /* width of the action head */
#define ACTION_FEATURES 4u /* appended to the first token's state */
#define QUESTION_TYPES 3u

typedef struct binder {
    const laya_safetensors *file;
    laya_weights *weights;
    bool *used; /* [file->count] */
    uint32_t mismatches;
    uint32_t missing;
    laya_buffer mismatch_text;
    laya_buffer missing_text;
} binder;

static void put_shape(laya_buffer *out, uint32_t rank, uint32_t rows, uint32_t cols)
{
    if (rank == 1)
        laya_buffer_printf(out, "(%lu,)", (unsigned long)cols);
    else
        laya_buffer_printf(out, "(%lu, %lu)", (unsigned long)rows, (unsigned long)cols);
}

static void bind(binder *b, laya_tensor *slot, const char *name, uint32_t rank, uint32_t rows, uint32_t cols)
{
    b->weights->parameters += (uint64_t)rows * cols;
    const laya_tensor_entry *entry = laya_safetensors_find(b->file, name);
    if (!entry) {
        if (b->missing++ < LISTED) {
            laya_buffer_printf(&b->missing_text, "%s'%s'", b->missing > 1 ? ", " : "", name);
        }
        return;
    }
    b->used[entry - b->file->entries] = true;
    if (entry->rank != rank || entry->tensor.rows != rows || entry->tensor.cols != cols) {
        if (b->mismatches++ < LISTED) {
            laya_buffer_printf(&b->mismatch_text, "\n  - %s: expected ", name);
            put_shape(&b->mismatch_text, rank, rows, cols);
            laya_buffer_puts(&b->mismatch_text, ", found ");
            put_shape(&b->mismatch_text, entry->rank, entry->tensor.rows, entry->tensor.cols);
        }
        return;
    }
    *slot = entry->tensor;
}

static void bind_vector(binder *b, laya_tensor *slot, const char *name, uint32_t size)
{
    bind(b, slot, name, 1, 1, size);
}

static void bind_matrix(binder *b, laya_tensor *slot, const char *name, uint32_t rows, uint32_t cols)
{
    bind(b, slot, name, 2, rows, cols);
}

static void bind_encoder_layer(binder *b, const laya_config *config, uint32_t layer)
{
    laya_encoder_weights *w = &b->weights->encoder[layer];
    uint32_t d = config->hidden_size, inner = config->intermediate_size;
    char name[96];
#define NAME(suffix) (snprintf(name, sizeof name, "encoder.layers.%lu.%s", (unsigned long)layer, suffix), name)
    if (layer) bind_vector(b, &w->attn_norm, NAME("attn_norm.weight"), d);
    bind_matrix(b, &w->wqkv, NAME("attn.Wqkv.weight"), 3 * d, d);
    bind_matrix(b, &w->attn_out, NAME("attn.Wo.weight"), d, d);
    bind_vector(b, &w->mlp_norm, NAME("mlp_norm.weight"), d);
    bind_matrix(b, &w->mlp_in, NAME("mlp.Wi.weight"), 2 * inner, d);
    bind_matrix(b, &w->mlp_out, NAME("mlp.Wo.weight"), d, inner);
#undef NAME
}

static void bind_head_layer(binder *b, const laya_config *config, uint32_t layer)
{
    laya_head_weights *w = &b->weights->head[layer];
    uint32_t d = config->hidden_size;
    char name[96];
#define NAME(suffix) (snprintf(name, sizeof name, "head.layers.%lu.%s", (unsigned long)layer, suffix), name)
    bind_vector(b, &w->norm1, NAME("norm1.weight"), d);
    bind_vector(b, &w->norm1_bias, NAME("norm1.bias"), d);
    bind_matrix(b, &w->in_proj, NAME("self_attn.in_proj_weight"), 3 * d, d);
    bind_vector(b, &w->in_proj_bias, NAME("self_attn.in_proj_bias"), 3 * d);
    bind_matrix(b, &w->out_proj, NAME("self_attn.out_proj.weight"), d, d);
    bind_vector(b, &w->out_proj_bias, NAME("self_attn.out_proj.bias"), d);
    bind_vector(b, &w->norm2, NAME("norm2.weight"), d);
    bind_vector(b, &w->norm2_bias, NAME("norm2.bias"), d);
    bind_matrix(b, &w->linear1, NAME("linear1.weight"), 4 * d, d);
    bind_vector(b, &w->linear1_bias, NAME("linear1.bias"), 4 * d);
    bind_matrix(b, &w->linear2, NAME("linear2.weight"), d, 4 * d);
    bind_vector(b, &w->linear2_bias, NAME("linear2.bias"), d);
#undef NAME
}

static void bind_embedding(binder *b, const laya_config *config)
{
    bind_matrix(b, &b->weights->embedding, "encoder.embeddings.tok_embeddings.weight", config->vocab_size,
                config->hidden_size);
}

static void bind_type_embedding(binder *b, const laya_config *config)
{
    bind_matrix(b, &b->weights->type_embedding, "type_emb.weight", QUESTION_TYPES, config->hidden_size);
}

static void bind_action_head(binder *b, const laya_config *config)
{
    laya_weights *w = b->weights;
    bind_matrix(b, &w->action_in, "act_head.0.weight", ACTION_HIDDEN, config->hidden_size + ACTION_FEATURES);
    bind_vector(b, &w->action_in_bias, "act_head.0.bias", ACTION_HIDDEN);
    bind_matrix(b, &w->action_out, "act_head.2.weight", config->actions, ACTION_HIDDEN);
    bind_vector(b, &w->action_out_bias, "act_head.2.bias", config->actions);
}

static void bind_host(binder *b, const laya_config *config)
{
    bind_embedding(b, config);
    bind_type_embedding(b, config);
    bind_action_head(b, config);
}

static void bind_all(binder *b, const laya_config *config)
{
    laya_weights *w = b->weights;
    uint32_t d = config->hidden_size;
    bind_embedding(b, config);
    bind_vector(b, &w->embedding_norm, "encoder.embeddings.norm.weight", d);
    for (uint32_t i = 0; i < config->encoder_layers; i++) bind_encoder_layer(b, config, i);
    bind_vector(b, &w->final_norm, "encoder.final_norm.weight", d);
    for (uint32_t i = 0; i < config->head_layers; i++) bind_head_layer(b, config, i);
    bind_type_embedding(b, config);
    bind_vector(b, &w->scorer_norm, "scorer.0.weight", d);
    bind_vector(b, &w->scorer_norm_bias, "scorer.0.bias", d);
    bind_matrix(b, &w->scorer_in, "scorer.1.weight", d, d);
    bind_vector(b, &w->scorer_in_bias, "scorer.1.bias", d);
    bind_matrix(b, &w->scorer_out, "scorer.3.weight", 1, d);
    bind_vector(b, &w->scorer_out_bias, "scorer.3.bias", 1);
    bind_action_head(b, config);
    bind_vector(b, &w->temperature, "temperature", QUESTION_TYPES);
}

static laya_status check_groups(const laya_safetensors *file, laya_error *error)
{
    static const char *const groups[] = {"encoder.", "type_emb.", "scorer.", "act_head."};
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        bool found = false;
        for (uint32_t i = 0; i < file->count && !found; i++) {
            found = strncmp(file->entries[i].name, groups[g], strlen(groups[g])) == 0;
        }
        if (!found) {
            return laya_fail(error, LAYA_ERROR_FORMAT,
                             "Incompatible model weights: checkpoint is missing '%s' parameters. "
                             "Is this the model.safetensors of a Laya checkpoint?",
                             groups[g]);
        }
    }
    return LAYA_OK;
}

static laya_status check_unexpected(binder *b, laya_error *error)
{
    uint32_t unexpected = 0;
    for (uint32_t i = 0; i < b->file->count; i++) {
        if (b->used[i]) continue;
        if (unexpected++ < LISTED) {
            laya_buffer_printf(&b->mismatch_text, "%s'%.100s'", unexpected > 1 ? ", " : "", b->file->entries[i].name);
        }
    }
    if (!unexpected) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_FORMAT, "Model architecture mismatch: %lu unexpected tensors (e.g. [%s])",
                     (unsigned long)unexpected, b->mismatch_text.data ? b->mismatch_text.data : "");
}

static laya_status report(binder *b, laya_error *error)
{
    if (b->mismatch_text.failed || b->missing_text.failed) return laya_fail_memory(error, 0);
    if (b->mismatches) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "Model architecture mismatch:%s", b->mismatch_text.data);
    }
    if (b->missing) {
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "Model weights incomplete: missing %lu parameter tensors (e.g. [%s]).",
                         (unsigned long)b->missing, b->missing_text.data);
    }
    return check_unexpected(b, error);
}

/* Run `bind_tensors` over a file and report what does not fit. */
static laya_status bind_file(laya_weights *weights, const laya_safetensors *file, const laya_config *config,
                             void (*bind_tensors)(binder *b, const laya_config *config), laya_error *error)
{
    binder b = {.file = file, .weights = weights};
    laya_buffer_init(&b.mismatch_text, &weights->allocator);
    laya_buffer_init(&b.missing_text, &weights->allocator);
    b.used = laya_alloc_zero(&weights->allocator, file->count, sizeof *b.used);
    laya_status status = LAYA_OK;
    if (!b.used) status = laya_fail_memory(error, file->count * sizeof *b.used);
    if (status == LAYA_OK) {
        bind_tensors(&b, config);
        status = report(&b, error);
    }
    laya_release(&weights->allocator, b.used);
    laya_buffer_close(&b.mismatch_text);
    laya_buffer_close(&b.missing_text);
    if (status != LAYA_OK) laya_weights_close(weights);
    return status;
}

laya_status laya_weights_bind(laya_weights *weights, const laya_safetensors *file, const laya_config *config,
                              const laya_allocator *allocator, laya_error *error)
{
    *weights = (laya_weights){.allocator = laya_allocator_or_default(allocator)};
    LAYA_TRY(check_groups(file, error));
    weights->encoder = laya_alloc_zero(&weights->allocator, config->encoder_layers, sizeof *weights->encoder);
    if (config->head_layers)
        weights->head = laya_alloc_zero(&weights->allocator, config->head_layers, sizeof *weights->head);
    if (!weights->encoder || (config->head_layers && !weights->head)) {
        laya_weights_close(weights);
        return laya_fail_memory(error, config->encoder_layers * sizeof *weights->encoder);
    }
    return bind_file(weights, file, config, bind_all, error);
}

laya_status laya_weights_bind_host(laya_weights *weights, const laya_safetensors *file, const laya_config *config,
                                   const laya_allocator *allocator, laya_error *error)
{
    *weights = (laya_weights){.allocator = laya_allocator_or_default(allocator)};
    return bind_file(weights, file, config, bind_host, error);
}

void laya_weights_close(laya_weights *weights)
{
    laya_release(&weights->allocator, weights->encoder);
    laya_release(&weights->allocator, weights->head);
    *weights = (laya_weights){.allocator = weights->allocator};
}
