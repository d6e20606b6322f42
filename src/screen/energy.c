/* SPDX-License-Identifier: Apache-2.0 */
#include "screen/energy.h"

#include "base/error.h"
#include "export/export.h"
#include "export/graph.h"
#include "gate/fixture.h"
#include "model/model.h"
#include "predict/context.h"
#include "screen/origin.h"

#include <math.h>
#include <string.h>

/* Progress is counted in questions; within a case the engine tells how far it is. */
#define QUESTION_STEPS 1000u

/* Squares of what goes into a tensor of the checkpoint, summed over rows. */
typedef struct tensor_sums {
    const unsigned char *data; /* of the tensor, which this identifies */
    uint32_t cols;
    double *sums; /* [cols] */
    uint64_t rows;
} tensor_sums;

/* A weight of the package: columns of a tensor in some order. */
typedef struct weight_energy {
    const char *name;
    const uint32_t *cols; /* tensor column of each input channel; NULL: the same */
    size_t tensor;
    uint64_t row;
    const float *values; /* [row] mean squares */
} weight_energy;

struct laya_energies {
    laya_arena arena;
    weight_energy *weights;
    size_t weight_count;
    tensor_sums *tensors;
    size_t tensor_count;
    char fixture_sha256[65];
    uint32_t cases, questions;
    uint64_t tokens;
};

typedef struct measurement {
    laya_energies *energies;
    const laya_progress *progress;
    const laya_interrupt *interrupt;
    unsigned threads;
    laya_origin origin;
    laya_model *model;
    laya_mil_program program; /* the graph, built again */
    laya_fixture fixture;
    laya_context *context;
    uint64_t done, now; /* questions: of the finished cases, of the case that is being answered */
} measurement;

/* ------------------------------------------------------------------ weights of the graph */

/* The convolution's weight; NULL: it reads no tensor (RoPE's rotation), or `op` is none. */
static const laya_mil_value *kernel_of(const laya_mil_op *op, const laya_tensor **tensor, const uint32_t **cols)
{
    if (strcmp(op->type, "conv") != 0) return NULL;
    const laya_mil_argument *argument = laya_mil_find_argument(op, "weight");
    const laya_mil_value *value = argument ? argument->bindings[0].value : NULL;
    if (!value || !value->constant || !laya_graph_kernel_view(value->constant, tensor, cols)) return NULL;
    return value;
}

static laya_status add_tensor(laya_energies *e, const laya_tensor *tensor, size_t *index, laya_error *error)
{
    for (*index = 0; *index < e->tensor_count; ++*index) {
        if (e->tensors[*index].data == tensor->data) return LAYA_OK;
    }
    double *sums = laya_arena_alloc(&e->arena, tensor->cols, sizeof *sums);
    if (!sums) return laya_fail_memory(error, tensor->cols * sizeof *sums);
    for (size_t at = 0; at < tensor->cols; at++) sums[at] = 0;
    e->tensors[e->tensor_count++] = (tensor_sums){.data = tensor->data, .cols = tensor->cols, .sums = sums};
    return LAYA_OK;
}

static laya_status add_weight(laya_energies *e, const laya_mil_value *value, const laya_tensor *tensor,
                              const uint32_t *cols, laya_error *error)
{
    weight_energy weight = {.cols = cols, .row = tensor->cols};
    weight.name = laya_arena_copy(&e->arena, value->name, strlen(value->name));
    if (!weight.name) return laya_fail_memory(error, 0);
    LAYA_TRY(add_tensor(e, tensor, &weight.tensor, error));
    e->weights[e->weight_count++] = weight;
    return LAYA_OK;
}

static laya_status find_weights(laya_energies *e, const laya_mil_program *program, laya_error *error)
{
    const laya_mil_block *body = &program->functions[0].body;
    const laya_tensor *tensor;
    const uint32_t *cols;
    size_t count = 0;
    for (const laya_mil_op *op = body->first; op; op = op->next) count += kernel_of(op, &tensor, &cols) != NULL;
    e->weights = laya_arena_alloc(&e->arena, count, sizeof *e->weights);
    e->tensors = laya_arena_alloc(&e->arena, count, sizeof *e->tensors);
    if (!e->weights || !e->tensors) return laya_fail_memory(error, count * sizeof *e->weights);
    for (const laya_mil_op *op = body->first; op; op = op->next) {
        const laya_mil_value *value = kernel_of(op, &tensor, &cols);
        if (value) LAYA_TRY(add_weight(e, value, tensor, cols, error));
    }
    return LAYA_OK;
}

