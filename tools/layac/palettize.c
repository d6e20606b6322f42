/* SPDX-License-Identifier: Apache-2.0 */
/* layac palettize */
#include "base/json.h"
#include "base/number.h"
#include "base/threads.h"
#include "bundle_options.h"
#include "gate_options.h"
#include "summary.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: layac palettize --package PATH --bits 8|6|4|3|2|1 --output OUT [options]\n"
    "       layac palettize --package PATH --mode unique --output OUT [options]\n"
    "       layac palettize --package PATH --target-error E --output OUT [options]\n"
    "       layac palettize --package PATH --screen [--output DIR] [--table] [options]\n"
    "\n"
    "Writes a bundle whose convolution weights of more than 2,048 elements are tables of a few values and indices "
    "into\n"
    "them; everything else is copied. Prints a summary as JSON. OUT is complete or absent, also when interrupted. A\n"
    "palette is an approximate model of its own, and layac validate says whether it may be used; modes that are "
    "gated\n"
    "here say so in manifest.json, and exit code 7 tells that the gate failed.\n"
    "\n"
    "  --package PATH     a bundle that layac export wrote, or its model.mlpackage\n"
    "  --output OUT       directory to make; it must not exist\n"
    "  --bits N           of an index: 1, 2, 3, 4, 6 or 8; 3 bits and groups need iOS 18 or macOS 15\n"
    "  --mode M           kmeans (default): least squared error, exactly; uniform: equal steps; unique: the values\n"
    "                     themselves, where there are at most 256; weighted: least squared error, each weight "
    "counted\n"
    "                     with the mean square of the activation that it multiplies, then gated\n"
    "  --group-size N     output channels that share a table (default: 32), or tensor: one table for each weight\n"
    "  --target-error E   in place of --bits: choose them for each weight, the fewest bytes found that pass the "
    "gates\n"
    "                     with E as the largest probability error\n"
    "  --workers N        threads (default: one per CPU); the package does not depend on it\n"
    "  --help             this text\n"
    "\n"
    "For --mode weighted, --target-error and --screen:\n"
    "  --model DIR        checkpoint of the package (default: the one that its manifest names)\n"
    "  --fixture FILE     questions for activations and reference (default: the 63 installed with this command)\n"
    "  --reference FILE   answers of layac reference (default: recorded first, by the float32 engine)\n"
    "\n"
    "  --screen           make and validate the study's five variants, the same with one table for each weight, and\n"
    "                     weighted ones; print a report. Exit code 0 whatever the gates say, 7 when a variant could\n"
    "                     not be made. --output DIR keeps bundles, reports and screen.json\n"
    "  --table            print the study's table with these results beside it instead of JSON\n"
    "  --repeats N        calls per case and variant (default: 1)\n"
    "  --backend B, --compute-units U, --numerics N, --cache DIR\n"
    "                     how --screen runs packages, as in layac validate\n";

typedef struct settings {
    layac_bundle_options bundle; /* the package, and how --screen runs it */
    const char *output, *fixture;
    const char *bits, *mode, *group_size, *target_error, *repeats; /* as given; NULL: not given */
    bool screen, table;
    laya_palettize_options options;
    laya_screen_options screening;
} settings;

/* ------------------------------------------------------------------ the summary */

static double number_of(laya_json_value object, const char *name)
{
    double number = 0;
    laya_json_to_double(laya_json_get(object, name), &number);
    return number;
}

static void put_bytes(laya_json_writer *w, const char *name, laya_json_value palette, const char *before,
                      const char *after)
{
    laya_json_name(w, name);
    laya_json_begin(w, '{');
    laya_json_member_uint(w, "before", (uint64_t)number_of(palette, before));
    laya_json_member_uint(w, "after", (uint64_t)number_of(palette, after));
    laya_json_end(w, '}');
}

static laya_json_value gate_of(laya_json_value manifest)
{
    return laya_json_get(laya_json_get(manifest, "palette"), "gate");
}

/* A gate that was not run is no object. */
static bool was_gated(laya_json_value manifest)
{
    return laya_json_typeof(gate_of(manifest)) == LAYA_JSON_OBJECT;
}

