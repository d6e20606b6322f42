/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/html.h"

#include "base/error.h"
#include "base/json.h"

#include <math.h>
#include <string.h>

/* The plot, in user units of the SVG. */
enum { PLOT_LEFT = 70, PLOT_TOP = 20, PLOT_WIDTH = 900, PLOT_HEIGHT = 300, PLOT_BOTTOM = 40, PLOT_RIGHT = 20 };
#define LEAST_DECADE (-9) /* 1e-9 and below, zero too, are drawn at the bottom */
#define LIMIT 0.02

static const char style[] =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1000px;margin:2em auto;padding:0 1em;color:#1a1a1a}\n"
    "table{border-collapse:collapse;margin:1em 0}th,td{padding:.2em .7em;border-bottom:1px solid "
    "#ddd;text-align:left}\n"
    "td.n{text-align:right;font-variant-numeric:tabular-nums}.ok{color:#11703c}.bad{color:#b3261e;font-weight:600}\n"
    ".none{color:#777}svg{max-width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:#555}\n"
    "code{font-size:.85em;overflow-wrap:anywhere}";

/* ------------------------------------------------------------------ texts */

/* Text between tags or in an attribute. Control characters, which XML does not allow, become spaces. */
static void put_text(laya_buffer *out, const char *text, size_t size)
{
    for (size_t at = 0; at < size; at++) {
        unsigned char byte = (unsigned char)text[at];
        switch (byte) {
        case '&': laya_buffer_puts(out, "&amp;"); break;
        case '<': laya_buffer_puts(out, "&lt;"); break;
        case '>': laya_buffer_puts(out, "&gt;"); break;
        case '"': laya_buffer_puts(out, "&quot;"); break;
        default: laya_buffer_putc(out, byte < 0x20 || byte == 0x7F ? ' ' : (char)byte);
        }
    }
}

/* A string as it is, another value as JSON, an absent one as a dash. */
static void put_value(laya_buffer *out, laya_json_value value)
{
    size_t size;
    laya_buffer text;
    if (laya_json_is_null(value)) {
        laya_buffer_puts(out, "-");
        return;
    }
    if (laya_json_typeof(value) == LAYA_JSON_STRING) {
        const char *string = laya_json_text(value, &size);
        put_text(out, string, size);
        return;
    }
    laya_buffer_init(&text, &out->allocator);
    laya_json_write_python(&text, value);
    if (text.failed)
        out->failed = true;
    else
        put_text(out, text.data, text.size);
    laya_buffer_close(&text);
}

static bool is_true(laya_json_value object, const char *name)
{
    laya_json_value value = laya_json_get(object, name);
    return laya_json_present(value) && laya_json_typeof(value) == LAYA_JSON_TRUE;
}

/* NaN: no number, which the report writes for one that is not finite. */
static double number_of(laya_json_value object, const char *name)
{
    double number;
    return laya_json_to_double(laya_json_get(object, name), &number) ? number : NAN;
}

/* A cell with a small number; `absent` where there is none. */
static void put_number(laya_buffer *out, double value, const char *absent)
{
    laya_buffer_puts(out, "<td class=\"n\">");
    if (isnan(value)) {
        laya_buffer_puts(out, absent);
    } else if (value == 0) {
        laya_buffer_puts(out, "0");
    } else {
        int exponent = (int)floor(log10(value));
        int digits = (int)(value / pow(10, exponent) * 100 + 0.5);
        if (digits >= 1000) { /* rounded up to the next decade */
            digits /= 10;
            exponent++;
        }
        laya_buffer_printf(out, "%d.%02de%d", digits / 100, digits % 100, exponent);
    }
    laya_buffer_puts(out, "</td>");
}

static void put_verdict(laya_buffer *out, bool passed)
{
    laya_buffer_puts(out, passed ? "<td class=\"ok\">passed</td>" : "<td class=\"bad\">failed</td>");
}

/* ------------------------------------------------------------------ head */

static void put_fact(laya_buffer *out, const char *name, laya_json_value value)
{
    laya_buffer_printf(out, "<tr><th>%s</th><td><code>", name);
    put_value(out, value);
    laya_buffer_puts(out, "</code></td></tr>\n");
}

static void put_facts(laya_buffer *out, laya_json_value root)
{
    laya_json_value package = laya_json_get(root, "package"), reference = laya_json_get(root, "reference");
    laya_buffer_puts(out, "<table>\n");
    put_fact(out, "class", laya_json_get(root, "class"));
    put_fact(out, "executor", laya_json_get(root, "executor"));
    put_fact(out, "package", laya_json_get(package, "directory"));
    put_fact(out, "package SHA-256", laya_json_get(package, "package_sha256"));
    put_fact(out, "source weights SHA-256", laya_json_get(package, "source_weights_sha256"));
    put_fact(out, "graph", laya_json_get(package, "graph"));
    put_fact(out, "length", laya_json_get(package, "length"));
    put_fact(out, "reference", laya_json_get(reference, "class"));
    put_fact(out, "repeats", laya_json_get(root, "repeats"));
    put_fact(out, "placement", laya_json_get(root, "placement"));
    put_fact(out, "timings", laya_json_get(root, "timings"));
    put_fact(out, "date", laya_json_get(root, "date"));
    laya_buffer_puts(out, "</table>\n");
}

