/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Write a checkpoint with random weights in the release layout, for benchmarks and tests of full-size shapes.
 *
 *     laya-make-checkpoint [--outliers] multilingual|large|SHAPE TOKENIZER_FOLDER OUT
 *
 * SHAPE is "layers,hidden,intermediate,vocabulary,head_layers". The tokenizer folder is copied; its ids must fit the
 * vocabulary. Values come from a seeded generator, so that the same call gives the same bytes. It is no model: its
 * answers mean nothing. An existing OUT is refused.
 *
 * --outliers: what makes half precision hard in trained models, see below.
 */
#include "base/file.h"
#include "base/half.h"
#include "base/json.h"
#include "base/memory.h"
#include "laya/tokenizer.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ACTIONS 2
#define MAX_TENSORS 4096
#define MAX_CHANGES 1024

typedef struct shape {
    unsigned layers, hidden, intermediate, vocabulary, head_layers;
} shape;

typedef struct tensor {
    char name[96];
    unsigned rows, cols;  /* rows 0: a vector */
    float centre, spread; /* values are centre + spread * u, u uniform in [-1, 1] */
} tensor;

/* A rectangle of a tensor whose values are multiplied, then moved: value * factor + term. A vector is one row. */
typedef struct change {
    char name[96];
    unsigned row, rows, col, cols;
    float factor, term;
} change;

static tensor tensors[MAX_TENSORS];
static size_t tensor_count;
static change changes[MAX_CHANGES];
static size_t change_count;

static void add(const char *prefix, const char *name, unsigned rows, unsigned cols, float centre, float spread)
{
    if (tensor_count == MAX_TENSORS) {
        fprintf(stderr, "laya-make-checkpoint: too many tensors\n");
        exit(2);
    }
    tensor *t = &tensors[tensor_count++];
    snprintf(t->name, sizeof t->name, "%s%s", prefix, name);
    t->rows = rows;
    t->cols = cols;
    t->centre = centre;
    t->spread = spread;
}

static void add_norm(const char *prefix, const char *name, unsigned size)
{
    add(prefix, name, 0, size, 1.0f, 0.2f);
}

/* Uniform in +-sqrt(3 / in) has variance 1 / in: activations keep their size, about. */
static float linear_spread(unsigned in)
{
    return 1.7f / (float)(in > 4096 ? 64 : in > 1024 ? 40 : in > 256 ? 28 : 14);
}

static void add_linear(const char *prefix, const char *name, unsigned out, unsigned in)
{
    add(prefix, name, out, in, 0.0f, linear_spread(in));
}

/* Variance of a linear layer's results for inputs of variance 1. */
static float linear_gain(unsigned in)
{
    return (float)in * linear_spread(in) * linear_spread(in) / 3.0f;
}

