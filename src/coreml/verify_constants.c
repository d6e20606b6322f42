/* SPDX-License-Identifier: Apache-2.0 */
/* Constants: their sizes, their place in the weight file, and whether their values are finite. */
#include "coreml/verify.h"
#include "mil/operations.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WEIGHT_FILE_LIMIT (UINT64_C(1) << 31) /* bytes: the runtime refuses larger files */
#define LABEL_SIZE 320

/* How messages call a constant. Returns `text`. */
static const char *describe(const laya_mil_op *op, const char *parameter, char text[LABEL_SIZE])
{
    if (parameter)
        snprintf(text, LABEL_SIZE, "%.200s: constant '%.100s'", laya_mil_op_label(op), parameter);
    else
        snprintf(text, LABEL_SIZE, "constant '%.200s'", laya_mil_op_label(op));
    return text;
}

/* ------------------------------------------------------------------ values */

/* A floating-point format, for words of several values: a value is infinite or NaN when its exponent is all ones. */
typedef struct float_format {
    laya_mil_dtype dtype;
    unsigned size;     /* bytes of a value */
    uint64_t exponent; /* the exponent of each value of a word */
    uint64_t unit;     /* added to an exponent that is all ones, it carries into the sign's place, which is free */
    uint64_t sign;
} float_format;

static const float_format formats[] = {
    {LAYA_MIL_FP16, 2, 0x7c007c007c007c00u, 0x0400040004000400u, 0x8000800080008000u},
    {LAYA_MIL_BF16, 2, 0x7f807f807f807f80u, 0x0080008000800080u, 0x8000800080008000u},
    {LAYA_MIL_FP32, 4, 0x7f8000007f800000u, 0x0080000000800000u, 0x8000000080000000u},
    {LAYA_MIL_FP64, 8, 0x7ff0000000000000u, 0x0010000000000000u, 0x8000000000000000u}};

static uint64_t read_word(const unsigned char *bytes)
{
    return (uint64_t)bytes[0] | (uint64_t)bytes[1] << 8 | (uint64_t)bytes[2] << 16 | (uint64_t)bytes[3] << 24 |
           (uint64_t)bytes[4] << 32 | (uint64_t)bytes[5] << 40 | (uint64_t)bytes[6] << 48 | (uint64_t)bytes[7] << 56;
}

static bool all_finite(const float_format *format, const unsigned char *bytes, uint64_t size)
{
    uint64_t found = 0, at = 0;
    for (; size - at >= 8; at += 8) found |= (read_word(bytes + at) & format->exponent) + format->unit;
    unsigned char rest[8] = {0};
    if (at < size) memcpy(rest, bytes + at, (size_t)(size - at));
    found |= (read_word(rest) & format->exponent) + format->unit;
    return (found & format->sign) == 0;
}

/* The first value that is not finite; there is one. */
static uint64_t find_value(const float_format *format, const unsigned char *bytes, bool *nan)
{
    uint64_t mask = format->size == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * format->size) - 1;
    for (uint64_t at = 0;; at++) {
        unsigned char word[8] = {0};
        memcpy(word, bytes + at * format->size, format->size);
        uint64_t value = read_word(word), exponent = format->exponent & mask;
        if ((value & exponent) != exponent) continue;
        *nan = (value & mask & ~exponent & ~format->sign) != 0;
        return at;
    }
}

static void check_values(laya_checker *checker, const laya_mil_op *op, const char *parameter,
                         const laya_mil_constant *constant)
{
    char label[LABEL_SIZE], type[LAYA_MIL_TYPE_TEXT];
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const float_format *format = &formats[i];
        if (format->dtype != constant->type.dtype || all_finite(format, constant->bytes, constant->size)) continue;
        bool nan;
        uint64_t at = find_value(format, constant->bytes, &nan);
        laya_check_error(
            checker, LAYA_CHECK_VALUES, "%s (%s): element %" PRIu64 " is %s; all values must be finite (masks: -1e4)",
            describe(op, parameter, label), laya_mil_type_text(&constant->type, type), at, nan ? "NaN" : "infinite");
    }
}

/* ------------------------------------------------------------------ one constant */

static bool add_reference(laya_checker *checker, const laya_reference *reference)
{
    if (checker->reference_count == checker->reference_capacity) {
        uint32_t capacity = checker->reference_capacity ? checker->reference_capacity * 2 : 1024;
        laya_reference *larger = laya_arena_alloc(&checker->scratch, capacity, sizeof *larger);
        if (!larger || capacity < checker->reference_capacity) return false;
        if (checker->reference_count) memcpy(larger, checker->references, checker->reference_count * sizeof *larger);
        checker->references = larger;
        checker->reference_capacity = capacity;
    }
    checker->references[checker->reference_count] = *reference;
    checker->references[checker->reference_count].order = checker->reference_count;
    checker->reference_count++;
    return true;
}

