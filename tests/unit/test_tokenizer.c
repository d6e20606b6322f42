/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tokenizers. Expected ids and normal forms marked "recorded" come from the Python package tokenizers
 * 0.23.3; the others follow by hand from the small vocabularies written here. The comparison on hundreds
 * of thousands of texts is tests/oracle/tokenizer_oracle.py.
 */
#include "support.h"

#include "base/error.h"
#include "base/memory.h"
#include "text/tokenizer.h"
#include "text/unicode_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define US "\xE2\x96\x81" /* U+2581 */
#define ACUTE "\xCC\x81"  /* U+0301 */
#define BELOW "\xCC\xA3"  /* U+0323 */

/* ------------------------------------------------------------------ small files */

#define GEMMA_NORMALIZER "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" US "\"}"
#define GEMMA_SPLIT                                                                                                  \
    "{\"type\":\"Split\",\"pattern\":{\"String\":\" \"},\"behavior\":\"MergedWithPrevious\",\"invert\":false}"
#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true}"
#define METASPACE "{\"type\":\"Metaspace\",\"replacement\":\"" US "\",\"prepend_scheme\":\"always\",\"split\":true}"

#define HEAD "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":["
#define MODEL                                                                                                        \
    ",\"post_processor\":null,\"decoder\":null,\"model\":{\"type\":\"BPE\",\"dropout\":null,"                        \
    "\"unk_token\":\"<unk>\",\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,"                        \
    "\"fuse_unk\":false,\"byte_fallback\":false,\"ignore_merges\":false,"
#define PIPELINE(normalizer, pre_tokenizer) "],\"normalizer\":" normalizer ",\"pre_tokenizer\":" pre_tokenizer MODEL
#define GEMMA PIPELINE(GEMMA_NORMALIZER, GEMMA_SPLIT)
#define ADDED(id, content, flags) "{\"id\":" #id ",\"content\":\"" content "\"," flags ",\"special\":false}"
#define FLAGS(single_word, lstrip, rstrip, normalized)                                                               \
    "\"single_word\":" #single_word ",\"lstrip\":" #lstrip ",\"rstrip\":" #rstrip ",\"normalized\":" #normalized
#define PLAIN FLAGS(false, false, false, false)

/* The base of most refusals below: all of it is accepted. */
static const char base[] = HEAD ADDED(6, "<x>", PLAIN) "," ADDED(0, "<unk>", PLAIN)
    PIPELINE("null", METASPACE) "\"vocab\":{\"<unk>\":0,\"" US "\":1,\"a\":2,\"b\":3,\"ab\":4,\"" US "a\":5},"
                                "\"merges\":[[\"a\",\"b\"],[\"" US "\",\"a\"]]}}";

/* Write a temporary file, read it as a tokenizer, remove it. */
static laya_status open_text(const char *text, size_t size, const laya_allocator *allocator,
                             laya_tokenizer **tokenizer, laya_error *error)
{
    char path[TEST_PATH_SIZE];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/laya-tokenizer-XXXXXX", folder && *folder ? folder : "/tmp");
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    close(descriptor);
    test_write_file(path, text, size);
    laya_status status = laya_tokenizer_open(path, allocator, tokenizer, error);
    if (status != LAYA_OK && error && status != LAYA_ERROR_MEMORY) assert_contains(error->message, path);
    unlink(path);
    return status;
}

static laya_tokenizer *must_open_text(const char *text)
{
    laya_tokenizer *tokenizer;
    laya_error error;
    if (open_text(text, strlen(text), NULL, &tokenizer, &error) != LAYA_OK) fail_msg("%s", error.message);
    return tokenizer;
}

static laya_tokenizer *must_open(const char *relative)
{
    char path[TEST_PATH_SIZE];
    laya_tokenizer *tokenizer;
    laya_error error;
    if (laya_tokenizer_open(test_path(path, relative), NULL, &tokenizer, &error) != LAYA_OK)
        fail_msg("%s", error.message);
    return tokenizer;
}

static laya_tokenizer *open_demo(void)
{
    return must_open(TEST_DEMO "/tokenizer/tokenizer.json");
}

static laya_tokenizer *open_tiny(void)
{
    return must_open(TEST_TINY "/tokenizer/tokenizer.json");
}

/* ------------------------------------------------------------------ comparing ids */

static void expect_sized(const laya_tokenizer *tokenizer, const char *text, size_t size, const char *expected)
{
    uint32_t *ids;
    size_t count, used = 0;
    laya_error error;
    char found[1024] = "";
    if (laya_tokenizer_encode(tokenizer, text, size, &ids, &count, &error) != LAYA_OK) fail_msg("%s", error.message);
    for (size_t i = 0; i < count && used < sizeof found - 16; i++)
        used += (size_t)snprintf(found + used, sizeof found - used, i ? " %u" : "%u", ids[i]);
    laya_tokenizer_release(tokenizer, ids);
    if (strcmp(found, expected) != 0) fail_msg("\"%s\"\n  expected %s\n  found    %s", text, expected, found);
}

static void expect(const laya_tokenizer *tokenizer, const char *text, const char *expected)
{
    expect_sized(tokenizer, text, strlen(text), expected);
}

typedef struct row {
    const char *text, *ids;
} row;

static void expect_rows(const laya_tokenizer *tokenizer, const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) expect(tokenizer, rows[i].text, rows[i].ids);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ------------------------------------------------------------------ the two committed files (recorded) */

