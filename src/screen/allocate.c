/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bits for each weight. Steps from a weight's hull of (bytes, error) to its next point are put in one order over all
 * weights, by what a byte costs; bisection finds how many of them a bundle stands. docs/PALETTES.md has the whole.
 */
#include "base/error.h"
#include "base/file.h"
#include "base/staging.h"
#include "screen/gated.h"
#include "screen/stages.h"
#include "screen/steps.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BISECTIONS 16u /* steps are fewer than 2^16 */
#define EXTRA_TRIES 8u /* single steps after the first one that fails */

static const unsigned level_bits[LAYA_BIT_LEVELS] = {8, 6, 4, 3, 2};

typedef struct allocation {
    const laya_palette_job *job;
    const laya_validate_options *options;
    laya_arena arena;
    laya_stages stages;
    uint32_t count; /* weights */
    const char **names;
    uint64_t *bytes_before;
    laya_bit_point *points; /* [count, LAYA_BIT_LEVELS] */
    laya_bit_step *steps;   /* in their order */
    size_t step_count;
    unsigned *bits; /* [count] of the candidate at hand */
    bool *blocked;  /* [count] a step of this weight was left out */
    char *candidate, *kept;
    bool found;           /* `kept` holds a bundle that passes */
    double largest_error; /* of the last candidate */
} allocation;

/* ------------------------------------------------------------------ what each weight costs */

static laya_status take_names(allocation *a, const laya_palette_figures *figures, laya_error *error)
{
    uint32_t count = a->count = figures->count;
    laya_arena *arena = &a->arena;
    a->names = laya_arena_alloc(arena, count, sizeof *a->names);
    a->bytes_before = laya_arena_alloc(arena, count, sizeof *a->bytes_before);
    a->points = laya_arena_alloc(arena, (size_t)count * LAYA_BIT_LEVELS, sizeof *a->points);
    a->steps = laya_arena_alloc(arena, (size_t)count * LAYA_BIT_LEVELS, sizeof *a->steps);
    a->bits = laya_arena_alloc(arena, count, sizeof *a->bits);
    a->blocked = laya_arena_alloc(arena, count, sizeof *a->blocked);
    if (!a->names || !a->bytes_before || !a->points || !a->steps || !a->bits || !a->blocked)
        return laya_fail_memory(error, (size_t)count * LAYA_BIT_LEVELS * sizeof *a->steps);
    memset(a->points, 0, (size_t)count * LAYA_BIT_LEVELS * sizeof *a->points);
    for (uint32_t at = 0; at < count; at++) {
        const char *name = figures->weights[at].name;
        a->names[at] = laya_arena_copy(arena, name, strlen(name));
        if (!a->names[at]) return laya_fail_memory(error, 0);
        a->bytes_before[at] = figures->weights[at].bytes_before;
    }
    return LAYA_OK;
}

static double relative_error(const laya_palette_error *errors)
{
    return errors->weighted_energy > 0 ? errors->weighted_sse / errors->weighted_energy : 0;
}

static laya_status measure_level(allocation *a, size_t level, laya_error *error)
{
    laya_palette_job job = *a->job;
    laya_palette_figures figures;
    job.bits = level_bits[level];
    job.choice.bits = NULL;
    job.progress = laya_stages_next(&a->stages, 1);
    LAYA_TRY(laya_palette_measure(&job, &figures, error));
    laya_status status = a->names ? LAYA_OK : take_names(a, &figures, error);
    for (uint32_t at = 0; at < a->count && status == LAYA_OK; at++) {
        const laya_palette_figure *figure = &figures.weights[at];
        a->points[at * LAYA_BIT_LEVELS + level] = (laya_bit_point){job.bits, figure->bytes,
                                                                   relative_error(&figure->errors)};
    }
    laya_palette_figures_close(&figures);
    return status;
}

