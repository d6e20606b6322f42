/* SPDX-License-Identifier: Apache-2.0 */
/* layac benchmark */
#include "base/json.h"
#include "base/number.h"
#include "gate_options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: layac benchmark --package PATH --output FILE [options]\n"
    "       layac benchmark --package PATH --output FILE --compare A [B ...] [options]\n"
    "\n"
    "Times a package: loading, the body alone (5 warm-ups and 30 calls on synthetic embeddings), and the complete "
    "path\n"
    "from text to formatted answer (10 and 50). Writes a report with the raw times as JSON and prints a summary. "
    "Exit\n"
    "code 7 when an output was not the same in every call. Times of the interpreter say nothing about Core ML.\n"
    "\n"
    "  --output FILE            report to make; it must not exist\n"
    "  --long                   a request that fills the package, up to 1024 tokens, instead of a short one\n"
    "  --compare A [B ...]      packages, or native for the CPU engine, that are compared with the package in\n"
    "                           alternating blocks of calls; may be repeated\n"
    "  --cycles N               of a comparison, each with two blocks of every subject (default: 3)\n"
    "  --warmups N, --calls N   of the complete path (default: 10 and 50)\n"
    "  --power CMD|powercap     measure energy: a command that prints watts, one number a line, or Linux's counters\n"
    "  --power-interval S       seconds between its samples (default: 0.5)\n"
    "  --block-seconds S        of a block where power is measured (default: 20)\n"
    "  --idle-seconds S         of rest before such a block (default: 10)\n" LAYAC_GATE_USAGE
    "  --help                   this text\n";

#define MAX_COMPARE 64u

typedef struct settings {
    layac_gate_options gate;
    const char *compare[MAX_COMPARE];
    laya_benchmark_options options;
} settings;

/* ------------------------------------------------------------------ the summary */

/* An object without its raw times; another value as it is. */
static void copy_times(laya_json_writer *w, laya_json_value report, const char *name)
{
    laya_json_value value = laya_json_get(report, name);
    if (laya_json_typeof(value) != LAYA_JSON_OBJECT) {
        layac_copy_member(w, report, name);
        return;
    }
    laya_json_name(w, name);
    laya_json_begin(w, '{');
    layac_copy_member(w, value, "p50_ms");
    layac_copy_member(w, value, "p95_ms");
    laya_json_end(w, '}');
}

static void copy_comparison(laya_json_writer *w, laya_json_value comparison)
{
    laya_json_iterator it = laya_json_first(laya_json_get(comparison, "subjects"));
    if (!laya_json_present(it.value)) return;
    laya_json_name(w, "comparison");
    laya_json_begin(w, '[');
    for (; laya_json_present(it.value); laya_json_next(&it)) {
        laya_json_begin(w, '{');
        layac_copy_member(w, it.value, "name");
        layac_copy_member(w, it.value, "executor");
        layac_copy_member(w, it.value, "p50_ms");
        layac_copy_member(w, it.value, "p95_ms");
        layac_copy_member(w, it.value, "time_ratio");
        layac_copy_member(w, it.value, "energy");
        laya_json_end(w, '}');
    }
    laya_json_end(w, ']');
}

static void write_summary(laya_json_writer *w, laya_json_value report)
{
    laya_json_begin(w, '{');
    layac_copy_member(w, report, "class");
    layac_copy_member(w, report, "executor");
    layac_copy_member(w, report, "outputs_stable");
    layac_copy_member(w, laya_json_get(report, "request"), "kind");
    layac_copy_member(w, laya_json_get(report, "request"), "tokens");
    layac_copy_member(w, report, "load_seconds");
    copy_times(w, report, "body");
    copy_times(w, report, "complete");
    copy_comparison(w, laya_json_get(report, "comparison"));
    layac_copy_member(w, report, "power");
    laya_json_end(w, '}');
}

/* ------------------------------------------------------------------ the command */

static int run(settings *set)
{
    laya_report *report;
    laya_error error;
    layac_bar bar;
    set->options.bundle = &set->gate.bundle.options;
    set->options.length = set->gate.length;
    set->options.output = set->gate.output;
    set->options.compare = set->compare;
    set->options.interrupt = layac_catch_signals();
    set->options.progress = layac_bar_start(&bar);
    laya_status status = laya_benchmark(set->gate.bundle.package, &set->options, &report, &error);
    layac_bar_end(&bar);
    layac_pass_signal_on();
    if (status != LAYA_OK) return layac_fail_library(&error);
    int code = layac_print_report(report, NULL, write_summary);
    laya_report_close(report);
    return code;
}

