/* SPDX-License-Identifier: Apache-2.0 */
#include "text/bpe.h"

#include "base/utf8.h"
#include "text/byte_level.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ vocabulary */

#define ODD UINT64_C(0x9E3779B97F4A7C15) /* 2^64 divided by the golden ratio */

static uint64_t mix(uint64_t value)
{
    value *= ODD;
    value ^= value >> 32;
    value *= UINT64_C(0xD6E8FEB86659FD93);
    return value ^ value >> 32;
}

/* The first `size` <= 8 bytes as a number, the first byte lowest. */
static uint64_t load_bytes(const char *text, size_t size)
{
    const unsigned char *p = (const unsigned char *)text;
    uint64_t value = 0;
    if (size == 8) {
        for (unsigned i = 0; i < 8; i++) value |= (uint64_t)p[i] << 8 * i;
        return value;
    }
    unsigned shift = 0;
    if (size & 4) {
        value = (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24;
        p += 4;
        shift = 32;
    }
    if (size & 2) {
        value |= ((uint64_t)p[0] | (uint64_t)p[1] << 8) << shift;
        p += 2;
        shift += 16;
    }
    if (size & 1) value |= (uint64_t)p[0] << shift;
    return value;
}

uint64_t laya_vocab_key(const char *text, size_t size)
{
    if (size <= 8) return load_bytes(text, size);
    uint64_t hash = (uint64_t)size;
    for (size_t at = 0; at + 8 < size; at += 8) hash = mix(hash ^ load_bytes(text + at, 8));
    return mix(hash ^ load_bytes(text + size - 8, 8));
}

uint32_t laya_vocab_slot_of(const laya_vocab *vocab, uint64_t key, size_t size)
{
    return (uint32_t)mix(key + (uint64_t)size) & vocab->mask;
}

/* The smallest power of two that is at least one and a half times `count`, and at least 16. */
static size_t table_size(uint32_t count)
{
    size_t size = 16;
    while (size < (size_t)count + count / 2) size *= 2;
    return size;
}

bool laya_vocab_init(laya_vocab *vocab, const laya_allocator *allocator, uint32_t capacity, size_t bytes)
{
    size_t slots = table_size(capacity);
    *vocab = (laya_vocab){.capacity = capacity, .mask = (uint32_t)(slots - 1)};
    vocab->text = laya_alloc(allocator, bytes ? bytes : 1, 1);
    vocab->offsets = laya_alloc(allocator, (size_t)capacity + 1, sizeof *vocab->offsets);
    vocab->slots = laya_alloc(allocator, slots, sizeof *vocab->slots);
    if (!vocab->text || !vocab->offsets || !vocab->slots) return false;
    vocab->offsets[0] = 0;
    memset(vocab->slots, 0xFF, slots * sizeof *vocab->slots);
    return true;
}

void laya_vocab_close(laya_vocab *vocab, const laya_allocator *allocator)
{
    laya_release(allocator, vocab->text);
    laya_release(allocator, vocab->offsets);
    laya_release(allocator, vocab->slots);
    *vocab = (laya_vocab){0};
}

void laya_vocab_append(laya_vocab *vocab, const char *text, size_t size)
{
    uint32_t id = vocab->count++;
    if (size) memcpy(vocab->text + vocab->offsets[id], text, size);
    vocab->offsets[id + 1] = vocab->offsets[id] + (uint32_t)size;
    uint64_t key = laya_vocab_key(text, size);
    uint32_t at = laya_vocab_slot_of(vocab, key, size);
    while (vocab->slots[at].id != LAYA_NO_ID) at = (at + 1) & vocab->mask;
    vocab->slots[at] = (laya_vocab_slot){key, (uint32_t)size, id};
}

uint32_t laya_vocab_find_from(const laya_vocab *vocab, uint32_t slot, uint64_t key, const char *text, size_t size)
{
    for (;; slot = (slot + 1) & vocab->mask) {
        laya_vocab_slot found = vocab->slots[slot];
        if (found.id == LAYA_NO_ID) return LAYA_NO_ID;
        if (found.key != key || found.size != size) continue;
        if (size <= 8 || memcmp(vocab->text + vocab->offsets[found.id], text, size) == 0) return found.id;
    }
}

uint32_t laya_vocab_find(const laya_vocab *vocab, const char *text, size_t size)
{
    uint64_t key = laya_vocab_key(text, size);
    return laya_vocab_find_from(vocab, laya_vocab_slot_of(vocab, key, size), key, text, size);
}

/* The id of a spelling in the model's own vocabulary. */
static uint32_t model_token(const laya_vocab *vocab, const char *text, size_t size)
{
    uint32_t id = laya_vocab_find(vocab, text, size);
    return id < vocab->model_count ? id : LAYA_NO_ID;
}

/* ------------------------------------------------------------------ model */

bool laya_bpe_init_merges(laya_bpe *bpe, const laya_allocator *allocator, uint32_t count)
{
    size_t slots = table_size(count);
    bpe->merge_mask = (uint32_t)(slots - 1);
    bpe->merges = laya_alloc(allocator, slots, sizeof *bpe->merges);
    bpe->results = laya_alloc(allocator, (size_t)count + 1, sizeof *bpe->results);
    if (!bpe->merges || !bpe->results) return false;
    memset(bpe->merges, 0xFF, slots * sizeof *bpe->merges);
    return true;
}

uint32_t laya_bpe_merge_slot(const laya_bpe *bpe, uint32_t left, uint32_t right)
{
    return (uint32_t)mix((uint64_t)left << 32 | right) & bpe->merge_mask;
}

void laya_bpe_add_merge(laya_bpe *bpe, uint32_t slot, uint32_t rank, uint32_t left, uint32_t right, uint32_t result)
{
    while (bpe->merges[slot].left != LAYA_NO_ID) {
        if (bpe->merges[slot].left == left && bpe->merges[slot].right == right) break;
        slot = (slot + 1) & bpe->merge_mask;
    }
    bpe->merges[slot] = (laya_merge_slot){left, right, rank};
    bpe->results[rank] = result;
}

static uint32_t merge_rank(const laya_bpe *bpe, uint32_t left, uint32_t right)
{
    uint32_t at = laya_bpe_merge_slot(bpe, left, right);
    for (;; at = (at + 1) & bpe->merge_mask) {
        const laya_merge_slot *slot = &bpe->merges[at];
        if (slot->left == left && slot->right == right) return slot->rank;
        if (slot->left == LAYA_NO_ID) return LAYA_NO_ID;
    }
}

void laya_bpe_fill_characters(laya_bpe *bpe)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        char text[8];
        if (byte < 128) {
            text[0] = (char)byte;
            bpe->ascii[byte] = model_token(&bpe->vocab, text, 1);
        }
        int size = snprintf(text, sizeof text, "<0x%02X>", byte);
        bpe->bytes[byte] = model_token(&bpe->vocab, text, (size_t)size);
        bpe->alphabet[byte] = model_token(&bpe->vocab, text, laya_utf8_put(text, laya_byte_level_char(byte)));
    }
}