static laya_status make_steps(allocation *a, laya_error *error)
{
    for (size_t level = 0; level < LAYA_BIT_LEVELS; level++) {
        bool three = level_bits[level] == 3; /* per tensor it would raise the opset */
        if (three && a->job->group_size == 0)
            (void)laya_stages_next(&a->stages, 1);
        else
            LAYA_TRY(measure_level(a, level, error));
    }
    a->step_count = laya_bit_steps(a->bytes_before, a->points, a->count, a->steps);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ candidates */

static unsigned choose_bits(void *user, const char *name)
{
    const allocation *a = user;
    for (uint32_t at = 0; at < a->count; at++) {
        if (strcmp(a->names[at], name) == 0) return a->bits[at];
    }
    return LAYA_PALETTE_AS_IS;
}

static const float *find_energy(void *user, const char *name, uint64_t row)
{
    const laya_palette_choice *choice = &((const allocation *)user)->job->choice;
    return choice->energy(choice->user, name, row);
}

static laya_status validate(allocation *a, const char *bundle, uint32_t repeats, laya_gate_result *result,
                            laya_error *error)
{
    laya_validate_options options = *a->options;
    options.repeats = repeats;
    options.progress = laya_stages_next(&a->stages, 1);
    return laya_gate_run(bundle, &options, result, error);
}

static laya_status gate(allocation *a, const char *bundle, bool *passed, laya_error *error)
{
    laya_gate_result result;
    LAYA_TRY(validate(a, bundle, 1, &result, error));
    a->largest_error = result.gate.probability_error;
    *passed = result.other_gates && result.gate.probability_error <= a->job->target_error;
    laya_report_close(result.report);
    return LAYA_OK;
}

/* Make the bundle of a->bits; where it passes it becomes the one that is kept. */
static laya_status try_bits(allocation *a, bool *passed, laya_error *error)
{
    laya_palette_job job = *a->job;
    job.bits = 0;
    job.choice = (laya_palette_choice){a, choose_bits, a->job->choice.energy ? find_energy : NULL};
    job.progress = laya_stages_next(&a->stages, 1);
    LAYA_TRY(laya_make_directory(a->candidate, error));
    laya_status status = laya_palette_bundle_make(&job, a->candidate, NULL, error);
    if (status == LAYA_OK) status = gate(a, a->candidate, passed, error);
    if (status == LAYA_OK && *passed) {
        laya_remove_tree(a->kept);
        if (rename(a->candidate, a->kept) != 0)
            status = laya_fail_file(error, a->candidate, "cannot be renamed", errno);
        a->found = true;
    } else {
        laya_remove_tree(a->candidate);
    }
    return status;
}

/* The first `steps` steps. */
static laya_status try_prefix(allocation *a, size_t steps, bool *passed, laya_error *error)
{
    for (uint32_t at = 0; at < a->count; at++) a->bits[at] = LAYA_PALETTE_AS_IS;
    for (size_t at = 0; at < steps; at++) a->bits[a->steps[at].weight] = a->steps[at].bits;
    return try_bits(a, passed, error);
}

/* ------------------------------------------------------------------ the search */

static laya_status check_parent(allocation *a, laya_error *error)
{
    bool passed;
    LAYA_TRY(gate(a, a->job->parent, &passed, error));
    if (passed) return LAYA_OK;
    return laya_fail(
        error, LAYA_ERROR_UNSUPPORTED,
        "%s: without palettes already it fails a gate or the target error of %g: its largest probability "
        "error is %g; allow more, or export in another precision",
        a->job->parent, a->job->target_error, a->largest_error);
}

/* `taken` steps pass, `taken` + 1 do not. */
static laya_status bisect(allocation *a, size_t *taken, laya_error *error)
{
    size_t pass = 0, fail = a->step_count;
    bool passed;
    *taken = 0;
    LAYA_TRY(try_prefix(a, fail, &passed, error));
    if (passed) pass = fail;
    unsigned tries = 0;
    for (; fail - pass > 1; tries++) {
        size_t middle = pass + (fail - pass) / 2;
        LAYA_TRY(try_prefix(a, middle, &passed, error));
        if (passed)
            pass = middle;
        else
            fail = middle;
    }
    (void)laya_stages_next(&a->stages, tries < BISECTIONS ? 2 * (BISECTIONS - tries) : 0);
    *taken = pass;
    return LAYA_OK;
}

/* The step after `taken` fails: try the ones that follow, each alone, on top of what passed. */
static laya_status try_single_steps(allocation *a, size_t taken, laya_error *error)
{
    for (uint32_t at = 0; at < a->count; at++) {
        a->bits[at] = LAYA_PALETTE_AS_IS;
        a->blocked[at] = false;
    }
    for (size_t at = 0; at < taken; at++) a->bits[a->steps[at].weight] = a->steps[at].bits;
    if (taken < a->step_count) a->blocked[a->steps[taken].weight] = true;
    unsigned tries = 0;
    for (size_t at = taken + 1; at < a->step_count && tries < EXTRA_TRIES; at++) {
        const laya_bit_step *next = &a->steps[at];
        if (a->blocked[next->weight]) continue;
        unsigned before = a->bits[next->weight];
        bool passed;
        a->bits[next->weight] = next->bits;
        LAYA_TRY(try_bits(a, &passed, error));
        if (!passed) a->bits[next->weight] = before;
        a->blocked[next->weight] = !passed;
        tries++;
    }
    return LAYA_OK;
}

static laya_status search(allocation *a, laya_error *error)
{
    size_t taken;
    LAYA_TRY(make_steps(a, error));
    LAYA_TRY(check_parent(a, error));
    if (a->step_count > 0) {
        LAYA_TRY(bisect(a, &taken, error));
        LAYA_TRY(try_single_steps(a, taken, error));
    }
    if (a->found) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_UNSUPPORTED,
                     "%s: no palette that was tried passes the gates with a target error of %g; allow more",
                     a->job->parent, a->job->target_error);
}

