/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a checkpoint directory. */
#include "model/model.h"

#include "base/error.h"
#include "base/json.h"

#include <stdio.h>
#include <string.h>

#define AGENT_CONFIG "rl_agent_config.json"
#define ENCODER_CONFIG "encoder/config.json"
#define WEIGHTS "model.safetensors"
#define TOKENIZER "tokenizer/tokenizer.json"
#define TOKENIZER_CONFIG "tokenizer/tokenizer_config.json"

/* ------------------------------------------------------------------ JSON files */

typedef struct json_file {
    char *path;
    laya_file file;
    laya_json doc;
} json_file;

static void json_file_close(const laya_model *model, json_file *json)
{
    laya_json_close(&json->doc);
    laya_file_unmap(&json->file);
    laya_release(&model->allocator, json->path);
    json->path = NULL;
}

static laya_status json_file_open(const laya_model *model, json_file *json, const char *name, laya_error *error)
{
    json->path = laya_path_join(&model->allocator, model->directory, name);
    if (!json->path) return laya_fail_memory(error, 0);
    LAYA_TRY(laya_file_map(&json->file, json->path, error));
    laya_status status = laya_json_parse(&json->doc, (const char *)json->file.data, json->file.size,
                                         &model->allocator, error);
    if (status == LAYA_ERROR_INPUT) status = LAYA_ERROR_FORMAT;
    if (status == LAYA_OK && laya_json_typeof(laya_json_root(&json->doc)) != LAYA_JSON_OBJECT)
        status = laya_fail(error, LAYA_ERROR_FORMAT, "expected a JSON object, found %s",
                           laya_json_type_name(laya_json_root(&json->doc)));
    if (status != LAYA_OK) {
        if (error) error->status = status;
        laya_error_prefix(error, "%s: ", json->path);
    }
    return status;
}

/* ------------------------------------------------------------------ configuration and calibration */

static void warn_temperatures(const laya_model *model, const laya_buffer *changes)
{
    char message[LAYA_MESSAGE_SIZE];
    if (!changes->size) return;
    snprintf(message, sizeof message,
             "laya: this checkpoint ships invalid temperatures or values outside [0.5, 5]; using %.700s. Treat "
             "confidence from the affected entries as uncalibrated.",
             changes->data);
    laya_model_log(model, LAYA_LOG_WARNING, message);
}

static laya_status read_calibration(laya_model *model, laya_json_value agent, const char *path, const char *languages,
                                    laya_error *error)
{
    laya_json overrides = {0};
    laya_buffer changes;
    laya_buffer_init(&changes, &model->allocator);
    laya_status status = LAYA_OK;
    if (languages) {
        status = laya_json_parse(&overrides, languages, strlen(languages), &model->allocator, error);
        if (status != LAYA_OK) laya_error_prefix(error, "lang_temperatures: ");
    }
    if (status == LAYA_OK) {
        laya_json_value root = laya_json_root(&overrides);
        status = laya_calibration_read(&model->calibration, agent, root, &model->allocator, &changes, error);
        if (status == LAYA_ERROR_FORMAT) laya_error_prefix(error, "%s: ", path);
    }
    if (status == LAYA_OK) warn_temperatures(model, &changes);
    laya_buffer_close(&changes);
    laya_json_close(&overrides);
    return status;
}

static laya_status read_configuration(laya_model *model, const char *languages, laya_error *error)
{
    json_file agent = {0}, encoder = {0};
    laya_status status = json_file_open(model, &agent, AGENT_CONFIG, error);
    if (status == LAYA_OK) status = json_file_open(model, &encoder, ENCODER_CONFIG, error);
    if (status == LAYA_OK) {
        status = laya_config_read(&model->config, laya_json_root(&encoder.doc), laya_json_root(&agent.doc),
                                  &model->allocator, error);
        if (status != LAYA_OK) laya_error_prefix(error, "%s: ", model->directory);
    }
    if (status == LAYA_OK) status = read_calibration(model, laya_json_root(&agent.doc), agent.path, languages, error);
    json_file_close(model, &agent);
    json_file_close(model, &encoder);
    return status;
}

/* ------------------------------------------------------------------ tokenizer */

/* A special token's text: a string, or an object with "content" as AddedToken is saved. */
static laya_json_value special_text(laya_json_value config, const char *key)
{
    laya_json_value value = laya_json_get(config, key);
    return laya_json_typeof(value) == LAYA_JSON_OBJECT ? laya_json_get(value, "content") : value;
}

/*
 * The id of a special token. `other` (or NULL) is the key that means the same token in tokenizers of Gemma's family;
 * it is used, with a warning, where `key` itself is absent.
 */