bool laya_bpe_has_bytes(const laya_bpe *bpe, const char *text, size_t size)
{
    if (!bpe->byte_fallback) return false;
    for (size_t i = 0; i < size; i++) {
        if (bpe->bytes[(unsigned char)text[i]] == LAYA_NO_ID) return false;
    }
    return true;
}

void laya_bpe_close(laya_bpe *bpe, const laya_allocator *allocator)
{
    laya_vocab_close(&bpe->vocab, allocator);
    laya_release(allocator, bpe->merges);
    laya_release(allocator, bpe->results);
    bpe->merges = NULL;
    bpe->results = NULL;
}

/* ------------------------------------------------------------------ growing arrays */

static bool grow(const laya_allocator *allocator, void **block, size_t *capacity, size_t used, size_t needed,
                 size_t item)
{
    if (needed <= *capacity) return true;
    size_t larger = *capacity < 32 ? 64 : *capacity;
    while (larger < needed) {
        if (!laya_mul_size(larger, 2, &larger)) return false;
    }
    void *moved = laya_alloc(allocator, larger, item);
    if (!moved) return false;
    if (used) memcpy(moved, *block, used * item);
    laya_release(allocator, *block);
    *block = moved;
    *capacity = larger;
    return true;
}

static bool reserve_ids(laya_bpe_run *run, size_t extra)
{
    void *block = run->ids;
    bool done = grow(run->allocator, &block, &run->capacity, run->count, run->count + extra, sizeof *run->ids);
    run->ids = block;
    return done;
}