static void list_tensors(const shape *s)
{
    char prefix[64];
    unsigned d = s->hidden;
    add("", "act_head.0.bias", 0, 256, 0, 0.1f);
    add_linear("", "act_head.0.weight", 256, d + 4);
    add("", "act_head.2.bias", 0, ACTIONS, 0, 0.1f);
    add_linear("", "act_head.2.weight", ACTIONS, 256);
    add_norm("", "encoder.embeddings.norm.weight", d);
    add("", "encoder.embeddings.tok_embeddings.weight", s->vocabulary, d, 0, 1.0f);
    add_norm("", "encoder.final_norm.weight", d);
    for (unsigned layer = 0; layer < s->layers; layer++) {
        snprintf(prefix, sizeof prefix, "encoder.layers.%u.", layer);
        if (layer > 0) add_norm(prefix, "attn_norm.weight", d);
        add_linear(prefix, "attn.Wqkv.weight", 3 * d, d);
        add_linear(prefix, "attn.Wo.weight", d, d);
        add_norm(prefix, "mlp_norm.weight", d);
        add_linear(prefix, "mlp.Wi.weight", 2 * s->intermediate, d);
        add_linear(prefix, "mlp.Wo.weight", d, s->intermediate);
    }
    for (unsigned layer = 0; layer < s->head_layers; layer++) {
        snprintf(prefix, sizeof prefix, "head.layers.%u.", layer);
        add_linear(prefix, "self_attn.in_proj_weight", 3 * d, d);
        add(prefix, "self_attn.in_proj_bias", 0, 3 * d, 0, 0.1f);
        add_linear(prefix, "self_attn.out_proj.weight", d, d);
        add(prefix, "self_attn.out_proj.bias", 0, d, 0, 0.1f);
        add_linear(prefix, "linear1.weight", 4 * d, d);
        add(prefix, "linear1.bias", 0, 4 * d, 0, 0.1f);
        add_linear(prefix, "linear2.weight", d, 4 * d);
        add(prefix, "linear2.bias", 0, d, 0, 0.1f);
        add_norm(prefix, "norm1.weight", d);
        add(prefix, "norm1.bias", 0, d, 0, 0.1f);
        add_norm(prefix, "norm2.weight", d);
        add(prefix, "norm2.bias", 0, d, 0, 0.1f);
    }
    add_norm("", "scorer.0.weight", d);
    add("", "scorer.0.bias", 0, d, 0, 0.1f);
    add_linear("", "scorer.1.weight", d, d);
    add("", "scorer.1.bias", 0, d, 0, 0.1f);
    add_linear("", "scorer.3.weight", 1, d);
    add("", "scorer.3.bias", 0, 1, 0, 0.1f);
    add("", "temperature", 0, 3, 1.0f, 0);
    add("", "type_emb.weight", 3, d, 0, 0.2f);
}

/* ------------------------------------------------------------------ outliers
 * Channel SIGNAL of the residual stream is large for the first token of a row, nearly zero for all others, and no layer
 * writes it. In the middle layer one unit of the feed-forward block reads it alone and drives four channels of the
 * first token to some 3e4, where they stay: one token, few channels, from a middle layer on, as in trained models. In
 * the layers after that queries and keys are larger, so that attention scores reach about 55, and so is the action
 * head's last layer, for action logits in the thousands.
 *
 * Measured with the float32 engine on rows of 96 tokens, everything finite:
 *
 *     shape                     multilingual    large    4,64,96,4096,2   12,384,576,4096,2
 *     residual, first token           26,244   31,687            28,516              29,784
 *     residual, other tokens              19       33                44                   7
 *     attention scores                  55.0     53.1              41.4                47.5
 *     action logits                    3,886    6,611               273               1,145
 */
#define SIGNAL 7u
#define OUTLIER_CHANNELS 4u
#define PRE_ACTIVATION 40.0f /* of the unit that reads SIGNAL */
#define RESIDUAL 30000.0f    /* of the largest channel */
#define SCORE_VARIANCE 9.6f  /* gives a largest score of 55 among some 100 tokens */
#define ACTION_GAIN 4000.0f

static void alter(const char *prefix, const char *name, change rectangle)
{
    if (change_count == MAX_CHANGES) {
        fprintf(stderr, "laya-make-checkpoint: too many changes\n");
        exit(2);
    }
    change *c = &changes[change_count++];
    *c = rectangle;
    snprintf(c->name, sizeof c->name, "%s%s", prefix, name);
}

static void set_values(const char *prefix, const char *name, unsigned row, unsigned rows, unsigned col, unsigned cols,
                       float value)
{
    alter(prefix, name, (change){.row = row, .rows = rows, .col = col, .cols = cols, .term = value});
}

/* SIGNAL of the first token, normalized before the feed-forward block of a layer. It is sqrt(hidden) in the residual
   stream; each layer before adds to the variance of the other channels, 0.55 being measured. */
static float signal_at(const shape *s, unsigned layer)
{
    float added = 0.55f * linear_gain(s->hidden) * linear_gain(s->hidden) * linear_gain(s->intermediate);
    return sqrtf((float)s->hidden / (1.0f + added * ((float)layer + 0.5f)));
}

