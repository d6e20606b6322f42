/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the input as the three files of a Core ML package (fuzz_package.h), and does with it what `layac inspect`
 * does. The text of the package's manifest is also taken for the manifest.json of a bundle that the package lies in.
 */
#include "fuzz_package.h"
#include "base/json.h"
#include "coreml/encode.h"
#include "coreml/inspect.h"
#include "coreml/manifest.h"
#include "interpreter/step.h"

#define DENSE_LIMIT (1u << 22) /* bytes of one palette that is expanded */

static void read_manifest(fuzz_memory *memory, const fuzz_file *text)
{
    laya_package_manifest manifest;
    laya_error error = {0};
    laya_status status = laya_package_manifest_read(&manifest, (const char *)text->data, text->size, &memory->hooks,
                                                    &error);
    fuzz_check_status(memory, status, &error);
    if (status != LAYA_OK) return;
    fuzz_check(manifest.model >= manifest.items && manifest.model < manifest.items + manifest.count,
               "the model is one of the items");
    for (uint32_t i = 0; i < manifest.count; i++) {
        const char *path = manifest.items[i].path;
        fuzz_check(path[0] != '\0' && path[0] != '/' && strncmp(path, "../", 3) != 0 && !strstr(path, "/../"),
                   "paths of items stay below Data/");
    }
    laya_package_manifest_close(&manifest);
}

static laya_status visit_blob(void *user, const laya_blob *blob, laya_error *error)
{
    (void)error;
    unsigned *sum = user;
    if (blob->size > 0) *sum += blob->data[0] + blob->data[blob->size - 1];
    return LAYA_OK;
}

static void walk_weights(const fuzz_memory *memory, const fuzz_file *weights)
{
    laya_error error = {0};
    uint32_t count = 0;
    unsigned sum = 0;
    laya_status status = laya_weight_file_walk(weights->data, weights->size, visit_blob, &sum, &count, &error);
    fuzz_check_status(memory, status, &error);
}

static void check_json(const char *text)
{
    laya_json doc;
    fuzz_check(laya_json_parse(&doc, text, strlen(text), NULL, NULL) == LAYA_OK, "reports are valid JSON");
    laya_json_close(&doc);
}

/* Whether the verifier finds no error. */
static bool verify(fuzz_memory *memory, const laya_package *package)
{
    laya_error error = {0};
    laya_verdict verdict;
    laya_status status = laya_package_check(package, &verdict, &error);
    fuzz_check_status(memory, status, &error);
    fuzz_check(status == LAYA_OK || status == LAYA_ERROR_MEMORY, "what is wrong with a package is a finding");
    if (status != LAYA_OK) return false;
    bool good = verdict.errors == 0;
    fuzz_check(verdict.finding_count <= LAYA_MAX_FINDINGS, "findings are limited");
    fuzz_check(verdict.finding_count <= verdict.errors + verdict.warnings, "every finding is counted");
    laya_verdict_close(&verdict);
    return good;
}

static void describe(fuzz_memory *memory, const laya_package *package)
{
    laya_error error = {0};
    char *json = NULL;
    laya_status status = laya_package_describe(package, 1, &json, &error);
    fuzz_check_status(memory, status, &error);
    fuzz_check((status == LAYA_OK) == (json != NULL), "a description or an error");
    if (json) check_json(json);
    laya_package_release(package, json);
}

static char *report_palettes(fuzz_memory *memory, const laya_package *package, const laya_package *parent,
                             const fuzz_file *manifest)
{
    laya_error error = {0};
    char *json = NULL;
    laya_file file = {manifest->data, manifest->size};
    laya_status status = laya_inspect_palette_report(package, parent, &file, &json, &error);
    fuzz_check_status(memory, status, &error);
    fuzz_check((status == LAYA_OK) == (json != NULL), "a report or an error");
    if (json) check_json(json);
    return json;
}

/* A palette becomes the constant that it stands for. False: it cannot be read, is large, or memory failed. */
static bool make_dense(fuzz_memory *memory, laya_mil_program *program, laya_mil_opset opset, laya_mil_op *op)
{
    laya_error error = {0};
    laya_constexpr from;
    unsigned char *bytes;
    uint64_t size;
    laya_mil_constant *constant = laya_arena_alloc(&program->arena, 1, sizeof *constant);
    if (!constant || laya_constexpr_read(op, opset, &from, &error) != LAYA_OK) return false;
    if (!laya_mil_type_size(&from.type, &size) || size > DENSE_LIMIT) return false;
    if (laya_constexpr_expand(op, opset, &memory->hooks, &bytes, &size, &error) != LAYA_OK) return false;
    unsigned char *copy = laya_arena_alloc(&program->arena, (size_t)size, 1);
    if (copy) memcpy(copy, bytes, (size_t)size);
    laya_release(&memory->hooks, bytes);
    *constant = (laya_mil_constant){.type = from.type, .bytes = copy, .size = size};
    op->type = "const";
    op->outputs[0]->constant = constant;
    return copy != NULL;
}

