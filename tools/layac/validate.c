/* SPDX-License-Identifier: Apache-2.0 */
/* layac validate */
#include "base/json.h"
#include "gate_options.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "usage: layac validate --package PATH --output FILE [options]\n"
    "\n"
    "Runs every case of a reference that fits a package and compares the answers: all decisions equal, calibrated "
    "and\n"
    "action probabilities within 0.02, everything finite, token usage unchanged, the same output in every repeat.\n"
    "Writes a report as JSON, prints a table of the cases on standard error and a summary as JSON. Exit code 7 when "
    "a\n"
    "gate did not pass; cases that do not fit the package stay unvalidated. FILE is complete or absent.\n"
    "\n"
    "  --output FILE            report to make; it must not exist\n"
    "  --reference FILE         answers of layac reference (default: recorded first, by the float32 engine)\n"
    "  --fixture FILE           cases to record them from (default: the 63 questions installed with this command)\n"
    "  --repeats N              calls per case (default: 100)\n"
    "  --html FILE              also write the report as a page with a plot of the errors\n" LAYAC_GATE_USAGE
    "  --help                   this text\n";

typedef struct settings {
    layac_gate_options gate;
    const char *fixture;
    laya_validate_options options;
} settings;

/* ------------------------------------------------------------------ table of cases */

static double largest(laya_json_value answers, const char *name)
{
    double worst = 0, number;
    for (laya_json_iterator it = laya_json_first(answers); laya_json_present(it.value); laya_json_next(&it)) {
        if (!laya_json_to_double(laya_json_get(it.value, name), &number)) return NAN;
        if (number > worst) worst = number;
    }
    return worst;
}

static void print_text(laya_json_value value, size_t width)
{
    size_t size;
    const char *text = laya_json_text(value, &size);
    layac_print_text(stderr, text, size, width);
}

static bool is_true(laya_json_value object, const char *name)
{
    laya_json_value value = laya_json_get(object, name);
    return laya_json_present(value) && laya_json_typeof(value) == LAYA_JSON_TRUE;
}

static void print_case(laya_json_value found)
{
    const size_t name_width = 18;
    double questions = 0;
    laya_json_value answers = laya_json_get(found, "answers"), failure = laya_json_get(found, "failure");
    laya_json_to_double(laya_json_get(found, "questions"), &questions);
    print_text(laya_json_get(found, "name"), name_width);
    fprintf(stderr, " %9.0f  ", questions);
    if (!laya_json_equals(laya_json_get(found, "status"), "evaluated")) {
        fputs("unvalidated: ", stderr);
        print_text(laya_json_get(found, "reason"), 0);
    } else if (laya_json_present(failure)) {
        fputs("FAILED: ", stderr);
        print_text(failure, 0);
    } else {
        fprintf(stderr, "%12.2e %12.2e %12.2e  %s%s%s", largest(answers, "probability_error"),
                largest(answers, "action_probability_error"), largest(answers, "action_logit_error"),
                is_true(found, "passed") ? "passed" : "FAILED",
                is_true(found, "usage_equal") ? "" : ", usage differs",
                is_true(found, "stable") ? "" : ", outputs differ between repeats");
    }
    fputc('\n', stderr);
}

static void print_cases(laya_json_value report)
{
    laya_json_value cases = laya_json_get(report, "cases");
    fprintf(stderr, "%-18s %9s  %12s %12s %12s\n", "case", "questions", "probability", "action", "action logit");
    for (laya_json_iterator it = laya_json_first(cases); laya_json_present(it.value); laya_json_next(&it))
        print_case(it.value);
}

/* ------------------------------------------------------------------ the summary */

/* The worst errors; where they are is in the report. */
static void copy_worst(laya_json_writer *w, laya_json_value worst)
{
    for (laya_json_iterator it = laya_json_first(worst); laya_json_present(it.value); laya_json_next(&it)) {
        size_t size;
        const char *name = laya_json_text(it.key, &size);
        double value;
        if (laya_json_is_null(it.value)) continue;
        laya_json_key(w, name, size);
        if (laya_json_to_double(laya_json_get(it.value, "value"), &value))
            laya_json_put_repr(w, value);
        else
            laya_json_put_raw(w, "null");
    }
}

