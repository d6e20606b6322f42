/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of a checkpoint as JSON. */
#include "base/error.h"
#include "base/json.h"
#include "model/model.h"

#include <string.h>

static void member_number(laya_json_writer *w, const char *name, double value)
{
    laya_json_name(w, name);
    laya_json_put_repr(w, value);
}

static void member_token(laya_json_writer *w, const laya_model *model, const char *name, uint32_t id)
{
    size_t size;
    const char *text = laya_tokenizer_token(model->tokenizer, id, &size);
    laya_json_name(w, name);
    laya_json_begin(w, '{');
    laya_json_member_uint(w, "id", id);
    laya_json_name(w, "text");
    laya_json_put_string(w, text ? text : "", size);
    laya_json_end(w, '}');
}

static void write_shape(laya_json_writer *w, const laya_model *model)
{
    const laya_config *config = &model->config;
    laya_json_name(w, "encoder_shape");
    laya_json_begin(w, '{');
    laya_json_member_uint(w, "layers", config->encoder_layers);
    laya_json_member_uint(w, "hidden_size", config->hidden_size);
    laya_json_member_uint(w, "attention_heads", config->attention_heads);
    laya_json_member_uint(w, "head_size", config->head_size);
    laya_json_member_uint(w, "intermediate_size", config->intermediate_size);
    laya_json_member_uint(w, "vocab_size", config->vocab_size);
    laya_json_member_uint(w, "max_positions", config->max_positions);
    laya_json_member_uint(w, "local_attention", config->local_attention);
    member_number(w, "norm_eps", config->norm_eps);
    member_number(w, "global_rope_theta", config->global_rope_theta);
    member_number(w, "local_rope_theta", config->local_rope_theta);
    laya_json_name(w, "layer_kinds");
    laya_json_begin(w, '[');
    for (uint32_t layer = 0; layer < config->encoder_layers; layer++) {
        const char *kind = config->layer_is_global[layer] ? "global" : "local";
        laya_json_put_string(w, kind, strlen(kind));
    }
    laya_json_end(w, ']');
    laya_json_end(w, '}');
    laya_json_name(w, "head_shape");
    laya_json_begin(w, '{');
    laya_json_member_uint(w, "layers", config->head_layers);
    laya_json_member_uint(w, "attention_heads", config->head_heads);
    laya_json_member_uint(w, "actions", config->actions);
    laya_json_end(w, '}');
}

static void write_temperatures(laya_json_writer *w, const laya_temperatures *temperatures)
{
    laya_json_name(w, "temperature");
    laya_json_begin(w, '{');
    for (unsigned type = 0; type < 3; type++)
        member_number(w, laya_question_type_name((laya_question_type)type), temperatures->by_type[type]);
    for (unsigned type = 0; type < 3; type++) {
        for (unsigned bucket = 0; bucket < LAYA_BUCKETS; bucket++) {
            double value = temperatures->by_bucket[type][bucket];
            if (value > 0) member_number(w, laya_bucket_name((laya_question_type)type, bucket), value);
        }
    }
    laya_json_end(w, '}');
}

static void write_weights(laya_json_writer *w, const laya_model *model)
{
    uint64_t tensors[3] = {0}, values[3] = {0};
    for (uint32_t at = 0; at < model->tensors.count; at++) {
        const laya_tensor *tensor = &model->tensors.entries[at].tensor;
        tensors[tensor->dtype]++;
        values[tensor->dtype] += (uint64_t)tensor->rows * tensor->cols;
    }
    laya_json_name(w, "weights");
    laya_json_begin(w, '{');
    laya_json_member_uint(w, "bytes", model->weight_file.size);
    laya_json_member_uint(w, "tensors", model->tensors.count);
    laya_json_member_uint(w, "parameters", model->weights.parameters);
    laya_json_name(w, "types");
    laya_json_begin(w, '{');
    for (unsigned dtype = 0; dtype < 3; dtype++) {
        if (!tensors[dtype]) continue;
        laya_json_name(w, laya_dtype_name((laya_dtype)dtype));
        laya_json_begin(w, '{');
        laya_json_member_uint(w, "tensors", tensors[dtype]);
        laya_json_member_uint(w, "values", values[dtype]);
        laya_json_end(w, '}');
    }
    laya_json_end(w, '}');
    laya_json_end(w, '}');
}

static laya_status write_hashes(laya_json_writer *w, const laya_model *model, laya_error *error)
{
    const char *const names[] = {"rl_agent_config.json", "encoder/config.json", model->weight_name,
                                 "tokenizer/tokenizer.json", "tokenizer/tokenizer_config.json"};
    laya_status status = LAYA_OK;
    laya_json_name(w, "sha256");
    laya_json_begin(w, '{');
    for (size_t at = 0; at < sizeof names / sizeof *names && status == LAYA_OK; at++) {
        char hex[65];
        laya_file file;
        char *path = laya_path_join(&model->allocator, model->directory, names[at]);
        if (!path) return laya_fail_memory(error, 0);
        status = laya_file_map(&file, path, error);
        if (status == LAYA_OK) status = laya_sha256(file.data, file.size, hex, error);
        if (status == LAYA_OK) laya_json_member_string(w, names[at], hex);
        laya_file_unmap(&file);
        laya_release(&model->allocator, path);
    }
    laya_json_end(w, '}');
    return status;
}

laya_status laya_model_describe(const laya_model *model, int hashes, char **json, laya_error *error)
{
    laya_error_clear(error);
    if (!json) return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_model_describe: json must not be NULL");
    *json = NULL;
    if (!model) return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_model_describe: model must not be NULL");
    laya_buffer out;
    laya_json_writer w;
    laya_buffer_init(&out, &model->allocator);
    laya_json_writer_init(&w, &out, true);
    laya_json_begin(&w, '{');
    laya_json_member_path(&w, "directory", model->directory);
    laya_json_member_string(&w, "model_name", model->config.model_name);
    laya_json_member_string(&w, "encoder", model->config.encoder_name);
    write_shape(&w, model);
    laya_json_member_uint(&w, "max_len", model->config.max_len);
    laya_json_member_uint(&w, "head_max_len", model->config.head_max_len);
    write_temperatures(&w, &model->calibration.base);
    write_weights(&w, model);
    laya_json_name(&w, "tokenizer");
    laya_json_begin(&w, '{');
    laya_json_member_uint(&w, "vocab_size", laya_tokenizer_vocab_size(model->tokenizer));
    member_token(&w, model, "cls", model->specials.cls);
    member_token(&w, model, "sep", model->specials.sep);
    member_token(&w, model, "mask", model->specials.mask);
    member_token(&w, model, "pad", model->specials.pad);
    laya_json_end(&w, '}');
    laya_status status = hashes ? write_hashes(&w, model, error) : LAYA_OK;
    laya_json_end(&w, '}');
    if (status == LAYA_OK && out.failed) status = laya_fail_memory(error, out.size);
    if (status == LAYA_OK) {
        *json = out.data;
    } else {
        laya_buffer_close(&out);
    }
    return status;
}

void laya_model_release(const laya_model *model, char *text)
{
    if (model) laya_release(&model->allocator, text);
}