static void put_gates(laya_buffer *out, laya_json_value gates)
{
    laya_buffer_puts(out, "<h2>Gates</h2>\n<table>\n<tr><th>gate</th><th>rule</th><th>limit</th><th>failures</th>"
                          "<th>verdict</th></tr>\n");
    for (laya_json_iterator it = laya_json_first(gates); laya_json_present(it.value); laya_json_next(&it)) {
        if (laya_json_typeof(it.value) != LAYA_JSON_OBJECT) continue;
        laya_buffer_puts(out, "<tr><th>");
        put_value(out, it.key);
        laya_buffer_puts(out, "</th><td>");
        put_value(out, laya_json_get(it.value, "rule"));
        laya_buffer_puts(out, "</td><td class=\"n\">");
        put_value(out, laya_json_get(it.value, "limit"));
        laya_buffer_puts(out, "</td><td class=\"n\">");
        put_value(out, laya_json_get(it.value, "failures"));
        laya_buffer_puts(out, "</td>");
        put_verdict(out, is_true(it.value, "passed"));
        laya_buffer_puts(out, "</tr>\n");
    }
    laya_buffer_puts(out, "</table>\n");
}

/* ------------------------------------------------------------------ plot */

static int height_of(double error)
{
    double decade = error > 0 ? log10(error) : LEAST_DECADE;
    if (isnan(error) || decade > 0) decade = 0;
    if (decade < LEAST_DECADE) decade = LEAST_DECADE;
    return PLOT_TOP + (int)(decade / LEAST_DECADE * PLOT_HEIGHT + 0.5);
}

static void put_axes(laya_buffer *out)
{
    const int right = PLOT_LEFT + PLOT_WIDTH, bottom = PLOT_TOP + PLOT_HEIGHT;
    laya_buffer_printf(out,
                       "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" "
                       "aria-label=\"Errors of every question on a logarithmic scale\">\n",
                       right + PLOT_RIGHT, bottom + PLOT_BOTTOM);
    for (int decade = 0; decade >= LEAST_DECADE; decade--) {
        int y = PLOT_TOP + decade * PLOT_HEIGHT / LEAST_DECADE;
        laya_buffer_printf(out,
                           "<path d=\"M%d %dH%d\" stroke=\"#e4e4e4\"/><text x=\"%d\" y=\"%d\" "
                           "text-anchor=\"end\">1e%d</text>\n",
                           PLOT_LEFT, y, right, PLOT_LEFT - 8, y + 4, decade);
    }
    laya_buffer_printf(out,
                       "<path d=\"M%d %dH%d\" stroke=\"#b3261e\" stroke-dasharray=\"5 4\"/><text x=\"%d\" y=\"%d\" "
                       "text-anchor=\"end\">limit 0.02</text>\n",
                       PLOT_LEFT, height_of(LIMIT), right, right, height_of(LIMIT) - 5);
}

static void put_marks(laya_buffer *out, laya_json_value name, laya_json_value answer, double x)
{
    int left = (int)x, probability = height_of(number_of(answer, "probability_error"));
    int action = height_of(number_of(answer, "action_probability_error"));
    laya_buffer_printf(out, "<g fill=\"%s\"><title>", is_true(answer, "passed") ? "#2457a6" : "#b3261e");
    put_value(out, name);
    laya_buffer_puts(out, " / ");
    put_value(out, laya_json_get(answer, "id"));
    laya_buffer_printf(out, "</title><circle cx=\"%d\" cy=\"%d\" r=\"4\"/>", left, probability);
    laya_buffer_printf(out, "<path d=\"M%d %dl4 4l4 -4l-4 -4z\" fill=\"none\" stroke=\"#c47f00\"/></g>\n", left - 4,
                       action);
}

static size_t count_answers(laya_json_value cases)
{
    size_t count = 0;
    for (laya_json_iterator it = laya_json_first(cases); laya_json_present(it.value); laya_json_next(&it))
        count += laya_json_size(laya_json_get(it.value, "answers"));
    return count;
}

static void put_plot(laya_buffer *out, laya_json_value cases)
{
    size_t count = count_answers(cases), place = 0;
    laya_buffer_puts(out, "<h2>Errors of each evaluated question</h2>\n");
    put_axes(out);
    for (laya_json_iterator it = laya_json_first(cases); laya_json_present(it.value); laya_json_next(&it)) {
        laya_json_iterator answer = laya_json_first(laya_json_get(it.value, "answers"));
        for (; laya_json_present(answer.value); laya_json_next(&answer), place++) {
            double part = ((double)place + 0.5) / (double)count;
            put_marks(out, laya_json_get(it.value, "name"), answer.value, PLOT_LEFT + part * PLOT_WIDTH);
        }
    }
    laya_buffer_printf(
        out,
        "<text x=\"%d\" y=\"%d\">questions in the order of the reference; dots: calibrated probability, "
        "diamonds: action probability; 1e%d and less, zero too, at the bottom</text>\n</svg>\n",
        PLOT_LEFT, PLOT_TOP + PLOT_HEIGHT + 25, LEAST_DECADE);
}