static laya_status find_special(const laya_model *model, laya_json_value config, const char *key, const char *other,
                                uint32_t *id, laya_error *error)
{
    size_t size;
    laya_json_value value = special_text(config, key);
    if (other && laya_json_is_null(value) && !laya_json_is_null(special_text(config, other))) {
        char message[160];
        snprintf(message, sizeof message, TOKENIZER_CONFIG " has no %s; using its %s", key, other);
        laya_model_log(model, LAYA_LOG_WARNING, message);
        value = special_text(config, other);
    }
    const char *text = laya_json_text(value, &size);
    if (laya_json_typeof(value) != LAYA_JSON_STRING || size == 0)
        return laya_fail(error, LAYA_ERROR_FORMAT, "%s: expected the text of a token, found %s", key,
                         laya_json_type_name(value));
    if (!laya_tokenizer_find(model->tokenizer, text, size, id))
        return laya_fail(error, LAYA_ERROR_FORMAT, "%s: the tokenizer has no token '%.*s'", key,
                         size > 60 ? 60 : (int)size, text);
    return LAYA_OK;
}

static laya_status read_specials(laya_model *model, laya_json_value config, laya_error *error)
{
    laya_specials *specials = &model->specials;
    LAYA_TRY(find_special(model, config, "cls_token", "bos_token", &specials->cls, error));
    LAYA_TRY(find_special(model, config, "sep_token", "eos_token", &specials->sep, error));
    LAYA_TRY(find_special(model, config, "mask_token", NULL, &specials->mask, error));
    LAYA_TRY(find_special(model, config, "pad_token", NULL, &specials->pad, error));
    size_t size;
    const char *text = laya_json_text(special_text(config, "mask_token"), &size);
    model->mask_text = laya_alloc(&model->allocator, size + 1, 1);
    if (!model->mask_text) return laya_fail_memory(error, size + 1);
    memcpy(model->mask_text, text, size);
    model->mask_text[size] = '\0';
    specials->mask_text = (laya_span){model->mask_text, size};
    return LAYA_OK;
}

static laya_status read_tokenizer(laya_model *model, laya_error *error)
{
    char *path = laya_path_join(&model->allocator, model->directory, TOKENIZER);
    if (!path) return laya_fail_memory(error, 0);
    laya_status status = laya_tokenizer_open(path, &model->allocator, &model->tokenizer, error);
    size_t size = status == LAYA_OK ? laya_tokenizer_vocab_size(model->tokenizer) : 0;
    if (status == LAYA_OK && size > model->config.vocab_size)
        status = laya_fail(error, LAYA_ERROR_FORMAT,
                           "%s: the tokenizer has %zu ids, but the embedding table only %u rows; they belong to "
                           "different models",
                           path, size, model->config.vocab_size);
    laya_release(&model->allocator, path);
    if (status != LAYA_OK) return status;

    json_file config = {0};
    status = json_file_open(model, &config, TOKENIZER_CONFIG, error);
    if (status == LAYA_OK) {
        status = read_specials(model, laya_json_root(&config.doc), error);
        if (status != LAYA_OK) laya_error_prefix(error, "%s: ", config.path);
    }
    json_file_close(model, &config);
    return status;
}

/* ------------------------------------------------------------------ weights */

static laya_status read_weights(laya_model *model, laya_error *error)
{
    char *path = laya_path_join(&model->allocator, model->directory, model->weight_name);
    if (!path) return laya_fail_memory(error, 0);
    laya_status status = LAYA_OK;
    if (!laya_path_exists(path))
        status = laya_fail(error, LAYA_ERROR_IO, "Incompatible model: '%s' not found in %s.", model->weight_name,
                           model->directory);
    if (status == LAYA_OK) status = laya_file_map(&model->weight_file, path, error);
    if (status == LAYA_OK) {
        status = laya_safetensors_read(&model->tensors, model->weight_file.data, model->weight_file.size,
                                       &model->allocator, error);
        if (status == LAYA_OK)
            status = (model->host_only ? laya_weights_bind_host : laya_weights_bind)(
                &model->weights, &model->tensors, &model->config, &model->allocator, error);
        if (status != LAYA_OK) laya_error_prefix(error, "%s: ", path);
    }
    laya_release(&model->allocator, path);
    return status;
}

/* ------------------------------------------------------------------ open and close */

void laya_model_log(const laya_model *model, laya_log_level level, const char *message)
{
    if (model->logger.log) model->logger.log(model->logger.user, level, message);
}

void laya_model_options_init(laya_model_options *options)
{
    *options = (laya_model_options){.size = sizeof *options};
}