static void demo_ids(void **state)
{
    static const row rows[] = {
        {"", ""},
        {"hello", "3077"},
        {" hello", "3077"},
        {"   trailing   ", "261 261 444 544 388 261 261 261"},
        {"a\nb", "359 15 284"},
        {"a\tb", "359 14 284"},
        {"a<bos>b", "359 2 396"},
        {"x  <mask> y", "817 4 409"},
        {"<mask><mask>", "4 4"},
        {"choice question: refund?", "424 398 276 665 290"},
        {"caf\xC3\xA9 \xE6\x88\x91", "364 1222 200 174 261 235 141 150"},
        {US "x " US, "817 261 261"},
        {"88213\n\nHi,", "261 332 332 303 305 314 15 15 1613 283"},
        {"\xF0\x9F\x98\x80", "261 245 164 157 133"},
        {"<mas<mask", "261 351 275 413 351 275 2587"},
        {"</s>", "261 351 335 265 353"},
    };
    (void)state;
    laya_tokenizer *tokenizer = open_demo();
    expect_rows(tokenizer, rows, COUNT(rows));
    expect_sized(tokenizer, "nul\0byte", 8, "382 543 5 284 279 502");
    laya_tokenizer_close(tokenizer);
}

static void tiny_ids(void **state)
{
    static const row rows[] = {
        {"hello", "262 75 378"},
        {"customer's we'll DON'T", "662 840 420 1263 498 1007 6 51"},
        {"   trailing   ", "1493 83 81 456 287 1493"},
        {"a\n\n b", "64 198 198 295"},
        {"e" ACUTE " \xC3\xA9", "127 102 220 127 102"},
        {"[MASK] x", "1499 672"},
        {"x  [MASK] y", "87 1499 306"},
        {"[CLS][SEP][PAD]", "1496 1497 1498"},
        {"\xE0\xA4\xA8\xE0\xA4\xAE\xE0\xA4\xB8\xE0\xA5\x8D\xE0\xA4\xA4\xE0\xA5\x87",
         "156 97 101 156 97 106 156 97 116 156 98 235 156 97 97 156 98 229"},
        {"a                              b", "64 1472 1490 65"},
        {"\xE1\xBA\x9B" BELOW, "157 118 249 136 96"},
        {ACUTE, "136 223"},
        {"12\xC2\xBD \xE2\x85\xA7", "16 17 126 121 220 158 227 100"},
        {"\xF0\x9F\x98\x80!", "172 253 246 222 0"},
    };
    (void)state;
    laya_tokenizer *tokenizer = open_tiny();
    expect_rows(tokenizer, rows, COUNT(rows));
    expect_sized(tokenizer, "nul\0byte", 8, "77 443 188 65 88 400");
    laya_tokenizer_close(tokenizer);
}

static void vocabulary(void **state)
{
    (void)state;
    laya_tokenizer *tokenizer = open_tiny();
    size_t size = 7;
    uint32_t id = 7;
    assert_int_equal(laya_tokenizer_vocab_size(tokenizer), 1500);
    assert_int_equal(laya_tokenizer_find(tokenizer, "[MASK]", 6, &id), 1);
    assert_int_equal(id, 1499);
    assert_memory_equal(laya_tokenizer_token(tokenizer, 1499, &size), "[MASK]", 6);
    assert_int_equal(size, 6);
    assert_int_equal(laya_tokenizer_find(tokenizer, "[MASK", 5, &id), 0);
    assert_int_equal(laya_tokenizer_find(tokenizer, "", 0, NULL), 0);
    assert_null(laya_tokenizer_token(tokenizer, 1500, &size));
    assert_int_equal(size, 0);
    for (uint32_t at = 0; at < 1500; at++) {
        const char *token = laya_tokenizer_token(tokenizer, at, &size);
        assert_non_null(token);
        assert_int_equal(laya_tokenizer_find(tokenizer, token, size, &id), 1);
        assert_int_equal(id, at);
    }
    laya_tokenizer_close(tokenizer);
    laya_tokenizer_close(NULL);
    laya_tokenizer_release(NULL, NULL);
    assert_int_equal(laya_tokenizer_vocab_size(NULL), 0);
}

/* ------------------------------------------------------------------ BPE */

static void merge_order(void **state)
{
    static const char text[] = HEAD GEMMA
        "\"vocab\":{\"<unk>\":0,\"a\":1,\"b\":2,\"c\":3,\"ab\":4,\"bc\":5,\"abc\":6,\"aa\":7,\"aaaa\":8},"
        "\"merges\":[[\"b\",\"c\"],[\"a\",\"b\"],[\"a\",\"bc\"],[\"a\",\"a\"],[\"aa\",\"aa\"]]}}";
    static const row rows[] = {/* recorded */
                               {"abc", "6"},     {"abcab", "6 4"}, {"aaa", "7 1"},
                               {"aaaaa", "8 1"}, {"aabc", "1 6"},  {"cab", "3 4"}};
    (void)state;
    laya_tokenizer *tokenizer = must_open_text(text);
    expect_rows(tokenizer, rows, COUNT(rows));
    laya_tokenizer_close(tokenizer);
}

