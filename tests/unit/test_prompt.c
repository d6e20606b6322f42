/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of tokens. The expected ids come from Hugging Face's tokenizers on the demo tokenizer.json and a few lines of
 * Python that follow upstream's build_sequence step by step (docs/MODEL.md, "Prompt").
 */
#include "support.h"

#include "base/error.h"
#include "model/model.h"
#include "text/prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static laya_model *demo;

static int open_demo(void **state)
{
    (void)state;
    demo = test_open_model(TEST_DEMO);
    return 0;
}

static int close_demo(void **state)
{
    (void)state;
    laya_model_close(demo);
    return 0;
}

enum { MAX_OPTIONS = 300 };

/* ids and markers are decimal numbers with a space between them */
static const struct {
    const char *name, *state;
    int keep_end;
    const char *head;
    uint32_t count;
    const char *options[6];
    uint32_t order[6]; /* all zero: none */
    uint32_t max_len, head_max_len;
    const char *ids, *markers;
    uint32_t tokens_per_option, distinct, dropped;
} rows[] = {
    {"all_fits",
     "I was billed twice for March, please refund me.",
     0,
     "choice question: Which department?",
     3,
     {"billing: invoices", "technical: bugs", "sales"},
     {0},
     512,
     192,
     "2 424 398 276 590 788 290 1 4 944 276 1311 4 2567 276 1200 4 1573 1 404 684 2754 2335 429 3874 283 721 665 476 "
     "285 1",
     "8 12 16",
     0,
     3,
     0},
    {"empty_texts",
     "",
     0,
     "noul question: ",
     2,
     {"false: ", "true: "},
     {0},
     64,
     64,
     "2 516 398 276 261 1 4 526 276 261 4 527 276 261 1 1",
     "6 10",
     0,
     2,
     0},
    {"whitespace_state",
     "  \012 ",
     0,
     "noul question: x",
     2,
     {"a", "b"},
     {0},
     64,
     64,
     "2 516 398 276 817 1 4 359 4 396 1 261 261 15 261 1",
     "6 8",
     0,
     2,
     0},
    {"blocks_are_cut",
     "I was billed twice for March, please refund me.",
     0,
     "choice question: Which department should look at this request first?",
     4,
     {"billing and invoices: payments", "technical support: bugs and outages", "sales and marketing: prices",
      "other: everything else"},
     {0},
     128,
     44,
     "2 424 398 276 590 788 606 792 550 479 597 1741 290 1 4 944 405 1311 276 1193 4 2567 709 276 1200 405 1415 4 "
     "1573 405 2616 276 1675 4 687 276 860 706 1 404 684 2754 2335 429 3874 283 721 665 476 285 1",
     "14 20 27 33",
     0,
     4,
     0},
    {"head_keeps_eight",
     "I was billed twice for March, please refund me.",
     0,
     "choice question: Which department should look at this request first?",
     6,
     {"billing and invoices", "technical support", "sales and marketing", "other things", "legal matters",
      "press and media"},
     {0},
     128,
     20,
     "2 424 398 276 590 788 606 792 550 1 4 944 405 1311 4 2567 709 4 1573 405 2616 4 687 3336 4 825 1561 4 975 405 "
     "1314 1 404 684 2754 2335 429 3874 283 721 665 476 285 1",
     "10 14 17 21 24 27",
     4,
     6,
     0},
    {"budget_fifteen",
     "I was billed twice for March, please refund me.",
     0,
     "score question: How urgent is this request for the customer and for us all?",
     2,
     {"level 0: not", "level 1: soon"},
     {0},
     128,
     27,
     "2 602 398 276 655 1084 412 479 597 429 372 565 405 429 512 780 290 1 4 439 261 307 276 4 439 261 305 276 1 404 "
     "684 2754 2335 429 3874 283 721 665 476 285 1",
     "18 23",
     5,
     2,
     0},
    {"budget_sixteen",
     "I was billed twice for March, please refund me.",
     0,
     "score question: How urgent is this request for the customer and for us all?",
     2,
     {"level 0: not", "level 1: soon"},
     {0},
     128,
     28,
     "2 602 398 276 655 1084 412 479 597 429 372 565 405 429 512 780 290 1 4 439 261 307 276 463 4 439 261 305 276 "
     "1115 1 404 684 2754 2335 429 3874 283 721 665 476 285 1",
     "18 24",
     0,
     2,
     0},
    {"keeps_beginning",
     "I was billed twice for March, please refund me. I was billed twice for March, please refund me.",
     0,
     "noul question: Is it?",
     2,
     {"false: no", "true: yes"},
     {0},
     34,
     32,
     "2 516 398 276 818 481 290 1 4 526 276 411 4 527 276 570 1 404 684 2754 2335 429 3874 283 721 665 476 285 404 "
     "684 2754 2335 429 1",
     "8 12",
     0,
     2,
     6},
    {"keeps_end",
     "I was billed twice for March, please refund me. I was billed twice for March, please refund me.",
     1,
     "noul question: Is it?",
     2,
     {"false: no", "true: yes"},
     {0},
     34,
     32,
     "2 516 398 276 818 481 290 1 4 526 276 411 4 527 276 570 1 283 721 665 476 285 404 684 2754 2335 429 3874 283 "
     "721 665 476 285 1",
     "8 12",
     0,
     2,
     6},
    {"long_option",
     "I was billed twice for March, please refund me.",
     0,
     "choice question: Which?",
     2,
     {"word0 word1 word2 word3 word4 word5 word6 word7 word8 word9 word10 word11 word12 word13 word14 word15 word16 "
      "word17 word18 word19 word20 word21 word22 word23 word24 word25 word26 word27 word28 word29 word30 word31 "
      "word32 word33 word34 word35 word36 word37 word38 word39",
      "b"},
     {0},
     128,
     192,
     "2 424 398 276 590 290 1 4 1319 307 1319 305 1319 303 1319 314 1319 319 1319 315 1319 326 1319 328 1319 332 "
     "1319 325 1319 305 307 1319 305 305 1319 305 303 1319 305 314 1319 305 319 1319 305 315 1319 305 326 1319 305 "
     "328 1319 305 332 1319 4 396 1 404 684 2754 2335 429 3874 283 721 665 476 285 1",
     "7 56",
     0,
     2,
     0},
    {"masks",
     "a <mask> b<mask>",
     0,
     "choice question: <mask>What <ma<mask>sk> is<mask>?",
     3,
     {"<mask>", "x<mask>: y <mask> z", "<eos> <bos>"},
     {0},
     128,
     64,
     "2 424 398 276 261 627 261 351 1499 365 287 353 412 261 290 1 4 261 261 4 817 261 276 409 261 261 3003 4 261 1 "
     "261 2 1 359 261 261 396 261 1",
     "16 19 27",
     0,
     3,
     0},
    {"order",
     "I was billed twice for March, please refund me.",
     0,
     "choice question: Which?",
     3,
     {"alpha", "beta", "gamma"},
     {2, 0, 1},
     128,
     64,
     "2 424 398 276 590 290 1 4 473 2934 4 359 639 1959 4 396 435 266 1 404 684 2754 2335 429 3874 283 721 665 476 "
     "285 1",
     "7 10 14",
     0,
     3,
     0},
    {"collisions",
     "I was billed twice for March, please refund me.",
     0,
     "choice question: Which one of them?",
     4,
     {"the same beginning of a text: one", "the same beginning of a text: two", "the same beginning of a text: three",
      "another text"},
     {0},
     128,
     24,
     "2 424 398 276 590 1145 438 2705 290 1 4 372 2364 540 4 372 2364 540 4 372 2364 540 4 1098 711 1 404 684 2754 "
     "2335 429 3874 283 721 665 476 285 1",
     "10 14 18 22",
     4,
     2,
     0},
};

