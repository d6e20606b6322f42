/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *default_allocate(void *user, size_t size)
{
    (void)user;
    return malloc(size);
}

static void default_release(void *user, void *block)
{
    (void)user;
    free(block);
}

laya_allocator laya_allocator_or_default(const laya_allocator *allocator)
{
    if (allocator && allocator->allocate && allocator->release) return *allocator;
    return (laya_allocator){.user = NULL, .allocate = default_allocate, .release = default_release};
}

bool laya_add_size(size_t a, size_t b, size_t *sum)
{
    if (a > SIZE_MAX - b) return false;
    *sum = a + b;
    return true;
}

bool laya_mul_size(size_t a, size_t b, size_t *product)
{
    if (b != 0 && a > SIZE_MAX / b) return false;
    *product = a * b;
    return true;
}

void *laya_alloc(const laya_allocator *allocator, size_t count, size_t size)
{
    size_t bytes;
    if (!laya_mul_size(count, size, &bytes) || bytes == 0) return NULL;
    return allocator->allocate(allocator->user, bytes);
}

void *laya_alloc_zero(const laya_allocator *allocator, size_t count, size_t size)
{
    void *block = laya_alloc(allocator, count, size);
    if (block) memset(block, 0, count * size);
    return block;
}

void laya_release(const laya_allocator *allocator, void *block)
{
    if (block) allocator->release(allocator->user, block);
}

/* ------------------------------------------------------------------ arena */

#define ARENA_ALIGNMENT 64u
#define ARENA_FIRST_CHUNK ((size_t)256 * 1024)

struct laya_arena_chunk {
    laya_arena_chunk *older;
    unsigned char *base; /* first aligned byte */
    size_t capacity;     /* bytes from base */
    size_t used;
};

void laya_arena_init(laya_arena *arena, const laya_allocator *allocator)
{
    *arena = (laya_arena){.allocator = laya_allocator_or_default(allocator)};
}

static laya_arena_chunk *add_chunk(laya_arena *arena, size_t capacity)
{
    size_t bytes;
    if (!laya_add_size(capacity, sizeof(laya_arena_chunk) + ARENA_ALIGNMENT, &bytes)) return NULL;
    laya_arena_chunk *chunk = laya_alloc(&arena->allocator, bytes, 1);
    if (!chunk) return NULL;
    uintptr_t start = (uintptr_t)(chunk + 1);
    size_t skip = (size_t)(-start & (ARENA_ALIGNMENT - 1));
    chunk->older = arena->chunks;
    chunk->base = (unsigned char *)(chunk + 1) + skip;
    chunk->capacity = capacity;
    chunk->used = 0;
    if (arena->poison) memset(chunk->base, 0xFF, capacity);
    arena->chunks = chunk;
    arena->total += capacity;
    return chunk;
}

void *laya_arena_alloc(laya_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (!laya_mul_size(count, size, &bytes) || !laya_add_size(bytes, ARENA_ALIGNMENT - 1, &bytes)) return NULL;
    bytes &= ~(size_t)(ARENA_ALIGNMENT - 1);
    laya_arena_chunk *chunk = arena->chunks;
    if (!chunk || chunk->capacity - chunk->used < bytes) {
        size_t capacity = arena->total > ARENA_FIRST_CHUNK ? arena->total : ARENA_FIRST_CHUNK;
        chunk = add_chunk(arena, bytes > capacity ? bytes : capacity);
        if (!chunk) return NULL;
    }
    unsigned char *block = chunk->base + chunk->used;
    chunk->used += bytes;
    if (arena->poison) memset(block, 0xFF, bytes);
    return block;
}

char *laya_arena_copy(laya_arena *arena, const char *text, size_t size)
{
    size_t bytes;
    if (!laya_add_size(size, 1, &bytes)) return NULL;
    char *copy = laya_arena_alloc(arena, bytes, 1);
    if (!copy) return NULL;
    if (size) memcpy(copy, text, size);
    copy[size] = '\0';
    return copy;
}