enum {
    OPTION_LONG_REQUEST = 256,
    OPTION_COMPARE,
    OPTION_CYCLES,
    OPTION_WARMUPS,
    OPTION_CALLS,
    OPTION_POWER,
    OPTION_POWER_INTERVAL,
    OPTION_BLOCK_SECONDS,
    OPTION_IDLE_SECONDS
};

static const struct option options[] = {LAYAC_GATE_LONG_OPTIONS,
                                        {"long", no_argument, NULL, OPTION_LONG_REQUEST},
                                        {"compare", required_argument, NULL, OPTION_COMPARE},
                                        {"cycles", required_argument, NULL, OPTION_CYCLES},
                                        {"warmups", required_argument, NULL, OPTION_WARMUPS},
                                        {"calls", required_argument, NULL, OPTION_CALLS},
                                        {"power", required_argument, NULL, OPTION_POWER},
                                        {"power-interval", required_argument, NULL, OPTION_POWER_INTERVAL},
                                        {"block-seconds", required_argument, NULL, OPTION_BLOCK_SECONDS},
                                        {"idle-seconds", required_argument, NULL, OPTION_IDLE_SECONDS},
                                        {0}};

static int add_compared(settings *set, const char *path)
{
    if (set->options.compare_count == MAX_COMPARE)
        return layac_fail(EXIT_USAGE, "benchmark: more than %u packages to compare", MAX_COMPARE);
    set->compare[set->options.compare_count++] = path;
    return EXIT_OK;
}

static int set_seconds(const char *option, double *seconds)
{
    const double longest = 3600;
    if (laya_parse_double(optarg, strlen(optarg), seconds) && *seconds > 0 && *seconds <= longest) return EXIT_OK;
    return layac_fail(EXIT_USAGE, "%s: expected seconds, above 0 and up to %g, got '%s'", option, longest, optarg);
}

static int set_count(const char *option, uint32_t low, uint32_t *count)
{
    const uint32_t most = 1000000;
    return layac_number(option, optarg, low, most, count) ? EXIT_OK : EXIT_USAGE;
}

static int set_option(settings *set, int option)
{
    laya_benchmark_options *o = &set->options;
    if (layac_is_gate_option(option)) return layac_gate_option(&set->gate, option, optarg);
    switch (option) {
    case OPTION_LONG_REQUEST: o->long_request = 1; break;
    case OPTION_COMPARE: return add_compared(set, optarg);
    case OPTION_CYCLES: return set_count("--cycles", 1, &o->cycles);
    case OPTION_WARMUPS: return set_count("--warmups", 0, &o->warmups);
    case OPTION_CALLS: return set_count("--calls", 1, &o->calls);
    case OPTION_POWER: o->power = optarg; break;
    case OPTION_POWER_INTERVAL: return set_seconds("--power-interval", &o->power_interval);
    case OPTION_BLOCK_SECONDS: return set_seconds("--block-seconds", &o->block_seconds);
    case OPTION_IDLE_SECONDS: return set_seconds("--idle-seconds", &o->idle_seconds);
    default: fputs(usage, stderr); return EXIT_USAGE;
    }
    return EXIT_OK;
}

/* What follows --compare without an option of its own. */
static int add_rest(settings *set, int count, char **arguments)
{
    if (optind < count && set->options.compare_count == 0)
        return layac_fail(EXIT_USAGE, "benchmark: unexpected argument '%s'", arguments[optind]);
    int code = EXIT_OK;
    for (int at = optind; at < count && code == EXIT_OK; at++) code = add_compared(set, arguments[at]);
    return code;
}

int layac_benchmark(int count, char **arguments)
{
    settings set = {0};
    layac_gate_options_init(&set.gate);
    laya_benchmark_options_init(&set.options);
    for (int option; (option = getopt_long(count, arguments, "m:o:h", options, NULL)) != -1;) {
        if (option == 'h') {
            fputs(usage, stdout);
            return layac_finish();
        }
        int code = set_option(&set, option);
        if (code != EXIT_OK) return code;
    }
    int code = add_rest(&set, count, arguments);
    if (code == EXIT_OK) code = layac_gate_check(&set.gate, "benchmark");
    return code == EXIT_OK ? run(&set) : code;
}