/* A merge that comes twice counts at its later place; "#version" lines are no merges (recorded). */
static void merge_forms(void **state)
{
#define ABC HEAD GEMMA "\"vocab\":{\"<unk>\":0,\"a\":1,\"b\":2,\"c\":3,\"ab\":4,\"bc\":5},\"merges\":"
    (void)state;
    laya_tokenizer *tokenizer = must_open_text(ABC "[[\"a\",\"b\"],[\"b\",\"c\"],[\"a\",\"b\"]]}}");
    expect(tokenizer, "abc", "1 5");
    laya_tokenizer_close(tokenizer);
    tokenizer = must_open_text(ABC "[\"#version: 0.2\",\"a b\",\"b c\"]}}");
    expect(tokenizer, "abc", "4 3");
    laya_tokenizer_close(tokenizer);
    tokenizer = must_open_text(ABC "[]}}");
    expect(tokenizer, "abc", "1 2 3");
    laya_tokenizer_close(tokenizer);
}

/* An unknown character waits behind byte tokens and comes out before the next known one (recorded). */
static void unknown_characters(void **state)
{
    static const char text[] = HEAD PIPELINE(
        GEMMA_NORMALIZER,
        GEMMA_SPLIT) "\"vocab\":{\"<unk>\":0,\"a\":1,\"<0xE2>\":2,\"<0x82>\":3,\"<0xAC>\":4,\"b\":5},\"merges\":[]}}";
    static const row apart[] = {
        {"ZZa", "0 0 1"}, {"Z\xE2\x82\xACZa", "2 3 4 0 0 1"}, {"Z\xE2\x82\xAC", "2 3 4 0"}, {"aZbZ", "1 0 5 0"}};
    static const row fused[] = {
        {"ZZa", "0 1"}, {"Z\xE2\x82\xACZa", "2 3 4 0 1"}, {"Z\xE2\x82\xAC", "2 3 4 0"}, {"aZbZ", "1 0 5 0"}};
    char changed[sizeof text];
    (void)state;
    for (int fuse = 0; fuse < 2; fuse++) {
        memcpy(changed, text, sizeof text);
        memcpy(strstr(changed, "\"byte_fallback\":false"), "\"byte_fallback\":true ", 21);
        if (fuse) memcpy(strstr(changed, "\"fuse_unk\":false"), "\"fuse_unk\":true ", 16);
        laya_tokenizer *tokenizer = must_open_text(changed);
        expect_rows(tokenizer, fuse ? fused : apart, 4);
        laya_tokenizer_close(tokenizer);
    }
}

/* A word of a megabyte must not take quadratic time; by hand: pairs of a, then pairs of those. */
static void long_word(void **state)
{
    static const char text[] = HEAD GEMMA "\"vocab\":{\"<unk>\":0,\"a\":1,\"aa\":2,\"aaaa\":3},"
                                          "\"merges\":[[\"a\",\"a\"],[\"aa\",\"aa\"]]}}";
    const size_t size = 1000003;
    (void)state;
    laya_tokenizer *tokenizer = must_open_text(text);
    char *word = malloc(size);
    assert_non_null(word);
    memset(word, 'a', size);
    uint32_t *ids;
    size_t count;
    assert_int_equal(laya_tokenizer_encode(tokenizer, word, size, &ids, &count, NULL), LAYA_OK);
    assert_int_equal(count, 250002);
    for (size_t i = 0; i < 250000; i++) assert_int_equal(ids[i], 3);
    assert_int_equal(ids[250000], 2);
    assert_int_equal(ids[250001], 1);
    laya_tokenizer_release(tokenizer, ids);
    free(word);
    laya_tokenizer_close(tokenizer);
}

/* ------------------------------------------------------------------ added tokens (recorded) */

static void added_token_flags(void **state)
{
    static const char text[] = HEAD ADDED(4, "<l>", FLAGS(false, true, false, false)) "," ADDED(
        5, "<r>",
        FLAGS(false, false, true,
              false)) "," ADDED(6, "<w>",
                                FLAGS(true, false, false,
                                      false)) "," ADDED(7, "n n",
                                                        FLAGS(false, false, false,
                                                              true)) "," ADDED(8, "<r>x",
                                                                               PLAIN) "," ADDED(9, "  ", PLAIN) GEMMA
        "\"vocab\":{\"<unk>\":0,\"a\":1,\"b\":2,\"" US "\":3},\"merges\":[]}}";
    static const row rows[] = {
        {"a <l>b", "1 4 2"},
        {"a \n\xE3\x80\x80<l> b", "1 4 3 2"},
        {"<r> \xC2\xA0"
         "a",
         "5 1"},
        {"<r>  b", "5 9 2"}, /* the two spaces count twice */
        {"<r>   b", "5 9 3 2"},
        {"a<w>", "1 0 0 0"},
        {"a <w> b", "1 3 6 3 2"},
        {"_<w>", "0 0 0 0"},
        {"\xC3\xA9<w>", "0 0 0 0"},
        {"<w>" ACUTE, "0 0 0 0"},
        {"<w>!", "6 0"},
        {"n n", "7"},
        {"an nb", "1 7 2"},
        {"<r>x", "8"},
        {"<r> <l>", "5 4"},
        {"  <l>", "9 4"},
        {"<l> <l>a", "4 4 1"},
    };
    (void)state;
    laya_tokenizer *tokenizer = must_open_text(text);
    expect_rows(tokenizer, rows, COUNT(rows));
    laya_tokenizer_close(tokenizer);
}

