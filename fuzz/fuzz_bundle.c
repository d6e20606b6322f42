/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the input as one of the JSON files that belong to bundles. The input: the allocation that fails, which file
 * (modulo 3: manifest.json, fixture, reference), and its text.
 */
#include "fuzz.h"
#include "gate/fixture.h"
#include "gate/reference.h"
#include "runtime/manifest.h"

#include <math.h>

static void check_hash(const char *hex)
{
    fuzz_check(strlen(hex) == 64 && strspn(hex, "0123456789abcdef") == 64, "a hash has 64 hexadecimal digits");
}

static void check_json(const char *text, size_t size)
{
    laya_json doc;
    fuzz_check(strlen(text) == size, "a text ends where it says");
    fuzz_check(laya_json_parse(&doc, text, size, NULL, NULL) == LAYA_OK, "texts of a case are valid JSON");
    laya_json_close(&doc);
}

/* Reads and checks one kind of file. */
typedef void (*reader)(fuzz_memory *memory, const char *text, size_t size);

static void read_manifest(fuzz_memory *memory, const char *text, size_t size)
{
    laya_manifest manifest;
    laya_error error = {0};
    laya_status status = laya_manifest_parse(&manifest, text, size, &memory->hooks, &error);
    fuzz_check_status(memory, status, &error);
    if (status != LAYA_OK) return;
    fuzz_check(manifest.file_count <= LAYA_BUNDLE_MAX_FILES, "no more files than a bundle has");
    fuzz_check(manifest.length > 0 && manifest.operations > 0, "lengths and operations are counted");
    check_hash(manifest.package_sha256);
    for (uint32_t at = 0; at < manifest.file_count; at++) check_hash(manifest.files[at].written.sha256);
    for (uint32_t at = 0; at < LAYA_SOURCE_FILES; at++) check_hash(manifest.sources[at]);
    laya_manifest_close(&manifest);
}

static void check_case(const laya_fixture_case *input)
{
    fuzz_check(input->name[0] != '\0' && input->count > 0, "a case has a name and questions");
    check_json(input->state, input->state_size);
    check_json(input->questions, input->questions_size);
}

static void read_fixture(fuzz_memory *memory, const char *text, size_t size)
{
    laya_fixture fixture;
    laya_error error = {0};
    laya_status status = laya_fixture_parse(&fixture, text, size, &memory->hooks, &error);
    fuzz_check_status(memory, status, &error);
    if (status != LAYA_OK) return;
    size_t questions = 0;
    check_hash(fixture.sha256);
    fuzz_check(fixture.count > 0 && fixture.count <= LAYA_FIXTURE_MAX_CASES, "cases are limited");
    for (size_t at = 0; at < fixture.count; at++) {
        check_case(&fixture.cases[at]);
        questions += fixture.cases[at].count;
    }
    fuzz_check(questions == fixture.questions, "questions are counted");
    laya_fixture_close(&fixture);
}

static void check_item(const laya_reference_item *item)
{
    fuzz_check(item->count > 0 && item->options > 0 && item->actions > 0, "an item has tokens, options and actions");
    for (uint32_t at = 0; at < item->options; at++) {
        fuzz_check(item->markers[at] < item->count, "markers lie inside the row");
        fuzz_check(isfinite(item->logits[at]), "logits are finite");
    }
    for (uint32_t at = 0; at < item->actions; at++)
        fuzz_check(isfinite(item->action_logits[at]), "action logits are finite");
    for (uint32_t at = 0; at < item->count; at++) fuzz_check(item->ids[at] < UINT32_MAX, "ids are numbers");
}

static void read_reference(fuzz_memory *memory, const char *text, size_t size)
{
    laya_reference reference;
    laya_error error = {0};
    laya_status status = laya_reference_parse(&reference, text, size, &memory->hooks, &error);
    fuzz_check_status(memory, status, &error);
    if (status != LAYA_OK) return;
    check_hash(reference.fixture_sha256);
    for (size_t model = 0; model < reference.count; model++) {
        const laya_reference_model *found = &reference.models[model];
        check_hash(found->weights_sha256);
        fuzz_check(laya_reference_find(&reference, found->weights_sha256) != NULL, "a model is found by its weights");
        for (size_t at = 0; at < found->count; at++) {
            const laya_reference_case *recorded = &found->cases[at];
            check_case(&recorded->input);
            fuzz_check(laya_json_size(recorded->answers) == recorded->input.count, "every question is answered");
            for (size_t item = 0; item < recorded->input.count; item++) check_item(&recorded->items[item]);
        }
    }
    laya_reference_close(&reference);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const reader readers[] = {read_manifest, read_fixture, read_reference};
    if (size < 2) return 0;
    fuzz_memory memory;
    fuzz_memory_init(&memory, data[0]);
    /* A block of the exact size, so that a read past the end of the text is seen. */
    char *text = malloc(size - 2 ? size - 2 : 1);
    if (!text) return 0;
    memcpy(text, data + 2, size - 2);
    readers[data[1] % 3](&memory, text, size - 2);
    free(text);
    fuzz_memory_end(&memory);
    return 0;
}
