/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of an open model. */
#ifndef LAYA_MODEL_MODEL_H
#define LAYA_MODEL_MODEL_H

#include "base/file.h"
#include "laya/model.h"
#include "model/calibration.h"
#include "model/config.h"
#include "model/safetensors.h"
#include "model/weights.h"
#include "text/prompt.h"

struct laya_model {
    laya_allocator allocator;
    laya_logger logger;
    char *directory;
    const char *weight_name; /* of the weight file, in the directory. Static storage */
    bool host_only;          /* weights of laya_weights_bind_host */
    laya_config config;
    laya_calibration calibration;
    laya_tokenizer *tokenizer;
    laya_specials specials;
    char *mask_text; /* owns specials.mask_text */
    laya_file weight_file;
    laya_safetensors tensors;
    laya_weights weights;
};

/*
 * Open what the host of a package needs: a directory as laya_model_open takes it, but with the weights of
 * laya_weights_bind_host in the file `weights` (a static string). The CPU engine refuses such a model.
 */
laya_status laya_model_open_host(const char *directory, const char *weights, const laya_model_options *options,
                                 laya_model **model, laya_error *error);

/* One line to the model's logger, if it has one. */
void laya_model_log(const laya_model *model, laya_log_level level, const char *message);

#endif
