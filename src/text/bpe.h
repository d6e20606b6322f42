/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte-pair encoding: the vocabulary, the merges, and the encoding of one word.
 *
 * Both tables are filled once by the loader and are read-only afterwards. They use open addressing with
 * linear probing and are at most half full.
 */
#ifndef LAYA_TEXT_BPE_H
#define LAYA_TEXT_BPE_H

#include "base/memory.h"
#include "laya/base.h"

#include <stdbool.h>

#define LAYA_NO_ID UINT32_MAX

/* ------------------------------------------------------------------ vocabulary */

/*
 * A spelling as the table sees it. Up to 8 bytes are their own key, so that a look-up ends in the slot;
 * of longer spellings the key is a hash, and the text is compared as well.
 */
typedef struct laya_vocab_slot {
    uint64_t key;
    uint32_t size;
    uint32_t id; /* LAYA_NO_ID: empty */
} laya_vocab_slot;

typedef struct laya_vocab {
    char *text;             /* the spellings one after the other, in the order of the ids */
    uint32_t *offsets;      /* [count + 1] into text */
    uint32_t count;         /* ids, those of added tokens that only follow the model's included */
    uint32_t capacity;      /* ids that there is room for */
    uint32_t model_count;   /* ids 0 .. model_count - 1 are the model's */
    laya_vocab_slot *slots; /* [mask + 1] */
    uint32_t mask;
} laya_vocab;

/* Make room for `capacity` ids (below 2^30) whose spellings have `bytes` bytes together. False: no memory. */
bool laya_vocab_init(laya_vocab *vocab, const laya_allocator *allocator, uint32_t capacity, size_t bytes);
void laya_vocab_close(laya_vocab *vocab, const laya_allocator *allocator);
/* Give the next id to a spelling that is not there yet and that fits. */
void laya_vocab_append(laya_vocab *vocab, const char *text, size_t size);
/* The id of a spelling, or LAYA_NO_ID. */
uint32_t laya_vocab_find(const laya_vocab *vocab, const char *text, size_t size);

/* The parts of laya_vocab_find, so that a loop can ask for many slots before it waits for one. */
uint64_t laya_vocab_key(const char *text, size_t size);
/* The key of two spellings joined, from theirs. Together they have at most 8 bytes. */
static inline uint64_t laya_vocab_join(uint64_t left, size_t left_size, uint64_t right)
{
    return left_size < 8 ? left | right << 8 * left_size : left;
}
uint32_t laya_vocab_slot_of(const laya_vocab *vocab, uint64_t key, size_t size);
/* `text` is not read when it has at most 8 bytes. */
uint32_t laya_vocab_find_from(const laya_vocab *vocab, uint32_t slot, uint64_t key, const char *text, size_t size);

/* ------------------------------------------------------------------ model */

typedef struct laya_merge_slot {
    uint32_t left; /* LAYA_NO_ID: empty */
    uint32_t right;
    uint32_t rank;
} laya_merge_slot;

typedef struct laya_bpe {
    laya_vocab vocab;
    laya_merge_slot *merges; /* [merge_mask + 1] */
    uint32_t merge_mask;
    uint32_t *results; /* [ranks] the id that the merge of a rank makes */
    uint32_t unk;      /* LAYA_NO_ID: none */
    bool fuse_unk;
    bool byte_fallback;
    uint32_t ascii[128];    /* id of the token that is this one character, or LAYA_NO_ID */
    uint32_t bytes[256];    /* id of "<0xNN>", or LAYA_NO_ID */
    uint32_t alphabet[256]; /* id of the character that stands for a byte in byte-level text, or LAYA_NO_ID */
} laya_bpe;

/* Make room for `count` merges (below 2^30). False: no memory. */
bool laya_bpe_init_merges(laya_bpe *bpe, const laya_allocator *allocator, uint32_t count);
/* Where the search for a pair begins. */
uint32_t laya_bpe_merge_slot(const laya_bpe *bpe, uint32_t left, uint32_t right);
/* Enter a merge at its slot or behind. Ranks must ascend; a pair that comes again gets its later rank. */
void laya_bpe_add_merge(laya_bpe *bpe, uint32_t slot, uint32_t rank, uint32_t left, uint32_t right, uint32_t result);
/* Fill ascii, bytes and alphabet from the vocabulary. */
void laya_bpe_fill_characters(laya_bpe *bpe);
/* True when a character (its UTF-8 given) whose token does not exist can be spelt in byte tokens. */
bool laya_bpe_has_bytes(const laya_bpe *bpe, const char *text, size_t size);
void laya_bpe_close(laya_bpe *bpe, const laya_allocator *allocator);

/* ------------------------------------------------------------------ encoding */

typedef struct laya_bpe_symbol {
    uint32_t id;
    uint32_t before; /* index of a neighbour, or LAYA_NO_ID */
    uint32_t after;
    uint32_t rank; /* of the merge with the symbol after, or LAYA_NO_ID */
} laya_bpe_symbol;

/* The ids of one text, and the memory to encode a word in. */
typedef struct laya_bpe_run {
    const laya_bpe *bpe;
    const laya_allocator *allocator;
    uint32_t *ids; /* the result so far */
    size_t count;
    size_t capacity;
    laya_bpe_symbol *symbols;
    size_t symbol_count;
    size_t symbol_capacity;
    uint64_t *heap; /* rank << 32 | index of the left symbol; smallest first */
    size_t heap_size;
    size_t heap_capacity;
    bool unk_waiting; /* an unknown character that has no symbol yet */
} laya_bpe_run;

/* Append an id. False: no memory. */
bool laya_bpe_append(laya_bpe_run *run, uint32_t id);
/* Append the ids of a word of valid UTF-8, below 2^31 symbols. False: no memory. */
bool laya_bpe_word(laya_bpe_run *run, const char *text, size_t size);
/* The same for a word of byte-level text: each byte stands for one character of the byte alphabet. */
bool laya_bpe_byte_word(laya_bpe_run *run, const char *text, size_t size);
/* Release the working memory, not the ids. */
void laya_bpe_run_close(laya_bpe_run *run);

#endif