static laya_status check_directory(const laya_model *model, laya_error *error)
{
    if (!laya_path_exists(model->directory))
        return laya_fail(error, LAYA_ERROR_IO,
                         "Local model path not found: %s. Check that the directory exists and holds " AGENT_CONFIG
                         ", " WEIGHTS ", encoder/ and tokenizer/.",
                         model->directory);
    if (!laya_path_is_directory(model->directory))
        return laya_fail(error, LAYA_ERROR_IO, "%s: expected a checkpoint directory, found a file", model->directory);
    char *path = laya_path_join(&model->allocator, model->directory, AGENT_CONFIG);
    if (!path) return laya_fail_memory(error, 0);
    bool present = laya_path_exists(path);
    laya_release(&model->allocator, path);
    if (present) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_IO,
                     "Incompatible model: %s does not contain '" AGENT_CONFIG "'. Name the folder of one checkpoint.",
                     model->directory);
}

static laya_status open_parts(laya_model *model, const char *directory, const char *languages, laya_error *error)
{
    size_t size = strlen(directory) + 1;
    model->directory = laya_alloc(&model->allocator, size, 1);
    if (!model->directory) return laya_fail_memory(error, size);
    memcpy(model->directory, directory, size);
    LAYA_TRY(check_directory(model, error));
    LAYA_TRY(read_configuration(model, languages, error));
    LAYA_TRY(read_weights(model, error));
    return read_tokenizer(model, error);
}

static laya_status open_model(const char *directory, const char *weights, bool host_only,
                              const laya_model_options *options, laya_model **model, laya_error *error)
{
    laya_model_options defaults;
    laya_error_clear(error);
    if (!model) return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_model_open: model must not be NULL");
    *model = NULL;
    if (!directory) return laya_fail(error, LAYA_ERROR_ARGUMENT, "laya_model_open: directory must not be NULL");
    if (!options) {
        laya_model_options_init(&defaults);
        options = &defaults;
    }
    if (options->size != sizeof *options)
        return laya_fail(error, LAYA_ERROR_ARGUMENT,
                         "laya_model_open: options.size is %zu, expected %zu; call laya_model_options_init first",
                         options->size, sizeof *options);
    laya_allocator allocator = laya_allocator_or_default(&options->allocator);
    laya_model *opened = laya_alloc_zero(&allocator, 1, sizeof *opened);
    if (!opened) return laya_fail_memory(error, sizeof *opened);
    opened->allocator = allocator;
    opened->logger = options->logger;
    opened->weight_name = weights;
    opened->host_only = host_only;
    laya_status status = open_parts(opened, directory, options->lang_temperatures, error);
    if (status != LAYA_OK) {
        laya_model_close(opened);
        return status;
    }
    *model = opened;
    return LAYA_OK;
}

laya_status laya_model_open(const char *directory, const laya_model_options *options, laya_model **model,
                            laya_error *error)
{
    return open_model(directory, WEIGHTS, false, options, model, error);
}

laya_status laya_model_open_host(const char *directory, const char *weights, const laya_model_options *options,
                                 laya_model **model, laya_error *error)
{
    return open_model(directory, weights, true, options, model, error);
}

void laya_model_close(laya_model *model)
{
    if (!model) return;
    laya_weights_close(&model->weights);
    laya_safetensors_close(&model->tensors);
    laya_file_unmap(&model->weight_file);
    laya_release(&model->allocator, model->mask_text);
    laya_tokenizer_close(model->tokenizer);
    laya_calibration_close(&model->calibration);
    laya_config_close(&model->config);
    laya_release(&model->allocator, model->directory);
    laya_allocator allocator = model->allocator;
    laya_release(&allocator, model);
}

const laya_tokenizer *laya_model_tokenizer(const laya_model *model)
{
    return model->tokenizer;
}

void laya_model_get_info(const laya_model *model, laya_model_info *info)
{
    const laya_config *config = &model->config;
    *info = (laya_model_info){
        .directory = model->directory,
        .name = config->model_name,
        .encoder = config->encoder_name,
        .vocab_size = config->vocab_size,
        .hidden_size = config->hidden_size,
        .encoder_layers = config->encoder_layers,
        .attention_heads = config->attention_heads,
        .head_size = config->head_size,
        .intermediate_size = config->intermediate_size,
        .local_attention = config->local_attention,
        .max_positions = config->max_positions,
        .head_layers = config->head_layers,
        .actions = config->actions,
        .max_len = config->max_len,
        .head_max_len = config->head_max_len,
        .global_rope_theta = config->global_rope_theta,
        .local_rope_theta = config->local_rope_theta,
        .parameters = model->weights.parameters,
        .weight_bytes = model->weight_file.size,
    };
}