typedef struct building {
    laya_arena arena;
    laya_prompt prompt;
    laya_query query;
    laya_span options[MAX_OPTIONS];
    laya_tokens state;
    laya_prompt_row row;
    laya_error error;
} building;

static void begin(building *b, uint32_t max_len, uint32_t head_max_len)
{
    laya_arena_init(&b->arena, NULL);
    b->arena.poison = true;
    b->prompt = (laya_prompt){.tokenizer = demo->tokenizer,
                              .specials = &demo->specials,
                              .max_len = max_len,
                              .head_max_len = head_max_len,
                              .arena = &b->arena};
    b->query = (laya_query){.id = {"q", 1}, .type = LAYA_CHOICE, .options = b->options};
    laya_error_clear(&b->error);
}

static laya_span span_of(const char *text)
{
    return (laya_span){text, strlen(text)};
}

static void set_state(building *b, const char *text)
{
    if (laya_prompt_tokens(&b->prompt, span_of(text), &b->state, &b->error) != LAYA_OK)
        fail_msg("%s", b->error.message);
}

static laya_status build(building *b, bool keep_end)
{
    return laya_prompt_build(&b->prompt, &b->query, b->state, keep_end, &b->row, &b->error);
}

static void assert_numbers(const char *name, const uint32_t *numbers, uint32_t count, const char *expected)
{
    char text[8192] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%u", i ? " " : "", numbers[i]);
    if (strcmp(text, expected) != 0) fail_msg("%s:\n  %s\n  expected %s", name, text, expected);
}

