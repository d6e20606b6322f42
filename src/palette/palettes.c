/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of all weights, on all threads: a task is the fewest groups whose indices fill whole bytes. */
#include "palette/palettes.h"

#include "base/error.h"
#include "base/file.h"
#include "coreml/weight_file.h"

#include <stdatomic.h>
#include <string.h>

#define NONE SIZE_MAX /* no task */

/* What one thread works with. */
typedef struct worker_state {
    laya_grouper *grouper;
    unsigned char *indices; /* of a task, one a byte */
    size_t failed;          /* the first task that failed here; NONE */
    laya_error error;
} worker_state;

/* A weight's share of the tasks. */
typedef struct share {
    size_t first_task, first_group; /* among those of all weights */
    uint32_t groups;
    uint32_t task_groups; /* of a task; the last one may have fewer */
    atomic_size_t left;   /* tasks that are not done */
} share;

typedef struct maker {
    laya_palette_weight *weights;
    uint32_t count;
    laya_palette_mode mode;
    bool counting; /* distinct values alone */
    const laya_allocator *allocator;
    const laya_meter *meter;
    share *shares; /* [count] */
    size_t tasks, groups;
    worker_state *workers;
    unsigned worker_count;
    laya_palette_error *errors; /* [groups] */
    uint32_t *distinct;         /* [groups], UNIQUE */
    atomic_size_t limit;        /* tasks from here on are not begun: an earlier one failed */
} maker;

static bool gets_table(const maker *m, const laya_palette_weight *weight)
{
    return m->counting || weight->bits != LAYA_PALETTE_AS_IS;
}

static unsigned width_of(const laya_palette_weight *weight)
{
    return weight->constant->type.dtype == LAYA_MIL_FP16 ? 2 : 4;
}

/* ------------------------------------------------------------------ tasks */

/* The fewest groups whose indices end on a byte; at most 8. */
static uint32_t whole_bytes(const laya_palette_weight *weight)
{
    uint64_t bits = weight->row * weight->group % 8 * weight->bits % 8;
    uint32_t groups = 1;
    while (bits * groups % 8 != 0) groups++;
    return groups;
}

static void plan_tasks(maker *m)
{
    m->tasks = m->groups = 0;
    for (uint32_t at = 0; at < m->count; at++) {
        const laya_palette_weight *weight = &m->weights[at];
        share *s = &m->shares[at];
        bool made = gets_table(m, weight);
        s->first_task = m->tasks;
        s->first_group = m->groups;
        s->groups = made ? weight->channels / weight->group : 0;
        s->task_groups = m->counting ? 1 : whole_bytes(weight);
        size_t tasks = (s->groups + s->task_groups - 1) / s->task_groups;
        atomic_init(&s->left, tasks);
        m->tasks += tasks;
        m->groups += s->groups;
    }
}

static laya_status open_worker(maker *m, worker_state *worker, laya_error *error)
{
    uint64_t largest = 0, most = 0;
    for (uint32_t at = 0; at < m->count; at++) {
        const laya_palette_weight *weight = &m->weights[at];
        uint64_t group = weight->row * weight->group;
        if (group > largest) largest = group;
        if (!m->counting && group * whole_bytes(weight) > most) most = group * whole_bytes(weight);
    }
    if (!worker->grouper) LAYA_TRY(laya_grouper_open(largest, m->allocator, &worker->grouper, error));
    worker->failed = NONE;
    if (m->counting) return LAYA_OK;
    worker->indices = laya_alloc(m->allocator, (size_t)most, 1);
    return worker->indices ? LAYA_OK : laya_fail_memory(error, (size_t)most);
}

/* Arrays by group, and what the threads need. */
static laya_status open_maker(maker *m, laya_error *error)
{
    plan_tasks(m);
    atomic_init(&m->limit, NONE);
    if (m->counting)
        m->distinct = laya_alloc(m->allocator, m->groups, sizeof *m->distinct);
    else
        m->errors = laya_alloc(m->allocator, m->groups, sizeof *m->errors);
    if (m->counting ? !m->distinct : !m->errors) return laya_fail_memory(error, m->groups * sizeof *m->errors);
    for (unsigned at = 0; at < m->worker_count; at++) LAYA_TRY(open_worker(m, &m->workers[at], error));
    return LAYA_OK;
}

