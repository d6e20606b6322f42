/* SPDX-License-Identifier: Apache-2.0 */
/* Questions: every error with its text, and every rule that turns a question into the texts of the prompt. */
#include "support.h"

#include "base/error.h"
#include "text/question.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A question read from JSON text; the arena is poisoned, and every block must come back. */
typedef struct reading {
    test_memory memory;
    laya_arena arena;
    laya_json doc;
    laya_query query;
    laya_error error;
    laya_status status;
} reading;

static void read_json(reading *r, const char *questions)
{
    test_memory_init(&r->memory);
    laya_arena_init(&r->arena, &r->memory.hooks);
    r->arena.poison = true;
    laya_error_clear(&r->error);
    if (laya_json_parse(&r->doc, questions, strlen(questions), &r->memory.hooks, &r->error) != LAYA_OK)
        fail_msg("%s: %s", questions, r->error.message);
    laya_json_iterator it = laya_json_first(laya_json_root(&r->doc));
    r->status = laya_query_from_json(&r->query, it.key, it.value, &r->arena, &r->error);
}

static void end(reading *r)
{
    laya_json_close(&r->doc);
    laya_arena_close(&r->arena);
    assert_int_equal(r->memory.live, 0);
}

static void read_struct(reading *r, const laya_question *question)
{
    test_memory_init(&r->memory);
    laya_arena_init(&r->arena, &r->memory.hooks);
    r->arena.poison = true;
    r->doc = (laya_json){0};
    laya_error_clear(&r->error);
    r->status = laya_query_from_struct(&r->query, question, &r->arena, &r->error);
}

static void assert_span(laya_span span, const char *expected)
{
    char text[2048];
    assert_true(span.size < sizeof text);
    memcpy(text, span.text, span.size);
    text[span.size] = '\0';
    assert_string_equal(text, expected);
    assert_int_equal(span.size, strlen(expected));
}

static void assert_read(const reading *r)
{
    if (r->status != LAYA_OK) fail_msg("%s", r->error.message);
}

/* ------------------------------------------------------------------ errors, JSON */

#define REPEATS "; the labels are the answer keys, so every option needs its own (1, 1.0 and True are one key)"
#define SCALAR                                                                                                       \
    "; a label is rendered as option text and used as the answer key, so it must be a scalar (a string, number or "  \
    "bool), got "
#define NOUL_LABELS "question 'q': noul labels must map exactly 'false' and 'true' to distinct non-empty strings"
#define ORDER(n)                                                                                                     \
    "question 'q': 'option_order' must be a permutation of range(" #n                                                \
    ") -- one slot per option, each option once -- got "

