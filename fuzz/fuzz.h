/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the fuzz targets share: an allocator that counts and can fail once, and checks that hold for every
 * input. The first byte of an input is the number of the allocation that fails; 0: none does.
 */
#ifndef LAYA_FUZZ_H
#define LAYA_FUZZ_H

#include "base/error.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "laya/laya.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct fuzz_memory {
    uint64_t made;    /* allocations asked for */
    uint64_t fail_at; /* the one that fails, counted from 1; 0: none */
    uint64_t live;    /* blocks that were not released */
    uint64_t limit;   /* bytes that may be asked for in all; 0: any number */
    uint64_t asked;   /* bytes, of blocks that were not refused */
    laya_allocator hooks;
} fuzz_memory;

/* A broken promise: the fuzzer keeps the input. */
static inline void fuzz_check(int holds, const char *promise)
{
    if (holds) return;
    fprintf(stderr, "broken promise: %s\n", promise);
    abort();
}

static inline void *fuzz_allocate(void *user, size_t size)
{
    fuzz_memory *memory = user;
    if (++memory->made == memory->fail_at) return NULL;
    if (memory->limit && size > memory->limit - memory->asked) return NULL;
    void *block = malloc(size);
    if (!block) return NULL;
    memory->live++;
    memory->asked += size;
    return block;
}

static inline void fuzz_release(void *user, void *block)
{
    fuzz_memory *memory = user;
    fuzz_check(block != NULL && memory->live > 0, "only blocks that were allocated are released");
    memory->live--;
    free(block);
}

static inline void fuzz_memory_init(fuzz_memory *memory, uint8_t fail_at)
{
    *memory = (fuzz_memory){.fail_at = fail_at, .hooks = {memory, fuzz_allocate, fuzz_release}};
}

/* Everything was given back. */
static inline void fuzz_memory_end(const fuzz_memory *memory)
{
    fuzz_check(memory->live == 0, "no block is lost");
}

/* What every call promises about its status and message. */
static inline void fuzz_check_status(const fuzz_memory *memory, laya_status status, const laya_error *error)
{
    if (status == LAYA_OK) return;
    size_t size = strlen(error->message);
    fuzz_check(error->status == status, "the error holds the status that was returned");
    fuzz_check(size > 0 && size < sizeof error->message, "a failure has a message");
    fuzz_check(laya_utf8_valid(error->message, size) == size, "a message is UTF-8");
    if (status == LAYA_ERROR_MEMORY && memory->limit == 0)
        fuzz_check(memory->fail_at != 0 && memory->made >= memory->fail_at, "memory fails only where it is made to");
}

/* The text up to the next NUL byte, or the rest; *at moves behind it. */
static inline const char *fuzz_part(const uint8_t *data, size_t size, size_t *at, size_t *length)
{
    const uint8_t *begin = data + *at;
    const uint8_t *end = size > *at ? memchr(begin, 0, size - *at) : NULL;
    *length = end ? (size_t)(end - begin) : size - *at;
    *at += *length + (end != NULL);
    return (const char *)begin;
}

#endif