static void rows_as_upstream_builds_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        building b;
        begin(&b, rows[i].max_len, rows[i].head_max_len);
        set_state(&b, rows[i].state);
        b.query.head = span_of(rows[i].head);
        b.query.count = rows[i].count;
        for (uint32_t at = 0; at < rows[i].count; at++) b.options[at] = span_of(rows[i].options[at]);
        for (uint32_t at = 0; at < rows[i].count; at++) {
            if (rows[i].order[at]) b.query.order = rows[i].order;
        }
        if (build(&b, rows[i].keep_end != 0) != LAYA_OK) fail_msg("%s: %s", rows[i].name, b.error.message);
        assert_numbers(rows[i].name, b.row.ids, b.row.count, rows[i].ids);
        assert_numbers(rows[i].name, b.row.markers, rows[i].count, rows[i].markers);
        assert_int_equal(b.row.tokens_per_option, rows[i].tokens_per_option);
        assert_int_equal(b.row.distinct, rows[i].distinct);
        assert_int_equal(b.row.dropped, rows[i].dropped);
        laya_arena_close(&b.arena);
    }
}

/*
 * One question at every max_len from 1 up. Its markers are 8 and 12, its ids without the state 17, the state has 11.
 * {max_len, ids of the row, dropped state tokens}; where the options do not fit {max_len, 0, markers that fit}.
 */
static const uint32_t sweep[][3] = {
    {1, 0, 0},    {2, 0, 0},    {3, 0, 0},    {4, 0, 0},   {5, 0, 0},    {6, 0, 0},    {7, 0, 0},    {8, 0, 0},
    {9, 0, 1},    {10, 0, 1},   {11, 0, 1},   {12, 0, 1},  {13, 13, 11}, {14, 14, 11}, {15, 15, 11}, {16, 16, 11},
    {17, 17, 11}, {18, 18, 11}, {19, 19, 10}, {20, 20, 9}, {21, 21, 8},  {22, 22, 7},  {23, 23, 6},  {24, 24, 5},
    {25, 25, 4},  {26, 26, 3},  {27, 27, 2},  {28, 28, 1}, {29, 29, 0},  {30, 29, 0},  {31, 29, 0},  {32, 29, 0},
    {33, 29, 0},  {34, 29, 0},  {35, 29, 0},  {36, 29, 0}, {37, 29, 0},  {38, 29, 0},  {39, 29, 0},  {40, 29, 0},
    {41, 29, 0},  {42, 29, 0},  {43, 29, 0},  {44, 29, 0}, {45, 29, 0},  {46, 29, 0},  {47, 29, 0},
};

static void every_max_len(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sweep / sizeof *sweep; i++) {
        for (int keep_end = 0; keep_end < 2; keep_end++) {
            building b;
            begin(&b, sweep[i][0], 32);
            set_state(&b, "I was billed twice for March, please refund me.");
            assert_int_equal(b.state.count, 11);
            b.query.head = span_of("noul question: Is it?");
            b.query.count = 2;
            b.options[0] = span_of("false: no");
            b.options[1] = span_of("true: yes");
            laya_status status = build(&b, keep_end);
            if (sweep[i][1]) {
                assert_int_equal(status, LAYA_OK);
                assert_int_equal(b.row.count, sweep[i][1]);
                assert_int_equal(b.row.dropped, sweep[i][2]);
                uint32_t kept = 11 - b.row.dropped;
                if (kept)
                    assert_memory_equal(b.row.ids + 17, b.state.ids + (keep_end ? b.row.dropped : 0),
                                        kept * sizeof *b.row.ids);
                if (sweep[i][0] >= 18) assert_int_equal(b.row.ids[b.row.count - 1], 1);
            } else {
                char message[300];
                snprintf(
                    message, sizeof message,
                    "question 'q': only %u of its 2 option markers fit in max_len=%u with head_max_len=32 spent on "
                    "the question; lower head_max_len, raise max_len, or use fewer options",
                    sweep[i][2], sweep[i][0]);
                assert_int_equal(status, LAYA_ERROR_INPUT);
                assert_string_equal(b.error.message, message);
            }
            laya_arena_close(&b.arena);
        }
    }
}

