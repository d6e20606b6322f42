/* SPDX-License-Identifier: Apache-2.0 */
#include "text/byte_level.h"

#include "base/utf8.h"
#include "text/unicode_tables.h"

#include <string.h>
#include <utf8proc.h>

uint32_t laya_byte_level_char(unsigned byte)
{
    if (byte <= 32) return 256 + byte;
    if (byte < 127) return byte;
    if (byte <= 160) return 256 + 33 + (byte - 127);
    return byte == 173 ? 256 + 67 : byte;
}

/* ------------------------------------------------------------------ splitting */

#define CLASSES (LAYA_UNICODE_LETTER | LAYA_UNICODE_NUMBER | LAYA_UNICODE_SPACE)

/* LETTER, NUMBER, SPACE or 0 (anything else) for the character at `at`; *next is where the following begins. */
static unsigned class_at(const char *text, size_t at, size_t *next)
{
    *next = at;
    return laya_unicode_flags(laya_utf8_next(text, next)) & CLASSES;
}

/* Length of 's 't 're 've 'm 'll 'd behind an apostrophe, or 0. */
static size_t contraction(const char *text, size_t size)
{
    if (size >= 2 && strchr("stmd", text[1]) && text[1]) return 2;
    if (size >= 3 &&
        (memcmp(text + 1, "re", 2) == 0 || memcmp(text + 1, "ve", 2) == 0 || memcmp(text + 1, "ll", 2) == 0)) {
        return 3;
    }
    return 0;
}

size_t laya_byte_level_word(const char *text, size_t size, size_t at)
{
    if (text[at] == '\'') {
        size_t length = contraction(text + at, size - at);
        if (length) return at + length;
    }
    size_t next, begin = at;
    unsigned kind = class_at(text, at, &next);
    if (text[at] == ' ' && next < size) {
        size_t second;
        unsigned behind = class_at(text, next, &second);
        if (behind != LAYA_UNICODE_SPACE) {
            kind = behind;
            next = second;
        }
    }
    size_t last = begin; /* where the last character of the run begins */
    for (at = next; at < size; at = next) {
        if (class_at(text, at, &next) != kind) break;
        last = at;
    }
    /* Of white space before a word all but the last character is taken, or the one that there is. */
    return kind == LAYA_UNICODE_SPACE && at < size && last > begin ? last : at;
}

/* ------------------------------------------------------------------ NFC
 *
 * Text is cut so that only pieces that can change go through utf8proc: an NFC_STARTER where there is one,
 * and the NFC_ACTIVE characters behind it. All others, above all those that are younger than Unicode 9,
 * are copied and end a piece. Within Unicode 9 every later version normalises alike.
 */

bool laya_nfc_needed(const char *text, size_t size)
{
    for (size_t at = 0; at < size;) {
        /* U+0300 (0xCC 0x80) is the first character that NFC may touch. */
        if ((unsigned char)text[at] < 0xCC) {
            at++;
        } else if (laya_unicode_flags(laya_utf8_next(text, &at)) & LAYA_UNICODE_NFC_ACTIVE) {
            return true;
        }
    }
    return false;
}

void laya_nfc_close(laya_nfc_memory *memory)
{
    laya_release(memory->allocator, memory->points);
    memory->points = NULL;
    memory->capacity = 0;
}

static int combining_class(int32_t code)
{
    return utf8proc_get_property(code)->combining_class;
}

/* Sort characters with classes other than 0 by class, those of a class in their old order. */
static void sort_marks(int32_t *marks, size_t count, int32_t *spare)
{
    if (count <= 32) {
        for (size_t i = 1; i < count; i++) {
            int32_t mark = marks[i];
            size_t at = i;
            for (; at > 0 && combining_class(marks[at - 1]) > combining_class(mark); at--) marks[at] = marks[at - 1];
            marks[at] = mark;
        }
        return;
    }
    size_t starts[257] = {0};
    for (size_t i = 0; i < count; i++) starts[combining_class(marks[i]) + 1]++;
    for (size_t i = 1; i < 257; i++) starts[i] += starts[i - 1];
    memcpy(spare, marks, count * sizeof *marks);
    for (size_t i = 0; i < count; i++) marks[starts[combining_class(spare[i])]++] = spare[i];
}

static bool normalize_piece(laya_nfc_memory *memory, const char *text, size_t size, laya_buffer *out)
{
    /*
     * Decomposition makes at most four characters of one, and all characters but the first have two bytes
     * or more. A second half is for sorting.
     */
    size_t needed = size * 2 + 4;
    if (needed * 2 > memory->capacity) {
        laya_nfc_close(memory);
        memory->points = laya_alloc(memory->allocator, needed, 2 * sizeof *memory->points);
        if (!memory->points) return false;
        memory->capacity = needed * 2;
    }
    int32_t *points = memory->points;
    size_t count = 0;
    for (size_t at = 0; at < size;) {
        int32_t code = (int32_t)laya_utf8_next(text, &at);
        int boundary = 0;
        utf8proc_ssize_t made = utf8proc_decompose_char(code, points + count, (utf8proc_ssize_t)(needed - count),
                                                        UTF8PROC_STABLE | UTF8PROC_COMPOSE, &boundary);
        count += made > 0 ? (size_t)made : 0;
    }
    for (size_t at = 0, end; at < count; at = end + 1) {
        for (end = at; end < count && combining_class(points[end]); end++) continue;
        if (end - at > 1) sort_marks(points + at, end - at, points + needed);
    }
    utf8proc_ssize_t left = utf8proc_normalize_utf32(points, (utf8proc_ssize_t)count,
                                                     UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    for (utf8proc_ssize_t i = 0; i < left; i++) {
        char encoded[4];
        laya_buffer_append(out, encoded, laya_utf8_put(encoded, (uint32_t)points[i]));
    }
    return true;
}

bool laya_nfc(laya_nfc_memory *memory, const char *text, size_t size, laya_buffer *out)
{
    size_t copied = 0; /* text before is in `out` */
    size_t at = 0;
    while (at < size) {
        size_t begin = at;
        unsigned flags = laya_unicode_flags(laya_utf8_next(text, &at));
        if (!(flags & LAYA_UNICODE_NFC_ACTIVE)) {
            bool starter = flags & LAYA_UNICODE_NFC_STARTER;
            if (at == size) break;
            size_t next = at;
            if (!(laya_unicode_flags(laya_utf8_next(text, &next)) & LAYA_UNICODE_NFC_ACTIVE)) continue;
            if (!starter) begin = at;
            at = next;
        }
        size_t end = at;
        while (at < size && laya_unicode_flags(laya_utf8_next(text, &at)) & LAYA_UNICODE_NFC_ACTIVE) end = at;
        laya_buffer_append(out, text + copied, begin - copied);
        if (!normalize_piece(memory, text + begin, end - begin, out)) return false;
        copied = at = end;
    }
    laya_buffer_append(out, text + copied, size - copied);
    return !out->failed;
}