static void write_summary(laya_json_writer *w, const char *output, const char *package, laya_json_value manifest)
{
    laya_json_value palette = laya_json_get(manifest, "palette");
    laya_json_begin(w, '{');
    laya_json_member_path(w, "output", output);
    laya_json_member_path(w, "package", package);
    layac_copy_member(w, manifest, "package_sha256");
    layac_copy_member(w, palette, "parent_package_sha256");
    layac_copy_member(w, palette, "mode");
    layac_copy_member(w, palette, "bits");
    layac_copy_member(w, palette, "group_size");
    layac_copy_member(w, palette, "form");
    layac_copy_member(w, manifest, "opset");
    laya_json_member_uint(w, "weights", laya_json_size(laya_json_get(palette, "weights")));
    laya_json_member_uint(w, "skipped", laya_json_size(laya_json_get(palette, "skipped")));
    put_bytes(w, "weight_bytes", palette, "weight_bytes_before", "weight_bytes_after");
    put_bytes(w, "package_bytes", palette, "package_bytes_before", "package_bytes_after");
    layac_copy_member(w, palette, "relative_error");
    layac_copy_member(w, palette, "seconds");
    if (was_gated(manifest)) {
        layac_copy_member(w, palette, "gate");
    } else {
        laya_json_name(w, "gate");
        laya_json_put_raw(w, "null");
    }
    laya_json_end(w, '}');
}

/* A gate that failed is a check that did not pass. */
static int judge(laya_json_value manifest)
{
    if (!was_gated(manifest)) return EXIT_OK;
    return laya_json_typeof(laya_json_get(gate_of(manifest), "passed")) == LAYA_JSON_TRUE ? EXIT_OK : EXIT_CHECK;
}

/* ------------------------------------------------------------------ the command */

/* Whether answers are needed: for activations, gates or both. */
static bool needs_answers(const settings *set)
{
    return set->screen || set->target_error || set->options.mode == LAYA_PALETTE_WEIGHTED;
}

static int palettize(settings *set)
{
    laya_error error;
    layac_bar bar;
    set->options.logger = layac_logger();
    set->options.model_directory = set->bundle.options.model_directory;
    set->options.interrupt = layac_catch_signals();
    set->options.progress = layac_bar_start(&bar);
    laya_status status = laya_palettize(set->bundle.package, &set->options, set->output, &error);
    layac_bar_end(&bar);
    layac_pass_signal_on();
    return status == LAYA_OK ? layac_print_bundle(set->output, write_summary, judge) : layac_fail_library(&error);
}

static int print_screen(const laya_report *report, bool table)
{
    size_t size;
    const char *text = laya_report_json(report, &size);
    int code = EXIT_OK;
    if (table)
        code = layac_print_screen(text, size);
    else
        fwrite(text, 1, size, stdout);
    if (code == EXIT_OK) code = layac_finish();
    if (code != EXIT_OK) return code;
    return laya_report_passed(report) ? EXIT_OK : EXIT_CHECK;
}

static int screen(settings *set)
{
    laya_report *report;
    laya_error error;
    layac_bar bar;
    set->bundle.options.logger = layac_logger();
    set->screening.bundle = &set->bundle.options;
    set->screening.fixture = set->options.fixture;
    set->screening.reference = set->options.reference;
    set->screening.workers = set->options.workers;
    set->screening.interrupt = layac_catch_signals();
    set->screening.progress = layac_bar_start(&bar);
    laya_status status = laya_screen(set->bundle.package, &set->screening, set->output, &report, &error);
    layac_bar_end(&bar);
    layac_pass_signal_on();
    if (status != LAYA_OK) return layac_fail_library(&error);
    int code = print_screen(report, set->table);
    laya_report_close(report);
    return code;
}

static int run(settings *set)
{
    char *fixture = NULL;
    if (needs_answers(set)) {
        fixture = layac_fixture_path(set->fixture);
        if (!fixture) return EXIT_USAGE;
        set->options.fixture = fixture;
    }
    int code = set->screen ? screen(set) : palettize(set);
    free(fixture);
    return code;
}

/* ------------------------------------------------------------------ options */

