/* SPDX-License-Identifier: Apache-2.0 */
/* Three parts: encoder/config.json, NUL, rl_agent_config.json, NUL, language overrides (may be missing). */
#include "fuzz.h"
#include "model/calibration.h"
#include "model/config.h"

#include <math.h>

static void check_config(const laya_config *config)
{
    fuzz_check(config->hidden_size > 0 && config->encoder_layers > 0 && config->vocab_size > 0, "sizes are positive");
    fuzz_check(config->head_size * config->attention_heads == config->hidden_size, "heads divide the channels");
    fuzz_check(config->max_len > 0 && config->max_len <= config->max_positions, "rows fit the encoder");
    fuzz_check(config->actions > 0 && config->head_max_len > 0, "budgets and actions are positive");
    fuzz_check(isfinite(config->global_rope_theta) && config->global_rope_theta > 0 &&
                   isfinite(config->local_rope_theta) && config->local_rope_theta > 0,
               "thetas are positive");
}

static void check_temperatures(const laya_temperatures *temperatures)
{
    for (unsigned type = 0; type < 3; type++) {
        for (size_t count = 1; count < 14; count++) {
            double t = laya_temperature_of(temperatures, (laya_question_type)type, count);
            fuzz_check(t >= 0.5 && t <= 5.0, "a temperature lies in [0.5, 5]");
        }
    }
}

static void read_both(const fuzz_memory *memory, laya_json_value encoder, laya_json_value agent,
                      laya_json_value languages)
{
    laya_config config;
    laya_calibration calibration;
    laya_buffer changes;
    laya_error error = {0};
    laya_status status = laya_config_read(&config, encoder, agent, &memory->hooks, &error);
    fuzz_check_status(memory, status, &error);
    if (status == LAYA_OK) {
        check_config(&config);
        laya_config_close(&config);
    }
    laya_buffer_init(&changes, &memory->hooks);
    laya_error_clear(&error);
    status = laya_calibration_read(&calibration, agent, languages, &memory->hooks, &changes, &error);
    fuzz_check_status(memory, status, &error);
    if (status == LAYA_OK) {
        check_temperatures(laya_calibration_for(&calibration, NULL));
        check_temperatures(laya_calibration_for(&calibration, "de-AT"));
        laya_calibration_close(&calibration);
    }
    laya_buffer_close(&changes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    fuzz_memory memory;
    laya_json docs[3];
    laya_status status = LAYA_OK;
    memset(docs, 0, sizeof docs);
    fuzz_memory_init(&memory, data[0]);
    for (size_t at = 1, part = 0; part < 3 && status == LAYA_OK; part++) {
        size_t length;
        laya_error error = {0};
        const char *text = fuzz_part(data, size, &at, &length);
        if (part == 2 && length == 0) break;
        status = laya_json_parse(&docs[part], text, length, &memory.hooks, &error);
        fuzz_check_status(&memory, status, &error);
    }
    if (status == LAYA_OK)
        read_both(&memory, laya_json_root(&docs[0]), laya_json_root(&docs[1]), laya_json_root(&docs[2]));
    for (size_t part = 0; part < 3; part++) laya_json_close(&docs[part]);
    fuzz_memory_end(&memory);
    return 0;
}