static void check_no_error(const char *text)
{
    laya_json doc;
    double sse = 0; /* NaN and infinities are texts */
    fuzz_check(laya_json_parse(&doc, text, strlen(text), NULL, NULL) == LAYA_OK, "reports are valid JSON");
    laya_json_to_double(laya_json_get(laya_json_get(laya_json_root(&doc), "computed"), "sse"), &sse);
    fuzz_check(sse == 0, "a palette does not differ from what it expands to");
    laya_json_close(&doc);
}

/* Palettes against what they expand to, if all can be. The program is changed. */
static void measure(fuzz_memory *memory, const laya_package *package, laya_mil_program *program, bool good)
{
    static const fuzz_file none = {NULL, 0};
    laya_package parent = *package;
    for (uint32_t at = 0; at < program->function_count; at++) {
        laya_mil_function *function = &program->functions[at];
        for (laya_mil_op *op = function->body.first; op; op = op->next) {
            if (strcmp(op->type, "constexpr_lut_to_dense") != 0) continue;
            if (!make_dense(memory, program, function->opset, op)) return;
        }
    }
    parent.program = *program;
    char *json = report_palettes(memory, package, &parent, &none);
    if (json && good) check_no_error(json); /* names are unique */
    laya_package_release(package, json);
}

static void compare(fuzz_memory *memory, const laya_package *package, bool good)
{
    laya_error error = {0};
    char *json = NULL;
    int equal = 0;
    laya_status status = laya_package_compare(package, package, &equal, &json, &error);
    fuzz_check_status(memory, status, &error);
    fuzz_check((status == LAYA_OK) == (json != NULL), "a comparison or an error");
    if (json) {
        fuzz_check(equal == 1 || !good, "a package without errors equals itself");
        check_json(json);
    }
    laya_package_release(package, json);
}

/* What was read and can be written is read again. */
static void write_again(fuzz_memory *memory, const laya_package *package, const fuzz_file *weights)
{
    laya_error error = {0};
    laya_buffer message;
    laya_mil_program program;
    laya_buffer_init(&message, &memory->hooks);
    laya_mil_program_init(&program, &memory->hooks);
    laya_status status = laya_model_encode(&package->program, &message, &error);
    fuzz_check_status(memory, status, &error);
    fuzz_check(status == LAYA_OK || status == LAYA_ERROR_MEMORY || status == LAYA_ERROR_UNSUPPORTED,
               "a program that was read can be written");
    if (status == LAYA_OK) {
        status = laya_model_decode(&program, (const unsigned char *)message.data, message.size, weights->data,
                                   weights->size, &error);
        fuzz_check_status(memory, status, &error);
        fuzz_check(status == LAYA_OK || status == LAYA_ERROR_MEMORY, "a program that was written can be read");
    }
    laya_mil_program_close(&program);
    laya_buffer_close(&message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < FUZZ_PACKAGE_HEAD) return 0;
    fuzz_package parts = fuzz_package_open(data, size);
    const fuzz_file *model = &parts.model, *weights = &parts.weights;
    fuzz_memory memory;
    laya_error error = {0};
    fuzz_memory_init(&memory, data[0]);

    read_manifest(&memory, &parts.manifest);
    walk_weights(&memory, weights);
    /* Names for messages and reports; there are no such files. weights_path stays NULL: no file is mapped. */
    char path[] = "fuzz.mlpackage", model_path[] = "model.mlmodel";
    laya_package package = {.allocator = memory.hooks,
                            .path = path,
                            .model_path = model_path,
                            .model_file = {model->data, model->size},
                            .weight_file = {weights->data, weights->size}};
    laya_mil_program_init(&package.program, &memory.hooks);
    laya_status status = laya_model_decode(&package.program, model->data, model->size, weights->data, weights->size,
                                           &error);
    fuzz_check_status(&memory, status, &error);
    if (status == LAYA_OK) {
        bool good = verify(&memory, &package);
        describe(&memory, &package);
        laya_package_release(&package, report_palettes(&memory, &package, NULL, &parts.manifest));
        compare(&memory, &package, good);
        write_again(&memory, &package, weights);
        laya_mil_program dense;
        laya_mil_program_init(&dense, &memory.hooks);
        status = laya_model_decode(&dense, model->data, model->size, weights->data, weights->size, &error);
        if (status == LAYA_OK) measure(&memory, &package, &dense, good);
        laya_mil_program_close(&dense);
    }
    laya_mil_program_close(&package.program);
    fuzz_package_close(&parts);
    fuzz_memory_end(&memory);
    return 0;
}