static void close_maker(maker *m)
{
    for (unsigned at = 0; m->workers && at < m->worker_count; at++) {
        laya_grouper_close(m->workers[at].grouper);
        laya_release(m->allocator, m->workers[at].indices);
    }
    laya_release(m->allocator, m->workers);
    laya_release(m->allocator, m->shares);
    laya_release(m->allocator, m->errors);
    laya_release(m->allocator, m->distinct);
}

/* ------------------------------------------------------------------ a task */

static laya_status make_group(const maker *m, const laya_palette_weight *weight, worker_state *worker, uint32_t group,
                              unsigned char *indices, size_t place)
{
    uint64_t elements = weight->row * weight->group;
    const laya_group_source source = {.bytes = weight->constant->bytes + group * elements * width_of(weight),
                                      .dtype = weight->constant->type.dtype,
                                      .rows = weight->group,
                                      .row = weight->row,
                                      .energy = weight->energy};
    laya_status status;
    if (m->counting) {
        status = laya_group_distinct(worker->grouper, &source, &m->distinct[place], &worker->error);
    } else {
        unsigned char *lut = weight->lut + ((size_t)group << weight->bits) * width_of(weight);
        status = laya_group_make(worker->grouper, &source, m->mode, weight->bits, lut, indices, &m->errors[place],
                                 &worker->error);
    }
    if (status != LAYA_OK) {
        laya_error_prefix(&worker->error, "%.200s, output channels %llu to %llu: ", weight->name,
                          (unsigned long long)group * weight->group,
                          (unsigned long long)(group + 1) * weight->group - 1);
        return status;
    }
    return laya_meter_add(m->meter, m->counting ? 0 : elements * width_of(weight), &worker->error);
}

static laya_status make_task(maker *m, size_t index, worker_state *worker)
{
    uint32_t which = 0;
    while (which + 1 < m->count && m->shares[which + 1].first_task <= index) which++;
    const laya_palette_weight *weight = &m->weights[which];
    share *s = &m->shares[which];
    uint64_t elements = weight->row * weight->group;
    uint32_t first = (uint32_t)(index - s->first_task) * s->task_groups, groups = s->groups - first;
    if (groups > s->task_groups) groups = s->task_groups;
    for (uint32_t at = 0; at < groups; at++)
        LAYA_TRY(make_group(m, weight, worker, first + at, worker->indices ? worker->indices + at * elements : NULL,
                            s->first_group + first + at));
    if (!m->counting)
        laya_pack_bits(worker->indices, groups * elements, weight->bits,
                       weight->indices + first * elements * weight->bits / 8);
    if (atomic_fetch_sub(&s->left, 1) == 1 && weight->mapped)
        laya_file_forget(weight->constant->bytes, (size_t)weight->constant->size);
    return LAYA_OK;
}

/* The limit falls to the first task that fails, so that the message does not depend on the number of threads. */
static void run_task(void *argument, size_t index, unsigned number)
{
    maker *m = argument;
    worker_state *worker = &m->workers[number];
    size_t limit = atomic_load(&m->limit);
    if (index >= limit || index >= worker->failed) return;
    if (make_task(m, index, worker) == LAYA_OK) return;
    worker->failed = worker->error.status == LAYA_ERROR_STOPPED ? 0 : index;
    while (worker->failed < limit && !atomic_compare_exchange_weak(&m->limit, &limit, worker->failed)) continue;
}

static laya_status run_tasks(maker *m, laya_pool *pool, laya_error *error)
{
    laya_pool_run(pool, m->tasks, run_task, m);
    const worker_state *first = NULL;
    for (unsigned at = 0; at < m->worker_count; at++) {
        const worker_state *worker = &m->workers[at];
        if (worker->failed != NONE && (!first || worker->failed < first->failed)) first = worker;
    }
    if (!first) return LAYA_OK;
    return laya_fail(error, first->error.status, "%s", first->error.message);
}

/* ------------------------------------------------------------------ the number of bits of UNIQUE */

static unsigned bits_for(uint32_t distinct, bool three_bits)
{
    static const unsigned widths[] = {1, 2, 3, 4, 6, 8};
    for (size_t at = 0; at < sizeof widths / sizeof *widths; at++) {
        if (distinct <= 1u << widths[at] && (widths[at] != 3 || three_bits)) return widths[at];
    }
    return LAYA_PALETTE_AS_IS;
}

