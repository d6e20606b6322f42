/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads encoder/config.json and rl_agent_config.json. A field that changes answers is read, checked, or refused by
 * name; fields of training and bookkeeping are not looked at. Nothing that the encoder needs has a default.
 */
#include "model/config.h"

#include "base/error.h"
#include "model/engine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Sanity limits. They keep every product of two sizes below 2^40 and every tensor's byte count within 64 bits. */
#define MAX_VOCAB (1u << 24)
#define MAX_HIDDEN (1u << 14)
#define MAX_LAYERS 512u
#define MAX_HEADS 1024u
#define MAX_INTERMEDIATE (1u << 17)
#define MAX_POSITIONS (1u << 20)
#define MAX_HEAD_LAYERS 64u

#define ENCODER "encoder/config.json"
#define AGENT "rl_agent_config.json"

/* The missing keys of one document, in Python's list form. */
typedef struct key_list {
    char text[512];
    size_t used;
} key_list;

static void add_key(key_list *list, const char *key)
{
    const char *before = list->used ? ", '" : "'";
    size_t size = strlen(before) + strlen(key) + 1;
    if (list->used + size >= sizeof list->text) return;
    memcpy(list->text + list->used, before, strlen(before));
    memcpy(list->text + list->used + strlen(before), key, strlen(key));
    list->used += size;
    list->text[list->used - 1] = '\'';
    list->text[list->used] = '\0';
}

/* ------------------------------------------------------------------ typed fields */

static laya_status read_integer(laya_json_value object, const char *file, const char *key, uint32_t low,
                                uint32_t high, uint32_t *number, laya_error *error)
{
    laya_json_value value = laya_json_get(object, key);
    if (laya_json_typeof(value) != LAYA_JSON_INTEGER) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "%s: '%s' must be an integer, found %s", file, key,
                         laya_json_type_name(value));
    }
    if (!laya_json_to_uint32(value, number) || *number < low || *number > high) {
        size_t size;
        const char *text = laya_json_text(value, &size);
        return laya_fail(error, LAYA_ERROR_FORMAT, "%s: '%s' must be from %lu to %lu, found %.*s", file, key,
                         (unsigned long)low, (unsigned long)high, size < 32 ? (int)size : 32, text);
    }
    return LAYA_OK;
}

/* A finite number above `above`. */
static laya_status read_number(laya_json_value value, const char *file, const char *key, double above, double *number,
                               laya_error *error)
{
    if (!laya_json_to_double(value, number)) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "%s: '%s' must be a number, found %s", file, key,
                         laya_json_type_name(value));
    }
    if (!isfinite(*number) || !(*number > above)) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "%s: '%s' must be a finite number above %g, found %g", file, key,
                         above, *number);
    }
    return LAYA_OK;
}

static laya_status read_text(const laya_config *config, laya_json_value value, const char *key, char **text,
                             laya_error *error)
{
    size_t size = 0;
    const char *source = "";
    if (laya_json_present(value)) {
        if (laya_json_typeof(value) != LAYA_JSON_STRING) {
            return laya_fail(error, LAYA_ERROR_FORMAT, "%s: '%s' must be a string, found %s", AGENT, key,
                             laya_json_type_name(value));
        }
        source = laya_json_text(value, &size);
        if (size && memchr(source, '\0', size)) {
            return laya_fail(error, LAYA_ERROR_FORMAT, "%s: '%s' holds a NUL character", AGENT, key);
        }
    }
    *text = laya_alloc(&config->allocator, size + 1, 1);
    if (!*text) return laya_fail_memory(error, size + 1);
    if (size) memcpy(*text, source, size);
    (*text)[size] = '\0';
    return LAYA_OK;
}

/* A field that may be absent, null or false. */
static laya_status require_false(laya_json_value object, const char *key, laya_error *error)
{
    laya_json_value value = laya_json_get(object, key);
    if (laya_json_is_null(value) || laya_json_typeof(value) == LAYA_JSON_FALSE) return LAYA_OK;
    if (laya_json_typeof(value) == LAYA_JSON_TRUE) {
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "%s: '%s' true is not supported", ENCODER, key);
    }
    return laya_fail(error, LAYA_ERROR_FORMAT, "%s: '%s' must be false, found %s", ENCODER, key,
                     laya_json_type_name(value));
}

