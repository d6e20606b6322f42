/* SPDX-License-Identifier: Apache-2.0 */
/* layac predict */
#include "base/json.h"
#include "base/threads.h"
#include "bundle_options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: layac predict [--model DIR] [--state TEXT | --state-file FILE] --questions JSON|FILE [options]\n"
    "       layac predict --package PATH [--model DIR] ...\n"
    "\n"
    "Answers questions about a state and prints the result as JSON.\n"
    "\n"
    "  --model DIR              checkpoint directory (default: $LAYA_MODEL, else the demo model; with --package the\n"
    "                           checkpoint that the package was made from, else its own copies)\n"
    "  --state TEXT             the state as plain text\n"
    "  --state-file FILE        the state as a text file; - or nothing: standard input. One newline at its end\n"
    "                           is not part of the state\n"
    "  --state-json JSON        the state as a JSON value\n"
    "  --state-json-file FILE   the state as a JSON file; -: standard input\n"
    "  --questions JSON|FILE    object id -> question; inline when it begins with '{', else a file\n"
    "  --max-len N              longest row in tokens (default: the checkpoint's)\n"
    "  --head-max-len N         soft budget of question and options in tokens (default: the checkpoint's)\n"
    "  --min-confidence X|JSON  abstention gate: a number in [0, 1] or an object bucket -> number\n"
    "  --lang CODE              language of the state, for --lang-temperatures\n"
    "  --lang-temperatures JSON|FILE\n"
    "                           temperatures per language\n"
    "  --state-token-counts     usage also counts the state's tokens\n"
    "  --raw                    answers also have their logits\n"
    "  --pretty                 indented JSON\n"
    "  --table                  a table for people instead of JSON\n"
    "  --threads N              threads that compute (default: one per CPU); answers do not depend on it\n"
    "  --precision float|double float32, or the slow float64 reference\n"
    "  --help                   this text\n"
    "\n"
    "Packages, as layac export writes them, in place of the CPU engine:\n"
    "\n" LAYAC_BUNDLE_USAGE LAYAC_LONG_USAGE;

typedef struct settings {
    const char *model;
    const char *state;
    const char *state_file;
    const char *state_json;
    const char *state_json_file;
    const char *questions;
    const char *lang_temperatures;
    bool table;
    layac_bundle_options bundle;
    laya_context_options context;
    laya_predict_options predict;
} settings;

/* The state as JSON text. */
static int read_state(const settings *set, laya_buffer *json)
{
    laya_buffer text;
    laya_buffer_init(json, NULL);
    if (set->state_json) {
        laya_buffer_puts(json, set->state_json);
        return json->failed ? layac_fail(EXIT_MEMORY, "out of memory") : EXIT_OK;
    }
    if (set->state_json_file) return layac_read(set->state_json_file, json);
    if (set->state) {
        laya_json_write_string(json, set->state, strlen(set->state));
        return json->failed ? layac_fail(EXIT_MEMORY, "out of memory") : EXIT_OK;
    }
    const char *path = set->state_file ? set->state_file : "-";
    if (strcmp(path, "-") == 0 && isatty(STDIN_FILENO))
        return layac_fail(EXIT_USAGE, "predict: no state; use --state TEXT or --state-file FILE, or pipe a text in");
    int code = layac_read(path, &text);
    layac_drop_newline(&text);
    if (code == EXIT_OK) {
        laya_json_write_string(json, text.data ? text.data : "", text.size);
        if (json->failed) code = layac_fail(EXIT_MEMORY, "out of memory");
    }
    laya_buffer_close(&text);
    return code;
}

/* Answer with an open model; bundle NULL: with the CPU engine. */
static int answer(const settings *set, const laya_model *model, laya_bundle *bundle, const laya_buffer *state,
                  const laya_buffer *questions)
{
    laya_context *context;
    laya_error error;
    laya_context_options options = set->context;
    layac_bar bar;
    const char *result;
    size_t size;
    options.bundle = bundle;
    options.long_native = set->bundle.long_native;
    options.progress = layac_bar_start(&bar);
    if (laya_context_open(model, &options, &context, &error) != LAYA_OK) return layac_fail_library(&error);
    int code = EXIT_OK;
    laya_status status = laya_predict(context, state->data, state->size, questions->data, questions->size,
                                      &set->predict, &result, &size);
    layac_bar_end(&bar);
    if (status != LAYA_OK) {
        code = layac_fail_library(laya_context_error(context));
    } else if (set->table) {
        code = layac_print_table(result, size);
    } else {
        fwrite(result, 1, size, stdout);
        fputc('\n', stdout);
    }
    laya_context_close(context);
    return code == EXIT_OK ? layac_finish() : code;
}

