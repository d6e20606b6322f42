/* SPDX-License-Identifier: Apache-2.0 */
/* The two configuration files: what is read, which defaults exist, and one error per rule. */
#include "support.h"

#include "model/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A small valid encoder, in parts: tests leave lines out or put others in. Later members win, as in Python. */
#define SHAPE                                                                                                        \
    "\"model_type\":\"modernbert\",\"vocab_size\":100,\"hidden_size\":128,\"num_hidden_layers\":4,"                  \
    "\"num_attention_heads\":4,\"intermediate_size\":80,\"hidden_activation\":\"gelu\",\"norm_eps\":1e-5,"           \
    "\"max_position_embeddings\":512"
#define WINDOW ",\"local_attention\":16"
#define EVERY ",\"global_attn_every_n_layers\":3"
#define THETAS ",\"global_rope_theta\":160000.0,\"local_rope_theta\":10000"
#define PLAIN SHAPE WINDOW EVERY THETAS
#define AGENT_BASE "\"encoder\":\"e\",\"head_layers\":2,\"max_len\":256"

static laya_status read_texts(const char *encoder, const char *agent, laya_config *config, laya_error *error)
{
    laya_json e, a;
    *error = (laya_error){LAYA_OK, ""};
    assert_int_equal(laya_json_parse(&e, encoder, strlen(encoder), NULL, error), LAYA_OK);
    assert_int_equal(laya_json_parse(&a, agent, strlen(agent), NULL, error), LAYA_OK);
    laya_status status = laya_config_read(config, laya_json_root(&e), laya_json_root(&a), NULL, error);
    laya_json_close(&e);
    laya_json_close(&a);
    return status;
}

static void expect(const char *encoder, const char *agent, laya_status status, const char *text)
{
    laya_config config;
    laya_error error;
    laya_status got = read_texts(encoder, agent, &config, &error);
    if (got != status || !test_contains(error.message, text)) {
        fail_msg("%s\n%s\nexpected %s with \"%s\", got %s: %s", encoder, agent, laya_status_name(status), text,
                 laya_status_name(got), error.message);
    }
    laya_config_close(&config);
}

/* `more` begins with a comma, or is empty. */
static void expect_encoder(const char *base, const char *more, laya_status status, const char *text)
{
    char encoder[2048];
    snprintf(encoder, sizeof encoder, "{%s%s}", base, more);
    expect(encoder, "{" AGENT_BASE "}", status, text);
}

static void expect_agent(const char *agent, laya_status status, const char *text)
{
    expect("{" PLAIN "}", agent, status, text);
}

static laya_config read_good(const char *more, const char *agent)
{
    char encoder[2048];
    laya_config config;
    laya_error error;
    snprintf(encoder, sizeof encoder, "{%s}", more);
    if (read_texts(encoder, agent, &config, &error) != LAYA_OK) fail_msg("%s", error.message);
    return config;
}

static void test_plain(void **unused)
{
    (void)unused;
    laya_config c = read_good(
        PLAIN ",\"layer_norm_eps\":1e-3,\"position_embedding_type\":\"sans_pos\",\"torch_dtype\":\"float16\","
              "\"norm_bias\":false,\"attention_bias\":false,\"mlp_bias\":false",
        "{" AGENT_BASE ",\"head_max_len\":96,\"act_costs\":{\"escalate\":0.5,\"ask\":1},"
        "\"model_name\":\"m\\u00e4\",\"option_layout\":\"sequential\",\"residual_adapters\":null,"
        "\"training\":{\"lr\":1}}");
    assert_int_equal(c.vocab_size, 100);
    assert_int_equal(c.hidden_size, 128);
    assert_int_equal(c.encoder_layers, 4);
    assert_int_equal(c.attention_heads, 4);
    assert_int_equal(c.head_size, 32);
    assert_int_equal(c.intermediate_size, 80);
    assert_int_equal(c.local_attention, 16);
    assert_int_equal(c.max_positions, 512);
    assert_true(c.norm_eps == 1e-5);
    assert_true(c.global_rope_theta == 160000 && c.local_rope_theta == 10000);
    static const bool kinds[4] = {true, false, false, true};
    assert_memory_equal(c.layer_is_global, kinds, sizeof kinds);
    assert_int_equal(c.head_layers, 2);
    assert_int_equal(c.head_heads, 2);
    assert_int_equal(c.actions, 3);
    assert_int_equal(c.max_len, 256);
    assert_int_equal(c.head_max_len, 96);
    assert_string_equal(c.encoder_name, "e");
    assert_string_equal(c.model_name, "m\xc3\xa4");
    laya_config_close(&c);
    laya_config_close(&c);
}