enum {
    OPTION_BITS = 256,
    OPTION_MODE,
    OPTION_GROUP_SIZE,
    OPTION_TARGET_ERROR,
    OPTION_WORKERS,
    OPTION_FIXTURE,
    OPTION_REFERENCE,
    OPTION_SCREEN,
    OPTION_TABLE,
    OPTION_REPEATS
};

static const struct option options[] = {LAYAC_BUNDLE_LONG_OPTIONS,
                                        {"output", required_argument, NULL, 'o'},
                                        {"bits", required_argument, NULL, OPTION_BITS},
                                        {"mode", required_argument, NULL, OPTION_MODE},
                                        {"group-size", required_argument, NULL, OPTION_GROUP_SIZE},
                                        {"target-error", required_argument, NULL, OPTION_TARGET_ERROR},
                                        {"workers", required_argument, NULL, OPTION_WORKERS},
                                        {"model", required_argument, NULL, 'm'},
                                        {"fixture", required_argument, NULL, OPTION_FIXTURE},
                                        {"reference", required_argument, NULL, OPTION_REFERENCE},
                                        {"screen", no_argument, NULL, OPTION_SCREEN},
                                        {"table", no_argument, NULL, OPTION_TABLE},
                                        {"repeats", required_argument, NULL, OPTION_REPEATS},
                                        {"help", no_argument, NULL, 'h'},
                                        {0}};

static int set_bits(settings *set, const char *text)
{
    static const char *const widths[] = {"1", "2", "3", "4", "6", "8"};
    set->bits = text;
    for (size_t at = 0; at < sizeof widths / sizeof *widths; at++) {
        if (strcmp(text, widths[at]) != 0) continue;
        set->options.bits = (uint32_t)(*text - '0');
        return EXIT_OK;
    }
    return layac_fail(EXIT_USAGE, "--bits: expected 1, 2, 3, 4, 6 or 8, got '%s'", text);
}

static int set_mode(settings *set, const char *text)
{
    static const struct {
        const char *name;
        laya_palette_mode mode;
    } modes[] = {{"uniform", LAYA_PALETTE_UNIFORM},
                 {"kmeans", LAYA_PALETTE_KMEANS},
                 {"unique", LAYA_PALETTE_UNIQUE},
                 {"weighted", LAYA_PALETTE_WEIGHTED}};
    set->mode = text;
    for (size_t at = 0; at < sizeof modes / sizeof *modes; at++) {
        if (strcmp(text, modes[at].name) != 0) continue;
        set->options.mode = modes[at].mode;
        return EXIT_OK;
    }
    return layac_fail(EXIT_USAGE, "--mode: expected uniform, kmeans, unique or weighted, got '%s'", text);
}

static int set_group_size(settings *set, const char *text)
{
    set->group_size = text;
    if (strcmp(text, "tensor") == 0) {
        set->options.group_size = 0;
        return EXIT_OK;
    }
    if (*text < '0' || *text > '9')
        return layac_fail(EXIT_USAGE, "--group-size: expected a number of output channels or tensor, got '%s'", text);
    return layac_number("--group-size", text, 1, UINT32_MAX, &set->options.group_size) ? EXIT_OK : EXIT_USAGE;
}

static int set_target_error(settings *set, const char *text)
{
    double *target = &set->options.target_error;
    set->target_error = text;
    if (laya_parse_double(text, strlen(text), target) && *target > 0 && *target < 1) return EXIT_OK;
    return layac_fail(EXIT_USAGE, "--target-error: expected a probability error, above 0 and below 1, got '%s'",
                      text);
}

static int set_workers(settings *set, const char *text)
{
    uint32_t number;
    if (!layac_number("--workers", text, 1, LAYA_MAX_THREADS, &number)) return EXIT_USAGE;
    set->options.workers = number;
    return EXIT_OK;
}