static void many_options(building *b, uint32_t count)
{
    begin(b, 512, 192);
    set_state(b, "I was billed twice for March, please refund me.");
    b->query.head = span_of("choice question: Which of these many labels is the right one for it?");
    b->query.count = count;
    for (uint32_t at = 0; at < count; at++) {
        char text[32];
        int size = snprintf(text, sizeof text, "label number %u", at);
        b->options[at] = (laya_span){laya_arena_copy(&b->arena, text, (size_t)size), (size_t)size};
    }
}

/* F2, F27: the head's budget grows, no option is dropped, the cut is visible. F3: 126 of 255 markers fit. */
static void more_options_than_the_budget(void **state)
{
    (void)state;
    building b;
    many_options(&b, 77);
    assert_int_equal(build(&b, false), LAYA_OK);
    assert_int_equal(b.row.count, 331);
    assert_int_equal(b.row.tokens_per_option, 4);
    assert_int_equal(b.row.distinct, 1); /* "[MASK] label number" and the first piece of the numeral */
    assert_int_equal(b.row.markers[0], 10);
    assert_int_equal(b.row.markers[76], 314);
    laya_arena_close(&b.arena);

    many_options(&b, 80);
    assert_int_equal(build(&b, false), LAYA_OK);
    assert_int_equal(b.row.count, 343);
    assert_int_equal(b.row.markers[79], 326);
    assert_int_equal(b.row.dropped, 0);
    laya_arena_close(&b.arena);

    many_options(&b, 255);
    assert_int_equal(build(&b, false), LAYA_ERROR_INPUT);
    assert_string_equal(
        b.error.message,
        "question 'q': only 126 of its 255 option markers fit in max_len=512 with head_max_len=192 spent "
        "on the question; lower head_max_len, raise max_len, or use fewer options");
    laya_arena_close(&b.arena);
}

/* Only the mask's text is replaced, by one space each, and what then stands side by side is not read again. */
static void masks_become_spaces(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"<mask>", " "},
        {"<mask><mask>", "  "},
        {"a<mask>b", "a b"},
        {"<mask", "<mask"},
        {"<ma<mask>sk>", "<ma sk>"},
        {"<<mask>mask>", "< mask>"},
        {"<MASK> [MASK]", "<MASK> [MASK]"},
        {"<pad><mask><eos>", "<pad> <eos>"},
        {"x<mask>", "x "},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        building b;
        begin(&b, 64, 64);
        set_state(&b, pairs[i][0]);
        uint32_t *ids;
        size_t count;
        assert_int_equal(laya_tokenizer_encode(demo->tokenizer, pairs[i][1], strlen(pairs[i][1]), &ids, &count, NULL),
                         LAYA_OK);
        assert_int_equal(b.state.count, count);
        assert_memory_equal(b.state.ids, ids, count * sizeof *ids);
        for (size_t at = 0; at < count; at++) assert_int_not_equal(ids[at], 4);
        laya_tokenizer_release(demo->tokenizer, ids);
        laya_arena_close(&b.arena);
    }
}

static void bad_text_is_refused(void **state)
{
    (void)state;
    building b;
    begin(&b, 64, 64);
    assert_int_equal(laya_prompt_tokens(&b.prompt, (laya_span){"ab\xff", 3}, &b.state, &b.error), LAYA_ERROR_INPUT);
    assert_contains(b.error.message, "2");
    assert_int_equal(laya_prompt_tokens(&b.prompt, (laya_span){NULL, 0}, &b.state, &b.error), LAYA_OK);
    assert_int_equal(b.state.count, 0);
    laya_arena_close(&b.arena);
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    static const uint32_t long_state[100000]; /* a row of more than one chunk of the arena */
    size_t failures = 0;
    for (size_t fail_at = 1;; fail_at++) {
        test_memory memory;
        building b;
        test_memory_init(&memory);
        many_options(&b, 12);
        laya_arena arena;
        laya_arena_init(&arena, &memory.hooks);
        b.prompt.arena = &arena;
        b.prompt.max_len = 200000;
        b.state = (laya_tokens){long_state, sizeof long_state / sizeof *long_state};
        test_memory_arm(&memory, fail_at);
        laya_status status = build(&b, false);
        if (memory.failed) {
            assert_int_equal(status, LAYA_ERROR_MEMORY);
            failures++;
        } else {
            assert_int_equal(status, LAYA_OK);
        }
        laya_arena_close(&arena);
        laya_arena_close(&b.arena);
        assert_int_equal(memory.live, 0);
        if (!memory.failed) break;
    }
    assert_true(failures >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_as_upstream_builds_them), cmocka_unit_test(every_max_len),
        cmocka_unit_test(more_options_than_the_budget), cmocka_unit_test(masks_become_spaces),
        cmocka_unit_test(bad_text_is_refused),          cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, open_demo, close_demo);
}