static laya_status require_text(laya_json_value value, const char *file, const char *key, const char *wanted,
                                laya_error *error)
{
    if (laya_json_equals(value, wanted)) return LAYA_OK;
    if (laya_json_typeof(value) != LAYA_JSON_STRING) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "%s: '%s' must be a string, found %s", file, key,
                         laya_json_type_name(value));
    }
    size_t size;
    const char *text = laya_json_text(value, &size);
    return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "%s: '%s' must be '%s', '%.*s' is not supported", file, key,
                     wanted, size < 64 ? (int)size : 64, text);
}

/* ------------------------------------------------------------------ encoder/config.json */

/* One rope description: {"rope_type": "default", "rope_theta": number}. */
static laya_status read_rope(laya_json_value rope, const char *place, double *theta, laya_error *error)
{
    char key[96];
    if (laya_json_typeof(rope) != LAYA_JSON_OBJECT) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "%s: '%s' must be an object, found %s", ENCODER, place,
                         laya_json_type_name(rope));
    }
    for (laya_json_iterator it = laya_json_first(rope); laya_json_present(it.value); laya_json_next(&it)) {
        size_t size;
        const char *name = laya_json_text(it.key, &size);
        snprintf(key, sizeof key, "%s.%.*s", place, size < 32 ? (int)size : 32, name);
        double factor;
        if (laya_json_equals(it.key, "rope_theta")) {
            LAYA_TRY(read_number(it.value, ENCODER, key, 0, theta, error));
        } else if (laya_json_equals(it.key, "rope_type") || laya_json_equals(it.key, "type")) {
            LAYA_TRY(require_text(it.value, ENCODER, key, "default", error));
        } else if (!laya_json_equals(it.key, "partial_rotary_factor") || !laya_json_to_double(it.value, &factor) ||
                   factor != 1) {
            return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "%s: '%s' is not supported", ENCODER, key);
        }
    }
    if (*theta > 0) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_FORMAT, "%s: '%s' has no rope_theta", ENCODER, place);
}

/*
 * Both spellings. Per kind of layer rope_parameters wins, then global_rope_theta or local_rope_theta; there is no
 * default, because a wrong base gives wrong answers without any error.
 */
static laya_status read_thetas(laya_config *config, laya_json_value encoder, laya_error *error)
{
    laya_json_value scaling = laya_json_get(encoder, "rope_scaling");
    if (!laya_json_is_null(scaling)) {
        laya_json_value type = laya_json_get(scaling, "rope_type");
        if (!laya_json_present(type)) type = laya_json_get(scaling, "type");
        if (!laya_json_equals(type, "default")) {
            return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "%s: 'rope_scaling' is not supported", ENCODER);
        }
    }
    laya_json_value rope = laya_json_get(encoder, "rope_parameters");
    if (!laya_json_is_null(rope)) {
        laya_json_value full = laya_json_get(rope, "full_attention");
        laya_json_value sliding = laya_json_get(rope, "sliding_attention");
        if (laya_json_present(full) || laya_json_present(sliding)) {
            if (laya_json_size(rope) != (size_t)laya_json_present(full) + (size_t)laya_json_present(sliding)) {
                return laya_fail(error, LAYA_ERROR_UNSUPPORTED,
                                 "%s: 'rope_parameters' may hold only full_attention and sliding_attention", ENCODER);
            }
            if (laya_json_present(full)) {
                LAYA_TRY(read_rope(full, "rope_parameters.full_attention", &config->global_rope_theta, error));
            }
            if (laya_json_present(sliding)) {
                LAYA_TRY(read_rope(sliding, "rope_parameters.sliding_attention", &config->local_rope_theta, error));
            }
        } else {
            LAYA_TRY(read_rope(rope, "rope_parameters", &config->global_rope_theta, error));
            config->local_rope_theta = config->global_rope_theta;
        }
    }
    static const char *const keys[2] = {"global_rope_theta", "local_rope_theta"};
    static const char *const kinds[2] = {"full_attention", "sliding_attention"};
    double *thetas[2] = {&config->global_rope_theta, &config->local_rope_theta};
    for (int i = 0; i < 2; i++) {
        if (*thetas[i] > 0) continue;
        laya_json_value value = laya_json_get(encoder, keys[i]);
        if (!laya_json_present(value)) {
            return laya_fail(error, LAYA_ERROR_FORMAT, "%s: no rope theta: neither 'rope_parameters.%s' nor '%s'",
                             ENCODER, kinds[i], keys[i]);
        }
        LAYA_TRY(read_number(value, ENCODER, keys[i], 0, thetas[i], error));
    }
    return LAYA_OK;
}

