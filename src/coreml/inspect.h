/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the inspector share: elements on one line, and the palettes of a package. */
#ifndef LAYA_COREML_INSPECT_H
#define LAYA_COREML_INSPECT_H

#include "base/json.h"
#include "coreml/listing.h"
#include "coreml/lut.h"
#include "coreml/package.h"

/* An element of a list, or a member, that stands on one line; not inside of another. */
void laya_inspect_begin_line(laya_json_writer *w);
void laya_inspect_end_line(laya_json_writer *w);
/* "type": "fp16 [8, 4, 1, 1]" */
void laya_inspect_member_type(laya_json_writer *w, const laya_mil_type *type);
/* An element of a constant: a text, a number, or null. */
void laya_inspect_put_element(laya_json_writer *w, const laya_mil_constant *constant, uint64_t at);
/* A number; NaN and infinities, which JSON has not, as texts. */
void laya_inspect_member_number(laya_json_writer *w, const char *name, double value);

/* ------------------------------------------------------------------ palettes */

/* What the tables change, against the dense constant that they were made from. Sums in float64. */
typedef struct laya_lut_figures {
    double sse;     /* sum of (weight - table entry)^2 */
    double energy;  /* sum of weight^2 */
    double largest; /* |weight - table entry| */
} laya_lut_figures;

/* A constexpr_lut_to_dense operation. */
typedef struct laya_inspected_palette {
    const laya_mil_op *op;
    uint32_t function;   /* of the program */
    const char *problem; /* why it cannot be read; nothing below is known then. NULL: it can */
    laya_constexpr from;
    laya_lut lut;
    uint64_t dense_bytes;
    uint16_t *used;            /* [tables] entries that an index names */
    bool measured;             /* the figures are there */
    laya_lut_figures figures;  /* computed */
    laya_json_value *recorded; /* an object of the bundle's manifest; NULL: none */
} laya_inspected_palette;

typedef struct laya_inspected_palettes {
    const laya_package *package;
    laya_inspected_palette *all; /* in the order of the program */
    uint32_t count;
} laya_inspected_palettes;

/*
 * Find the palettes and read their indices. listings: one a function. All lies in the arena. Errors: MEMORY; what is
 * wrong with a palette is its `problem`.
 */
laya_status laya_inspect_palettes(const laya_package *package, const laya_listing *listings, laya_arena *arena,
                                  laya_inspected_palettes *out, laya_error *error);
/* The member "palettes"; tables: with the values of all tables. */
void laya_inspect_member_palettes(laya_json_writer *w, const laya_inspected_palettes *palettes, bool tables);

/*
 * What laya_package_palettes gives. manifest (with a parent not looked at): the text of the manifest.json beside the
 * package; NULL: there is none.
 */
laya_status laya_inspect_palette_report(const laya_package *package, const laya_package *parent,
                                        const laya_file *manifest, char **json, laya_error *error);

/* ------------------------------------------------------------------ figures of palettes */

/*
 * Measure every palette against the constant of that name in the function of that name of the parent (where both have
 * one function: in that one). Errors: FORMAT (a palette that cannot be read; no such constant, or one of another type;
 * the message names it), MEMORY.
 */
laya_status laya_inspect_measure(laya_inspected_palettes *palettes, const laya_package *parent, laya_arena *arena,
                                 laya_error *error);
/*
 * Find what "palette" of a manifest records of every palette; `palette`, which must live as long, is that object or
 * absent. Errors: FORMAT (the record is of another number of bits), MEMORY.
 */
laya_status laya_inspect_record(laya_inspected_palettes *palettes, laya_json_value palette, laya_arena *arena,
                                laya_error *error);
/* "computed" or "recorded" of a palette, where there is one. */
void laya_inspect_member_figures(laya_json_writer *w, const laya_inspected_palette *palette);
/* The same of all: the sums over all weights, or what the manifest says of the whole. */
void laya_inspect_member_total(laya_json_writer *w, const laya_inspected_palettes *palettes,
                               const laya_package *parent, laya_json_value palette);

#endif