void laya_arena_close(laya_arena *arena)
{
    laya_arena_chunk *chunk = arena->chunks;
    while (chunk) {
        laya_arena_chunk *older = chunk->older;
        laya_release(&arena->allocator, chunk);
        chunk = older;
    }
    arena->chunks = NULL;
    arena->total = 0;
}

void laya_arena_reset(laya_arena *arena)
{
    laya_arena_chunk *chunk = arena->chunks;
    if (chunk && chunk->older) {
        size_t total = arena->total;
        laya_arena_close(arena);
        add_chunk(arena, total); /* on failure the next allocation tries again */
    } else if (chunk) {
        chunk->used = 0;
        if (arena->poison) memset(chunk->base, 0xFF, chunk->capacity);
    }
}

laya_arena_mark laya_arena_save(const laya_arena *arena)
{
    return (laya_arena_mark){arena->chunks, arena->chunks ? arena->chunks->used : 0};
}

void laya_arena_restore(laya_arena *arena, laya_arena_mark mark)
{
    /* Chunks that were added since stay in the list with nothing used; the next reset joins them. */
    for (laya_arena_chunk *chunk = arena->chunks; chunk && chunk != mark.chunk; chunk = chunk->older) chunk->used = 0;
    if (mark.chunk == arena->chunks && mark.chunk) mark.chunk->used = mark.used;
}

/* ------------------------------------------------------------------ buffer */

void laya_buffer_init(laya_buffer *buffer, const laya_allocator *allocator)
{
    *buffer = (laya_buffer){.allocator = laya_allocator_or_default(allocator)};
}

void laya_buffer_clear(laya_buffer *buffer)
{
    buffer->size = 0;
    buffer->failed = false;
    if (buffer->data) buffer->data[0] = '\0';
}

bool laya_buffer_reserve(laya_buffer *buffer, size_t extra)
{
    if (buffer->failed) return false;
    size_t needed;
    if (!laya_add_size(buffer->size, extra, &needed) || !laya_add_size(needed, 1, &needed)) {
        buffer->failed = true;
        return false;
    }
    if (needed <= buffer->capacity) return true;
    size_t capacity = buffer->capacity < 128 ? 256 : buffer->capacity;
    while (capacity < needed) {
        if (!laya_mul_size(capacity, 2, &capacity)) capacity = needed;
    }
    char *data = laya_alloc(&buffer->allocator, capacity, 1);
    if (!data) {
        buffer->failed = true;
        return false;
    }
    if (buffer->size) memcpy(data, buffer->data, buffer->size);
    data[buffer->size] = '\0';
    laya_release(&buffer->allocator, buffer->data);
    buffer->data = data;
    buffer->capacity = capacity;
    return true;
}

void laya_buffer_append(laya_buffer *buffer, const char *text, size_t size)
{
    if (!laya_buffer_reserve(buffer, size)) return;
    if (size) memcpy(buffer->data + buffer->size, text, size);
    buffer->size += size;
    buffer->data[buffer->size] = '\0';
}

void laya_buffer_puts(laya_buffer *buffer, const char *text)
{
    laya_buffer_append(buffer, text, strlen(text));
}

void laya_buffer_putc(laya_buffer *buffer, char byte)
{
    laya_buffer_append(buffer, &byte, 1);
}

void laya_buffer_printf(laya_buffer *buffer, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (size < 0) {
        buffer->failed = true;
        return;
    }
    if ((size_t)size < sizeof text) {
        laya_buffer_append(buffer, text, (size_t)size);
        return;
    }
    if (!laya_buffer_reserve(buffer, (size_t)size)) return;
    va_start(arguments, format);
    vsnprintf(buffer->data + buffer->size, (size_t)size + 1, format, arguments);
    va_end(arguments);
    buffer->size += (size_t)size;
}

void laya_buffer_close(laya_buffer *buffer)
{
    laya_release(&buffer->allocator, buffer->data);
    buffer->data = NULL;
    buffer->size = buffer->capacity = 0;
}