/*
 * The window. local_attention counts both sides (128: |i - j| <= 64); sliding_window, the newer field, counts one
 * side and is local_attention / 2. With both given they must agree.
 */
static laya_status read_window(laya_config *config, laya_json_value encoder, laya_error *error)
{
    bool local = !laya_json_is_null(laya_json_get(encoder, "local_attention"));
    if (local) {
        LAYA_TRY(
            read_integer(encoder, ENCODER, "local_attention", 1, 2 * MAX_POSITIONS, &config->local_attention, error));
    }
    if (!laya_json_is_null(laya_json_get(encoder, "sliding_window"))) {
        uint32_t side;
        LAYA_TRY(read_integer(encoder, ENCODER, "sliding_window", 1, MAX_POSITIONS, &side, error));
        if (local && side != config->local_attention / 2) {
            return laya_fail(error, LAYA_ERROR_FORMAT,
                             "%s: 'sliding_window' %lu contradicts 'local_attention' %lu (it must be half of it)",
                             ENCODER, (unsigned long)side, (unsigned long)config->local_attention);
        }
        if (!local) config->local_attention = 2 * side;
    }
    return LAYA_OK;
}

/* layer_types where it is given, else every n-th layer from layer 0 on is global. With both given they must agree. */
static laya_status read_layer_kinds(laya_config *config, laya_json_value encoder, laya_error *error)
{
    config->layer_is_global = laya_alloc_zero(&config->allocator, config->encoder_layers,
                                              sizeof *config->layer_is_global);
    if (!config->layer_is_global) return laya_fail_memory(error, config->encoder_layers);
    uint32_t every = 1;
    bool by_rule = !laya_json_is_null(laya_json_get(encoder, "global_attn_every_n_layers"));
    if (by_rule) {
        LAYA_TRY(read_integer(encoder, ENCODER, "global_attn_every_n_layers", 1, MAX_LAYERS, &every, error));
    }
    laya_json_value types = laya_json_get(encoder, "layer_types");
    if (laya_json_is_null(types)) { /* then the rule is, see read_encoder */
        for (uint32_t i = 0; i < config->encoder_layers; i++) config->layer_is_global[i] = i % every == 0;
        return LAYA_OK;
    }
    if (laya_json_typeof(types) != LAYA_JSON_ARRAY || laya_json_size(types) != config->encoder_layers) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "%s: 'layer_types' must be a list of %lu kinds, one per layer",
                         ENCODER, (unsigned long)config->encoder_layers);
    }
    uint32_t layer = 0;
    for (laya_json_iterator it = laya_json_first(types); laya_json_present(it.value); laya_json_next(&it), layer++) {
        bool global = laya_json_equals(it.value, "full_attention");
        if (!global) LAYA_TRY(require_text(it.value, ENCODER, "layer_types", "sliding_attention", error));
        if (by_rule && global != (layer % every == 0)) {
            return laya_fail(error, LAYA_ERROR_FORMAT,
                             "%s: 'layer_types' contradicts 'global_attn_every_n_layers' %lu at layer %lu", ENCODER,
                             (unsigned long)every, (unsigned long)layer);
        }
        config->layer_is_global[layer] = global;
    }
    return LAYA_OK;
}