static int set_option(settings *set, int option)
{
    if (layac_is_bundle_option(option)) return layac_bundle_option(&set->bundle, option, optarg);
    switch (option) {
    case 'm': set->bundle.options.model_directory = optarg; break;
    case 'o': set->output = optarg; break;
    case OPTION_BITS: return set_bits(set, optarg);
    case OPTION_MODE: return set_mode(set, optarg);
    case OPTION_GROUP_SIZE: return set_group_size(set, optarg);
    case OPTION_TARGET_ERROR: return set_target_error(set, optarg);
    case OPTION_WORKERS: return set_workers(set, optarg);
    case OPTION_FIXTURE: set->fixture = optarg; break;
    case OPTION_REFERENCE: set->options.reference = optarg; break;
    case OPTION_SCREEN: set->screen = true; break;
    case OPTION_TABLE: set->table = true; break;
    case OPTION_REPEATS:
        set->repeats = optarg;
        return layac_number("--repeats", optarg, 1, UINT32_MAX, &set->screening.repeats) ? EXIT_OK : EXIT_USAGE;
    default: fputs(usage, stderr); return EXIT_USAGE;
    }
    return EXIT_OK;
}

/* --screen has its own variants. */
static int check_screen(const settings *set)
{
    const char *option = set->bits           ? "--bits"
                         : set->mode         ? "--mode"
                         : set->group_size   ? "--group-size"
                         : set->target_error ? "--target-error"
                                             : NULL;
    if (option) return layac_fail(EXIT_USAGE, "palettize: --screen makes its own variants; leave out %s", option);
    if (set->output && !*set->output)
        return layac_fail(EXIT_USAGE, "palettize: --output names nothing; use a directory that does not exist");
    return EXIT_OK;
}

/* Options that would have no effect. */
static int check_unused(const settings *set)
{
    const char *option = set->table                            ? "--table"
                         : set->repeats                        ? "--repeats"
                         : set->bundle.backend                 ? "--backend"
                         : set->bundle.units                   ? "--compute-units"
                         : set->bundle.numerics                ? "--numerics"
                         : set->bundle.options.cache_directory ? "--cache"
                                                               : NULL;
    if (option) return layac_fail(EXIT_USAGE, "palettize: %s goes with --screen", option);
    if (needs_answers(set)) return EXIT_OK;
    option = set->fixture                          ? "--fixture"
             : set->options.reference              ? "--reference"
             : set->bundle.options.model_directory ? "--model"
                                                   : NULL;
    if (!option) return EXIT_OK;
    return layac_fail(EXIT_USAGE, "palettize: %s goes with --mode weighted, --target-error or --screen", option);
}

/* One way to choose the bits. */
static int check_bits(const settings *set)
{
    bool unique = set->options.mode == LAYA_PALETTE_UNIQUE;
    if (set->target_error && unique)
        return layac_fail(EXIT_USAGE, "palettize: --mode unique loses nothing; leave out --target-error");
    if (set->bits && (set->target_error || unique))
        return layac_fail(EXIT_USAGE, "palettize: %s chooses the bits; leave out --bits",
                          unique ? "--mode unique" : "--target-error");
    if (set->bits || set->target_error || unique) return EXIT_OK;
    return layac_fail(EXIT_USAGE, "palettize: no bits; use --bits N, --mode unique or --target-error E");
}

static int check(const settings *set)
{
    int code = EXIT_OK;
    if (!set->bundle.package) return layac_fail(EXIT_USAGE, "palettize: no package; use --package PATH");
    if (set->screen) {
        code = check_screen(set);
    } else {
        if (!set->output || !*set->output)
            return layac_fail(EXIT_USAGE, "palettize: no output; use --output OUT, a directory that does not exist");
        code = check_unused(set);
        if (code == EXIT_OK) code = check_bits(set);
    }
    if (code != EXIT_OK) return code;
    if (set->bundle.native)
        return layac_fail(EXIT_USAGE, "palettize: --backend native runs no package; it is the reference");
    return layac_bundle_check(&set->bundle, "palettize");
}

int layac_palettize(int count, char **arguments)
{
    settings set = {0};
    layac_bundle_options_init(&set.bundle);
    laya_palettize_options_init(&set.options);
    laya_screen_options_init(&set.screening);
    for (int option; (option = getopt_long(count, arguments, "m:o:h", options, NULL)) != -1;) {
        if (option == 'h') {
            fputs(usage, stdout);
            return layac_finish();
        }
        int code = set_option(&set, option);
        if (code != EXIT_OK) return code;
    }
    if (optind < count) return layac_fail(EXIT_USAGE, "palettize: unexpected argument '%s'", arguments[optind]);
    int code = check(&set);
    return code == EXIT_OK ? run(&set) : code;
}
