/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle_options.h"

#include <string.h>

void layac_bundle_options_init(layac_bundle_options *set)
{
    *set = (layac_bundle_options){0};
    laya_bundle_options_init(&set->options);
}

bool layac_is_bundle_option(int option)
{
    return option >= LAYAC_OPTION_PACKAGE && option < LAYAC_OPTION_END;
}

static int set_backend(layac_bundle_options *set, const char *text)
{
    set->backend = text;
    set->native = strcmp(text, "native") == 0;
    if (strcmp(text, "interpreter") == 0)
        set->options.backend = LAYA_BACKEND_INTERPRETER;
    else if (strcmp(text, "coreml") == 0)
        set->options.backend = LAYA_BACKEND_COREML;
    else if (!set->native)
        return layac_fail(EXIT_USAGE, "--backend: expected native, interpreter or coreml, got '%s'", text);
    return EXIT_OK;
}

static int set_units(layac_bundle_options *set, const char *text)
{
    set->units = text;
    if (strcmp(text, "cpu") == 0)
        set->options.units = LAYA_UNITS_CPU;
    else if (strcmp(text, "cpu_gpu") == 0)
        set->options.units = LAYA_UNITS_CPU_GPU;
    else if (strcmp(text, "cpu_ne") == 0)
        set->options.units = LAYA_UNITS_CPU_NE;
    else if (strcmp(text, "all") == 0)
        set->options.units = LAYA_UNITS_ALL;
    else
        return layac_fail(EXIT_USAGE, "--compute-units: expected cpu, cpu_gpu, cpu_ne or all, got '%s'", text);
    return EXIT_OK;
}

static int set_numerics(layac_bundle_options *set, const char *text)
{
    set->numerics = text;
    if (strcmp(text, "fp16") == 0)
        set->options.numerics = LAYA_NUMERICS_FP16;
    else if (strcmp(text, "fp16-strict") == 0)
        set->options.numerics = LAYA_NUMERICS_FP16_STRICT;
    else if (strcmp(text, "fp32") == 0)
        set->options.numerics = LAYA_NUMERICS_FP32;
    else
        return layac_fail(EXIT_USAGE, "--numerics: expected fp16, fp16-strict or fp32, got '%s'", text);
    return EXIT_OK;
}

int layac_bundle_option(layac_bundle_options *set, int option, const char *argument)
{
    switch (option) {
    case LAYAC_OPTION_PACKAGE: set->package = argument; break;
    case LAYAC_OPTION_BACKEND: return set_backend(set, argument);
    case LAYAC_OPTION_UNITS: return set_units(set, argument);
    case LAYAC_OPTION_NUMERICS: return set_numerics(set, argument);
    case LAYAC_OPTION_CACHE: set->options.cache_directory = argument; break;
    default:
        if (strcmp(argument, "native") != 0)
            return layac_fail(EXIT_USAGE, "--long: expected native, got '%s'", argument);
        set->long_native = true;
        break;
    }
    return EXIT_OK;
}

int layac_bundle_check(const layac_bundle_options *set, const char *command)
{
    bool coreml = set->options.backend == LAYA_BACKEND_COREML;
    if (set->native && set->package)
        return layac_fail(EXIT_USAGE, "%s: --backend native runs no package; leave out --package or --backend",
                          command);
    if (set->package) {
        if (set->units && !coreml)
            return layac_fail(EXIT_USAGE, "%s: --compute-units goes with --backend coreml", command);
        if (set->options.cache_directory && !coreml)
            return layac_fail(EXIT_USAGE, "%s: --cache goes with --backend coreml", command);
        if (set->numerics && coreml)
            return layac_fail(EXIT_USAGE, "%s: --numerics goes with --backend interpreter", command);
        return EXIT_OK;
    }
    const char *option = set->backend && !set->native   ? "--backend"
                         : set->units                   ? "--compute-units"
                         : set->numerics                ? "--numerics"
                         : set->options.cache_directory ? "--cache"
                         : set->long_native             ? "--long"
                                                        : NULL;
    if (!option) return EXIT_OK;
    return layac_fail(EXIT_USAGE, "%s: %s needs a package; use --package PATH", command, option);
}

int layac_open_bundle(const layac_bundle_options *set, const char *model, const char *lang_temperatures,
                      unsigned threads, laya_bundle **bundle)
{
    laya_error error;
    laya_bundle_options options = set->options;
    options.logger = layac_logger();
    options.model_directory = model;
    options.lang_temperatures = lang_temperatures;
    options.threads = threads;
    laya_status status = laya_bundle_open(set->package, &options, bundle, &error);
    return status == LAYA_OK ? EXIT_OK : layac_fail_library(&error);
}