static laya_status read_encoder(laya_config *config, laya_json_value encoder, laya_error *error)
{
    if (laya_json_typeof(encoder) != LAYA_JSON_OBJECT) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "%s must hold an object, found %s", ENCODER,
                         laya_json_type_name(encoder));
    }
    /* Another architecture has other keys, so its name is the better message. */
    if (laya_json_present(laya_json_get(encoder, "model_type"))) {
        LAYA_TRY(require_text(laya_json_get(encoder, "model_type"), ENCODER, "model_type", "modernbert", error));
    }
    static const char *const required[] = {
        "model_type",        "vocab_size",        "hidden_size", "num_hidden_layers",      "num_attention_heads",
        "intermediate_size", "hidden_activation", "norm_eps",    "max_position_embeddings"};
    key_list missing = {.used = 0};
    for (size_t i = 0; i < sizeof required / sizeof *required; i++) {
        if (!laya_json_present(laya_json_get(encoder, required[i]))) add_key(&missing, required[i]);
    }
    if (laya_json_is_null(laya_json_get(encoder, "local_attention")) &&
        laya_json_is_null(laya_json_get(encoder, "sliding_window"))) {
        add_key(&missing, "local_attention");
    }
    if (laya_json_is_null(laya_json_get(encoder, "global_attn_every_n_layers")) &&
        laya_json_is_null(laya_json_get(encoder, "layer_types"))) {
        add_key(&missing, "global_attn_every_n_layers");
    }
    if (missing.used) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "%s: missing configuration keys [%s]", ENCODER, missing.text);
    }
    LAYA_TRY(require_text(laya_json_get(encoder, "hidden_activation"), ENCODER, "hidden_activation", "gelu", error));
    static const char *const off[] = {"norm_bias", "attention_bias", "mlp_bias", "is_decoder", "add_cross_attention"};
    for (size_t i = 0; i < sizeof off / sizeof *off; i++) LAYA_TRY(require_false(encoder, off[i], error));
    static const char *const unknown[] = {"quantization_config", "option_layout", "residual_adapters"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        if (laya_json_is_null(laya_json_get(encoder, unknown[i]))) continue;
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "%s: '%s' is not supported", ENCODER, unknown[i]);
    }

    LAYA_TRY(read_integer(encoder, ENCODER, "vocab_size", 1, MAX_VOCAB, &config->vocab_size, error));
    LAYA_TRY(read_integer(encoder, ENCODER, "hidden_size", 1, MAX_HIDDEN, &config->hidden_size, error));
    LAYA_TRY(read_integer(encoder, ENCODER, "num_hidden_layers", 1, MAX_LAYERS, &config->encoder_layers, error));
    LAYA_TRY(read_integer(encoder, ENCODER, "num_attention_heads", 1, MAX_HEADS, &config->attention_heads, error));
    LAYA_TRY(
        read_integer(encoder, ENCODER, "intermediate_size", 1, MAX_INTERMEDIATE, &config->intermediate_size, error));
    LAYA_TRY(
        read_integer(encoder, ENCODER, "max_position_embeddings", 1, MAX_POSITIONS, &config->max_positions, error));
    LAYA_TRY(read_number(laya_json_get(encoder, "norm_eps"), ENCODER, "norm_eps", 0, &config->norm_eps, error));
    config->head_size = config->hidden_size / config->attention_heads;
    if (config->hidden_size % config->attention_heads != 0 || config->head_size % 2 != 0) {
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "%s: 'hidden_size' %lu must be a multiple of 2 * 'num_attention_heads' (%lu)", ENCODER,
                         (unsigned long)config->hidden_size, (unsigned long)config->attention_heads);
    }
    if (!laya_json_is_null(laya_json_get(encoder, "head_dim"))) {
        uint32_t size;
        LAYA_TRY(read_integer(encoder, ENCODER, "head_dim", 1, MAX_HIDDEN, &size, error));
        if (size != config->head_size) {
            return laya_fail(error, LAYA_ERROR_UNSUPPORTED,
                             "%s: 'head_dim' %lu is not 'hidden_size' / 'num_attention_heads'", ENCODER,
                             (unsigned long)size);
        }
    }
    LAYA_TRY(read_window(config, encoder, error));
    LAYA_TRY(read_thetas(config, encoder, error));
    return read_layer_kinds(config, encoder, error);
}

