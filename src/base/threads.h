/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of worker threads that run numbered tasks. */
#ifndef LAYA_BASE_THREADS_H
#define LAYA_BASE_THREADS_H

#include "base/memory.h"
#include "laya/base.h"

#define LAYA_MAX_THREADS 1024u

typedef struct laya_pool laya_pool;

/* A task. `worker` is 0 .. threads - 1 and names the scratch memory that this call may use. */
typedef void (*laya_task)(void *argument, size_t index, unsigned worker);

/* CPUs that this process may run on, at least 1. */
unsigned laya_online_cpus(void);

/* 1 <= threads <= LAYA_MAX_THREADS, the caller included. Errors: ARGUMENT, MEMORY, SYSTEM. */
laya_status laya_pool_open(unsigned threads, const laya_allocator *allocator, laya_pool **out, laya_error *error);
void laya_pool_close(laya_pool *pool);
unsigned laya_pool_threads(const laya_pool *pool);

/* Run task(argument, i, worker) for i = 0 .. count - 1, in any order; returns when all are done. */
void laya_pool_run(laya_pool *pool, size_t count, laya_task task, void *argument);

#endif