/* ------------------------------------------------------------------ the graph of the bundle */

static laya_status ask_meter(void *user, uint64_t bytes, laya_error *error)
{
    (void)bytes;
    return laya_check_interrupt(user, error);
}

/* The package is what the graph gives: only then does the order of the graph's columns mean anything for it. */
static laya_status check_package(const measurement *m, laya_error *error)
{
    laya_package *package;
    laya_interrupt interrupt = *m->interrupt;
    const laya_meter meter = {.user = &interrupt, .report = ask_meter};
    LAYA_TRY(laya_package_open(m->origin.directory, &m->model->allocator, &package, error));
    laya_status status = laya_package_match(&m->program, &package->program, &meter, error);
    if (status == LAYA_ERROR_FORMAT)
        laya_error_prefix(error, "%s: not the package that this version exports from %s; export it again: ",
                          m->origin.directory, m->origin.checkpoint);
    laya_package_close(package);
    return status;
}

static laya_status build_graph(measurement *m, laya_error *error)
{
    const laya_manifest *manifest = m->origin.manifest;
    laya_export_options options;
    laya_export_options_init(&options);
    options.kind = manifest->kind;
    options.graph = manifest->graph;
    options.precision = manifest->precision;
    options.length = manifest->length;
    options.markers = manifest->markers;
    LAYA_TRY(laya_export_check(m->model, &options, error));
    LAYA_TRY(laya_export_build(m->model, &options, &m->program, error));
    LAYA_TRY(check_package(m, error));
    return find_weights(m->energies, &m->program, error);
}

/* Hash all files, then open what they hold. */
static laya_status open_model(measurement *m, const laya_allocator *allocator, laya_error *error)
{
    laya_model_options options;
    LAYA_TRY(laya_pool_open(m->threads ? m->threads : laya_online_cpus(), allocator, &m->origin.found.pool, error));
    laya_status status = laya_buckets_verify(&m->origin.found, m->origin.checkpoint, error);
    laya_pool_close(m->origin.found.pool);
    m->origin.found.pool = NULL;
    LAYA_TRY(status);
    laya_model_options_init(&options);
    options.allocator = *allocator;
    return laya_model_open(m->origin.checkpoint, &options, &m->model, error);
}

/* ------------------------------------------------------------------ activations */

static void see(void *user, const laya_tensor *weight, const float *rows, size_t stride, size_t count)
{
    const laya_energies *e = user;
    size_t at = 0;
    while (at < e->tensor_count && e->tensors[at].data != weight->data) at++;
    if (at == e->tensor_count) return; /* not in the package */
    tensor_sums *tensor = &e->tensors[at];
    for (size_t row = 0; row < count; row++) {
        const float *values = rows + row * stride;
        for (size_t col = 0; col < tensor->cols; col++)
            tensor->sums[col] += (double)values[col] * (double)values[col];
    }
    tensor->rows += count;
}

static void report_progress(void *user, uint64_t done, uint64_t total)
{
    const measurement *m = user;
    if (!m->progress->report || total == 0) return;
    double part = (double)done / (double)total * (double)m->now;
    m->progress->report(m->progress->user, m->done * QUESTION_STEPS + (uint64_t)(part * QUESTION_STEPS),
                        m->fixture.questions * QUESTION_STEPS);
}

static laya_status answer_case(measurement *m, const laya_fixture_case *input, laya_error *error)
{
    const char *text;
    m->now = input->count;
    laya_status status = laya_predict(m->context, input->state, input->state_size, input->questions,
                                      input->questions_size, NULL, &text, NULL);
    if (status != LAYA_OK) {
        if (error) *error = *laya_context_error(m->context);
        laya_error_prefix(error, "case '%s': ", input->name);
        return status;
    }
    for (size_t at = 0; at < m->context->row_count; at++) m->energies->tokens += m->context->rows[at].count;
    m->done += input->count;
    return LAYA_OK;
}