static void test_agent_defaults(void **unused)
{
    (void)unused;
    laya_config c = read_good(PLAIN, "{\"encoder\":\"\",\"head_layers\":0}");
    assert_int_equal(c.head_layers, 0);
    assert_int_equal(c.max_len, 512);
    assert_int_equal(c.head_max_len, 192);
    assert_int_equal(c.actions, 1);
    assert_string_equal(c.model_name, "");
    laya_config_close(&c);
}

static void expect_thetas(const char *fields, double global, double local)
{
    char text[1024];
    snprintf(text, sizeof text, "%s%s", SHAPE WINDOW EVERY, fields);
    laya_config c = read_good(text, "{" AGENT_BASE "}");
    assert_true(c.global_rope_theta == global && c.local_rope_theta == local);
    laya_config_close(&c);
}

#define NESTED(full, sliding)                                                                                        \
    ",\"rope_parameters\":{\"full_attention\":{" full "},\"sliding_attention\":{" sliding "}}"

static void test_thetas(void **unused)
{
    (void)unused;
    expect_thetas(THETAS, 160000, 10000);
    expect_thetas(NESTED("\"rope_theta\":5,\"rope_type\":\"default\"", "\"rope_theta\":6.5"), 5, 6.5);
    expect_thetas(THETAS NESTED("\"rope_theta\":5", "\"rope_theta\":6,\"type\":\"default\""), 5, 6);
    expect_thetas(",\"rope_parameters\":{\"rope_theta\":7,\"partial_rotary_factor\":1.0}", 7, 7);
    expect_thetas(THETAS ",\"rope_parameters\":null,\"rope_scaling\":null", 160000, 10000);
    expect_thetas(THETAS ",\"rope_parameters\":{\"full_attention\":{\"rope_theta\":5}}", 5, 10000);
    const char *base = SHAPE WINDOW EVERY;
    expect_encoder(base, "", LAYA_ERROR_FORMAT, "no rope theta");
    expect_encoder(base, ",\"global_rope_theta\":1e4", LAYA_ERROR_FORMAT,
                   "neither 'rope_parameters.sliding_attention' nor 'local_rope_theta'");
    expect_encoder(base, ",\"global_rope_theta\":1e4,\"local_rope_theta\":null", LAYA_ERROR_FORMAT,
                   "'local_rope_theta'");
    expect_encoder(base, ",\"rope_parameters\":{\"full_attention\":{\"rope_theta\":5}}", LAYA_ERROR_FORMAT,
                   "no rope theta");
    expect_encoder(base, NESTED("\"rope_theta\":5", "\"rope_type\":\"default\""), LAYA_ERROR_FORMAT,
                   "'rope_parameters.sliding_attention' has no rope_theta");
    expect_encoder(base, NESTED("\"rope_theta\":5", "\"rope_theta\":5,\"rope_type\":\"yarn\""),
                   LAYA_ERROR_UNSUPPORTED,
                   "'rope_parameters.sliding_attention.rope_type' must be 'default', 'yarn' is not supported");
    expect_encoder(base, NESTED("\"rope_theta\":5,\"factor\":2", "\"rope_theta\":5"), LAYA_ERROR_UNSUPPORTED,
                   "factor");
    expect_encoder(base, ",\"rope_parameters\":{\"rope_theta\":7,\"partial_rotary_factor\":0.5}",
                   LAYA_ERROR_UNSUPPORTED, "partial_rotary_factor");
    expect_encoder(base, THETAS ",\"rope_parameters\":[1]", LAYA_ERROR_FORMAT, "must be an object, found list");
    expect_encoder(base, ",\"rope_parameters\":{\"rope_theta\":7,\"sliding_attention\":{\"rope_theta\":7}}",
                   LAYA_ERROR_UNSUPPORTED, "may hold only");
    expect_encoder(base, THETAS ",\"rope_scaling\":{\"type\":\"linear\",\"factor\":2}", LAYA_ERROR_UNSUPPORTED,
                   "rope_scaling");
    static const char *const bad[] = {"0", "-1", "NaN", "Infinity", "1e999", "\"1e4\"", "true", "[]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char more[128];
        snprintf(more, sizeof more, ",\"local_rope_theta\":%s", bad[i]);
        expect_encoder(PLAIN, more, LAYA_ERROR_FORMAT, "'local_rope_theta'");
        snprintf(more, sizeof more, ",\"rope_parameters\":{\"rope_theta\":%s}", bad[i]);
        expect_encoder(PLAIN, more, LAYA_ERROR_FORMAT, "'rope_parameters.rope_theta'");
    }
}