/* ------------------------------------------------------------------ rl_agent_config.json */

static laya_status read_agent(laya_config *config, laya_json_value agent, laya_error *error)
{
    if (laya_json_typeof(agent) != LAYA_JSON_OBJECT) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "%s must hold an object, found %s", AGENT,
                         laya_json_type_name(agent));
    }
    key_list missing = {.used = 0};
    static const char *const required[] = {"encoder", "head_layers"};
    for (size_t i = 0; i < sizeof required / sizeof *required; i++) {
        if (!laya_json_present(laya_json_get(agent, required[i]))) add_key(&missing, required[i]);
    }
    if (missing.used) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "Incompatible model config: missing configuration keys [%s]",
                         missing.text);
    }
    laya_json_value layout = laya_json_get(agent, "option_layout");
    if (!laya_json_is_null(layout)) LAYA_TRY(require_text(layout, AGENT, "option_layout", "sequential", error));
    if (!laya_json_is_null(laya_json_get(agent, "residual_adapters"))) {
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "%s: 'residual_adapters' is not supported", AGENT);
    }

    LAYA_TRY(read_integer(agent, AGENT, "head_layers", 0, MAX_HEAD_LAYERS, &config->head_layers, error));
    config->max_len = 512;
    config->head_max_len = 192;
    if (laya_json_present(laya_json_get(agent, "max_len"))) {
        LAYA_TRY(read_integer(agent, AGENT, "max_len", 1, MAX_POSITIONS, &config->max_len, error));
    }
    if (laya_json_present(laya_json_get(agent, "head_max_len"))) {
        LAYA_TRY(read_integer(agent, AGENT, "head_max_len", 1, MAX_POSITIONS, &config->head_max_len, error));
    }
    laya_json_value costs = laya_json_get(agent, "act_costs");
    if (laya_json_present(costs) && laya_json_typeof(costs) != LAYA_JSON_OBJECT) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "%s: 'act_costs' must be an object, found %s", AGENT,
                         laya_json_type_name(costs));
    }
    size_t actions = laya_json_size(costs) + 1;
    if (actions > LAYA_MAX_ACTIONS) {
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "%s: 'act_costs' has %zu entries, at most %d are supported",
                         AGENT, actions - 1, LAYA_MAX_ACTIONS - 1);
    }
    config->actions = (uint32_t)actions;
    LAYA_TRY(read_text(config, laya_json_get(agent, "encoder"), "encoder", &config->encoder_name, error));
    return read_text(config, laya_json_get(agent, "model_name"), "model_name", &config->model_name, error);
}

/* ------------------------------------------------------------------ both */

static laya_status check_both(laya_config *config, laya_error *error)
{
    config->head_heads = config->hidden_size < 64 ? 1 : config->hidden_size / 64;
    if (config->head_layers && config->hidden_size % config->head_heads != 0) {
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "%s: 'hidden_size' %lu does not divide into the decision head's %lu heads", ENCODER,
                         (unsigned long)config->hidden_size, (unsigned long)config->head_heads);
    }
    if (config->max_len > config->max_positions) {
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "%s: 'max_len' %lu is above the encoder's 'max_position_embeddings' %lu", AGENT,
                         (unsigned long)config->max_len, (unsigned long)config->max_positions);
    }
    return LAYA_OK;
}

laya_status laya_config_read(laya_config *config, laya_json_value encoder, laya_json_value agent,
                             const laya_allocator *allocator, laya_error *error)
{
    *config = (laya_config){.allocator = laya_allocator_or_default(allocator)};
    laya_status status = read_agent(config, agent, error);
    if (status == LAYA_OK) status = read_encoder(config, encoder, error);
    if (status == LAYA_OK) status = check_both(config, error);
    if (status != LAYA_OK) laya_config_close(config);
    return status;
}

void laya_config_close(laya_config *config)
{
    laya_release(&config->allocator, config->layer_is_global);
    laya_release(&config->allocator, config->encoder_name);
    laya_release(&config->allocator, config->model_name);
    config->layer_is_global = NULL;
    config->encoder_name = NULL;
    config->model_name = NULL;
}