void laya_check_constant(laya_checker *checker, const laya_mil_op *op, const char *parameter,
                         const laya_mil_constant *constant)
{
    checker->verdict->constants++;
    if (constant->type.kind != LAYA_MIL_TENSOR || constant->type.dtype == LAYA_MIL_STRING) return;
    uint64_t size;
    if (!laya_mil_type_size(&constant->type, &size) || constant->size != size || !constant->bytes) {
        char label[LABEL_SIZE], type[LAYA_MIL_TYPE_TEXT];
        laya_check_error(checker, LAYA_CHECK_TYPES, "%s: %" PRIu64 " bytes do not fit its type %s",
                         describe(op, parameter, label), constant->bytes ? constant->size : 0,
                         laya_mil_type_text(&constant->type, type));
        return;
    }
    checker->verdict->constant_bytes += size;
    if (!constant->in_file)
        check_values(checker, op, parameter, constant);
    else if (!add_reference(checker, &(laya_reference){constant, op, parameter, 0}))
        checker->failed = true;
}

/* ------------------------------------------------------------------ the weight file */

typedef struct file_check {
    laya_checker *checker;
    uint32_t next; /* reference, by offset */
    uint64_t unused, unused_bytes;
} file_check;

static int by_offset(const void *a, const void *b)
{
    const laya_reference *x = a, *y = b;
    if (x->constant->offset != y->constant->offset) return x->constant->offset < y->constant->offset ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void check_reference(laya_checker *checker, const laya_reference *reference, const laya_blob *blob)
{
    char label[LABEL_SIZE], type[LAYA_MIL_TYPE_TEXT];
    const laya_mil_constant *constant = reference->constant;
    uint64_t values = 0, bits = laya_mil_dtype_bits(constant->type.dtype);
    laya_mil_type_count(&constant->type, &values);
    bool same = constant->type.dtype == blob->dtype && constant->size == blob->size;
    if (same && blob->padding_bits == blob->size * 8 - values * bits) return;
    laya_check_error(checker, LAYA_CHECK_TYPES,
                     "%s (%s): its record in the weight file holds %" PRIu64 " bytes of %s, %" PRIu32
                     " bits of them unused",
                     describe(reference->op, reference->parameter, label), laya_mil_type_text(&constant->type, type),
                     blob->size, laya_mil_dtype_name(blob->dtype), blob->padding_bits);
}

static void refuse_reference(laya_checker *checker, const laya_reference *reference)
{
    char label[LABEL_SIZE];
    laya_check_error(checker, LAYA_CHECK_TYPES, "%s: no record of the weight file begins at its offset %" PRIu64,
                     describe(reference->op, reference->parameter, label), reference->constant->offset);
}

/* The references up to this blob, and the blob's values once. */
static laya_status visit_blob(void *user, const laya_blob *blob, laya_error *error)
{
    (void)error;
    file_check *f = user;
    laya_checker *checker = f->checker;
    const laya_reference *all = checker->references;
    while (f->next < checker->reference_count && all[f->next].constant->offset < blob->record)
        refuse_reference(checker, &all[f->next++]);
    if (f->next == checker->reference_count || all[f->next].constant->offset != blob->record) {
        f->unused++;
        f->unused_bytes += blob->size;
        return LAYA_OK;
    }
    const laya_reference *first = &all[f->next];
    for (; f->next < checker->reference_count && all[f->next].constant->offset == blob->record; f->next++)
        check_reference(checker, &all[f->next], blob);
    check_values(checker, first->op, first->parameter, first->constant);
    if (checker->package->weights_path) laya_file_forget(blob->data, (size_t)blob->size); /* else it is no mapping */
    return LAYA_OK;
}

static void check_blobs(laya_checker *checker)
{
    const laya_file *file = &checker->package->weight_file;
    file_check f = {.checker = checker};
    uint32_t blobs;
    laya_error problem;
    if (laya_weight_file_walk(file->data, file->size, visit_blob, &f, &blobs, &problem) != LAYA_OK) {
        laya_check_error(checker, LAYA_CHECK_TYPES, "%s", problem.message);
        return;
    }
    while (f.next < checker->reference_count) refuse_reference(checker, &checker->references[f.next++]);
    if (f.unused) {
        laya_check_warning(checker, LAYA_CHECK_TYPES,
                           "weight file: %" PRIu64 " of %" PRIu32 " blobs (%" PRIu64 " bytes) belong to no constant",
                           f.unused, blobs, f.unused_bytes);
    }
}

laya_status laya_check_weight_file(laya_checker *checker, laya_error *error)
{
    if (checker->failed) return laya_fail_memory(error, 0);
    if (checker->reference_count)
        qsort(checker->references, checker->reference_count, sizeof *checker->references, by_offset);
    const laya_package *package = checker->package;
    if (package->weight_file.data) {
        check_blobs(checker);
    } else if (checker->reference_count) {
        laya_check_error(checker, LAYA_CHECK_TYPES, "%" PRIu32 " constants lie in a weight file, but there is none",
                         checker->reference_count);
    } else if (package->weights_path) {
        laya_check_error(checker, LAYA_CHECK_TYPES, "weight file: empty; expected a header of %u bytes",
                         LAYA_BLOB_ALIGNMENT);
    }
    if (package->weight_file.size >= WEIGHT_FILE_LIMIT) {
        laya_check_error(checker, LAYA_CHECK_TYPES,
                         "weight file: %zu bytes; Core ML was seen to refuse files of 2 GiB and more",
                         package->weight_file.size);
    }
    return LAYA_OK;
}
