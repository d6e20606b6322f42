/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte 1 and 2 choose max_len and head_max_len. Then three parts: state, NUL, questions, NUL, min_confidence.
 * They go through the JSON reader and writers, the rendering of questions, the demo tokenizer and the prompt
 * builder; the network is left out.
 */
#include "base/json.h"
#include "fuzz.h"
#include "model/calibration.h"
#include "predict/gate.h"
#include "text/prompt.h"
#include "text/question.h"

enum { DEMO_PAD = 0, DEMO_SEP = 1, DEMO_CLS = 2, DEMO_MASK = 4 };

static const laya_tokenizer *demo_tokenizer(void)
{
    static laya_tokenizer *tokenizer;
    laya_error error;
    if (tokenizer) return tokenizer;
    const char *source = getenv("LAYA_SOURCE_DIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/models/laya-demo/tokenizer/tokenizer.json", source ? source : LAYA_SOURCE_DIR);
    if (laya_tokenizer_open(path, NULL, &tokenizer, &error) != LAYA_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    return tokenizer;
}

/* What json.dumps gives is JSON, and the same again when it is read and written once more. */
static void write_and_read(const fuzz_memory *memory, laya_json_value value)
{
    laya_buffer first, second;
    laya_json doc;
    laya_error error = {0};
    laya_buffer_init(&first, &memory->hooks);
    laya_buffer_init(&second, &memory->hooks);
    laya_json_write_python(&first, value);
    if (!first.failed) {
        laya_status status = laya_json_parse(&doc, first.data, first.size, &memory->hooks, &error);
        fuzz_check_status(memory, status, &error);
        fuzz_check(status == LAYA_OK || status == LAYA_ERROR_MEMORY, "what was written can be read");
        if (status == LAYA_OK) {
            laya_json_write_python(&second, laya_json_root(&doc));
            fuzz_check(second.failed ||
                           (first.size == second.size && memcmp(first.data, second.data, first.size) == 0),
                       "reading and writing changes nothing");
            laya_json_close(&doc);
        }
    }
    laya_buffer_clear(&second);
    laya_json_write_repr(&second, value);
    laya_buffer_close(&first);
    laya_buffer_close(&second);
}

static void check_row(const laya_prompt *prompt, const laya_query *query, const laya_tokens *state,
                      const laya_prompt_row *row)
{
    fuzz_check(row->count >= 1 && row->count <= prompt->max_len, "a row is not longer than max_len");
    fuzz_check(row->distinct >= 1 && row->distinct <= query->count, "the number of different options is possible");
    fuzz_check(row->dropped <= state->count, "no more is dropped than there is");
    uint32_t masks = 0;
    for (uint32_t at = 0; at < row->count; at++) masks += row->ids[at] == DEMO_MASK;
    fuzz_check(masks == query->count, "a row has one mask token per option, whatever a text says");
    for (uint32_t slot = 0; slot < query->count; slot++) {
        fuzz_check(row->markers[slot] < row->count && row->ids[row->markers[slot]] == DEMO_MASK, "markers are masks");
        fuzz_check(slot == 0 || row->markers[slot] > row->markers[slot - 1], "markers rise");
    }
}

static void build(const fuzz_memory *memory, const laya_prompt *prompt, laya_json_value state_value,
                  laya_json_value questions)
{
    laya_span state = {"", 0};
    laya_tokens tokens;
    laya_error error = {0};
    bool list = laya_json_typeof(state_value) == LAYA_JSON_ARRAY;
    laya_buffer text;
    laya_buffer_init(&text, &memory->hooks);
    if (laya_json_typeof(state_value) == LAYA_JSON_STRING) {
        state.text = laya_json_text(state_value, &state.size);
    } else {
        laya_json_write_python(&text, state_value);
        if (!text.failed) state = (laya_span){text.data, text.size};
    }
    laya_status status = laya_prompt_tokens(prompt, state, &tokens, &error);
    fuzz_check_status(memory, status, &error);
    laya_json_iterator it = laya_json_first(questions);
    for (; status == LAYA_OK && laya_json_present(it.value); laya_json_next(&it)) {
        laya_query query;
        laya_prompt_row row;
        status = laya_query_from_json(&query, it.key, it.value, prompt->arena, &error);
        fuzz_check_status(memory, status, &error);
        if (status != LAYA_OK) {
            if (status == LAYA_ERROR_INPUT) status = LAYA_OK; /* go on with the other questions */
            continue;
        }
        fuzz_check(query.count >= 1, "a question has an option");
        status = laya_prompt_build(prompt, &query, tokens, list, &row, &error);
        fuzz_check_status(memory, status, &error);
        if (status == LAYA_OK) check_row(prompt, &query, &tokens, &row);
        if (status == LAYA_ERROR_INPUT) status = LAYA_OK;
    }
    laya_buffer_close(&text);
}

/* min_confidence is a NUL-terminated text. */
static void read_gate(const fuzz_memory *memory, const char *text, size_t size)
{
    laya_gate gate;
    laya_error error = {0};
    char *copy = malloc(size + 1);
    if (!copy) return;
    memcpy(copy, text, size);
    copy[size] = '\0';
    laya_status status = laya_gate_read(&gate, copy, &memory->hooks, &error);
    fuzz_check_status(memory, status, &error);
    for (unsigned type = 0; status == LAYA_OK && type < 3; type++) {
        for (unsigned bucket = 0; bucket < LAYA_BUCKETS; bucket++)
            fuzz_check(gate.by_bucket[type][bucket] >= 0 && gate.by_bucket[type][bucket] <= 1,
                       "a threshold is in [0, 1]");
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3) return 0;
    static const char mask[] = "<mask>";
    static const laya_specials specials = {DEMO_CLS, DEMO_SEP, DEMO_MASK, DEMO_PAD, {mask, sizeof mask - 1}};
    const laya_tokenizer *tokenizer = demo_tokenizer();
    fuzz_memory memory;
    laya_arena arena;
    laya_json docs[2];
    laya_status status = LAYA_OK;
    size_t at = 3, length;
    memset(docs, 0, sizeof docs);
    fuzz_memory_init(&memory, data[0]);
    laya_arena_init(&arena, &memory.hooks);
    arena.poison = true;
    for (size_t part = 0; part < 2 && status == LAYA_OK; part++) {
        laya_error error = {0};
        const char *text = fuzz_part(data, size, &at, &length);
        status = laya_json_parse(&docs[part], text, length, &memory.hooks, &error);
        fuzz_check_status(&memory, status, &error);
        if (status == LAYA_OK) write_and_read(&memory, laya_json_root(&docs[part]));
    }
    if (status == LAYA_OK) {
        const laya_prompt prompt = {.tokenizer = tokenizer,
                                    .specials = &specials,
                                    .max_len = 1 + data[1] * 4u,
                                    .head_max_len = 1 + data[2] * 2u,
                                    .arena = &arena};
        build(&memory, &prompt, laya_json_root(&docs[0]), laya_json_root(&docs[1]));
        const char *text = fuzz_part(data, size, &at, &length);
        if (length) read_gate(&memory, text, length);
    }
    laya_json_close(&docs[0]);
    laya_json_close(&docs[1]);
    laya_arena_close(&arena);
    fuzz_memory_end(&memory);
    return 0;
}
