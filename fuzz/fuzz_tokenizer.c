/* SPDX-License-Identifier: Apache-2.0 */
/* Two parts: a tokenizer.json, NUL, a text. The tokenizer encodes a fixed set of texts and this one. */
#include "fuzz.h"
#include "text/tokenizer.h"

static void encode(const fuzz_memory *memory, const laya_tokenizer *tokenizer, const char *text, size_t size)
{
    uint32_t *ids;
    size_t count;
    laya_error error = {0};
    laya_status status = laya_tokenizer_encode(tokenizer, text, size, &ids, &count, &error);
    fuzz_check_status(memory, status, &error);
    bool valid = laya_utf8_valid(text, size) == size;
    fuzz_check((status == LAYA_ERROR_INPUT) == !valid || status == LAYA_ERROR_MEMORY,
               "a text is refused when it is not UTF-8, and only then");
    if (status != LAYA_OK) {
        fuzz_check(ids == NULL && count == 0, "a failure gives no ids");
        return;
    }
    size_t vocab_size = laya_tokenizer_vocab_size(tokenizer);
    for (size_t at = 0; at < count; at++) fuzz_check(ids[at] < vocab_size, "an id is below the vocabulary's size");
    laya_tokenizer_release(tokenizer, ids);
}

static void look_up(const laya_tokenizer *tokenizer)
{
    size_t ids = laya_tokenizer_vocab_size(tokenizer);
    for (size_t id = 0; id < ids && id < 1000; id++) {
        size_t size;
        uint32_t found;
        const char *token = laya_tokenizer_token(tokenizer, (uint32_t)id, &size);
        if (!token || size == 0) continue;
        fuzz_check(laya_tokenizer_find(tokenizer, token, size, &found), "a token of the vocabulary is found");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const texts[] = {
        "", "Hello world, it's 42!\n\n  x\ty", "a <mask> b[MASK]  c<eos>",
        "\xe6\x88\x91\xe4\xbb\xac \xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd e\xcc\x81 \xe2\x96\x81",
        "\x01\x7f\xc2\xa0\xef\xbf\xbd"};
    if (size == 0) return 0;
    fuzz_memory memory;
    laya_error error = {0};
    size_t at = 1, length, rest;
    fuzz_memory_init(&memory, data[0]);
    const char *json = fuzz_part(data, size, &at, &length);
    const char *text = (const char *)data + at;
    rest = size - at;
    laya_tokenizer *tokenizer = laya_alloc_zero(&memory.hooks, 1, sizeof *tokenizer);
    if (!tokenizer) return 0;
    tokenizer->allocator = memory.hooks;
    laya_status status = laya_tokenizer_load(tokenizer, json, length, &error);
    fuzz_check_status(&memory, status, &error);
    if (status == LAYA_OK) {
        look_up(tokenizer);
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
            encode(&memory, tokenizer, texts[i], strlen(texts[i]));
        encode(&memory, tokenizer, text, rest < 4096 ? rest : 4096);
    }
    laya_tokenizer_close(tokenizer);
    fuzz_memory_end(&memory);
    return 0;
}
