/* SPDX-License-Identifier: Apache-2.0 */
/* Models: a checkpoint directory, opened once and shared between threads. */
#ifndef LAYA_MODEL_H
#define LAYA_MODEL_H

#include "laya/base.h"
#include "laya/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct laya_model laya_model;

typedef struct laya_model_options {
    size_t size;                   /* sizeof(laya_model_options); set by laya_model_options_init */
    laya_allocator allocator;      /* zero: malloc and free */
    laya_logger logger;            /* zero: no log lines */
    const char *lang_temperatures; /* JSON object {lang: {"temperature": [3 numbers], "temperature_by_options":
                                      {bucket: number}}}; NULL for none. Read during the call only. */
} laya_model_options;

/* Fill in the defaults: malloc, no log, no language overrides. */
LAYA_API void laya_model_options_init(laya_model_options *options);

/*
 * Open a checkpoint directory: rl_agent_config.json, encoder/config.json, model.safetensors (mapped, not
 * read), tokenizer/tokenizer.json and tokenizer/tokenizer_config.json. Every tensor must be there with its
 * shape, and no other; weights stay in their stored type (F16, BF16 or F32) and are widened in use.
 *
 * directory  path; the files must not change while the model is open
 * options    NULL means the defaults
 * model      receives the model; close it with laya_model_close after its contexts
 * error      may be NULL
 *
 * A temperature outside [0.5, 5] or that is no number is replaced as upstream does; the logger gets one
 * warning that lists them. Errors: IO, FORMAT, UNSUPPORTED, INPUT (lang_temperatures), MEMORY.
 */
LAYA_API laya_status laya_model_open(const char *directory, const laya_model_options *options, laya_model **model,
                                     laya_error *error);

/* Release a model. All its contexts must be closed before. NULL is allowed. */
LAYA_API void laya_model_close(laya_model *model);

/* The model's tokenizer; lives as long as the model. */
LAYA_API const laya_tokenizer *laya_model_tokenizer(const laya_model *model);

/* Facts of a checkpoint. Strings live as long as the model. */
typedef struct laya_model_info {
    const char *directory; /* as given to laya_model_open */
    const char *name;      /* rl_agent_config.json "model_name"; "" when absent */
    const char *encoder;   /* rl_agent_config.json "encoder" */
    uint32_t vocab_size;   /* rows of the embedding table */
    uint32_t hidden_size;  /* d */
    uint32_t encoder_layers;
    uint32_t attention_heads;   /* of the encoder */
    uint32_t head_size;         /* channels per attention head of the encoder */
    uint32_t intermediate_size; /* I of the gated MLP */
    uint32_t local_attention;   /* window; keys with |i - j| <= local_attention / 2 */
    uint32_t max_positions;     /* longest row the encoder allows, tokens */
    uint32_t head_layers;       /* layers of the decision head */
    uint32_t actions;           /* action logits per question */
    uint32_t max_len;           /* default row length, tokens */
    uint32_t head_max_len;      /* default soft budget of question and options, tokens */
    double global_rope_theta;
    double local_rope_theta;
    uint64_t parameters;   /* values in all tensors, the unused `temperature` included */
    uint64_t weight_bytes; /* size of model.safetensors */
} laya_model_info;

/* Fill in `info`. */
LAYA_API void laya_model_get_info(const laya_model *model, laya_model_info *info);

/*
 * The same facts as a JSON object, with tensors by type, temperatures in use, special tokens and layer kinds. A
 * directory name that is not UTF-8 is given as null.
 *
 * hashes  non-zero: also the SHA-256 of each file, which reads all of them
 * json    receives a NUL-terminated text; release it with laya_model_release
 *
 * Errors: IO, MEMORY.
 */
LAYA_API laya_status laya_model_describe(const laya_model *model, int hashes, char **json, laya_error *error);

/* Release a text that laya_model_describe of the same model gave. NULL is allowed. */
LAYA_API void laya_model_release(const laya_model *model, char *text);

#ifdef __cplusplus
}
#endif

#endif