/* The unit of layer `prefix` that turns SIGNAL into outliers. */
static void add_unit(const shape *s, const char *prefix, float signal)
{
    const unsigned channels[OUTLIER_CHANNELS] = {3, s->hidden / 3, s->hidden / 2 + 1, s->hidden - 5};
    const float parts[OUTLIER_CHANNELS] = {1.0f, -0.8f, 0.6f, -0.4f};
    float weight = PRE_ACTIVATION / signal;
    set_values(prefix, "mlp_norm.weight", 0, 1, SIGNAL, 1, 1.0f);
    for (unsigned half = 0; half < 2; half++) { /* through GELU, and the gate */
        set_values(prefix, "mlp.Wi.weight", half * s->intermediate, 1, 0, s->hidden, 0.0f);
        set_values(prefix, "mlp.Wi.weight", half * s->intermediate, 1, SIGNAL, 1, weight);
    }
    set_values(prefix, "mlp.Wo.weight", 0, s->hidden, 0, 1, 0.0f);
    for (unsigned at = 0; at < OUTLIER_CHANNELS; at++)
        set_values(prefix, "mlp.Wo.weight", channels[at], 1, 0, 1,
                   parts[at] * RESIDUAL / (PRE_ACTIVATION * PRE_ACTIVATION));
}

static void list_outliers(const shape *s, unsigned first_token)
{
    char prefix[64];
    unsigned d = s->hidden, middle = s->layers / 2;
    float score_gain = sqrtf(SCORE_VARIANCE / linear_gain(d));
    set_values("", "encoder.embeddings.tok_embeddings.weight", 0, s->vocabulary, SIGNAL, 1, 0.0f);
    set_values("", "encoder.embeddings.tok_embeddings.weight", first_token, 1, SIGNAL, 1, 1000.0f);
    set_values("", "encoder.embeddings.norm.weight", 0, 1, SIGNAL, 1, 1.0f);
    for (unsigned layer = 0; layer < s->layers; layer++) {
        snprintf(prefix, sizeof prefix, "encoder.layers.%u.", layer);
        set_values(prefix, "attn.Wo.weight", SIGNAL, 1, 0, d, 0.0f);
        set_values(prefix, "mlp.Wo.weight", SIGNAL, 1, 0, s->intermediate, 0.0f);
        if (layer >= middle)
            alter(prefix, "attn.Wqkv.weight", (change){.rows = 2 * d, .cols = d, .factor = score_gain});
        if (layer == middle) add_unit(s, prefix, signal_at(s, middle));
    }
    alter("", "act_head.2.weight", (change){.rows = ACTIONS, .cols = 256, .factor = ACTION_GAIN});
}

static size_t value_count(const tensor *t)
{
    return (size_t)(t->rows ? t->rows : 1) * t->cols;
}

static void write_header(FILE *file)
{
    laya_buffer header;
    size_t offset = 0;
    laya_buffer_init(&header, NULL);
    laya_buffer_putc(&header, '{');
    for (size_t at = 0; at < tensor_count; at++) {
        const tensor *t = &tensors[at];
        size_t bytes = value_count(t) * 2;
        laya_buffer_printf(&header, "%s\"%s\":{\"dtype\":\"F16\",\"shape\":[", at ? "," : "", t->name);
        if (t->rows) laya_buffer_printf(&header, "%u,", t->rows);
        laya_buffer_printf(&header, "%u],\"data_offsets\":[%zu,%zu]}", t->cols, offset, offset + bytes);
        offset += bytes;
    }
    laya_buffer_putc(&header, '}');
    while (header.size % 8) laya_buffer_putc(&header, ' ');
    for (unsigned byte = 0; byte < 8; byte++) fputc((int)(header.size >> (8 * byte) & 0xFF), file);
    fwrite(header.data, 1, header.size, file);
    laya_buffer_close(&header);
}

/* SplitMix64: four 16-bit indices a step into a table of values. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* Values first .. first + count - 1 of a tensor, little-endian halves. */
static void apply_changes(const tensor *t, size_t first, size_t count, uint16_t *block)
{
    for (size_t at = 0; at < change_count; at++) {
        const change *c = &changes[at];
        if (strcmp(c->name, t->name) != 0) continue;
        size_t row = first / t->cols > c->row ? first / t->cols : c->row;
        for (; row < (size_t)c->row + c->rows && row * t->cols < first + count; row++) {
            for (size_t col = c->col; col < (size_t)c->col + c->cols; col++) {
                size_t place = row * t->cols + col;
                if (place < first || place >= first + count) continue;
                unsigned char *bytes = (unsigned char *)&block[place - first];
                float value = laya_half_to_float((uint16_t)(bytes[0] | bytes[1] << 8));
                uint16_t half = laya_float_to_half(value * c->factor + c->term);
                bytes[0] = (unsigned char)(half & 0xFF);
                bytes[1] = (unsigned char)(half >> 8);
            }
        }
    }
}

