/* SPDX-License-Identifier: Apache-2.0 */
/* A result as a table for people. */
#include "base/json.h"
#include "base/utf8.h"
#include "layac.h"

#include <stdio.h>
#include <string.h>

#define BAR_WIDTH 32
#define LABEL_WIDTH 44 /* longer labels are cut in the table, never in the JSON */

void layac_print_text(FILE *to, const char *text, size_t size, size_t width)
{
    size_t shown = 0;
    for (size_t at = 0; at < size;) {
        size_t start = at;
        uint32_t code = laya_utf8_next(text, &at);
        if (width && shown + 1 == width && at < size) {
            fputs("\xE2\x80\xA6", to); /* … */
            shown++;
            break;
        }
        if (code < 0x20 || (code >= 0x7F && code < 0xA0))
            fputc(' ', to);
        else
            fwrite(text + start, 1, at - start, to);
        shown++;
    }
    for (; shown < width; shown++) fputc(' ', to);
}

static size_t length(laya_json_value value)
{
    size_t size, characters = 0;
    const char *text = laya_json_text(value, &size);
    for (size_t at = 0; at < size; characters++) laya_utf8_next(text, &at);
    return characters;
}

static double number(laya_json_value object, const char *key)
{
    double value = 0;
    laya_json_to_double(laya_json_get(object, key), &value);
    return value;
}

static void print_value(laya_json_value value, size_t width)
{
    size_t size;
    const char *text = laya_json_text(value, &size);
    layac_print_text(stdout, text, size, width);
}

static void print_bar(double probability)
{
    int filled = (int)(probability * BAR_WIDTH + 0.5);
    for (int at = 0; at < filled; at++) fputs(at ? "#" : "  #", stdout);
    putchar('\n');
}

/* One line an option: label or level with its text, probability, bar. */
static void print_options(laya_json_value answer)
{
    laya_json_value probabilities = laya_json_get(answer, "probabilities"), legend = laya_json_get(answer, "legend");
    size_t width = 0;
    bool levels = laya_json_present(legend);
    laya_json_iterator it;
    for (it = laya_json_first(levels ? legend : probabilities); laya_json_present(it.value); laya_json_next(&it)) {
        size_t size = levels ? length(it.key) + 2 + length(it.value) : length(it.key);
        if (size > width) width = size;
    }
    if (width > LABEL_WIDTH) width = LABEL_WIDTH;
    laya_json_iterator text = laya_json_first(legend);
    for (it = laya_json_first(probabilities); laya_json_present(it.value); laya_json_next(&it)) {
        double probability = 0;
        laya_json_to_double(it.value, &probability);
        fputs("    ", stdout);
        if (levels) {
            size_t used = length(it.key) + 2;
            print_value(it.key, 0);
            fputs("  ", stdout);
            print_value(text.value, width > used ? width - used : 1);
            laya_json_next(&text);
        } else {
            print_value(it.key, width);
        }
        printf("  %.4f", probability);
        print_bar(probability);
    }
}

static void print_answer(laya_json_value id, laya_json_value answer)
{
    laya_json_value type = laya_json_get(answer, "type");
    print_value(id, 0);
    fputs(" (", stdout);
    print_value(type, 0);
    fputs("): ", stdout);
    if (laya_json_equals(type, "choice")) {
        print_value(laya_json_get(answer, "choice"), 0);
    } else if (laya_json_equals(type, "score")) {
        size_t levels = laya_json_size(laya_json_get(answer, "probabilities"));
        printf("%.4f on a scale from 0 to %zu", number(answer, "score"), levels - 1);
    } else {
        double truth = number(answer, "noul");
        printf("%s, probability of true %.4f", truth >= 0.5 ? "true" : "false", truth);
    }
    printf("   [confidence %.4f, act %.4f]", number(answer, "confidence"),
           number(laya_json_get(answer, "action"), "act_probability"));
    if (laya_json_equals(laya_json_get(answer, "abstention"), "abstained")) fputs("  ABSTAINED", stdout);
    putchar('\n');
    print_options(answer);
}

int layac_print_table(const char *result, size_t size)
{
    laya_json doc;
    laya_error error;
    if (laya_json_parse(&doc, result, size, NULL, &error) != LAYA_OK) return layac_fail_library(&error);
    laya_json_value root = laya_json_root(&doc), usage = laya_json_get(root, "usage");
    laya_json_iterator it = laya_json_first(laya_json_get(root, "answers"));
    for (; laya_json_present(it.value); laya_json_next(&it)) {
        print_answer(it.key, it.value);
        putchar('\n');
    }
    printf("%.0f tokens read", number(usage, "input_tokens"));
    laya_json_value truncated = laya_json_get(usage, "truncated_questions");
    if (laya_json_size(truncated)) printf("; the state was cut for %zu question(s)", laya_json_size(truncated));
    putchar('\n');
    laya_json_close(&doc);
    return EXIT_OK;
}