static void added_tokens_in_nfc(void **state)
{
    static const char text[] = HEAD ADDED(4, "e" ACUTE, FLAGS(false, false, false, true)) "," ADDED(5, "o" ACUTE,
                                                                                                    PLAIN)
        PIPELINE("{\"type\":\"NFC\"}",
                 BYTE_LEVEL) "\"vocab\":{\"<unk>\":0,\"\xC4\xA0\":1,\"a\":2,\"e\":3},\"merges\":[]}}";
    static const row rows[] = {
        {"e" ACUTE, "4"}, {"\xC3\xA9", "4"}, {"o" ACUTE, "5"}, {"\xC3\xB3", "0 0"}, {"ae" ACUTE "a", "2 4 2"}};
    (void)state;
    laya_tokenizer *tokenizer = must_open_text(text);
    expect_rows(tokenizer, rows, COUNT(rows));
    laya_tokenizer_close(tokenizer);
}

/* ------------------------------------------------------------------ Unicode */

static void normal_form(void **state)
{
    static const row rows[] = {
        /* recorded */
        {"e" ACUTE, "\xC3\xA9"},
        {"\xCD\x84", "\xCC\x88\xCC\x81"},                         /* U+0344 */
        {"\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8", "\xEA\xB0\x81"}, /* jamo */
        {"\xEA\xB0\x80\xE1\x86\xA8", "\xEA\xB0\x81"},
        {"a" BELOW "\xCC\x87", "\xE1\xBA\xA1\xCC\x87"},
        {"a\xCC\x87" BELOW, "\xE1\xBA\xA1\xCC\x87"},
        {"\xE0\xA5\x98", "\xE0\xA4\x95\xE0\xA4\xBC"}, /* excluded from composition */
        {"\xE2\x84\xAB", "\xC3\x85"},
        {"\xE0\xAE\x92\xE0\xAF\x97", "\xE0\xAE\x94"},
        {ACUTE BELOW, BELOW ACUTE},
        {"x\xCD\x85" ACUTE, "x" ACUTE "\xCD\x85"},
        /* younger than Unicode 9: U+0898 is no mark, U+11935 U+11930 and U+105D2 U+0307 do not combine */
        {"a\xE0\xA2\x98" BELOW, "a\xE0\xA2\x98" BELOW},
        {"a" ACUTE "\xE0\xA2\x98" BELOW, "\xC3\xA1\xE0\xA2\x98" BELOW},
        {"\xF0\x91\xA4\xB5\xF0\x91\xA4\xB0", "\xF0\x91\xA4\xB5\xF0\x91\xA4\xB0"},
        {"\xF0\x90\x97\x92\xCC\x87", "\xF0\x90\x97\x92\xCC\x87"},
    };
    (void)state;
    laya_allocator hooks = laya_allocator_or_default(NULL);
    laya_nfc_memory memory = {.allocator = &hooks};
    laya_buffer out;
    laya_buffer_init(&out, NULL);
    for (size_t i = 0; i < COUNT(rows); i++) {
        laya_buffer_clear(&out);
        assert_true(laya_nfc(&memory, rows[i].text, strlen(rows[i].text), &out));
        if (strcmp(out.data, rows[i].ids) != 0) fail_msg("row %zu: found \"%s\"", i, out.data);
        assert_true(laya_nfc_needed(rows[i].text, strlen(rows[i].text)) || strcmp(rows[i].text, rows[i].ids) == 0);
    }
    assert_false(laya_nfc_needed("plain \xC3\xA9 \xE6\x88\x91", 11));

    /* A long run of marks is sorted by class, each class in its old order: by hand. */
    char marks[1 + 4 * 100];
    marks[0] = 'q';
    for (size_t i = 0; i < 100; i++) memcpy(marks + 1 + 4 * i, i % 2 ? "\xCC\x80" BELOW : ACUTE BELOW, 4);
    laya_buffer_clear(&out);
    assert_true(laya_nfc(&memory, marks, sizeof marks, &out));
    assert_int_equal(out.size, sizeof marks);
    for (size_t i = 0; i < 100; i++) {
        assert_memory_equal(out.data + 1 + 2 * i, BELOW, 2);
        assert_memory_equal(out.data + 1 + 200 + 2 * i, i % 2 ? "\xCC\x80" : ACUTE, 2);
    }
    laya_nfc_close(&memory);
    laya_buffer_close(&out);
}

static void character_classes(void **state)
{
    const unsigned classes = LAYA_UNICODE_LETTER | LAYA_UNICODE_NUMBER | LAYA_UNICODE_SPACE | LAYA_UNICODE_WORD;
    (void)state;
    for (uint32_t code = 0; code < 0x80; code++) {
        unsigned quick = laya_unicode_flags(code), table = laya_unicode_search(code);
        assert_int_equal(quick & classes, table & classes);
        assert_int_equal(table & ~quick, 0);
    }
    assert_int_equal(laya_unicode_flags(0x85) & classes, LAYA_UNICODE_SPACE);
    assert_int_equal(laya_unicode_flags(0x3000) & classes, LAYA_UNICODE_SPACE);
    assert_int_equal(laya_unicode_flags(0x200B) & classes, 0);
    assert_int_equal(laya_unicode_flags(0x94D) & classes, LAYA_UNICODE_WORD); /* a mark is no letter */
    assert_int_equal(laya_unicode_flags(0xBD) & classes, LAYA_UNICODE_NUMBER);
    assert_int_equal(laya_unicode_flags(0xA7DA) & classes, LAYA_UNICODE_LETTER | LAYA_UNICODE_WORD); /* Unicode 16 */
    assert_int_equal(laya_unicode_flags(0x10FFFF), 0);
}