static bool reserve_symbols(laya_bpe_run *run, size_t extra)
{
    void *block = run->symbols;
    bool done = grow(run->allocator, &block, &run->symbol_capacity, run->symbol_count, run->symbol_count + extra,
                     sizeof *run->symbols);
    run->symbols = block;
    return done;
}

/* The heap never holds more: one entry per pair at first, and each merge takes one out and adds at most two. */
static bool reserve_heap(laya_bpe_run *run)
{
    void *block = run->heap;
    bool done = grow(run->allocator, &block, &run->heap_capacity, 0, run->symbol_count * 2, sizeof *run->heap);
    run->heap = block;
    return done;
}

bool laya_bpe_append(laya_bpe_run *run, uint32_t id)
{
    if (!reserve_ids(run, 1)) return false;
    run->ids[run->count++] = id;
    return true;
}

void laya_bpe_run_close(laya_bpe_run *run)
{
    laya_release(run->allocator, run->symbols);
    laya_release(run->allocator, run->heap);
    run->symbols = NULL;
    run->heap = NULL;
}

/* ------------------------------------------------------------------ symbols of a word */

static void add_symbol(laya_bpe_run *run, uint32_t id)
{
    run->symbols[run->symbol_count++].id = id;
}

/*
 * Add one character: its token, else its bytes, else the unknown token. An unknown character waits until
 * the next one with a token of its own (or the end), byte tokens do not flush it: the reference does so.
 */
static bool add_character(laya_bpe_run *run, uint32_t id, const char *text, size_t size)
{
    const laya_bpe *bpe = run->bpe;
    if (!reserve_symbols(run, size + 1)) return false;
    if (id != LAYA_NO_ID) {
        if (run->unk_waiting) add_symbol(run, bpe->unk);
        run->unk_waiting = false;
        add_symbol(run, id);
    } else if (laya_bpe_has_bytes(bpe, text, size)) {
        for (size_t i = 0; i < size; i++) add_symbol(run, bpe->bytes[(unsigned char)text[i]]);
    } else if (bpe->unk != LAYA_NO_ID) {
        if (run->unk_waiting && !bpe->fuse_unk) add_symbol(run, bpe->unk);
        run->unk_waiting = true;
    }
    return true;
}

static bool end_symbols(laya_bpe_run *run)
{
    if (!run->unk_waiting) return true;
    if (!reserve_symbols(run, 1)) return false;
    add_symbol(run, run->bpe->unk);
    run->unk_waiting = false;
    return true;
}

/* ------------------------------------------------------------------ merging */

static void sift_down(uint64_t *heap, size_t size, size_t at, uint64_t entry)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= size) break;
        if (child + 1 < size && heap[child + 1] < heap[child]) child++;
        if (entry <= heap[child]) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = entry;
}

