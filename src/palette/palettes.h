/* SPDX-License-Identifier: Apache-2.0 */
/* The weights of a program that get tables: which they are, their tables, and the program with them in place. */
#ifndef LAYA_PALETTE_PALETTES_H
#define LAYA_PALETTE_PALETTES_H

#include "base/output.h"
#include "base/threads.h"
#include "mil/program.h"
#include "palette/group.h"

#define LAYA_PALETTE_THRESHOLD 2048u /* elements; a weight has more (study.md, S68) */
#define LAYA_PALETTE_AS_IS 16u       /* in place of bits: the weight gets no table */

/* A convolution weight. */
typedef struct laya_palette_weight {
    laya_mil_op *op;                   /* the const operation */
    const char *name;                  /* of its value */
    const laya_mil_constant *constant; /* fp16 or fp32, bytes at hand, [channels, inputs, height, width] */
    uint32_t channels;                 /* of the output */
    uint64_t row;                      /* elements of an output channel */
    uint32_t group;                    /* channels that share a table; divides `channels` */
    unsigned bits;       /* 1, 2, 3, 4, 6, 8, or LAYA_PALETTE_AS_IS; UNIQUE: found by laya_palettes_make */
    const float *energy; /* [row]; NULL: none */
    bool mapped;         /* the constant's bytes are pages of a file, to be given back when they were read */
    /* Made by laya_palettes_make, from its allocator; NULL where the weight is left as it is. */
    unsigned char *indices; /* packed, in the order of the elements */
    uint64_t indices_size;
    unsigned char *lut; /* [channels / group, 2^bits] in the weight's type, little-endian */
    uint64_t lut_size;
    laya_palette_error errors; /* of the whole weight */
} laya_palette_weight;

/*
 * The weights to palettize: constants of rank 4 with more than LAYA_PALETTE_THRESHOLD elements, in fp16 or fp32, that
 * are read by convolutions alone, as their weight, and are no rotation of RoPE; in the order of the program. Groups of
 * `group_size` output channels, 0: all of them. The array lies in the program's arena. Errors: FORMAT (a number of
 * channels that group_size does not divide: names the weight, both numbers, and what to do), MEMORY.
 */
laya_status laya_palettes_select(laya_mil_program *program, uint32_t group_size, laya_palette_weight **weights,
                                 uint32_t *count, laya_error *error);

/* Whether such tables need the form of CoreML8, whose parameters are inputs: groups, 3 bits, or a program that has
   CoreML8 or later anyway. UNIQUE per tensor never needs it: it takes 4 bits for 3. */
bool laya_palettes_grouped_form(const laya_mil_program *program, laya_palette_mode mode, uint32_t group_size,
                                unsigned bits);

/*
 * Make the tables of all weights, on all threads of the pool; the bytes do not depend on their number. With UNIQUE,
 * `bits` becomes the fewest of 1, 2, 3, 4, 6, 8 that hold the values of every group (4 for 3 where three_bits is
 * false), LAYA_PALETTE_AS_IS where more than 256 are needed. The
 * meter (may be NULL) is told of the bytes of the weights that are done, from any thread. Errors: FORMAT (names the
 * weight), MEMORY, and what the meter says; nothing is left allocated then.
 */
laya_status laya_palettes_make(laya_palette_weight *weights, uint32_t count, laya_palette_mode mode, bool three_bits,
                               laya_pool *pool, const laya_allocator *allocator, const laya_meter *meter,
                               laya_error *error);
/* Release what laya_palettes_make made. */
void laya_palettes_release(laya_palette_weight *weights, uint32_t count, const laya_allocator *allocator);

/*
 * Put constexpr_lut_to_dense operations in the place of the constants that have tables, under the same value names, and
 * raise opset and specification version where the form needs it (all functions of the program). Tables and indices are
 * not copied: the weights must outlive the program. Where no weight has a table nothing changes. Errors: UNSUPPORTED (an
 * operation that the raised opset has not or types otherwise, an opset that is not known here, several specializations;
 * the program is unchanged then), MEMORY.
 */
laya_status laya_palettes_rewrite(laya_mil_program *program, const laya_palette_weight *weights, uint32_t count,
                                  bool grouped_form, laya_error *error);

#endif