static int answer_with_package(const settings *set, const char *languages, const laya_buffer *state,
                               const laya_buffer *questions)
{
    laya_bundle *bundle;
    int code = layac_open_bundle(&set->bundle, set->model, languages, set->context.threads, &bundle);
    if (code != EXIT_OK) return code;
    code = answer(set, laya_bundle_model(bundle), bundle, state, questions);
    laya_bundle_close(bundle);
    return code;
}

static int answer_with_model(const settings *set, const char *languages, const laya_buffer *state,
                             const laya_buffer *questions)
{
    laya_model *model;
    int code = layac_open_model(set->model, languages, &model);
    if (code != EXIT_OK) return code;
    code = answer(set, model, NULL, state, questions);
    laya_model_close(model);
    return code;
}

/* Read the language temperatures, open what answers, then answer. */
static int open_and_answer(const settings *set, const laya_buffer *state, const laya_buffer *questions)
{
    laya_buffer languages;
    laya_buffer_init(&languages, NULL);
    int code = set->lang_temperatures ? layac_json_argument(set->lang_temperatures, &languages) : EXIT_OK;
    if (code == EXIT_OK && languages.size && strlen(languages.data) != languages.size)
        code = layac_fail(EXIT_INPUT, "--lang-temperatures: the text holds a NUL byte");
    if (code == EXIT_OK)
        code = (set->bundle.package ? answer_with_package : answer_with_model)(set, languages.data, state, questions);
    laya_buffer_close(&languages);
    return code;
}

static int run(const settings *set)
{
    laya_buffer state, questions;
    laya_buffer_init(&state, NULL);
    int code = layac_json_argument(set->questions, &questions);
    if (code == EXIT_OK) code = read_state(set, &state);
    if (code == EXIT_OK) code = open_and_answer(set, &state, &questions);
    laya_buffer_close(&state);
    laya_buffer_close(&questions);
    return code;
}

/* ------------------------------------------------------------------ options */

enum {
    OPTION_STATE = 256,
    OPTION_STATE_FILE,
    OPTION_STATE_JSON,
    OPTION_STATE_JSON_FILE,
    OPTION_MAX_LEN,
    OPTION_HEAD_MAX_LEN,
    OPTION_MIN_CONFIDENCE,
    OPTION_LANG,
    OPTION_LANG_TEMPERATURES,
    OPTION_STATE_TOKEN_COUNTS,
    OPTION_RAW,
    OPTION_PRETTY,
    OPTION_TABLE,
    OPTION_THREADS,
    OPTION_PRECISION
};

static const struct option options[] = {{"model", required_argument, NULL, 'm'},
                                        {"questions", required_argument, NULL, 'q'},
                                        {"state", required_argument, NULL, OPTION_STATE},
                                        {"state-file", required_argument, NULL, OPTION_STATE_FILE},
                                        {"state-json", required_argument, NULL, OPTION_STATE_JSON},
                                        {"state-json-file", required_argument, NULL, OPTION_STATE_JSON_FILE},
                                        {"max-len", required_argument, NULL, OPTION_MAX_LEN},
                                        {"head-max-len", required_argument, NULL, OPTION_HEAD_MAX_LEN},
                                        {"min-confidence", required_argument, NULL, OPTION_MIN_CONFIDENCE},
                                        {"lang", required_argument, NULL, OPTION_LANG},
                                        {"lang-temperatures", required_argument, NULL, OPTION_LANG_TEMPERATURES},
                                        {"state-token-counts", no_argument, NULL, OPTION_STATE_TOKEN_COUNTS},
                                        {"raw", no_argument, NULL, OPTION_RAW},
                                        {"pretty", no_argument, NULL, OPTION_PRETTY},
                                        {"table", no_argument, NULL, OPTION_TABLE},
                                        {"threads", required_argument, NULL, OPTION_THREADS},
                                        {"precision", required_argument, NULL, OPTION_PRECISION},
                                        LAYAC_BUNDLE_LONG_OPTIONS,
                                        LAYAC_LONG_OPTION,
                                        {"help", no_argument, NULL, 'h'},
                                        {0}};

