/* SPDX-License-Identifier: Apache-2.0 */
/* The report of layac palettize --screen as tables: our figures beside the study's, plain beside weighted. */
#include "base/json.h"
#include "layac.h"

#include <stdio.h>
#include <string.h>

#define CELL 32 /* bytes of a number as text */
#define NAME_WIDTH 18u
#define NOTE_WIDTH 110u

typedef enum notation { PROBABILITY, RATIO, ERROR, WHOLE } notation;

static void put_number(int width, laya_json_value object, const char *name, notation as)
{
    static const char *const formats[] = {
        [PROBABILITY] = "%.6f", [RATIO] = "%.2f", [ERROR] = "%.2e", [WHOLE] = "%.0f"};
    char cell[CELL] = "-";
    double number;
    laya_json_value value = laya_json_get(object, name);
    if (laya_json_to_double(value, &number)) snprintf(cell, sizeof cell, formats[as], number);
    printf(" %*s", width, cell);
}

static uint32_t count_of(laya_json_value object, const char *name)
{
    uint32_t count = 0;
    laya_json_to_uint32(laya_json_get(object, name), &count);
    return count;
}

static bool is_true(laya_json_value object, const char *name)
{
    laya_json_value value = laya_json_get(object, name);
    return laya_json_present(value) && laya_json_typeof(value) == LAYA_JSON_TRUE;
}

static const char *verdict(laya_json_value object)
{
    if (!laya_json_present(object)) return "-";
    return is_true(object, "passed") ? "pass" : "FAIL";
}

static void put_text(laya_json_value value, size_t width)
{
    size_t size = 0;
    const char *text = laya_json_text(value, &size);
    layac_print_text(stdout, text ? text : "", size, width);
}

/* A text in lines that begin with two spaces. */
static void put_note(laya_json_value value)
{
    size_t size = 0, column = 0;
    const char *text = laya_json_text(value, &size);
    for (size_t at = 0; text && at < size;) {
        const char *space = memchr(text + at, ' ', size - at);
        size_t word = space ? (size_t)(space - text) - at : size - at;
        if (column == 0 || column + 1 + word > NOTE_WIDTH) {
            fputs(column ? "\n  " : "  ", stdout);
            column = 2;
        } else {
            putchar(' ');
            column++;
        }
        layac_print_text(stdout, text + at, word, 0);
        column += word;
        at += word + 1;
    }
    putchar('\n');
}

/* ------------------------------------------------------------------ the study's table */

/* Columns of a gate: "probability action argmax action-logit gate". */
static void put_gate(laya_json_value gate)
{
    char changes[CELL] = "-";
    if (laya_json_present(gate))
        snprintf(changes, sizeof changes, "%u/%u", count_of(gate, "argmax_changes"), count_of(gate, "evaluated"));
    put_number(11, gate, "probability_error", PROBABILITY);
    put_number(9, gate, "action_probability_error", PROBABILITY);
    printf(" %7s", changes);
    put_number(12, gate, "action_logit_error", PROBABILITY);
    printf("  %-4s", verdict(gate));
}

/* Which gates failed, at the end of a line. */
static void put_failed(laya_json_value gate)
{
    laya_json_iterator it = laya_json_first(laya_json_get(gate, "failed"));
    for (bool first = true; laya_json_present(it.value); laya_json_next(&it), first = false) {
        fputs(first ? "  fails: " : ", ", stdout);
        put_text(it.value, 0);
    }
    putchar('\n');
}

static void put_study(laya_json_value study)
{
    fputs(" |", stdout);
    put_number(11, study, "probability_error", PROBABILITY);
    put_number(12, study, "action_logit_error", RATIO);
    printf("  %-4s", verdict(study));
    put_number(8, study, "seconds", RATIO);
}

static void put_variant(laya_json_value variant, laya_json_value study)
{
    laya_json_value bytes = laya_json_get(variant, "package_bytes"), gate = laya_json_get(variant, "gate");
    put_text(laya_json_get(variant, "name"), NAME_WIDTH);
    if (!laya_json_equals(laya_json_get(variant, "status"), "made")) {
        fputs(" NOT MADE: ", stdout);
        put_text(laya_json_get(variant, "reason"), 0);
        putchar('\n');
        return;
    }
    put_number(10, bytes, "after", WHOLE);
    put_number(5, bytes, "ratio", RATIO);
    put_number(9, variant, "relative_error", ERROR);
    put_gate(gate);
    put_number(8, variant, "seconds", RATIO);
    put_study(study);
    put_failed(gate);
}

static void put_parent(laya_json_value gate)
{
    layac_print_text(stdout, "parent", strlen("parent"), NAME_WIDTH);
    printf(" %10s %5s %9s", "", "", "");
    put_gate(gate);
    printf(" %8s |", "");
    put_failed(gate);
}

