/* SPDX-License-Identifier: Apache-2.0 */
/* layac export, layac probe */
#include "export/export.h"

#include "base/json.h"
#include "base/threads.h"
#include "layac.h"
#include "summary.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: layac export [--model DIR] --output OUT [options]\n"
    "       layac probe  [--source DIR] --output OUT [options]\n"
    "\n"
    "Writes a Core ML package of a checkpoint with everything around it into a new directory OUT, verifies it, and\n"
    "prints a summary as JSON. Both names are the same command. OUT is complete or absent, also when interrupted.\n"
    "\n"
    "  --model DIR, --source DIR  checkpoint directory (default: $LAYA_MODEL, else the demo model)\n"
    "  --output OUT               directory to make; it must not exist\n"
    "  --kind body|layer|mlp      the whole body (default), one encoder layer, or one feed-forward block\n"
    "  --length N                 tokens, from 16 to the checkpoint's limit (default: 96)\n"
    "  --graph per-head|lean      the study's graph (default), or the same function in a tenth of the operations\n"
    "  --precision fp16|fp32      arithmetic of the package (default: fp16)\n"
    "  --markers N                marker slots: the most options of a question, 2 to 255 (default: 32)\n"
    "  --layer N                  the layer of the kinds layer and mlp, from 0 (default: 0)\n"
    "  --standalone               also copy the host's weights, configuration and tokenizer into OUT\n"
    "  --weights-sha256 HEX       refuse a checkpoint whose model.safetensors has another SHA-256\n"
    "  --threads N                threads (default: one per CPU); the result does not depend on it\n"
    "  --help                     this text\n";

/* ------------------------------------------------------------------ the summary */

static void put_copy(laya_json_writer *w, const char *name, laya_json_value value)
{
    laya_json_name(w, name);
    laya_json_put_value(w, value);
}

static void write_summary(laya_json_writer *w, const char *output, const char *package, laya_json_value manifest)
{
    laya_json_value shape = laya_json_get(manifest, "shape"), operations = laya_json_get(manifest, "operations");
    double bytes = 0, seconds = 0, number;
    laya_json_iterator file = laya_json_first(laya_json_get(manifest, "files"));
    for (; laya_json_present(file.value); laya_json_next(&file)) {
        if (laya_json_to_double(laya_json_get(file.value, "bytes"), &number)) bytes += number;
    }
    laya_json_to_double(laya_json_get(manifest, "conversion_seconds"), &seconds);
    laya_json_begin(w, '{');
    laya_json_member_path(w, "output", output);
    laya_json_member_path(w, "package", package);
    put_copy(w, "package_sha256", laya_json_get(manifest, "package_sha256"));
    put_copy(w, "kind", laya_json_get(manifest, "kind"));
    put_copy(w, "graph", laya_json_get(manifest, "graph"));
    put_copy(w, "precision", laya_json_get(manifest, "precision"));
    put_copy(w, "length", laya_json_get(shape, "length"));
    put_copy(w, "markers", laya_json_get(shape, "options"));
    put_copy(w, "operations", laya_json_get(operations, "total"));
    put_copy(w, "constants", laya_json_get(operations, "constants"));
    laya_json_member_uint(w, "bytes", (uint64_t)bytes);
    laya_json_member_round4(w, "seconds", seconds);
    laya_json_end(w, '}');
}

/* ------------------------------------------------------------------ the command */

typedef struct settings {
    const char *model;
    const char *output;
    laya_export_options options;
} settings;

static int run(settings *set)
{
    laya_model *model;
    laya_error error;
    layac_bar bar;
    int code = layac_open_model(set->model, NULL, &model);
    if (code != EXIT_OK) return code;
    set->options.interrupt = layac_catch_signals();
    set->options.progress = layac_bar_start(&bar);
    laya_status status = laya_model_export(model, &set->options, set->output, &error);
    layac_bar_end(&bar);
    laya_model_close(model);
    layac_pass_signal_on();
    return status == LAYA_OK ? layac_print_bundle(set->output, write_summary, NULL) : layac_fail_library(&error);
}

/* ------------------------------------------------------------------ options */

enum {
    OPTION_KIND = 256,
    OPTION_LENGTH,
    OPTION_GRAPH,
    OPTION_PRECISION,
    OPTION_MARKERS,
    OPTION_LAYER,
    OPTION_STANDALONE,
    OPTION_WEIGHTS_SHA256,
    OPTION_THREADS
};