static int set_precision(settings *set, const char *text)
{
    if (strcmp(text, "float") == 0)
        set->context.precision = LAYA_PRECISION_FLOAT;
    else if (strcmp(text, "double") == 0)
        set->context.precision = LAYA_PRECISION_DOUBLE;
    else
        return layac_fail(EXIT_USAGE, "--precision: expected float or double, got '%s'", text);
    return EXIT_OK;
}

static int set_option(settings *set, int option)
{
    uint32_t number;
    if (layac_is_bundle_option(option)) return layac_bundle_option(&set->bundle, option, optarg);
    switch (option) {
    case 'm': set->model = optarg; break;
    case 'q': set->questions = optarg; break;
    case OPTION_STATE: set->state = optarg; break;
    case OPTION_STATE_FILE: set->state_file = optarg; break;
    case OPTION_STATE_JSON: set->state_json = optarg; break;
    case OPTION_STATE_JSON_FILE: set->state_json_file = optarg; break;
    case OPTION_MAX_LEN:
        if (!layac_number("--max-len", optarg, 1, UINT32_MAX, &set->predict.max_len)) return EXIT_USAGE;
        break;
    case OPTION_HEAD_MAX_LEN:
        if (!layac_number("--head-max-len", optarg, 1, UINT32_MAX, &set->predict.head_max_len)) return EXIT_USAGE;
        break;
    case OPTION_MIN_CONFIDENCE: set->predict.min_confidence = optarg; break;
    case OPTION_LANG: set->predict.lang = optarg; break;
    case OPTION_LANG_TEMPERATURES: set->lang_temperatures = optarg; break;
    case OPTION_STATE_TOKEN_COUNTS: set->predict.flags |= LAYA_PREDICT_STATE_TOKEN_COUNTS; break;
    case OPTION_RAW: set->predict.flags |= LAYA_PREDICT_RAW; break;
    case OPTION_PRETTY: set->predict.flags |= LAYA_PREDICT_PRETTY; break;
    case OPTION_TABLE: set->table = true; break;
    case OPTION_THREADS:
        if (!layac_number("--threads", optarg, 1, LAYA_MAX_THREADS, &number)) return EXIT_USAGE;
        set->context.threads = number;
        break;
    case OPTION_PRECISION: return set_precision(set, optarg);
    default: fputs(usage, stderr); return EXIT_USAGE;
    }
    return EXIT_OK;
}

int layac_predict(int count, char **arguments)
{
    settings set = {0};
    layac_bundle_options_init(&set.bundle);
    laya_context_options_init(&set.context);
    laya_predict_options_init(&set.predict);
    for (int option; (option = getopt_long(count, arguments, "m:q:h", options, NULL)) != -1;) {
        if (option == 'h') {
            fputs(usage, stdout);
            return layac_finish();
        }
        int code = set_option(&set, option);
        if (code != EXIT_OK) return code;
    }
    if (optind < count) return layac_fail(EXIT_USAGE, "predict: unexpected argument '%s'", arguments[optind]);
    if (!set.questions)
        return layac_fail(EXIT_USAGE, "predict: no questions; use --questions JSON or --questions FILE");
    int states = (set.state != NULL) + (set.state_file != NULL) + (set.state_json != NULL) +
                 (set.state_json_file != NULL);
    bool state_on_input = states == 0 || (set.state_file && strcmp(set.state_file, "-") == 0) ||
                          (set.state_json_file && strcmp(set.state_json_file, "-") == 0);
    if (strcmp(set.questions, "-") == 0 && state_on_input)
        return layac_fail(EXIT_USAGE, "predict: state and questions cannot both come from standard input");
    if (states > 1) return layac_fail(EXIT_USAGE, "predict: more than one state; name exactly one");
    if (set.bundle.package && set.context.precision == LAYA_PRECISION_DOUBLE)
        return layac_fail(EXIT_USAGE, "predict: --precision is of the CPU engine; for a package use --numerics");
    int code = layac_bundle_check(&set.bundle, "predict");
    return code == EXIT_OK ? run(&set) : code;
}