static void heap_push(laya_bpe_run *run, uint64_t entry)
{
    size_t at = run->heap_size++;
    while (at > 0 && run->heap[(at - 1) / 2] > entry) {
        run->heap[at] = run->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    run->heap[at] = entry;
}

static uint64_t heap_pop(laya_bpe_run *run)
{
    uint64_t top = run->heap[0];
    uint64_t last = run->heap[--run->heap_size];
    if (run->heap_size) sift_down(run->heap, run->heap_size, 0, last);
    return top;
}

static void link_symbols(laya_bpe_run *run)
{
    uint32_t count = (uint32_t)run->symbol_count;
    laya_bpe_symbol *symbols = run->symbols;
    run->heap_size = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool last = i + 1 == count;
        symbols[i].before = i ? i - 1 : LAYA_NO_ID;
        symbols[i].after = last ? LAYA_NO_ID : i + 1;
        symbols[i].rank = last ? LAYA_NO_ID : merge_rank(run->bpe, symbols[i].id, symbols[i + 1].id);
        if (symbols[i].rank != LAYA_NO_ID) run->heap[run->heap_size++] = (uint64_t)symbols[i].rank << 32 | i;
    }
    for (size_t at = run->heap_size / 2; at-- > 0;) sift_down(run->heap, run->heap_size, at, run->heap[at]);
}

static void update_pair(laya_bpe_run *run, uint32_t left, uint32_t right)
{
    laya_bpe_symbol *symbol = &run->symbols[left];
    symbol->rank = merge_rank(run->bpe, symbol->id, run->symbols[right].id);
    if (symbol->rank != LAYA_NO_ID) heap_push(run, (uint64_t)symbol->rank << 32 | left);
}

/*
 * Merge the pair of the lowest rank, the leftmost of equals, until none is left. Entries of the heap are
 * not removed when their pair changes. As in the reference, such an old entry still merges when the pair
 * that is now at its place makes the same token; only an empty token can bring that about, because every
 * merge makes the spelling longer.
 */
static void merge_symbols(laya_bpe_run *run)
{
    const uint32_t *results = run->bpe->results;
    laya_bpe_symbol *symbols = run->symbols;
    while (run->heap_size) {
        uint64_t top = heap_pop(run);
        uint32_t rank = (uint32_t)(top >> 32), at = (uint32_t)top;
        laya_bpe_symbol *left = &symbols[at];
        if (left->rank == LAYA_NO_ID || (left->rank != rank && results[left->rank] != results[rank])) continue;
        laya_bpe_symbol *right = &symbols[left->after];
        left->id = results[rank];
        left->after = right->after;
        left->rank = LAYA_NO_ID;
        right->rank = LAYA_NO_ID;
        if (right->after != LAYA_NO_ID) symbols[right->after].before = at;
        if (left->before != LAYA_NO_ID) update_pair(run, left->before, at);
        if (left->after != LAYA_NO_ID) update_pair(run, at, left->after);
    }
}

static bool finish_word(laya_bpe_run *run)
{
    if (!end_symbols(run)) return false;
    if (run->symbol_count == 0) return true;
    if (run->symbol_count == 1) return laya_bpe_append(run, run->symbols[0].id);
    if (!reserve_heap(run)) return false;
    link_symbols(run);
    merge_symbols(run);
    for (uint32_t at = 0; at != LAYA_NO_ID; at = run->symbols[at].after) {
        if (!laya_bpe_append(run, run->symbols[at].id)) return false;
    }
    return true;
}

bool laya_bpe_word(laya_bpe_run *run, const char *text, size_t size)
{
    run->symbol_count = 0;
    run->unk_waiting = false;
    for (size_t at = 0; at < size;) {
        size_t start = at;
        uint32_t code = laya_utf8_next(text, &at);
        uint32_t id = code < 128 ? run->bpe->ascii[code] : model_token(&run->bpe->vocab, text + start, at - start);
        if (!add_character(run, id, text + start, at - start)) return false;
    }
    return finish_word(run);
}

bool laya_bpe_byte_word(laya_bpe_run *run, const char *text, size_t size)
{
    run->symbol_count = 0;
    run->unk_waiting = false;
    for (size_t at = 0; at < size; at++) {
        unsigned char byte = (unsigned char)text[at];
        char spelling[4];
        size_t length = laya_utf8_put(spelling, laya_byte_level_char(byte));
        if (!add_character(run, run->bpe->alphabet[byte], spelling, length)) return false;
    }
    return finish_word(run);
}