static laya_status answer_cases(measurement *m, laya_error *error)
{
    laya_context_options options;
    const laya_probe probe = {.user = m->energies, .see = see};
    laya_context_options_init(&options);
    options.threads = m->threads;
    options.progress = (laya_progress){.user = m, .report = report_progress};
    options.interrupt = *m->interrupt;
    LAYA_TRY(laya_context_open(m->model, &options, &m->context, error));
    m->context->probe = &probe;
    laya_status status = LAYA_OK;
    for (size_t at = 0; at < m->fixture.count && status == LAYA_OK; at++)
        status = answer_case(m, &m->fixture.cases[at], error);
    laya_context_close(m->context);
    return status;
}

/* ------------------------------------------------------------------ means */

static laya_status average(laya_energies *e, weight_energy *weight, laya_error *error)
{
    const tensor_sums *tensor = &e->tensors[weight->tensor];
    float *values = laya_arena_alloc(&e->arena, tensor->cols, sizeof *values);
    if (!values) return laya_fail_memory(error, tensor->cols * sizeof *values);
    for (size_t at = 0; at < tensor->cols; at++) {
        values[at] = (float)(tensor->sums[weight->cols ? weight->cols[at] : at] / (double)tensor->rows);
        if (!isfinite(values[at]))
            return laya_fail(error, LAYA_ERROR_FORMAT,
                             "%s: the mean square of what goes into column %zu is not finite as float32",
                             weight->name, at);
    }
    weight->values = values;
    weight->cols = NULL; /* of the program, which is closed */
    return LAYA_OK;
}

static laya_status measure_with(measurement *m, const laya_allocator *allocator, const char *fixture,
                                laya_error *error)
{
    laya_energies *e = m->energies;
    LAYA_TRY(laya_fixture_open(&m->fixture, fixture, allocator, error));
    LAYA_TRY(open_model(m, allocator, error));
    LAYA_TRY(build_graph(m, error));
    LAYA_TRY(answer_cases(m, error));
    for (size_t at = 0; at < e->weight_count; at++) LAYA_TRY(average(e, &e->weights[at], error));
    memcpy(e->fixture_sha256, m->fixture.sha256, sizeof e->fixture_sha256);
    e->cases = (uint32_t)m->fixture.count;
    e->questions = (uint32_t)m->fixture.questions;
    return LAYA_OK;
}

/* ------------------------------------------------------------------ the whole */

laya_status laya_energies_measure(const char *bundle, const char *model_directory, const char *fixture,
                                  unsigned threads, const laya_allocator *allocator, const laya_progress *progress,
                                  const laya_interrupt *interrupt, laya_energies **out, laya_error *error)
{
    static const laya_progress no_progress = {0};
    static const laya_interrupt no_interrupt = {0};
    const laya_allocator hooks = laya_allocator_or_default(allocator);
    measurement m = {.progress = progress ? progress : &no_progress,
                     .interrupt = interrupt ? interrupt : &no_interrupt,
                     .threads = threads};
    *out = NULL;
    m.energies = laya_alloc_zero(&hooks, 1, sizeof *m.energies);
    if (!m.energies) return laya_fail_memory(error, sizeof *m.energies);
    laya_arena_init(&m.energies->arena, &hooks);
    laya_mil_program_init(&m.program, &hooks);
    laya_status status = laya_origin_open(&m.origin, bundle, model_directory, &hooks, error);
    if (status == LAYA_OK) {
        status = measure_with(&m, &hooks, fixture, error);
        laya_origin_close(&m.origin);
    }
    laya_fixture_close(&m.fixture);
    laya_mil_program_close(&m.program);
    laya_model_close(m.model);
    if (status == LAYA_OK)
        *out = m.energies;
    else
        laya_energies_close(m.energies);
    return status;
}

void laya_energies_close(laya_energies *energies)
{
    if (!energies) return;
    laya_allocator allocator = energies->arena.allocator;
    laya_arena_close(&energies->arena);
    laya_release(&allocator, energies);
}

const float *laya_energies_find(void *user, const char *name, uint64_t row)
{
    const laya_energies *e = user;
    for (size_t at = 0; at < e->weight_count; at++) {
        if (e->weights[at].row == row && strcmp(e->weights[at].name, name) == 0) return e->weights[at].values;
    }
    return NULL;
}

laya_energy_facts laya_energies_facts(const laya_energies *energies)
{
    return (laya_energy_facts){.fixture_sha256 = energies->fixture_sha256,
                               .cases = energies->cases,
                               .questions = energies->questions,
                               .tokens = energies->tokens};
}