static void write_tensor(FILE *file, const tensor *t, uint64_t *state)
{
    static uint16_t table[65536], block[32768];
    for (size_t at = 0; at < 65536; at++) {
        float unit = ((float)at - 32767.5f) / 32767.5f;
        uint16_t half = laya_float_to_half(t->centre + t->spread * unit);
        unsigned char bytes[2] = {(unsigned char)(half & 0xFF), (unsigned char)(half >> 8)}; /* little-endian */
        memcpy(&table[at], bytes, 2);
    }
    size_t size = value_count(t), capacity = sizeof block / sizeof *block;
    for (size_t done = 0; done < size;) {
        size_t count = size - done < capacity ? size - done : capacity;
        for (size_t at = 0; at < count; at += 4) {
            uint64_t bits = next_random(state);
            for (size_t lane = 0; lane < 4; lane++) block[at + lane] = table[bits >> (16 * lane) & 0xFFFF];
        }
        apply_changes(t, done, count, block);
        fwrite(block, sizeof *block, count, file);
        done += count;
    }
}

/* ------------------------------------------------------------------ files */

static char *path_of(const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    if (path) snprintf(path, size, "%s/%s", folder, name);
    return path;
}

static FILE *open_file(const char *folder, const char *name, const char *mode)
{
    char *path = path_of(folder, name);
    FILE *file = path ? fopen(path, mode) : NULL;
    if (!file) {
        fprintf(stderr, "laya-make-checkpoint: %s/%s: %s\n", folder, name, strerror(errno));
        exit(5);
    }
    free(path);
    return file;
}

static void close_file(FILE *file, const char *name)
{
    if (ferror(file) || fclose(file) != 0) {
        fprintf(stderr, "laya-make-checkpoint: %s: cannot be written: %s\n", name, strerror(errno));
        exit(5);
    }
}

static void make_folder(const char *folder, const char *name)
{
    char *path = *name ? path_of(folder, name) : path_of(folder, ".");
    if (!path || mkdir(*name ? path : folder, 0777) != 0) {
        fprintf(stderr, "laya-make-checkpoint: %s/%s: %s\n", folder, name, strerror(errno));
        exit(5);
    }
    free(path);
}

static void copy_file(const char *from, const char *to, const char *name)
{
    char block[65536];
    FILE *in = open_file(from, name, "rb"), *out = open_file(to, name, "wb");
    for (size_t got; (got = fread(block, 1, sizeof block, in)) > 0;) fwrite(block, 1, got, out);
    fclose(in);
    close_file(out, name);
}

static void write_configs(const shape *s, const char *out, bool multilingual)
{
    FILE *file = open_file(out, "encoder/config.json", "wb");
    fprintf(
        file,
        "{\"model_type\": \"modernbert\", \"vocab_size\": %u, \"hidden_size\": %u, \"num_hidden_layers\": %u,\n"
        " \"num_attention_heads\": %u, \"intermediate_size\": %u, \"hidden_activation\": \"gelu\",\n"
        " \"max_position_embeddings\": 8192, \"norm_eps\": 1e-05, \"norm_bias\": false, \"attention_bias\": false,\n"
        " \"mlp_bias\": false, \"global_attn_every_n_layers\": 3, \"local_attention\": 128,\n"
        " \"global_rope_theta\": 160000.0, \"local_rope_theta\": %s}\n",
        s->vocabulary, s->hidden, s->layers, s->hidden / 64, s->intermediate, multilingual ? "160000.0" : "10000.0");
    close_file(file, "encoder/config.json");
    file = open_file(out, "rl_agent_config.json", "wb");
    fprintf(file,
            "{\"encoder\": \"random\", \"model_name\": \"random\", \"head_layers\": %u, \"max_len\": 1024,\n"
            " \"head_max_len\": 256, \"act_costs\": {\"escalate\": 0.5}, \"temperature\": [1.0, 1.0, 1.0]}\n",
            s->head_layers);
    close_file(file, "rl_agent_config.json");
}