static const struct option options[] = {{"model", required_argument, NULL, 'm'},
                                        {"source", required_argument, NULL, 'm'},
                                        {"output", required_argument, NULL, 'o'},
                                        {"kind", required_argument, NULL, OPTION_KIND},
                                        {"length", required_argument, NULL, OPTION_LENGTH},
                                        {"graph", required_argument, NULL, OPTION_GRAPH},
                                        {"precision", required_argument, NULL, OPTION_PRECISION},
                                        {"markers", required_argument, NULL, OPTION_MARKERS},
                                        {"layer", required_argument, NULL, OPTION_LAYER},
                                        {"standalone", no_argument, NULL, OPTION_STANDALONE},
                                        {"weights-sha256", required_argument, NULL, OPTION_WEIGHTS_SHA256},
                                        {"threads", required_argument, NULL, OPTION_THREADS},
                                        {"help", no_argument, NULL, 'h'},
                                        {0}};

static int set_kind(laya_export_options *set, const char *text)
{
    static const laya_export_kind kinds[] = {LAYA_EXPORT_BODY, LAYA_EXPORT_LAYER, LAYA_EXPORT_MLP};
    for (size_t at = 0; at < sizeof kinds / sizeof *kinds; at++) {
        if (strcmp(text, laya_export_kind_name(kinds[at])) != 0) continue;
        set->kind = kinds[at];
        return EXIT_OK;
    }
    return layac_fail(EXIT_USAGE, "--kind: expected body, layer or mlp, got '%s'", text);
}

static int set_graph(laya_export_options *set, const char *text)
{
    static const laya_graph graphs[] = {LAYA_GRAPH_PER_HEAD, LAYA_GRAPH_LEAN};
    for (size_t at = 0; at < sizeof graphs / sizeof *graphs; at++) {
        if (strcmp(text, laya_graph_name(graphs[at])) != 0) continue;
        set->graph = graphs[at];
        return EXIT_OK;
    }
    return layac_fail(EXIT_USAGE, "--graph: expected per-head or lean, got '%s'", text);
}

static int set_precision(laya_export_options *set, const char *text)
{
    static const laya_package_precision precisions[] = {LAYA_PACKAGE_FP16, LAYA_PACKAGE_FP32};
    for (size_t at = 0; at < sizeof precisions / sizeof *precisions; at++) {
        if (strcmp(text, laya_package_precision_name(precisions[at])) != 0) continue;
        set->precision = precisions[at];
        return EXIT_OK;
    }
    return layac_fail(EXIT_USAGE, "--precision: expected fp16 or fp32, got '%s'", text);
}

/* The library checks numbers against the checkpoint, and the hash. */
static int set_number(const char *option, uint32_t low, uint32_t high, uint32_t *number)
{
    return layac_number(option, optarg, low, high, number) ? EXIT_OK : EXIT_USAGE;
}

static int set_option(settings *set, int option)
{
    laya_export_options *o = &set->options;
    switch (option) {
    case 'm': set->model = optarg; break;
    case 'o': set->output = optarg; break;
    case OPTION_KIND: return set_kind(o, optarg);
    case OPTION_LENGTH: return set_number("--length", 0, UINT32_MAX, &o->length);
    case OPTION_GRAPH: return set_graph(o, optarg);
    case OPTION_PRECISION: return set_precision(o, optarg);
    case OPTION_MARKERS: return set_number("--markers", 0, UINT32_MAX, &o->markers);
    case OPTION_LAYER: return set_number("--layer", 0, UINT32_MAX, &o->layer);
    case OPTION_STANDALONE: o->standalone = 1; break;
    case OPTION_WEIGHTS_SHA256: o->weights_sha256 = optarg; break;
    case OPTION_THREADS: return set_number("--threads", 1, LAYA_MAX_THREADS, &o->threads);
    default: fputs(usage, stderr); return EXIT_USAGE;
    }
    return EXIT_OK;
}

int layac_export(int count, char **arguments)
{
    settings set = {0};
    laya_export_options_init(&set.options);
    for (int option; (option = getopt_long(count, arguments, "m:h", options, NULL)) != -1;) {
        if (option == 'h') {
            fputs(usage, stdout);
            return layac_finish();
        }
        int code = set_option(&set, option);
        if (code != EXIT_OK) return code;
    }
    if (optind < count)
        return layac_fail(EXIT_USAGE, "%s: unexpected argument '%s'", arguments[0], arguments[optind]);
    if (!set.output || !*set.output)
        return layac_fail(EXIT_USAGE, "%s: no output; use --output OUT, a directory that does not exist",
                          arguments[0]);
    return run(&set);
}
