/* SPDX-License-Identifier: Apache-2.0 */
/* layac reference */
#include "base/threads.h"
#include "layac.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] =
    "usage: layac reference [--model DIR] --output FILE [options]\n"
    "\n"
    "Answers the questions of a fixture with the float32 engine and records them for layac validate: token rows,\n"
    "unrounded logits, results, and the SHA-256 of the checkpoint's weights. FILE is complete or absent, also when\n"
    "interrupted.\n"
    "\n"
    "  --model DIR     checkpoint directory (default: $LAYA_MODEL, else the demo model)\n"
    "  --output FILE   file to make; it must not exist\n"
    "  --fixture FILE  cases with states and questions (default: the 63 questions installed with this command)\n"
    "  --threads N     threads (default: one per CPU); the file does not depend on it\n"
    "  --help          this text\n";

typedef struct settings {
    const char *model;
    const char *output;
    const char *fixture;
    laya_reference_options options;
} settings;

static int record(settings *set, const laya_model *model)
{
    laya_error error;
    layac_bar bar;
    char *fixture = layac_fixture_path(set->fixture);
    if (!fixture) return EXIT_USAGE;
    set->options.interrupt = layac_catch_signals();
    set->options.progress = layac_bar_start(&bar);
    laya_status status = laya_reference_record(model, fixture, &set->options, set->output, &error);
    layac_bar_end(&bar);
    free(fixture);
    return status == LAYA_OK ? EXIT_OK : layac_fail_library(&error);
}

enum { OPTION_FIXTURE = 256, OPTION_THREADS };

static const struct option options[] = {{"model", required_argument, NULL, 'm'},
                                        {"output", required_argument, NULL, 'o'},
                                        {"fixture", required_argument, NULL, OPTION_FIXTURE},
                                        {"threads", required_argument, NULL, OPTION_THREADS},
                                        {"help", no_argument, NULL, 'h'},
                                        {0}};

static int set_option(settings *set, int option)
{
    uint32_t number;
    switch (option) {
    case 'm': set->model = optarg; break;
    case 'o': set->output = optarg; break;
    case OPTION_FIXTURE: set->fixture = optarg; break;
    case OPTION_THREADS:
        if (!layac_number("--threads", optarg, 1, LAYA_MAX_THREADS, &number)) return EXIT_USAGE;
        set->options.threads = number;
        break;
    default: fputs(usage, stderr); return EXIT_USAGE;
    }
    return EXIT_OK;
}

int layac_reference(int count, char **arguments)
{
    settings set = {0};
    laya_model *model;
    laya_reference_options_init(&set.options);
    for (int option; (option = getopt_long(count, arguments, "m:o:h", options, NULL)) != -1;) {
        if (option == 'h') {
            fputs(usage, stdout);
            return layac_finish();
        }
        int code = set_option(&set, option);
        if (code != EXIT_OK) return code;
    }
    if (optind < count) return layac_fail(EXIT_USAGE, "reference: unexpected argument '%s'", arguments[optind]);
    if (!set.output) return layac_fail(EXIT_USAGE, "reference: no output; use --output FILE");
    int code = layac_open_model(set.model, NULL, &model);
    if (code != EXIT_OK) return code;
    code = record(&set, model);
    laya_model_close(model);
    layac_pass_signal_on();
    return code;
}
