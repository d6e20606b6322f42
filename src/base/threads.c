/* SPDX-License-Identifier: Apache-2.0 */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* sched_getaffinity, CPU_COUNT */
#endif

#include "base/threads.h"

#include "base/clock.h"
#include "base/error.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/*
 * A forward pass has some two hundred short parallel regions. A worker therefore looks for the next region for
 * SPIN_SECONDS before it sleeps, and the caller waits only for the workers that joined: one that sleeps through a
 * region costs nothing.
 *
 * `gate` holds a region's number (upper half), whether it accepts workers (OPEN), and how many are inside (COUNT). A
 * worker joins by raising the count while the gate is open; the caller closes the gate when no index is left and
 * waits for zero. Only then does it write the fields of the next region, so that no worker reads them while they
 * change.
 *
 * All atomics are sequentially consistent: a sleeper publishes itself and then looks at the gate, the caller opens
 * the gate and then looks for sleepers, so that one of the two sees the other.
 */
#define SPIN_SECONDS 50e-6
#define SPIN_LOADS 256u /* looks at the gate before the first sched_yield */
#define GATE_COUNT UINT64_C(0xffff)
#define GATE_OPEN UINT64_C(0x10000)
#define GATE_REGION UINT64_C(0x20000)

typedef struct worker {
    laya_pool *pool;
    pthread_t thread;
    unsigned index; /* 1 .. threads - 1 */
} worker;

struct laya_pool {
    laya_allocator allocator;
    unsigned threads;
    unsigned started; /* workers that run */
    worker *workers;  /* [threads - 1] */
    laya_task task;
    void *argument;
    size_t count;
    atomic_size_t next; /* the next index to hand out */
    _Atomic uint64_t gate;
    atomic_uint sleepers;
    atomic_bool waiting; /* the caller sleeps until the gate's count is zero */
    atomic_bool stop;
    pthread_mutex_t mutex;
    pthread_cond_t wake; /* a region opened, or stop */
    pthread_cond_t done; /* the last worker left a closed region */
};

unsigned laya_online_cpus(void)
{
#if defined(__linux__)
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        int count = CPU_COUNT(&set);
        if (count > 0) return (unsigned)count;
    }
#endif
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 && online <= (long)LAYA_MAX_THREADS ? (unsigned)online : online > 0 ? LAYA_MAX_THREADS : 1;
}

static void work(laya_pool *pool, unsigned index)
{
    for (;;) {
        size_t i = atomic_fetch_add(&pool->next, 1);
        if (i >= pool->count) return;
        pool->task(pool->argument, i, index);
    }
}

/* Whether there is something new for a worker that took part in region `seen`, or slept through it. */
static bool is_new(uint64_t gate, uint64_t seen)
{
    return (gate & GATE_OPEN) && gate / GATE_REGION != seen;
}

static void wait_for_region(laya_pool *pool, uint64_t seen)
{
    double limit = 0;
    for (unsigned looks = 0;; looks++) {
        if (is_new(atomic_load(&pool->gate), seen) || atomic_load(&pool->stop)) return;
        if (looks < SPIN_LOADS) continue;
        if (looks == SPIN_LOADS) limit = laya_seconds() + SPIN_SECONDS;
        if (laya_seconds() >= limit) break;
        sched_yield();
    }
    pthread_mutex_lock(&pool->mutex);
    atomic_fetch_add(&pool->sleepers, 1);
    while (!is_new(atomic_load(&pool->gate), seen) && !atomic_load(&pool->stop)) {
        pthread_cond_wait(&pool->wake, &pool->mutex);
    }
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->mutex);
}

static void *worker_main(void *argument)
{
    worker *self = argument;
    laya_pool *pool = self->pool;
    uint64_t seen = 0;
    for (;;) {
        wait_for_region(pool, seen);
        if (atomic_load(&pool->stop)) return NULL;
        uint64_t gate = atomic_load(&pool->gate);
        bool joined = false;
        while (!joined && is_new(gate, seen)) joined = atomic_compare_exchange_weak(&pool->gate, &gate, gate + 1);
        if (!joined) continue; /* it closed in between */
        seen = gate / GATE_REGION;
        work(pool, self->index);
        gate = atomic_fetch_sub(&pool->gate, 1);
        if ((gate & GATE_COUNT) == 1 && atomic_load(&pool->waiting)) {
            pthread_mutex_lock(&pool->mutex);
            pthread_cond_signal(&pool->done);
            pthread_mutex_unlock(&pool->mutex);
        }
    }
}