static void write_summary(laya_json_writer *w, laya_json_value report)
{
    laya_json_value counts = laya_json_get(report, "counts");
    laya_json_begin(w, '{');
    layac_copy_member(w, report, "passed");
    layac_copy_member(w, report, "class");
    layac_copy_member(w, report, "executor");
    layac_copy_member(w, counts, "questions");
    layac_copy_member(w, counts, "evaluated");
    layac_copy_member(w, counts, "unvalidated");
    layac_copy_member(w, counts, "near_ties");
    layac_copy_member(w, counts, "certified");
    layac_copy_member(w, report, "repeats");
    copy_worst(w, laya_json_get(report, "worst"));
    laya_json_end(w, '}');
}

/* ------------------------------------------------------------------ the command */

static int run(settings *set)
{
    laya_report *report;
    laya_error error;
    layac_bar bar;
    char *fixture = NULL;
    if (!set->options.reference) {
        fixture = layac_fixture_path(set->fixture);
        if (!fixture) return EXIT_USAGE;
    }
    set->options.bundle = &set->gate.bundle.options;
    set->options.length = set->gate.length;
    set->options.output = set->gate.output;
    set->options.fixture = fixture;
    set->options.interrupt = layac_catch_signals();
    set->options.progress = layac_bar_start(&bar);
    laya_status status = laya_validate(set->gate.bundle.package, &set->options, &report, &error);
    layac_bar_end(&bar);
    free(fixture);
    layac_pass_signal_on();
    if (status != LAYA_OK) return layac_fail_library(&error);
    int code = layac_print_report(report, print_cases, write_summary);
    laya_report_close(report);
    return code;
}

enum { OPTION_REFERENCE = 256, OPTION_FIXTURE, OPTION_REPEATS, OPTION_HTML };

static const struct option options[] = {LAYAC_GATE_LONG_OPTIONS,
                                        {"reference", required_argument, NULL, OPTION_REFERENCE},
                                        {"fixture", required_argument, NULL, OPTION_FIXTURE},
                                        {"repeats", required_argument, NULL, OPTION_REPEATS},
                                        {"html", required_argument, NULL, OPTION_HTML},
                                        {0}};

static int set_option(settings *set, int option)
{
    if (layac_is_gate_option(option)) return layac_gate_option(&set->gate, option, optarg);
    switch (option) {
    case OPTION_REFERENCE: set->options.reference = optarg; break;
    case OPTION_FIXTURE: set->fixture = optarg; break;
    case OPTION_HTML: set->options.html = optarg; break;
    case OPTION_REPEATS:
        return layac_number("--repeats", optarg, 1, UINT32_MAX, &set->options.repeats) ? EXIT_OK : EXIT_USAGE;
    default: fputs(usage, stderr); return EXIT_USAGE;
    }
    return EXIT_OK;
}

int layac_validate(int count, char **arguments)
{
    settings set = {0};
    layac_gate_options_init(&set.gate);
    laya_validate_options_init(&set.options);
    for (int option; (option = getopt_long(count, arguments, "m:o:h", options, NULL)) != -1;) {
        if (option == 'h') {
            fputs(usage, stdout);
            return layac_finish();
        }
        int code = set_option(&set, option);
        if (code != EXIT_OK) return code;
    }
    if (optind < count) return layac_fail(EXIT_USAGE, "validate: unexpected argument '%s'", arguments[optind]);
    if (set.options.reference && set.fixture)
        return layac_fail(EXIT_USAGE, "validate: --reference and --fixture exclude each other");
    int code = layac_gate_check(&set.gate, "validate");
    return code == EXIT_OK ? run(&set) : code;
}