static void test_layers_and_window(void **unused)
{
    (void)unused;
    laya_config c = read_good(SHAPE WINDOW THETAS ",\"layer_types\":[\"sliding_attention\",\"full_attention\","
                                                  "\"full_attention\",\"sliding_attention\"]",
                              "{" AGENT_BASE "}");
    static const bool kinds[4] = {false, true, true, false};
    assert_memory_equal(c.layer_is_global, kinds, sizeof kinds);
    laya_config_close(&c);
    c = read_good(SHAPE EVERY THETAS ",\"sliding_window\":8", "{" AGENT_BASE "}");
    assert_int_equal(c.local_attention, 16);
    laya_config_close(&c);
    c = read_good(PLAIN ",\"sliding_window\":8", "{" AGENT_BASE "}");
    assert_int_equal(c.local_attention, 16);
    laya_config_close(&c);
    expect_encoder(PLAIN, ",\"sliding_window\":16", LAYA_ERROR_FORMAT, "contradicts 'local_attention'");
    expect_encoder(PLAIN, ",\"sliding_window\":\"8\"", LAYA_ERROR_FORMAT,
                   "'sliding_window' must be an integer, found str");
    expect_encoder(PLAIN, ",\"layer_types\":[\"full_attention\"]", LAYA_ERROR_FORMAT, "list of 4 kinds");
    expect_encoder(PLAIN, ",\"layer_types\":\"full_attention\"", LAYA_ERROR_FORMAT, "list of 4 kinds");
    expect_encoder(
        PLAIN, ",\"layer_types\":[\"full_attention\",\"full_attention\",\"sliding_attention\",\"full_attention\"]",
        LAYA_ERROR_FORMAT, "contradicts 'global_attn_every_n_layers' 3 at layer 1");
    expect_encoder(PLAIN, ",\"layer_types\":[\"full_attention\",\"linear\",\"sliding_attention\",\"full_attention\"]",
                   LAYA_ERROR_UNSUPPORTED, "'linear' is not supported");
    expect_encoder(PLAIN, ",\"layer_types\":[\"full_attention\",1,\"sliding_attention\",\"full_attention\"]",
                   LAYA_ERROR_FORMAT, "must be a string, found int");
    expect_encoder(PLAIN, ",\"global_attn_every_n_layers\":0", LAYA_ERROR_FORMAT, "from 1 to");
}

static void test_required(void **unused)
{
    (void)unused;
    expect_encoder(
        "\"model_type\":\"modernbert\"", "", LAYA_ERROR_FORMAT,
        "encoder/config.json: missing configuration keys ['vocab_size', 'hidden_size', 'num_hidden_layers', "
        "'num_attention_heads', 'intermediate_size', 'hidden_activation', 'norm_eps', 'max_position_embeddings', "
        "'local_attention', 'global_attn_every_n_layers']");
    expect_encoder("", "", LAYA_ERROR_FORMAT, "['model_type', ");
    expect_agent("{}", LAYA_ERROR_FORMAT,
                 "Incompatible model config: missing configuration keys ['encoder', 'head_layers']");
    expect_agent("{\"encoder\":\"e\"}", LAYA_ERROR_FORMAT, "missing configuration keys ['head_layers']");
    expect_agent("[]", LAYA_ERROR_FORMAT, "rl_agent_config.json must hold an object, found list");
    laya_config config;
    laya_error error;
    assert_int_equal(read_texts("3", "{" AGENT_BASE "}", &config, &error), LAYA_ERROR_FORMAT);
}