/* The id of the token that begins every row, by the tokenizer's files in a folder. */
static unsigned first_token(const char *folder)
{
    static const char *const keys[] = {"cls_token", "bos_token"};
    laya_json doc = {0};
    laya_error error;
    laya_tokenizer *tokenizer = NULL;
    laya_json_value value = {0};
    uint32_t id = 0;
    size_t size;
    char *path = path_of(folder, "tokenizer.json"), *config = path_of(folder, "tokenizer_config.json");
    laya_file text = {0};
    bool good = path && config && laya_file_map(&text, config, &error) == LAYA_OK &&
                laya_json_parse(&doc, (const char *)text.data, text.size, NULL, &error) == LAYA_OK &&
                laya_tokenizer_open(path, NULL, &tokenizer, &error) == LAYA_OK;
    for (size_t at = 0; at < 2 && good && laya_json_typeof(value) != LAYA_JSON_STRING; at++) {
        value = laya_json_get(laya_json_root(&doc), keys[at]);
        if (laya_json_typeof(value) == LAYA_JSON_OBJECT) value = laya_json_get(value, "content");
    }
    const char *token = laya_json_text(value, &size);
    if (!good || !token || !laya_tokenizer_find(tokenizer, token, size, &id)) {
        fprintf(stderr, "laya-make-checkpoint: %s: no cls_token or bos_token of the tokenizer\n", folder);
        exit(4);
    }
    laya_tokenizer_close(tokenizer);
    laya_json_close(&doc);
    laya_file_unmap(&text);
    free(path);
    free(config);
    return id;
}

static bool read_shape(const char *text, shape *s)
{
    if (strcmp(text, "multilingual") == 0) {
        *s = (shape){22, 768, 1152, 256000, 2};
        return true;
    }
    if (strcmp(text, "large") == 0) {
        *s = (shape){28, 1024, 2624, 50368, 2};
        return true;
    }
    unsigned *const fields[5] = {&s->layers, &s->hidden, &s->intermediate, &s->vocabulary, &s->head_layers};
    for (size_t at = 0; at < 5; at++) {
        char *end;
        unsigned long value = strtoul(text, &end, 10);
        if (end == text || *end != (at < 4 ? ',' : '\0') || value > 10000000) return false;
        *fields[at] = (unsigned)value;
        text = end + 1;
    }
    return s->layers > 0 && s->layers <= 256 && s->hidden > 0 && s->hidden % 64 == 0 && s->intermediate > 0 &&
           s->vocabulary > 0 && s->head_layers <= 64;
}

int main(int count, char **arguments)
{
    shape s;
    uint64_t state = 1;
    bool outliers = count > 1 && strcmp(arguments[1], "--outliers") == 0;
    arguments += outliers;
    count -= outliers;
    if (count != 4 || !read_shape(arguments[1], &s)) {
        fprintf(stderr, "usage: laya-make-checkpoint [--outliers] multilingual|large|"
                        "layers,hidden,intermediate,vocabulary,head_layers TOKENIZER_FOLDER OUT\n");
        return 2;
    }
    const char *tokenizer = arguments[2], *out = arguments[3];
    list_tensors(&s);
    if (outliers) list_outliers(&s, first_token(tokenizer));
    make_folder(out, "");
    make_folder(out, "encoder");
    make_folder(out, "tokenizer");
    char *folder = path_of(out, "tokenizer");
    if (!folder) return 6;
    copy_file(tokenizer, folder, "tokenizer.json");
    copy_file(tokenizer, folder, "tokenizer_config.json");
    free(folder);
    write_configs(&s, out, strcmp(arguments[1], "large") != 0);
    FILE *file = open_file(out, "model.safetensors", "wb");
    write_header(file);
    for (size_t at = 0; at < tensor_count; at++) write_tensor(file, &tensors[at], &state);
    close_file(file, "model.safetensors");
    return 0;
}