static void choose_bits(const maker *m, bool three_bits)
{
    for (uint32_t at = 0; at < m->count; at++) {
        const share *s = &m->shares[at];
        uint32_t most = 0;
        for (uint32_t group = 0; group < s->groups; group++) {
            uint32_t distinct = m->distinct[s->first_group + group];
            if (distinct > most) most = distinct;
        }
        m->weights[at].bits = bits_for(most, three_bits);
    }
}

/* ------------------------------------------------------------------ all weights */

static laya_status allocate(maker *m, laya_error *error)
{
    for (uint32_t at = 0; at < m->count; at++) {
        laya_palette_weight *weight = &m->weights[at];
        if (weight->bits == LAYA_PALETTE_AS_IS) continue;
        uint64_t elements = weight->row * weight->channels, groups = weight->channels / weight->group;
        weight->indices_size = elements / 8 * weight->bits + (elements % 8 * weight->bits + 7) / 8;
        weight->lut_size = (groups << weight->bits) * width_of(weight);
        weight->indices = laya_alloc(m->allocator, (size_t)weight->indices_size, 1);
        weight->lut = laya_alloc(m->allocator, (size_t)weight->lut_size, 1);
        if (!weight->indices || !weight->lut)
            return laya_fail_memory(error, (size_t)(weight->indices_size + weight->lut_size));
    }
    return LAYA_OK;
}

static void sum_errors(const maker *m)
{
    for (uint32_t at = 0; at < m->count; at++) {
        const share *s = &m->shares[at];
        for (uint32_t group = 0; group < s->groups; group++)
            laya_palette_error_add(&m->weights[at].errors, &m->errors[s->first_group + group]);
    }
}

/* Whether any weight gets a table: UNIQUE may leave all of them as they are. */
static bool any_table(const maker *m)
{
    for (uint32_t at = 0; at < m->count; at++) {
        if (m->weights[at].bits != LAYA_PALETTE_AS_IS) return true;
    }
    return false;
}

static laya_status make(maker *m, bool three_bits, laya_pool *pool, laya_error *error)
{
    m->shares = laya_alloc_zero(m->allocator, m->count, sizeof *m->shares);
    m->workers = laya_alloc_zero(m->allocator, m->worker_count, sizeof *m->workers);
    if (!m->shares || !m->workers) return laya_fail_memory(error, m->count * sizeof *m->shares);
    if (m->mode == LAYA_PALETTE_UNIQUE) {
        m->counting = true;
        LAYA_TRY(open_maker(m, error));
        LAYA_TRY(run_tasks(m, pool, error));
        choose_bits(m, three_bits);
        m->counting = false;
    }
    if (!any_table(m)) return LAYA_OK;
    LAYA_TRY(allocate(m, error));
    LAYA_TRY(open_maker(m, error));
    LAYA_TRY(run_tasks(m, pool, error));
    sum_errors(m);
    return LAYA_OK;
}

laya_status laya_palettes_make(laya_palette_weight *weights, uint32_t count, laya_palette_mode mode, bool three_bits,
                               laya_pool *pool, const laya_allocator *allocator, const laya_meter *meter,
                               laya_error *error)
{
    maker m = {.weights = weights,
               .count = count,
               .mode = mode,
               .allocator = allocator,
               .meter = meter,
               .worker_count = laya_pool_threads(pool)};
    for (uint32_t at = 0; at < count; at++) {
        weights[at].indices = weights[at].lut = NULL;
        weights[at].indices_size = weights[at].lut_size = 0;
        weights[at].errors = (laya_palette_error){0};
    }
    laya_status status = count > 0 ? make(&m, three_bits, pool, error) : LAYA_OK;
    close_maker(&m);
    if (status != LAYA_OK) laya_palettes_release(weights, count, allocator);
    return status;
}

void laya_palettes_release(laya_palette_weight *weights, uint32_t count, const laya_allocator *allocator)
{
    for (uint32_t at = 0; at < count; at++) {
        laya_release(allocator, weights[at].indices);
        laya_release(allocator, weights[at].lut);
        weights[at].indices = weights[at].lut = NULL;
        weights[at].indices_size = weights[at].lut_size = 0;
    }
}
