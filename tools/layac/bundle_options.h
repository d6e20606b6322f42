/* SPDX-License-Identifier: Apache-2.0 */
/* The options of commands that run a package: --package, --backend, --compute-units, --numerics, --long, --cache. */
#ifndef LAYAC_BUNDLE_OPTIONS_H
#define LAYAC_BUNDLE_OPTIONS_H

#include "layac.h"

typedef struct layac_bundle_options {
    const char *package;         /* NULL: none was named */
    bool native;                 /* --backend native */
    bool long_native;            /* --long native */
    const char *backend;         /* as given; NULL: not given */
    const char *units;           /* the same */
    const char *numerics;        /* the same */
    laya_bundle_options options; /* but for model_directory, threads and lang_temperatures, which the command sets */
} layac_bundle_options;

/* Values of getopt_long; a command's own begin at 256 and stay below. */
enum {
    LAYAC_OPTION_PACKAGE = 512,
    LAYAC_OPTION_BACKEND,
    LAYAC_OPTION_UNITS,
    LAYAC_OPTION_NUMERICS,
    LAYAC_OPTION_LONG,
    LAYAC_OPTION_CACHE,
    LAYAC_OPTION_END
};

/* Entries of a command's table of long options. */
#define LAYAC_BUNDLE_LONG_OPTIONS                                                                                    \
    {"package", required_argument, NULL, LAYAC_OPTION_PACKAGE},                                                      \
        {"backend", required_argument, NULL, LAYAC_OPTION_BACKEND},                                                  \
        {"compute-units", required_argument, NULL, LAYAC_OPTION_UNITS},                                              \
        {"numerics", required_argument, NULL, LAYAC_OPTION_NUMERICS},                                                \
    {                                                                                                                \
        "cache", required_argument, NULL, LAYAC_OPTION_CACHE                                                         \
    }
/* The same for commands that may send long rows to the CPU engine. */
#define LAYAC_LONG_OPTION                                                                                            \
    {                                                                                                                \
        "long", required_argument, NULL, LAYAC_OPTION_LONG                                                           \
    }

/* Lines of a command's usage text. */
#define LAYAC_BUNDLE_USAGE                                                                                           \
    "  --package PATH           an exported package, or a directory of packages of different lengths\n"              \
    "  --backend B              what runs it: interpreter (default) or coreml (macOS); native: no package, the "     \
    "CPU\n"                                                                                                          \
    "                           engine\n"                                                                            \
    "  --compute-units U        of coreml: cpu, cpu_gpu, cpu_ne (default) or all\n"                                  \
    "  --numerics N             of interpreter: fp16 (default), fp16-strict (sums in fp16 too) or fp32\n"            \
    "  --cache DIR              where coreml keeps compiled packages (default: the user's cache folder)\n"
#define LAYAC_LONG_USAGE "  --long native            answer questions that fit no package with the CPU engine\n"

/* No package; the library's defaults. */
void layac_bundle_options_init(layac_bundle_options *set);
/* Whether a value of getopt_long is one of these options. */
bool layac_is_bundle_option(int option);
/* Take the option, whose argument is `argument`. Returns an exit code; usage errors are reported. */
int layac_bundle_option(layac_bundle_options *set, int option, const char *argument);
/* Options that contradict each other, once all are read: EXIT_USAGE with a report. */
int layac_bundle_check(const layac_bundle_options *set, const char *command);

/*
 * Open the package.
 *
 * model              checkpoint of the host side; NULL: as the package's manifest says
 * lang_temperatures  JSON text; NULL: none
 * threads            0: one per CPU
 *
 * Returns an exit code; errors are reported.
 */
int layac_open_bundle(const layac_bundle_options *set, const char *model, const char *lang_temperatures,
                      unsigned threads, laya_bundle **bundle);

#endif