/* The gate is closed: wait until the workers that joined have left. */
static void wait_for_workers(laya_pool *pool)
{
    double limit = 0;
    for (unsigned looks = 0;; looks++) {
        if ((atomic_load(&pool->gate) & GATE_COUNT) == 0) return;
        if (looks < SPIN_LOADS) continue;
        if (looks == SPIN_LOADS) limit = laya_seconds() + SPIN_SECONDS;
        if (laya_seconds() >= limit) break;
        sched_yield();
    }
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->waiting, true);
    while ((atomic_load(&pool->gate) & GATE_COUNT) != 0) pthread_cond_wait(&pool->done, &pool->mutex);
    atomic_store(&pool->waiting, false);
    pthread_mutex_unlock(&pool->mutex);
}

void laya_pool_run(laya_pool *pool, size_t count, laya_task task, void *argument)
{
    if (pool->threads == 1 || count <= 1) {
        for (size_t i = 0; i < count; i++) task(argument, i, 0);
        return;
    }
    pool->task = task;
    pool->argument = argument;
    pool->count = count;
    atomic_store(&pool->next, 0);
    atomic_fetch_add(&pool->gate, GATE_REGION + GATE_OPEN);
    if (atomic_load(&pool->sleepers) > 0) {
        pthread_mutex_lock(&pool->mutex);
        pthread_cond_broadcast(&pool->wake);
        pthread_mutex_unlock(&pool->mutex);
    }
    work(pool, 0);
    atomic_fetch_sub(&pool->gate, GATE_OPEN);
    wait_for_workers(pool);
}

unsigned laya_pool_threads(const laya_pool *pool)
{
    return pool->threads;
}

laya_status laya_pool_open(unsigned threads, const laya_allocator *allocator, laya_pool **out, laya_error *error)
{
    *out = NULL;
    if (threads < 1 || threads > LAYA_MAX_THREADS) {
        return laya_fail(error, LAYA_ERROR_ARGUMENT, "a pool takes 1 to %u threads, got %u", LAYA_MAX_THREADS,
                         threads);
    }
    laya_allocator hooks = laya_allocator_or_default(allocator);
    laya_pool *pool = laya_alloc_zero(&hooks, 1, sizeof *pool);
    if (!pool) return laya_fail_memory(error, sizeof *pool);
    pool->allocator = hooks;
    pool->threads = threads;
    atomic_init(&pool->next, 0);
    atomic_init(&pool->gate, 0);
    atomic_init(&pool->sleepers, 0);
    atomic_init(&pool->waiting, false);
    atomic_init(&pool->stop, false);
    int code = pthread_mutex_init(&pool->mutex, NULL);
    if (code != 0) {
        laya_release(&hooks, pool);
        return laya_fail(error, LAYA_ERROR_SYSTEM, "cannot make a lock: %s", strerror(code));
    }
    code = pthread_cond_init(&pool->wake, NULL);
    if (code != 0) {
        pthread_mutex_destroy(&pool->mutex);
        laya_release(&hooks, pool);
        return laya_fail(error, LAYA_ERROR_SYSTEM, "cannot make a condition variable: %s", strerror(code));
    }
    code = pthread_cond_init(&pool->done, NULL);
    if (code != 0) {
        pthread_cond_destroy(&pool->wake);
        pthread_mutex_destroy(&pool->mutex);
        laya_release(&hooks, pool);
        return laya_fail(error, LAYA_ERROR_SYSTEM, "cannot make a condition variable: %s", strerror(code));
    }
    if (threads > 1) {
        pool->workers = laya_alloc_zero(&hooks, threads - 1, sizeof *pool->workers);
        if (!pool->workers) {
            laya_pool_close(pool);
            return laya_fail_memory(error, (threads - 1) * sizeof *pool->workers);
        }
    }
    for (unsigned i = 0; i + 1 < threads; i++) {
        pool->workers[i].pool = pool;
        pool->workers[i].index = i + 1;
        code = pthread_create(&pool->workers[i].thread, NULL, worker_main, &pool->workers[i]);
        if (code != 0) {
            laya_pool_close(pool);
            return laya_fail(error, LAYA_ERROR_SYSTEM, "cannot start thread %u of %u: %s", i + 2, threads,
                             strerror(code));
        }
        pool->started = i + 1;
    }
    *out = pool;
    return LAYA_OK;
}

void laya_pool_close(laya_pool *pool)
{
    if (!pool) return;
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->stop, true);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
    for (unsigned i = 0; i < pool->started; i++) pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->done);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
    laya_allocator hooks = pool->allocator;
    laya_release(&hooks, pool->workers);
    laya_release(&hooks, pool);
}
