/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation through the caller's hooks, the arena, and the growable byte buffer. */
#ifndef LAYA_BASE_MEMORY_H
#define LAYA_BASE_MEMORY_H

#include "laya/base.h"

#include <stdbool.h>

/* The hooks to use: `allocator` where it is set, else malloc and free. */
laya_allocator laya_allocator_or_default(const laya_allocator *allocator);

/* A block of count * size bytes, not cleared; NULL on overflow, when the hook fails, or when count * size is 0. */
void *laya_alloc(const laya_allocator *allocator, size_t count, size_t size);
/* The same, cleared. */
void *laya_alloc_zero(const laya_allocator *allocator, size_t count, size_t size);
/* Release a block. NULL is allowed. */
void laya_release(const laya_allocator *allocator, void *block);

/* Checked arithmetic: false when the result does not fit. */
bool laya_add_size(size_t a, size_t b, size_t *sum);
bool laya_mul_size(size_t a, size_t b, size_t *product);

/* ------------------------------------------------------------------ arena
 * Memory for one call: blocks are carved off in order and all are given back by one reset. The chunks
 * stay, so that a warm arena allocates nothing: after a call that needed several chunks, the next reset
 * joins them into one. Blocks are aligned to 64 bytes.
 */
typedef struct laya_arena_chunk laya_arena_chunk;
typedef struct laya_arena {
    laya_allocator allocator;
    laya_arena_chunk *chunks; /* newest first */
    size_t total;             /* bytes in all chunks */
    bool poison;              /* fill with 0xFF (NaN for any float) on every reset and allocation; for tests */
} laya_arena;

void laya_arena_init(laya_arena *arena, const laya_allocator *allocator);
/* count * size bytes, not cleared; NULL on overflow or when the hook fails. Zero bytes give a valid pointer. */
void *laya_arena_alloc(laya_arena *arena, size_t count, size_t size);
/* A NUL-terminated copy of `size` bytes. */
char *laya_arena_copy(laya_arena *arena, const char *text, size_t size);
void laya_arena_reset(laya_arena *arena);
/* Where the arena stands, to give back everything that is carved off later (inner loops). */
typedef struct laya_arena_mark {
    laya_arena_chunk *chunk;
    size_t used;
} laya_arena_mark;
laya_arena_mark laya_arena_save(const laya_arena *arena);
void laya_arena_restore(laya_arena *arena, laya_arena_mark mark);
void laya_arena_close(laya_arena *arena);

/* ------------------------------------------------------------------ buffer
 * A byte string that grows. An append that fails sets `failed` and changes nothing; later appends do
 * nothing, so that a writer checks once at its end. `data` is NUL-terminated once anything was appended.
 */
typedef struct laya_buffer {
    laya_allocator allocator;
    char *data;
    size_t size;
    size_t capacity;
    bool failed;
} laya_buffer;

void laya_buffer_init(laya_buffer *buffer, const laya_allocator *allocator);
/* Forget the contents, keep the memory. */
void laya_buffer_clear(laya_buffer *buffer);
/* Make room for `extra` more bytes; false (and failed) when that is not possible. */
bool laya_buffer_reserve(laya_buffer *buffer, size_t extra);
void laya_buffer_append(laya_buffer *buffer, const char *text, size_t size);
void laya_buffer_puts(laya_buffer *buffer, const char *text);
void laya_buffer_putc(laya_buffer *buffer, char byte);
/* printf style; for numbers and short texts. */
void laya_buffer_printf(laya_buffer *buffer, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;
void laya_buffer_close(laya_buffer *buffer);

#endif
