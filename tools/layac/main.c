/* SPDX-License-Identifier: Apache-2.0 */
/* layac: the command of laya.c. */
#include "layac.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "layac answers typed questions about a text with a Laya decision model.\n"
    "\n"
    "usage: layac predict [--model DIR] [--state TEXT | --state-file FILE] --questions JSON|FILE [options]\n"
    "       layac info [--model DIR] [--hashes]\n"
    "       layac tokenize [--model DIR | --tokenizer FILE] [--text TEXT | --file FILE] [--lines] [--tokens]\n"
    "       layac export [--model DIR] --output OUT [options]\n"
    "       layac inspect [--ops] [--tree] PACKAGE\n"
    "       layac reference [--model DIR] --output FILE [options]\n"
    "       layac validate --package PATH --output FILE [options]\n"
    "       layac benchmark --package PATH --output FILE [options]\n"
    "       layac palettize --package PATH --bits N --output OUT [options]\n"
    "       layac help [COMMAND]\n"
    "       layac --version\n"
    "\n"
    "layac help COMMAND explains a command. Results go to standard output as JSON, everything else to standard\n"
    "error. Exit codes: 0 success, 1 system error, 2 usage, 3 state or questions not acceptable, 4 checkpoint or\n"
    "package malformed or unsupported, 5 a file cannot be read or written, 6 out of memory, 7 a check did not pass\n"
    "(verification or validation failed, packages differ, outputs not stable, a screen not complete).\n";

static const struct {
    const char *name;
    int (*run)(int count, char **arguments);
} commands[] = {{"predict", layac_predict},     {"info", layac_info},         {"tokenize", layac_tokenize},
                {"export", layac_export},       {"probe", layac_export},      {"inspect", layac_inspect},
                {"reference", layac_reference}, {"validate", layac_validate}, {"benchmark", layac_benchmark},
                {"palettize", layac_palettize}};

static int run_command(const char *name, int count, char **arguments)
{
    for (size_t at = 0; at < sizeof commands / sizeof *commands; at++) {
        if (strcmp(name, commands[at].name) == 0) return commands[at].run(count, arguments);
    }
    return layac_fail(EXIT_USAGE,
                      "unknown command '%s'; commands are predict, info, tokenize, export, inspect, reference, "
                      "validate, benchmark, palettize, help",
                      name);
}

static int help(int count, char **arguments)
{
    char option[] = "--help";
    char *rewritten[] = {arguments[0], option, NULL};
    if (count >= 2) return run_command(arguments[1], 2, rewritten);
    fputs(usage, stdout);
    return layac_finish();
}

int main(int count, char **arguments)
{
    if (count < 2) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    const char *name = arguments[1];
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("layac %s\n", laya_version());
        return layac_finish();
    }
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help(count - 1, arguments + 1);
    return run_command(name, count - 1, arguments + 1);
}
