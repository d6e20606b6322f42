/* SPDX-License-Identifier: Apache-2.0 */
/* layac info */
#include "layac.h"

#include <getopt.h>
#include <stdio.h>

static const char usage[] = "usage: layac info [--model DIR] [--hashes]\n"
                            "\n"
                            "Prints the facts of a checkpoint as JSON: shapes, layer kinds, temperatures in use,\n"
                            "weight types, special tokens.\n"
                            "\n"
                            "  --model DIR  checkpoint directory (default: $LAYA_MODEL, else the demo model)\n"
                            "  --hashes     also the SHA-256 of each file; reads all of them\n"
                            "  --help       this text\n";

static int describe(const char *directory, bool hashes)
{
    laya_model *model;
    laya_error error;
    char *json;
    int code = layac_open_model(directory, NULL, &model);
    if (code != EXIT_OK) return code;
    if (laya_model_describe(model, hashes, &json, &error) == LAYA_OK) {
        puts(json);
        laya_model_release(model, json);
        code = layac_finish();
    } else {
        code = layac_fail_library(&error);
    }
    laya_model_close(model);
    return code;
}

int layac_info(int count, char **arguments)
{
    static const struct option options[] = {{"model", required_argument, NULL, 'm'},
                                            {"hashes", no_argument, NULL, 'x'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    const char *directory = NULL;
    bool hashes = false;
    for (int option; (option = getopt_long(count, arguments, "m:h", options, NULL)) != -1;) {
        switch (option) {
        case 'm': directory = optarg; break;
        case 'x': hashes = true; break;
        case 'h': fputs(usage, stdout); return layac_finish();
        default: fputs(usage, stderr); return EXIT_USAGE;
        }
    }
    if (optind < count) return layac_fail(EXIT_USAGE, "info: unexpected argument '%s'", arguments[optind]);
    return describe(directory, hashes);
}