/* ------------------------------------------------------------------ cases */

static void put_answer(laya_buffer *out, laya_json_value answer)
{
    static const char *const errors[] = {"probability_error", "action_probability_error", "action_logit_error",
                                         "logit_error"};
    laya_buffer_puts(out, "<tr><td>");
    put_value(out, laya_json_get(answer, "id"));
    laya_buffer_puts(out, "</td><td class=\"n\">");
    put_value(out, laya_json_get(answer, "tokens"));
    laya_buffer_puts(out, "</td>");
    for (size_t at = 0; at < sizeof errors / sizeof *errors; at++)
        put_number(out, number_of(answer, errors[at]), "not finite");
    put_number(out, number_of(answer, "reference_margin"), "-");
    laya_buffer_puts(out, is_true(answer, "argmax_equal") ? "<td>equal" : "<td class=\"bad\">differs");
    if (is_true(answer, "near_tie")) laya_buffer_puts(out, ", near tie");
    if (is_true(answer, "certified")) laya_buffer_puts(out, ", certified");
    laya_buffer_puts(out, "</td>");
    put_verdict(out, is_true(answer, "passed"));
    laya_buffer_puts(out, "</tr>\n");
}

static void put_case(laya_buffer *out, laya_json_value found)
{
    laya_buffer_puts(out, "<h3>");
    put_value(out, laya_json_get(found, "name"));
    laya_buffer_puts(out, "</h3>\n");
    if (!laya_json_equals(laya_json_get(found, "status"), "evaluated")) {
        laya_buffer_puts(out, "<p class=\"none\">unvalidated: ");
        put_value(out, laya_json_get(found, "reason"));
        laya_buffer_puts(out, "</p>\n");
        return;
    }
    if (laya_json_present(laya_json_get(found, "failure"))) {
        laya_buffer_puts(out, "<p class=\"bad\">no answer: ");
        put_value(out, laya_json_get(found, "failure"));
        laya_buffer_puts(out, "</p>\n");
        return;
    }
    if (!is_true(found, "usage_equal")) laya_buffer_puts(out, "<p class=\"bad\">token usage differs</p>\n");
    if (!is_true(found, "stable")) laya_buffer_puts(out, "<p class=\"bad\">outputs differ between repeats</p>\n");
    laya_buffer_puts(out,
                     "<table>\n<tr><th>question</th><th>tokens</th><th>probability error</th><th>action error</th>"
                     "<th>action logit error</th><th>logit error</th><th>reference margin</th><th>decision</th>"
                     "<th>verdict</th></tr>\n");
    laya_json_iterator it = laya_json_first(laya_json_get(found, "answers"));
    for (; laya_json_present(it.value); laya_json_next(&it)) put_answer(out, it.value);
    laya_buffer_puts(out, "</table>\n");
}

/* ------------------------------------------------------------------ the page */

static void put_page(laya_buffer *out, laya_json_value root)
{
    laya_json_value cases = laya_json_get(root, "cases"), counts = laya_json_get(root, "counts");
    bool passed = is_true(root, "passed");
    laya_buffer_puts(out, "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n"
                          "<meta charset=\"utf-8\"/>\n<title>Validation</title>\n<style>\n");
    laya_buffer_puts(out, style);
    laya_buffer_puts(out, "\n</style>\n</head>\n<body>\n<h1>Validation: ");
    laya_buffer_puts(out, passed ? "<span class=\"ok\">passed</span>" : "<span class=\"bad\">failed</span>");
    laya_buffer_puts(out, "</h1>\n<p>");
    put_value(out, laya_json_get(counts, "evaluated"));
    laya_buffer_puts(out, " questions evaluated, ");
    put_value(out, laya_json_get(counts, "unvalidated"));
    laya_buffer_puts(out,
                     " unvalidated. This is a regression test on a small fixture, no estimate of accuracy.</p>\n");
    put_facts(out, root);
    put_gates(out, laya_json_get(root, "gates"));
    put_plot(out, cases);
    laya_buffer_puts(out, "<h2>Cases</h2>\n");
    for (laya_json_iterator it = laya_json_first(cases); laya_json_present(it.value); laya_json_next(&it))
        put_case(out, it.value);
    laya_buffer_puts(out, "</body>\n</html>\n");
}

laya_status laya_report_html(laya_buffer *out, const char *json, size_t size, laya_error *error)
{
    laya_json doc;
    LAYA_TRY(laya_json_parse(&doc, json, size, &out->allocator, error));
    put_page(out, laya_json_root(&doc));
    laya_json_close(&doc);
    return out->failed ? laya_fail_memory(error, out->size) : LAYA_OK;
}