static void test_types_and_ranges(void **unused)
{
    (void)unused;
    static const char *const integers[] = {"vocab_size",        "hidden_size",
                                           "num_hidden_layers", "num_attention_heads",
                                           "intermediate_size", "max_position_embeddings",
                                           "local_attention",   "global_attn_every_n_layers"};
    static const struct {
        const char *value, *text;
    } bad[] = {
        {"true", "must be an integer, found bool"},
        {"4.0", "must be an integer, found float"},
        {"\"4\"", "must be an integer, found str"},
        {"[4]", "must be an integer, found list"},
        {"0", "must be from 1 to"},
        {"-4", "must be from 1 to"},
        {"4294967296", "must be from 1 to"},
        {"99999999999999999999999999999999999999999", "must be from 1 to"},
        {"2000000000", "must be from 1 to"},
    };
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        for (size_t j = 0; j < sizeof bad / sizeof *bad; j++) {
            char more[128], text[128];
            snprintf(more, sizeof more, ",\"%s\":%s", integers[i], bad[j].value);
            snprintf(text, sizeof text, "encoder/config.json: '%s' %s", integers[i], bad[j].text);
            expect_encoder(PLAIN, more, LAYA_ERROR_FORMAT, text);
        }
    }
    expect_encoder(PLAIN, ",\"num_attention_heads\":3", LAYA_ERROR_FORMAT, "must be a multiple");
    expect_encoder(PLAIN, ",\"num_attention_heads\":128", LAYA_ERROR_FORMAT, "must be a multiple"); /* head size 1 */
    expect_encoder(PLAIN, ",\"hidden_size\":200", LAYA_ERROR_FORMAT,
                   "does not divide into the decision head's 3 heads");
    expect_encoder(PLAIN, ",\"norm_eps\":0", LAYA_ERROR_FORMAT, "'norm_eps' must be a finite number above 0");
    expect_encoder(PLAIN, ",\"norm_eps\":\"1e-5\"", LAYA_ERROR_FORMAT, "'norm_eps' must be a number, found str");
    expect_encoder(PLAIN, ",\"max_position_embeddings\":255", LAYA_ERROR_FORMAT, "'max_len' 256 is above");
    expect_encoder(PLAIN, ",\"head_dim\":32", LAYA_OK, "");
    expect_encoder(PLAIN, ",\"head_dim\":64", LAYA_ERROR_UNSUPPORTED, "'head_dim' 64");
}

static void test_unsupported(void **unused)
{
    (void)unused;
    expect_encoder(PLAIN, ",\"model_type\":\"bert\"", LAYA_ERROR_UNSUPPORTED,
                   "'model_type' must be 'modernbert', 'bert'");
    expect_encoder(PLAIN, ",\"hidden_activation\":\"gelu_new\"", LAYA_ERROR_UNSUPPORTED,
                   "'gelu_new' is not supported");
    expect_encoder(PLAIN, ",\"hidden_activation\":null", LAYA_ERROR_FORMAT,
                   "'hidden_activation' must be a string, found NoneType");
    static const char *const biases[] = {"norm_bias", "attention_bias", "mlp_bias"};
    for (size_t i = 0; i < 3; i++) {
        char more[64], text[96];
        snprintf(more, sizeof more, ",\"%s\":true", biases[i]);
        snprintf(text, sizeof text, "'%s' true is not supported", biases[i]);
        expect_encoder(PLAIN, more, LAYA_ERROR_UNSUPPORTED, text);
        snprintf(more, sizeof more, ",\"%s\":0", biases[i]);
        snprintf(text, sizeof text, "'%s' must be false, found int", biases[i]);
        expect_encoder(PLAIN, more, LAYA_ERROR_FORMAT, text);
    }
    expect_encoder(PLAIN, ",\"quantization_config\":{}", LAYA_ERROR_UNSUPPORTED, "quantization_config");
    expect_agent("{" AGENT_BASE ",\"option_layout\":\"parallel\"}", LAYA_ERROR_UNSUPPORTED,
                 "rl_agent_config.json: 'option_layout' must be 'sequential', 'parallel' is not supported");
    expect_agent("{" AGENT_BASE ",\"option_layout\":1}", LAYA_ERROR_FORMAT, "'option_layout' must be a string");
    expect_agent("{" AGENT_BASE ",\"residual_adapters\":{\"layers\":[1]}}", LAYA_ERROR_UNSUPPORTED,
                 "'residual_adapters'");
}