/* The splitting expression, word by word; by hand. */
static void splitting(void **state)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"it's 'sly''ll", "it|'s| '|sly|''|ll"},
        {"a  b\n\n c\n", "a| | b|\n\n| c|\n"},
        {" \t x1 2y!?z ", " \t| x|1| 2|y|!?|z| "},
        {"'S \xC2\xA0x", "'|S| |\xC2\xA0|x"},
        {"'r", "'|r"},
        {"'", "'"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char joined[128];
        size_t used = 0, size = strlen(rows[i].text);
        for (size_t at = 0, end; at < size; at = end) {
            end = laya_byte_level_word(rows[i].text, size, at);
            assert_true(end > at);
            if (used) joined[used++] = '|';
            memcpy(joined + used, rows[i].text + at, end - at);
            used += end - at;
        }
        joined[used] = '\0';
        assert_string_equal(joined, rows[i].words);
    }
}

/* ------------------------------------------------------------------ refusals */

typedef struct edit {
    const char *from, *to;
    laya_status status;
    const char *message; /* that it must contain; NULL: the file is accepted */
} edit;

/* `base` with the first occurrence of `from` replaced. */
static char *edited(const edit *change)
{
    const char *at = strstr(base, change->from);
    if (!at) fail_msg("the base has no \"%s\"", change->from);
    size_t size = sizeof base + strlen(change->to);
    char *text = malloc(size);
    assert_non_null(text);
    snprintf(text, size, "%.*s%s%s", (int)(at - base), base, change->to, at + strlen(change->from));
    return text;
}

static void try_edits(const edit *edits, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *text = edited(&edits[i]);
        laya_tokenizer *tokenizer;
        laya_error error;
        laya_status status = open_text(text, strlen(text), NULL, &tokenizer, &error);
        if (status != edits[i].status)
            fail_msg("%s -> %s: %s, \"%s\"", edits[i].from, edits[i].to, laya_status_name(status), error.message);
        if (edits[i].message) {
            assert_null(tokenizer);
            assert_contains(error.message, edits[i].message);
        }
        laya_tokenizer_close(tokenizer);
        free(text);
    }
}

#define REFUSED LAYA_ERROR_UNSUPPORTED
#define NO_NORMALIZER "\"normalizer\":null"
#define TWO_TEMPLATES                                                                                                \
    "\"post_processor\":{\"type\":\"Sequence\",\"processors\":[{\"type\":\"ByteLevel\"},"                            \
    "{\"type\":\"TemplateProcessing\",\"single\":[]}]}"

static void pipeline_refusals(void **state)
{
    static const edit edits[] = {
        {"\"version\":\"1.0\"", "\"version\":\"2.0\"", REFUSED, "version: expected \"1.0\", found \"2.0\""},
        {"\"version\":\"1.0\",", "", REFUSED, "version"},
        {"\"version\"", "\"extra\":1,\"version\"", REFUSED, "unknown key \"extra\""},
        {"\"truncation\":null", "\"truncation\":{\"max_length\":8}", REFUSED, "truncation: expected null"},
        {"\"padding\":null", "\"padding\":{}", REFUSED, "padding: expected null"},
        {NO_NORMALIZER, "\"normalizer\":{\"type\":\"NFKC\"}", REFUSED, "normalizer.type: expected \"NFC\" or"},
        {NO_NORMALIZER, "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[]}", REFUSED, "\"Sequence\""},
        {NO_NORMALIZER, "\"normalizer\":{\"type\":\"NFC\"}", REFUSED, "not implemented together"},
        {NO_NORMALIZER, "\"normalizer\":" GEMMA_NORMALIZER, REFUSED, "not implemented together"},
        {NO_NORMALIZER, "\"normalizer\":{\"type\":\"NFC\",\"form\":1}", REFUSED, "normalizer: unknown key"},
        {NO_NORMALIZER, "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" \"},\"content\":\"" US "\"}",
         REFUSED, "normalizer.pattern"},
        {NO_NORMALIZER, "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"_\"}",
         REFUSED, "normalizer.content"},
        {NO_NORMALIZER, "\"normalizer\":\"NFC\"", LAYA_ERROR_FORMAT, "normalizer: expected an object"},
        {METASPACE, "null", REFUSED, "pre_tokenizer: expected an object, found null"},
        {METASPACE, "{\"type\":\"Whitespace\"}", REFUSED, "pre_tokenizer.type"},
        {METASPACE, GEMMA_SPLIT, REFUSED, "only behind the normalizer"},
        {"\"replacement\":\"" US "\"", "\"replacement\":\"_\"", REFUSED, "pre_tokenizer.replacement"},
        {"\"always\"", "\"first\"", REFUSED, "pre_tokenizer.prepend_scheme: expected \"always\", found \"first\""},
        {"\"split\":true", "\"split\":false", REFUSED, "pre_tokenizer.split"},
        {"\"split\":true", "\"split\":1", LAYA_ERROR_FORMAT, "pre_tokenizer.split"},
        {"\"split\":true", "\"add_prefix_space\":false", REFUSED, "pre_tokenizer.add_prefix_space"},
        {"\"split\":true", "\"add_prefix_space\":true,\"str_rep\":\"" US "\"", LAYA_OK, NULL},
        {"\"split\":true", "\"str_rep\":\"_\"", REFUSED, "pre_tokenizer.str_rep"},
        {"\"split\":true", "\"trim\":true", REFUSED, "pre_tokenizer: unknown key \"trim\""},
        {METASPACE, "{\"type\":\"ByteLevel\",\"add_prefix_space\":true}", REFUSED, "pre_tokenizer.add_prefix_space"},
        {METASPACE, "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}", REFUSED,
         "pre_tokenizer.use_regex"},
        {METASPACE, "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}", LAYA_OK, NULL},
        {"\"post_processor\":null", "\"post_processor\":{\"type\":\"BertProcessing\"}", REFUSED,
         "post_processor.type"},
        {"\"post_processor\":null", "\"post_processor\":{\"type\":\"Sequence\",\"processors\":[{\"type\":\"X\"}]}",
         REFUSED, "post_processor.processors[].type"},
        {"\"post_processor\":null", "\"post_processor\":{\"type\":\"Sequence\"}", LAYA_ERROR_FORMAT,
         "post_processor.processors"},
        {"\"post_processor\":null", TWO_TEMPLATES, LAYA_OK, NULL},
        {"\"decoder\":null", "\"decoder\":{\"type\":\"Whatever\"}", LAYA_OK, NULL},
    };
    (void)state;
    try_edits(edits, COUNT(edits));
}