/* ------------------------------------------------------------------ the result */

/* Move the entries of the directory that is kept into the one around it. */
static laya_status move_up(const allocation *a, const char *output, laya_error *error)
{
    const laya_allocator *allocator = &a->job->allocator;
    laya_status status = LAYA_OK;
    struct dirent *entry;
    DIR *entries = opendir(a->kept);
    if (!entries) return laya_fail_file(error, a->kept, "cannot be read", errno);
    while (status == LAYA_OK && (entry = readdir(entries)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        char *from = laya_path_join(allocator, a->kept, entry->d_name);
        char *to = laya_path_join(allocator, output, entry->d_name);
        if (!from || !to)
            status = laya_fail_memory(error, 0);
        else if (rename(from, to) != 0)
            status = laya_fail_file(error, from, "cannot be renamed", errno);
        laya_release(allocator, from);
        laya_release(allocator, to);
    }
    closedir(entries);
    if (status == LAYA_OK) laya_remove_tree(a->kept);
    return status;
}

static laya_status allocate_in(allocation *a, const char *output, laya_gate_result *result, laya_error *error)
{
    const laya_allocator *allocator = &a->job->allocator;
    a->candidate = laya_path_join(allocator, output, "candidate");
    a->kept = laya_path_join(allocator, output, "kept");
    laya_status status = a->candidate && a->kept ? LAYA_OK : laya_fail_memory(error, 0);
    if (status == LAYA_OK) status = search(a, error);
    if (status == LAYA_OK) status = move_up(a, output, error);
    laya_release(allocator, a->candidate);
    laya_release(allocator, a->kept);
    return status == LAYA_OK ? validate(a, output, a->options->repeats, result, error) : status;
}

laya_status laya_allocate_bits(const laya_palette_job *job, const laya_validate_options *options, const char *output,
                               laya_gate_result *result, laya_error *error)
{
    allocation a = {.job = job, .options = options, .stages = {.to = job->progress}};
    *result = (laya_gate_result){0};
    /* A candidate is made and validated: two units; besides, the levels, the parent and the last validation. */
    a.stages.total = LAYA_BIT_LEVELS + 1 + 2 * (1 + BISECTIONS + EXTRA_TRIES) + 1;
    laya_arena_init(&a.arena, &job->allocator);
    laya_status status = allocate_in(&a, output, result, error);
    laya_arena_close(&a.arena);
    if (status == LAYA_OK) laya_stages_end(&a.stages);
    return status;
}