static void put_variants(laya_json_value report)
{
    laya_json_value study = laya_json_get(report, "study");
    printf("%-*s %86s | the study\n", (int)NAME_WIDTH, "", "");
    printf("%-*s %10s %5s %9s %11s %9s %7s %12s  %-4s %8s | %10s %12s  %-4s %8s\n", (int)NAME_WIDTH, "variant",
           "bytes", "ratio", "weights", "probability", "action", "argmax", "action logit", "gate", "seconds",
           "probability", "action logit", "gate", "seconds");
    put_parent(laya_json_get(laya_json_get(report, "parent"), "gate"));
    laya_json_iterator it = laya_json_first(laya_json_get(report, "variants"));
    for (; laya_json_present(it.value); laya_json_next(&it)) {
        size_t size;
        char name[CELL] = "";
        const char *text = laya_json_text(laya_json_get(it.value, "name"), &size);
        if (text && size < sizeof name) memcpy(name, text, size);
        put_variant(it.value, laya_json_get(study, name));
    }
}

/* ------------------------------------------------------------------ plain beside weighted */

/* The variant of a name that was made; absent: there is none. */
static laya_json_value find(laya_json_value report, const char *name)
{
    laya_json_iterator it = laya_json_first(laya_json_get(report, "variants"));
    while (laya_json_present(it.value) && !laya_json_equals(laya_json_get(it.value, "name"), name))
        laya_json_next(&it);
    return it.value;
}

static void put_pairs(laya_json_value report)
{
    static const char *const names[][3] = {{"W8", "w8-kmeans-g32", "w8-weighted-g32"},
                                           {"W6", "w6-kmeans-g32", "w6-weighted-g32"},
                                           {"W4", "w4-kmeans-g32", "w4-weighted-g32"}};
    printf("\nk-means in groups of 32, plain and weighted by activation energy\n"
           "%-4s %23s %29s %14s %22s\n"
           "%-4s %11s %11s  %14s %14s  %5s %8s %10s %11s\n",
           "", "probability", "action logit", "gate", "error of weights", "", "plain", "weighted", "plain",
           "weighted", "plain", "weighted", "plain", "weighted");
    for (size_t at = 0; at < sizeof names / sizeof *names; at++) {
        laya_json_value variants[2] = {find(report, names[at][1]), find(report, names[at][2])}, gates[2];
        for (size_t i = 0; i < 2; i++) gates[i] = laya_json_get(variants[i], "gate");
        printf("%-4s", names[at][0]);
        for (size_t i = 0; i < 2; i++) put_number(11, gates[i], "probability_error", PROBABILITY);
        putchar(' ');
        for (size_t i = 0; i < 2; i++) put_number(14, gates[i], "action_logit_error", PROBABILITY);
        printf("  %5s %8s", verdict(gates[0]), verdict(gates[1]));
        for (size_t i = 0; i < 2; i++) put_number(i ? 11 : 10, variants[i], "relative_error", ERROR);
        putchar('\n');
    }
}

/* ------------------------------------------------------------------ the whole */

static void put_title(laya_json_value report)
{
    laya_json_value gate = laya_json_get(laya_json_get(report, "parent"), "gate");
    fputs("Palettes of ", stdout);
    put_text(laya_json_get(laya_json_get(report, "package"), "directory"), 0);
    fputs(", ", stdout);
    put_text(laya_json_get(report, "class"), 0);
    fputs(" (", stdout);
    put_text(laya_json_get(report, "executor"), 0);
    printf(");\n%u questions, %u more fit no package of this length; reference: ", count_of(gate, "evaluated"),
           count_of(gate, "unvalidated"));
    put_text(laya_json_get(laya_json_get(report, "reference"), "class"), 0);
    printf("; %u call(s) a case; seconds of palettizing with %u worker(s)\n\n", count_of(report, "repeats"),
           count_of(report, "workers"));
}

int layac_print_screen(const char *report, size_t size)
{
    laya_json doc;
    laya_error error;
    if (laya_json_parse(&doc, report, size, NULL, &error) != LAYA_OK) return layac_fail_library(&error);
    laya_json_value root = laya_json_root(&doc);
    put_title(root);
    put_variants(root);
    put_pairs(root);
    putchar('\n');
    puts("  bytes, ratio: of all files of the package. weights: squared error of the weights, relative to their "
         "squares.");
    puts("  probability, action, action logit: largest errors. argmax: decisions that differ. A pass is a regression "
         "test");
    puts("  on this fixture, no estimate of accuracy.");
    put_note(laya_json_get(root, "study_note"));
    laya_json_close(&doc);
    return EXIT_OK;
}