static void every_error_of_json(void **state)
{
    (void)state;
    static const struct {
        const char *question, *message;
    } cases[] = {
        {"{\"q\": 3}", "question 'q': definition must be a dict, got int"},
        {"{\"q\": null}", "question 'q': definition must be a dict, got NoneType"},
        {"{\"q\": []}", "question 'q': definition must be a dict, got list"},
        {"{\"q\": \"x\"}", "question 'q': definition must be a dict, got str"},
        {"{\"q\": true}", "question 'q': definition must be a dict, got bool"},
        {"{\"q\": 0.5}", "question 'q': definition must be a dict, got float"},
        {"{\"q\": {}}", "question 'q': unknown type None; use one of ['choice', 'noul', 'score']"},
        {"{\"q\": {\"type\": null}}", "question 'q': unknown type None; use one of ['choice', 'noul', 'score']"},
        {"{\"q\": {\"type\": \"Choice\"}}",
         "question 'q': unknown type 'Choice'; use one of ['choice', 'noul', 'score']"},
        {"{\"q\": {\"type\": [1, \"it's\"]}}",
         "question 'q': unknown type [1, \"it's\"]; use one of ['choice', 'noul', 'score']"},
        {"{\"q\": {\"type\": \"noul\"}}", "question 'q': no 'instructions'; add the text the model should answer"},
        {"{\"q\": {\"type\": \"noul\", \"instructions\": null}}",
         "question 'q': no 'instructions'; add the text the model should answer"},
        {"{\"q\": {\"type\": \"noul\", \"instructions\": 1}}",
         "question 'q': 'instructions' must be a string, dict, or list, got int"},
        {"{\"q\": {\"type\": \"noul\", \"instructions\": false}}",
         "question 'q': 'instructions' must be a string, dict, or list, got bool"},
        {"{\"q\": {\"type\": \"noul\", \"instructions\": 1.5}}",
         "question 'q': 'instructions' must be a string, dict, or list, got float"},
        /* choice */
        {"{\"q\": {\"type\": \"choice\", \"instructions\": \"i\"}}",
         "question 'q': a choice question takes 'criteria' as a dict of label -> description, or a list of labels"},
        {"{\"q\": {\"type\": \"choice\", \"instructions\": \"i\", \"criteria\": \"a\"}}",
         "question 'q': a choice question takes 'criteria' as a dict of label -> description, or a list of labels"},
        {"{\"q\": {\"type\": \"choice\", \"instructions\": \"i\", \"criteria\": {}}}",
         "question 'q': a choice question needs at least one criterion"},
        {"{\"q\": {\"type\": \"choice\", \"instructions\": \"i\", \"criteria\": []}}",
         "question 'q': a choice question needs at least one criterion"},
        {"{\"q\": {\"type\": \"choice\", \"instructions\": \"i\", \"criteria\": [\"a\", [1, 2]]}}",
         "question 'q': choice label 1 is a list" SCALAR "[1, 2]"},
        {"{\"q\": {\"type\": \"choice\", \"instructions\": \"i\", \"criteria\": [{\"a\": null}]}}",
         "question 'q': choice label 0 is a dict" SCALAR "{'a': None}"},
        {"{\"q\": {\"type\": \"choice\", \"instructions\": \"i\", \"criteria\": [\"a\", null]}}",
         "question 'q': choice label 1 is null; give every option a label"},
        {"{\"q\": {\"type\": \"choice\", \"instructions\": \"i\", \"criteria\": [\"a\", \"b\", \"a\"]}}",
         "question 'q': choice label 2 ('a') repeats label 0" REPEATS},
        {"{\"q\": {\"type\": \"choice\", \"instructions\": \"i\", \"criteria\": [\"b\", 1, 1.0]}}",
         "question 'q': choice label 2 (1.0) repeats label 1" REPEATS},
        {"{\"q\": {\"type\": \"choice\", \"instructions\": \"i\", \"criteria\": [1, \"b\", true]}}",
         "question 'q': choice label 2 (True) repeats label 0" REPEATS},
        {"{\"q\": {\"type\": \"choice\", \"instructions\": \"i\", \"criteria\": [0, false]}}",
         "question 'q': choice label 1 (False) repeats label 0" REPEATS},
        {"{\"q\": {\"type\": \"choice\", \"instructions\": \"i\", \"criteria\": [0, -0.0]}}",
         "question 'q': choice label 1 (-0.0) repeats label 0" REPEATS},
        {"{\"q\": {\"type\": \"choice\", \"instructions\": \"i\", \"criteria\": [1, \"1\"]}}",
         "question 'q': choice label 1 ('1') repeats label 0" REPEATS},
        {"{\"q\": {\"type\": \"choice\", \"instructions\": \"i\", \"criteria\": [\"c\", \"b\", \"c\", \"b\", "
         "\"a\"]}}",
         "question 'q': choice label 2 ('c') repeats label 0" REPEATS},
        /* score */
        {"{\"q\": {\"type\": \"score\", \"instructions\": \"i\"}}",
         "question 'q': a score question takes 'criteria' as a list of level descriptions, index 0 first"},
        {"{\"q\": {\"type\": \"score\", \"instructions\": \"i\", \"criteria\": {\"0\": \"a\"}}}",
         "question 'q': a score question takes 'criteria' as a list of level descriptions, index 0 first"},
        {"{\"q\": {\"type\": \"score\", \"instructions\": \"i\", \"criteria\": []}}",
         "question 'q': a score question needs at least one level"},
        {"{\"q\": {\"type\": \"score\", \"instructions\": \"i\", \"criteria\": [\"a\", null]}}",
         "question 'q': score level 1 is null; give every level a description, index 0 first"},
        /* noul */
        {"{\"q\": {\"type\": \"noul\", \"instructions\": \"i\", \"criteria\": [\"a\"]}}",
         "question 'q': a noul question takes 'criteria' as a dict with optional 'true'/'false' descriptions, or "
         "omits "
         "it"},
        {"{\"q\": {\"type\": \"noul\", \"instructions\": \"i\", \"criteria\": \"a\"}}",
         "question 'q': a noul question takes 'criteria' as a dict with optional 'true'/'false' descriptions, or "
         "omits "
         "it"},
        {"{\"q\": {\"type\": \"noul\", \"instructions\": \"i\", \"labels\": \"yes\"}}", NOUL_LABELS},
        {"{\"q\": {\"type\": \"noul\", \"instructions\": \"i\", \"labels\": {}}}", NOUL_LABELS},
        {"{\"q\": {\"type\": \"noul\", \"instructions\": \"i\", \"labels\": {\"true\": \"a\"}}}", NOUL_LABELS},
        {"{\"q\": {\"type\": \"noul\", \"instructions\": \"i\", \"labels\": {\"true\": \"a\", \"false\": 1}}}",
         NOUL_LABELS},
        {"{\"q\": {\"type\": \"noul\", \"instructions\": \"i\", \"labels\": {\"true\": \"a\", \"false\": \" "
         "\\t\\u001c\\u3000\"}}}",
         NOUL_LABELS},
        {"{\"q\": {\"type\": \"noul\", \"instructions\": \"i\", \"labels\": {\"true\": \"a\", \"false\": \" a \"}}}",
         NOUL_LABELS},
        {"{\"q\": {\"type\": \"noul\", \"instructions\": \"i\", \"labels\": {\"true\": \"a\", \"False\": \"b\"}}}",
         NOUL_LABELS},
        {"{\"q\": {\"type\": \"noul\", \"instructions\": \"i\", \"labels\": {\"true\": \"a\", \"false\": \"b\", "
         "\"x\": \"c\"}}}",
         NOUL_LABELS},
        {"{\"q\": {\"type\": \"choice\", \"instructions\": \"i\", \"criteria\": [\"a\"], \"labels\": {}}}",
         "question 'q': 'labels' is only supported for noul questions"},
        {"{\"q\": {\"type\": \"score\", \"instructions\": \"i\", \"criteria\": [\"a\"], \"labels\": []}}",
         "question 'q': 'labels' is only supported for noul questions"},
        /* option_order */
        {"{\"q\": {\"type\": \"score\", \"instructions\": \"i\", \"criteria\": [\"a\", \"b\"], \"option_order\": 1}}",
         ORDER(2) "1"},
        {"{\"q\": {\"type\": \"score\", \"instructions\": \"i\", \"criteria\": [\"a\", \"b\"], \"option_order\": "
         "[0]}}",
         ORDER(2) "[0]"},
        {"{\"q\": {\"type\": \"score\", \"instructions\": \"i\", \"criteria\": [\"a\", \"b\"], \"option_order\": [0, "
         "0]}}",
         ORDER(2) "[0, 0]"},
        {"{\"q\": {\"type\": \"score\", \"instructions\": \"i\", \"criteria\": [\"a\", \"b\"], \"option_order\": [1, "
         "2]}}",
         ORDER(2) "[1, 2]"},
        {"{\"q\": {\"type\": \"score\", \"instructions\": \"i\", \"criteria\": [\"a\", \"b\"], \"option_order\": "
         "[-1, 0]}}",
         ORDER(2) "[-1, 0]"},
        {"{\"q\": {\"type\": \"noul\", \"instructions\": \"i\", \"option_order\": [0, 1.0]}}", ORDER(2) "[0, 1.0]"},
        {"{\"q\": {\"type\": \"noul\", \"instructions\": \"i\", \"option_order\": [\"0\", \"1\"]}}",
         ORDER(2) "['0', '1']"},
        /* names of questions are shown as repr shows them */
        {"{\"it's\": 1}", "question \"it's\": definition must be a dict, got int"},
        {"{\"\\u0000\\n\xc3\xa4\\\"'\": 1}", "question '\\x00\\n\xc3\xa4\"\\'': definition must be a dict, got int"},
        {"{\"\": 1}", "question '': definition must be a dict, got int"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        reading r;
        read_json(&r, cases[i].question);
        if (r.status == LAYA_OK) fail_msg("%s passes", cases[i].question);
        assert_int_equal(r.status, LAYA_ERROR_INPUT);
        assert_int_equal(r.error.status, LAYA_ERROR_INPUT);
        assert_string_equal(r.error.message, cases[i].message);
        end(&r);
    }
}

static void noul_keys(void **state)
{
    (void)state;
    reading r;
    read_json(&r, "{\"q\": {\"type\": \"noul\", \"instructions\": \"i\", \"criteria\": {\"true\": \"a\", \"yes\": "
                  "\"b\", \"1\": 2}}}");
    assert_int_equal(r.status, LAYA_ERROR_INPUT);
    assert_contains(r.error.message,
                    "question 'q': a noul question takes 'criteria' keyed only 'true'/'false' (either or both, and "
                    "omitted is fine), got ['true', 'yes', '1']. Those keys are the option texts");
    end(&r);
}

/* A very long id is cut in the message, at a character, and the reason stays. */
static void long_names(void **state)
{
    (void)state;
    char question[6000] = "{\"";
    for (int i = 0; i < 1000; i++) strcat(question, "\xe2\x82\xac");
    strcat(question, "\": 1}");
    reading r;
    read_json(&r, question);
    assert_int_equal(r.status, LAYA_ERROR_INPUT);
    assert_contains(r.error.message, "\xe2\x82\xac...': definition must be a dict, got int");
    assert_int_equal(r.query.id.size, 3000);
    end(&r);
}

/* ------------------------------------------------------------------ rendering, JSON */

static void check(const char *question, laya_question_type type, const char *head, uint32_t count,
                  const char *const *options)
{
    reading r;
    read_json(&r, question);
    assert_read(&r);
    assert_int_equal(r.query.type, type);
    assert_span(r.query.head, head);
    assert_int_equal(r.query.count, count);
    for (uint32_t i = 0; i < count; i++) assert_span(r.query.options[i], options[i]);
    end(&r);
}

static void choices(void **state)
{
    (void)state;
    /* insertion order; null and "" mean no description, 0 and false are real ones (F1) */
    check(
        "{\"q\": {\"type\": \"choice\", \"instructions\": \"Which?\", \"criteria\": {\"z\": \"last: first\", \"a\": "
        "null, "
        "\"b\": \"\", \"c\": 0, \"d\": false, \"e\": {\"x\": 1, \"\\u00e4\": [true, null]}, \"f\": [], \"g\": 2.50, "
        "\"h\": \" \"}}}",
        LAYA_CHOICE, "choice question: Which?", 9,
        (const char *const[]){"z: last: first", "a", "b", "c: 0", "d: false",
                              "e: {\"x\": 1, \"\xc3\xa4\": [true, null]}", "f: []", "g: 2.5", "h:  "});
    /* a list of labels: str() of numbers and bools; "1" and True are two keys and two texts */
    check("{\"q\": {\"type\": \"choice\", \"instructions\": \"\", \"criteria\": [\"a\", 2, 1.0, 1e21, false, \"\", "
          "\"True\", "
          "NaN]}}",
          LAYA_CHOICE, "choice question: ", 8,
          (const char *const[]){"a", "2", "1.0", "1e+21", "False", "", "True", "nan"});
    check("{\"q\": {\"type\": \"choice\", \"instructions\": \"i\", \"criteria\": [\"1\", true, \"0\", false]}}",
          LAYA_CHOICE, "choice question: i", 4, (const char *const[]){"1", "True", "0", "False"});
    /* one option is enough (F5) */
    check("{\"q\": {\"type\": \"choice\", \"instructions\": \"i\", \"criteria\": {\"only\": \"one\"}}}", LAYA_CHOICE,
          "choice question: i", 1, (const char *const[]){"only: one"});
    /* a repeated key: first place, last value (F88) */
    check("{\"q\": {\"type\": \"choice\", \"instructions\": \"i\", \"criteria\": {\"a\": \"1\", \"b\": \"2\", \"a\": "
          "\"3\"}}}",
          LAYA_CHOICE, "choice question: i", 2, (const char *const[]){"a: 3", "b: 2"});
}

static void labels_of_choices(void **state)
{
    (void)state;
    reading r;
    read_json(&r, "{\"\xf0\x9f\x91\x8d __proto__\": {\"type\": \"choice\", \"instructions\": \"i\", \"criteria\": "
                  "{\"a\": \"x\", "
                  "\"\": \"y\"}, \"unknown\": 1}}");
    assert_read(&r);
    assert_span(r.query.id, "\xf0\x9f\x91\x8d __proto__"); /* F89 */
    assert_span(r.query.labels[0], "a");
    assert_span(r.query.labels[1], "");
    assert_span(r.query.options[1], ": y");
    assert_null(r.query.legend);
    assert_null(r.query.order);
    end(&r);
    read_json(&r, "{\"q\": {\"type\": \"choice\", \"instructions\": \"i\", \"criteria\": [true, 1.5], "
                  "\"option_order\": [1, 0]}}");
    assert_read(&r);
    assert_span(r.query.labels[0], "True");
    assert_span(r.query.labels[1], "1.5");
    assert_int_equal(r.query.order[0], 1);
    assert_int_equal(r.query.order[1], 0);
    end(&r);
}

static void scores(void **state)
{
    (void)state;
    check("{\"q\": {\"type\": \"score\", \"instructions\": \"How?\", \"criteria\": [\"low\", \"\", 3, {\"k\": "
          "[1.0]}, false]}}",
          LAYA_SCORE, "score question: How?", 5,
          (const char *const[]){"level 0: low", "level 1: ", "level 2: 3", "level 3: {\"k\": [1.0]}",
                                "level 4: false"});
    reading r;
    read_json(&r, "{\"q\": {\"type\": \"score\", \"instructions\": \"i\", \"criteria\": [\"low\", 1e5]}}");
    assert_read(&r);
    assert_span(r.query.legend[0], "low"); /* strings, never the raw value (F91) */
    assert_span(r.query.legend[1], "100000.0");
    assert_null(r.query.labels);
    end(&r);
}

static void nouls(void **state)
{
    (void)state;
    static const char no[] = "false: no, the statement does not hold", yes[] = "true: yes, the statement holds";
    check("{\"q\": {\"type\": \"noul\", \"instructions\": \"i\"}}", LAYA_NOUL, "noul question: i", 2,
          (const char *const[]){no, yes});
    check("{\"q\": {\"type\": \"noul\", \"instructions\": \"i\", \"criteria\": null, \"labels\": null}}", LAYA_NOUL,
          "noul question: i", 2, (const char *const[]){no, yes});
    check("{\"q\": {\"type\": \"noul\", \"instructions\": \"i\", \"criteria\": {}}}", LAYA_NOUL, "noul question: i",
          2, (const char *const[]){no, yes});
    check("{\"q\": {\"type\": \"noul\", \"instructions\": \"i\", \"criteria\": {\"true\": \"T\", \"false\": \"\"}}}",
          LAYA_NOUL, "noul question: i", 2, (const char *const[]){no, "true: T"});
    check("{\"q\": {\"type\": \"noul\", \"instructions\": \"i\", \"criteria\": {\"TRUE\": 1, \"False\": {\"a\": "
          "\"b\"}}}}",
          LAYA_NOUL, "noul question: i", 2, (const char *const[]){"false: {\"a\": \"b\"}", "true: 1"});
    /* labels change only the prompt, are trimmed, and keep the order false, true */
    check("{\"q\": {\"type\": \"noul\", \"instructions\": \"i\", \"criteria\": {\"true\": null, \"false\": false}, "
          "\"labels\": "
          "{\"true\": \" yes\\n\", \"false\": \"\\u00a0no way \"}}}",
          LAYA_NOUL, "noul question: i", 2, (const char *const[]){"no way: false", "yes: yes, the statement holds"});
}

static void instructions(void **state)
{
    (void)state;
    static const char *const options[] = {"a"};
    /* objects keep their order, non-ASCII stays (F26) */
    check("{\"q\": {\"type\": \"choice\", \"criteria\": [\"a\"], \"instructions\": {\"b\": 1, \"a\": [2.0, "
          "\"\xc3\xa4\"]}}}",
          LAYA_CHOICE, "choice question: {\"b\": 1, \"a\": [2.0, \"\xc3\xa4\"]}", 1, options);
    check("{\"q\": {\"type\": \"choice\", \"criteria\": [\"a\"], \"instructions\": []}}", LAYA_CHOICE,
          "choice question: []", 1, options);
    check("{\"q\": {\"type\": \"choice\", \"criteria\": [\"a\"], \"instructions\": \" <mask>[SEP]\\n \"}}",
          LAYA_CHOICE, "choice question:  <mask>[SEP]\n ", 1, options);
    reading r;
    read_json(&r, "{\"q\": {\"type\": \"noul\", \"instructions\": \"a\\u0000b\"}}"); /* F88 */
    assert_read(&r);
    assert_int_equal(r.query.head.size, strlen("noul question: ") + 3);
    assert_memory_equal(r.query.head.text, "noul question: a\0b", r.query.head.size);
    end(&r);
}

/* ------------------------------------------------------------------ structs */

static void structs_render_as_json_does(void **state)
{
    (void)state;
    static const char *const labels[] = {"a", "b", "c"}, *const descriptions[] = {"x", NULL, ""};
    static const char *const levels[] = {"low", ""}, *const names[] = {" no", "yes "},
                             *const texts[] = {NULL, "sure"};
    reading r;
    laya_question question = {.id = "id",
                              .type = LAYA_CHOICE,
                              .instructions = "Which?",
                              .count = 3,
                              .labels = labels,
                              .descriptions = descriptions};
    read_struct(&r, &question);
    assert_read(&r);
    assert_span(r.query.id, "id");
    assert_span(r.query.head, "choice question: Which?");
    assert_span(r.query.options[0], "a: x");
    assert_span(r.query.options[1], "b");
    assert_span(r.query.options[2], "c");
    assert_span(r.query.labels[2], "c");
    end(&r);
    question.descriptions = NULL;
    read_struct(&r, &question);
    assert_read(&r);
    assert_span(r.query.options[0], "a");
    end(&r);

    question = (laya_question){.id = "", .type = LAYA_SCORE, .instructions = "", .count = 2, .descriptions = levels};
    read_struct(&r, &question);
    assert_read(&r);
    assert_span(r.query.head, "score question: ");
    assert_span(r.query.options[0], "level 0: low");
    assert_span(r.query.options[1], "level 1: ");
    assert_span(r.query.legend[0], "low");
    end(&r);

    question = (laya_question){.id = "n", .type = LAYA_NOUL, .instructions = "i"};
    read_struct(&r, &question);
    assert_read(&r);
    assert_int_equal(r.query.count, 2);
    assert_span(r.query.options[0], "false: no, the statement does not hold");
    assert_span(r.query.options[1], "true: yes, the statement holds");
    end(&r);
    question.count = 2;
    question.labels = names;
    question.descriptions = texts;
    read_struct(&r, &question);
    assert_read(&r);
    assert_span(r.query.options[0], "no: no, the statement does not hold");
    assert_span(r.query.options[1], "yes: sure");
    end(&r);
}

static void errors_of_structs(void **state)
{
    (void)state;
    static const char *const ab[] = {"a", "b"}, *const aa[] = {"a", "a"}, *const hole[] = {"a", NULL};
    static const char *const bad[] = {"a", "\xff"}, *const blank[] = {"a", " "};
    static const struct {
        laya_question question;
        laya_status status;
        const char *message;
    } cases[] = {
        {{.type = LAYA_NOUL, .instructions = "i"}, LAYA_ERROR_ARGUMENT, "a question needs an id"},
        {{.id = "\xff", .type = LAYA_NOUL, .instructions = "i"}, LAYA_ERROR_INPUT, "not valid UTF-8"},
        {{.id = "q", .type = LAYA_NOUL},
         LAYA_ERROR_INPUT,
         "question 'q': no 'instructions'; add the text the model should answer"},
        {{.id = "q", .type = LAYA_NOUL, .instructions = "\xc0"},
         LAYA_ERROR_INPUT,
         "question 'q': the instructions text is not"},
        {{.id = "q", .type = (laya_question_type)7, .instructions = "i"},
         LAYA_ERROR_INPUT,
         "question 'q': unknown type"},
        {{.id = "q", .type = LAYA_CHOICE, .instructions = "i", .labels = ab},
         LAYA_ERROR_INPUT,
         "question 'q': a choice question needs at least one criterion"},
        {{.id = "q", .type = LAYA_CHOICE, .instructions = "i", .count = 2},
         LAYA_ERROR_INPUT,
         "question 'q': a choice question needs labels"},
        {{.id = "q", .type = LAYA_CHOICE, .instructions = "i", .count = 2, .labels = hole},
         LAYA_ERROR_INPUT,
         "question 'q': choice label 1 is null"},
        {{.id = "q", .type = LAYA_CHOICE, .instructions = "i", .count = 2, .labels = aa},
         LAYA_ERROR_INPUT,
         "question 'q': choice label 1 repeats label 0"},
        {{.id = "q", .type = LAYA_CHOICE, .instructions = "i", .count = 2, .labels = bad},
         LAYA_ERROR_INPUT,
         "not valid UTF-8"},
        {{.id = "q", .type = LAYA_CHOICE, .instructions = "i", .count = 2, .labels = ab, .descriptions = bad},
         LAYA_ERROR_INPUT,
         "not valid UTF-8"},
        {{.id = "q", .type = LAYA_CHOICE, .instructions = "i", .count = SIZE_MAX, .labels = ab},
         LAYA_ERROR_INPUT,
         "question 'q': too many options"},
        {{.id = "q", .type = LAYA_SCORE, .instructions = "i", .descriptions = ab},
         LAYA_ERROR_INPUT,
         "question 'q': a score question needs at least one level"},
        {{.id = "q", .type = LAYA_SCORE, .instructions = "i", .count = 2},
         LAYA_ERROR_INPUT,
         "question 'q': score level 0 is null; give every level a description, index 0 first"},
        {{.id = "q", .type = LAYA_SCORE, .instructions = "i", .count = 2, .descriptions = hole},
         LAYA_ERROR_INPUT,
         "question 'q': score level 1 is null"},
        {{.id = "q", .type = LAYA_SCORE, .instructions = "i", .count = 2, .descriptions = ab, .labels = ab},
         LAYA_ERROR_INPUT,
         "question 'q': 'labels' is only supported for noul questions"},
        {{.id = "q", .type = LAYA_SCORE, .instructions = "i", .count = 2, .descriptions = bad},
         LAYA_ERROR_INPUT,
         "not valid UTF-8"},
        {{.id = "q", .type = LAYA_NOUL, .instructions = "i", .count = 1},
         LAYA_ERROR_INPUT,
         "question 'q': a noul question has"},
        {{.id = "q", .type = LAYA_NOUL, .instructions = "i", .count = 3, .labels = ab},
         LAYA_ERROR_INPUT,
         "question 'q': a noul question has"},
        {{.id = "q", .type = LAYA_NOUL, .instructions = "i", .count = 2, .labels = aa},
         LAYA_ERROR_INPUT,
         NOUL_LABELS},
        {{.id = "q", .type = LAYA_NOUL, .instructions = "i", .count = 2, .labels = hole},
         LAYA_ERROR_INPUT,
         NOUL_LABELS},
        {{.id = "q", .type = LAYA_NOUL, .instructions = "i", .count = 2, .labels = blank},
         LAYA_ERROR_INPUT,
         NOUL_LABELS},
        {{.id = "q", .type = LAYA_NOUL, .instructions = "i", .count = 2, .labels = bad},
         LAYA_ERROR_INPUT,
         "not valid UTF-8"},
        {{.id = "q", .type = LAYA_NOUL, .instructions = "i", .count = 2, .descriptions = bad},
         LAYA_ERROR_INPUT,
         "not valid UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        reading r;
        read_struct(&r, &cases[i].question);
        assert_contains(r.error.message, cases[i].message);
        assert_int_equal(r.status, cases[i].status);
        end(&r);
    }
}

/* ------------------------------------------------------------------ memory */

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    static const char *const questions[] = {
        "{\"q\": {\"type\": \"choice\", \"instructions\": {\"a\": 1}, \"criteria\": {\"a\": [1], \"b\": null}}}",
        "{\"q\": {\"type\": \"choice\", \"instructions\": \"i\", \"criteria\": [1, true]}}",
        "{\"q\": {\"type\": \"score\", \"instructions\": \"i\", \"criteria\": [\"a\", 2], \"option_order\": [1, 0]}}",
        "{\"q\": {\"type\": \"noul\", \"instructions\": \"i\", \"criteria\": {\"true\": [1]}}}",
        "{\"q\": {\"type\": \"noul\", \"instructions\": \"i\", \"criteria\": {\"x\": 1}}}",
        "{\"q\": {\"type\": [1]}}",
    };
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++) {
        size_t failures = 0;
        for (size_t fail_at = 1;; fail_at++) {
            test_memory memory;
            laya_arena arena;
            laya_json doc;
            laya_query query;
            laya_error error;
            test_memory_init(&memory);
            assert_int_equal(laya_json_parse(&doc, questions[i], strlen(questions[i]), NULL, NULL), LAYA_OK);
            laya_json_iterator it = laya_json_first(laya_json_root(&doc));
            laya_arena_init(&arena, &memory.hooks);
            test_memory_arm(&memory, fail_at);
            laya_status status = laya_query_from_json(&query, it.key, it.value, &arena, &error);
            if (memory.failed) {
                assert_int_equal(status, LAYA_ERROR_MEMORY);
                assert_int_equal(error.status, LAYA_ERROR_MEMORY);
                failures++;
            }
            laya_arena_close(&arena);
            laya_json_close(&doc);
            assert_int_equal(memory.live, 0);
            if (!memory.failed) break;
        }
        assert_true(failures >= 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_of_json),
        cmocka_unit_test(noul_keys),
        cmocka_unit_test(long_names),
        cmocka_unit_test(choices),
        cmocka_unit_test(labels_of_choices),
        cmocka_unit_test(scores),
        cmocka_unit_test(nouls),
        cmocka_unit_test(instructions),
        cmocka_unit_test(structs_render_as_json_does),
        cmocka_unit_test(errors_of_structs),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