static void model_refusals(void **state)
{
    static const edit edits[] = {
        {"\"BPE\"", "\"WordPiece\"", REFUSED, "model.type: expected \"BPE\", found \"WordPiece\""},
        {"\"dropout\":null", "\"dropout\":0.1", REFUSED, "model.dropout"},
        {"\"dropout\":null", "\"dropout\":0.0", LAYA_OK, NULL},
        {"\"continuing_subword_prefix\":null", "\"continuing_subword_prefix\":\"##\"", REFUSED,
         "model.continuing_subword_prefix"},
        {"\"end_of_word_suffix\":null", "\"end_of_word_suffix\":\"</w>\"", REFUSED, "model.end_of_word_suffix"},
        {"\"end_of_word_suffix\":null", "\"end_of_word_suffix\":\"\"", LAYA_OK, NULL},
        {"\"ignore_merges\":false", "\"ignore_merges\":true", REFUSED, "model.ignore_merges"},
        {"\"ignore_merges\":false", "\"cache\":3", REFUSED, "model: unknown key \"cache\""},
        {"\"fuse_unk\":false", "\"fuse_unk\":\"no\"", LAYA_ERROR_FORMAT, "model.fuse_unk"},
        {"\"unk_token\":\"<unk>\"", "\"unk_token\":null", REFUSED, "dropped silently"},
        {"\"unk_token\":\"<unk>\"", "\"unk_token\":\"[UNK]\"", LAYA_ERROR_FORMAT, "model.unk_token"},
        {"\"unk_token\":\"<unk>\"", "\"unk_token\":3", LAYA_ERROR_FORMAT, "model.unk_token"},
        {"\"unk_token\":\"<unk>\"", "\"unk_token\":\"<x>\"", LAYA_ERROR_FORMAT, "model.unk_token"},
        {"\"b\":3", "\"b\":33", LAYA_ERROR_FORMAT, "without gaps, found 33 for \"b\""},
        {"\"b\":3", "\"b\":2", LAYA_ERROR_FORMAT, "\"a\" and \"b\" have the same id 2"},
        {"\"b\":3", "\"b\":-3", LAYA_ERROR_FORMAT, "model.vocab: expected integers"},
        {"\"b\":3", "\"b\":3.0", LAYA_ERROR_FORMAT, "model.vocab: expected integers"},
        {"\"b\":3", "\"b\":4294967296", LAYA_ERROR_FORMAT, "model.vocab"},
        {"\"merges\":[[\"a\",\"b\"]", "\"merges\":[[\"a\",\"q\"]", LAYA_ERROR_FORMAT,
         "model.merges[0]: \"q\" is not in model.vocab"},
        {"\"merges\":[[\"a\",\"b\"]", "\"merges\":[[\"q\",\"b\"]", LAYA_ERROR_FORMAT, "\"q\" is not"},
        {"\"merges\":[[\"a\",\"b\"]", "\"merges\":[[\"a\",\"a\"]", LAYA_ERROR_FORMAT, "\"aa\" is not"},
        {"\"merges\":[[\"a\",\"b\"]", "\"merges\":[[\"<unk>\",\"<unk>\"]", LAYA_ERROR_FORMAT,
         "\"<unk><unk>\" is not"},
        {"\"merges\":[[\"a\",\"b\"]", "\"merges\":[[\"a\"]", LAYA_ERROR_FORMAT,
         "model.merges[0]: expected a list of two"},
        {"\"merges\":[[\"a\",\"b\"]", "\"merges\":[[\"a\",2]", LAYA_ERROR_FORMAT, "model.merges[0]"},
        {"\"merges\":[[\"a\",\"b\"]", "\"merges\":[[\"a\",\"b\"],\"a b\"", LAYA_ERROR_FORMAT, "model.merges[1]"},
        {"\"merges\":[[\"a\",\"b\"]", "\"merges\":[\"a b\"", LAYA_ERROR_FORMAT, "model.merges[1]: expected a string"},
        {"\"merges\":[[\"a\",\"b\"],[\"" US "\",\"a\"]]", "\"merges\":[\"ab\"]", LAYA_ERROR_FORMAT,
         "a space between"},
        {"\"merges\":[[\"a\",\"b\"],[\"" US "\",\"a\"]]", "\"merges\":[\"a b \"]", LAYA_ERROR_FORMAT,
         "exactly one space"},
        {"\"merges\":[[\"a\",\"b\"],[\"" US "\",\"a\"]]", "\"merges\":{}", LAYA_ERROR_FORMAT,
         "model.merges: expected a list"},
        {",\"merges\":[[\"a\",\"b\"],[\"" US "\",\"a\"]]", "", LAYA_ERROR_FORMAT, "model.merges: expected a list"},
        {"\"vocab\":{", "\"vocab\":{},\"vocab\":[],\"x\":{", REFUSED, "unknown key"},
    };
    (void)state;
    try_edits(edits, COUNT(edits));
}