static void test_agent_fields(void **unused)
{
    (void)unused;
    expect_agent("{\"encoder\":1,\"head_layers\":2,\"max_len\":9}", LAYA_ERROR_FORMAT,
                 "'encoder' must be a string, found int");
    expect_agent("{\"encoder\":\"a\\u0000\",\"head_layers\":2,\"max_len\":9}", LAYA_ERROR_FORMAT, "NUL");
    expect_agent("{\"encoder\":\"e\",\"head_layers\":true}", LAYA_ERROR_FORMAT,
                 "'head_layers' must be an integer, found bool");
    expect_agent("{\"encoder\":\"e\",\"head_layers\":65}", LAYA_ERROR_FORMAT, "'head_layers' must be from 0 to 64");
    expect_agent("{" AGENT_BASE ",\"max_len\":0}", LAYA_ERROR_FORMAT, "'max_len' must be from 1");
    expect_agent("{" AGENT_BASE ",\"max_len\":null}", LAYA_ERROR_FORMAT,
                 "'max_len' must be an integer, found NoneType");
    expect_agent("{" AGENT_BASE ",\"head_max_len\":1.5}", LAYA_ERROR_FORMAT,
                 "'head_max_len' must be an integer, found float");
    expect_agent("{" AGENT_BASE ",\"act_costs\":[1]}", LAYA_ERROR_FORMAT,
                 "'act_costs' must be an object, found list");
    expect_agent("{" AGENT_BASE ",\"model_name\":null}", LAYA_ERROR_FORMAT,
                 "'model_name' must be a string, found NoneType");
    char agent[4096];
    int used = snprintf(agent, sizeof agent, "{" AGENT_BASE ",\"act_costs\":{");
    for (int i = 0; i < 256; i++) {
        used += snprintf(agent + used, sizeof agent - (size_t)used, "%s\"%d\":1", i ? "," : "", i);
    }
    snprintf(agent + used, sizeof agent - (size_t)used, "}}");
    expect_agent(agent, LAYA_ERROR_UNSUPPORTED, "256 entries, at most 255");
}

static void test_failing_allocations(void **unused)
{
    (void)unused;
    laya_json e, a;
    laya_error error;
    const char *encoder = "{" PLAIN "}", *agent = "{" AGENT_BASE "}";
    assert_int_equal(laya_json_parse(&e, encoder, strlen(encoder), NULL, &error), LAYA_OK);
    assert_int_equal(laya_json_parse(&a, agent, strlen(agent), NULL, &error), LAYA_OK);
    test_memory memory;
    test_memory_init(&memory);
    for (size_t fail_at = 1; fail_at <= 4; fail_at++) {
        laya_config config;
        test_memory_arm(&memory, fail_at);
        laya_status status = laya_config_read(&config, laya_json_root(&e), laya_json_root(&a), &memory.hooks, &error);
        assert_int_equal(status, fail_at < 4 ? LAYA_ERROR_MEMORY : LAYA_OK);
        laya_config_close(&config);
        assert_int_equal(memory.live, 0);
    }
    laya_json_close(&e);
    laya_json_close(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_agent_defaults),
        cmocka_unit_test(test_thetas),
        cmocka_unit_test(test_layers_and_window),
        cmocka_unit_test(test_required),
        cmocka_unit_test(test_types_and_ranges),
        cmocka_unit_test(test_unsupported),
        cmocka_unit_test(test_agent_fields),
        cmocka_unit_test(test_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