static void added_token_refusals(void **state)
{
#define FIRST ADDED(6, "<x>", PLAIN)
    static const edit edits[] = {
        {FIRST, ADDED(7, "<x>", PLAIN), LAYA_ERROR_FORMAT,
         "added_tokens[0].id: expected 6 (the next free id), found 7"},
        {FIRST, ADDED(6, "a", PLAIN), LAYA_ERROR_FORMAT,
         "added_tokens[0].id: expected 2 (as in model.vocab), found 6"},
        {FIRST, ADDED(6, "", PLAIN), LAYA_ERROR_FORMAT, "added_tokens[0].content"},
        {FIRST, ADDED(-1, "<x>", PLAIN), LAYA_ERROR_FORMAT, "added_tokens[0].id"},
        {FIRST, FIRST "," FIRST, LAYA_ERROR_FORMAT, "added_tokens[1].content: \"<x>\" comes twice"},
        {FIRST, ADDED(2, "a", PLAIN) "," ADDED(2, "a", FLAGS(false, false, false, true)), LAYA_ERROR_FORMAT,
         "added_tokens[1].content: \"a\" comes twice"},
        {FIRST, ADDED(6, "<x>", FLAGS(0, false, false, false)), LAYA_ERROR_FORMAT, "added_tokens[0].single_word"},
        {FIRST, ADDED(6, "<x>", FLAGS(false, false, false, null)), LAYA_ERROR_FORMAT, "added_tokens[0].normalized"},
        {FIRST, ADDED(6, "<x>", PLAIN ",\"weight\":1"), REFUSED, "added_tokens[0]: unknown key \"weight\""},
        {FIRST, "7", LAYA_ERROR_FORMAT, "added_tokens[0]: expected an object"},
        {FIRST,
         ADDED(6, "  ", FLAGS(false, true, false, false)) "," ADDED(7, "<x>", FLAGS(false, false, true, false)),
         REFUSED, "white space with lstrip"},
        {FIRST, ADDED(6, "  ", FLAGS(false, true, false, false)) "," ADDED(7, "<x>", FLAGS(false, false, true, true)),
         LAYA_OK, NULL},
        {"\"added_tokens\":[", "\"added_tokens\":{},\"added_tokens\":[", LAYA_OK, NULL},
        {NO_NORMALIZER ",\"pre_tokenizer\":" METASPACE,
         "\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":" BYTE_LEVEL, LAYA_OK, NULL},
    };
    static const char same[] = HEAD ADDED(1, "e" ACUTE, FLAGS(false, false, false, true)) "," ADDED(
        2, "\xC3\xA9", FLAGS(false, false, false, true))
        PIPELINE("{\"type\":\"NFC\"}", BYTE_LEVEL) "\"vocab\":{\"<unk>\":0},\"merges\":[]}}";
    (void)state;
    try_edits(edits, COUNT(edits));
    laya_tokenizer *tokenizer;
    laya_error error;
    assert_int_equal(open_text(same, sizeof same - 1, NULL, &tokenizer, &error), LAYA_ERROR_FORMAT);
    assert_contains(error.message, "after normalization");
}

static void malformed_files(void **state)
{
    laya_tokenizer *tokenizer;
    laya_error error;
    (void)state;
    assert_int_equal(open_text("", 0, NULL, &tokenizer, &error), LAYA_ERROR_FORMAT);
    assert_int_equal(open_text("[]", 2, NULL, &tokenizer, &error), LAYA_ERROR_FORMAT);
    assert_int_equal(open_text("{", 1, NULL, &tokenizer, NULL), LAYA_ERROR_FORMAT);
    assert_int_equal(open_text("{\"model\":\xFF}", 11, NULL, &tokenizer, &error), LAYA_ERROR_FORMAT);
    assert_int_equal(laya_tokenizer_open("/nowhere/tokenizer.json", NULL, &tokenizer, &error), LAYA_ERROR_IO);
    assert_contains(error.message, "/nowhere/tokenizer.json");
    assert_int_equal(laya_tokenizer_open(NULL, NULL, &tokenizer, &error), LAYA_ERROR_ARGUMENT);
    assert_int_equal(laya_tokenizer_open("x", NULL, NULL, &error), LAYA_ERROR_ARGUMENT);
    /* Every shorter file is an error, never a crash. */
    for (size_t size = 0; size + 1 < sizeof base; size += 3)
        assert_int_equal(open_text(base, size, NULL, &tokenizer, &error), LAYA_ERROR_FORMAT);
}

/* ------------------------------------------------------------------ bad input, memory */

static void bad_input(void **state)
{
    static const struct {
        const char *text;
        size_t size;
        const char *message;
    } rows[] = {{"\xFF", 1, "offset 0"},
                {"ab\xC3", 3, "offset 2"},
                {"a\xED\xA0\x80", 4, "offset 1"},
                {"\xC0\x80", 2, "offset 0"},
                {"x\xF4\x90\x80\x80", 5, "offset 1"}};
    (void)state;
    laya_tokenizer *tokenizer = must_open_text(base);
    uint32_t *ids, other = 0;
    size_t count;
    laya_error error;
    for (size_t i = 0; i < COUNT(rows); i++) {
        ids = &other;
        count = 9;
        assert_int_equal(laya_tokenizer_encode(tokenizer, rows[i].text, rows[i].size, &ids, &count, &error),
                         LAYA_ERROR_INPUT);
        assert_null(ids);
        assert_int_equal(count, 0);
        assert_contains(error.message, rows[i].message);
    }
    assert_int_equal(laya_tokenizer_encode(tokenizer, NULL, 0, &ids, &count, &error), LAYA_OK);
    assert_null(ids);
    assert_int_equal(laya_tokenizer_encode(tokenizer, NULL, 1, &ids, &count, &error), LAYA_ERROR_ARGUMENT);
    assert_int_equal(laya_tokenizer_encode(NULL, "a", 1, &ids, &count, NULL), LAYA_ERROR_ARGUMENT);
    assert_int_equal(laya_tokenizer_encode(tokenizer, "a", (size_t)1 << 29, &ids, &count, &error), LAYA_ERROR_INPUT);
    assert_contains(error.message, "at most");
    laya_tokenizer_close(tokenizer);
}

/* Every allocation of open and encode fails once; nothing is lost and the result is the same at the end. */
static void failing_memory(void **state)
{
    static const char normalizing[] =
        HEAD ADDED(7, "e" ACUTE, FLAGS(false, false, false, true)) "," ADDED(8, "\\u003cx>", PLAIN) PIPELINE(
            "{\"type\":\"NFC\"}",
            BYTE_LEVEL) "\"vocab\":{\"<unk>\":0,\"a\":1,\"b\":2,\"ab\":3,\"abab\":4,\"abababab\":5,\"ababababab\":6},"
                        "\"merges\":[\"a b\",\"ab ab\",\"abab abab\",\"ab abababab\"]}}";
    static const char *const files[] = {base, normalizing};
    char text[600];
    (void)state;
    for (size_t i = 0; i < sizeof text; i++) text[i] = "ab ab\xCC\x81<x>a"[i % 11];
    for (size_t file = 0; file < 2; file++) {
        test_memory memory;
        laya_tokenizer *tokenizer = NULL;
        laya_error error;
        laya_status status = LAYA_ERROR_MEMORY;
        test_memory_init(&memory);
        for (size_t fail_at = 1; status != LAYA_OK; fail_at++) {
            test_memory_arm(&memory, fail_at);
            status = open_text(files[file], strlen(files[file]), &memory.hooks, &tokenizer, &error);
            if (status == LAYA_OK) break;
            assert_int_equal(status, LAYA_ERROR_MEMORY);
            assert_null(tokenizer);
            assert_int_equal(memory.live, 0);
            assert_true(fail_at < 200);
        }
        assert_false(memory.failed);
        size_t live = memory.live, count = 0;
        uint32_t *ids = NULL;
        status = LAYA_ERROR_MEMORY;
        for (size_t fail_at = 1; status != LAYA_OK; fail_at++) {
            test_memory_arm(&memory, fail_at);
            status = laya_tokenizer_encode(tokenizer, text, sizeof text - 6, &ids, &count, &error);
            if (status == LAYA_OK) break;
            assert_int_equal(status, LAYA_ERROR_MEMORY);
            assert_null(ids);
            assert_int_equal(memory.live, live);
            assert_true(fail_at < 200);
        }
        assert_true(count > 100);
        assert_int_equal(memory.live, live + 1);
        laya_tokenizer_release(tokenizer, ids);
        laya_tokenizer_close(tokenizer);
        assert_int_equal(memory.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(demo_ids),
        cmocka_unit_test(tiny_ids),
        cmocka_unit_test(vocabulary),
        cmocka_unit_test(merge_order),
        cmocka_unit_test(merge_forms),
        cmocka_unit_test(unknown_characters),
        cmocka_unit_test(long_word),
        cmocka_unit_test(added_token_flags),
        cmocka_unit_test(added_tokens_in_nfc),
        cmocka_unit_test(normal_form),
        cmocka_unit_test(character_classes),
        cmocka_unit_test(splitting),
        cmocka_unit_test(pipeline_refusals),
        cmocka_unit_test(model_refusals),
        cmocka_unit_test(added_token_refusals),
        cmocka_unit_test(malformed_files),
        cmocka_unit_test(bad_input),
        cmocka_unit_test(failing_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
