/* SPDX-License-Identifier: Apache-2.0 */
/* layac inspect */
#include "bundle_options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: layac inspect [--ops] [--tree | --json] PACKAGE\n"
    "       layac inspect --palettes [--parent P] [--tree | --json] PACKAGE\n"
    "       layac inspect --verify PACKAGE\n"
    "       layac inspect --diff A B\n"
    "       layac inspect --plan [--compute-units U] [--model DIR] BUNDLE\n"
    "\n"
    "Prints the facts of a Core ML package as JSON: inputs and outputs, operations by kind, constants, palettes, "
    "files,\n"
    "metadata.\n"
    "PACKAGE is a .mlpackage directory or a bundle that layac export wrote; packages of other tools are read too.\n"
    "\n"
    "  --ops     also every operation, with types\n"
    "  --tree    a tree for people instead of JSON\n"
    "  --json    JSON, which is the default\n"
    "  --palettes  the weights that are tables and indices, with the tables and what they change, as the bundle's\n"
    "              manifest.json records it\n"
    "  --parent P  compute what they change: P is the package or bundle that they were made from\n"
    "  --verify  check the package and print what was found; exit code 7 when it does not pass\n"
    "  --diff    compare two packages by meaning: names of values, order of maps and layout of files do not count;\n"
    "            exit code 7 when they differ\n"
    "  --plan    compile and load a bundle's package with Core ML and print the compute plan: the devices that it\n"
    "            expects to use, not a trace of an execution; macOS 14.4 or newer\n"
    "  --compute-units U  what Core ML may use: cpu, cpu_gpu, cpu_ne (default) or all\n"
    "  --model DIR        the checkpoint of the bundle (default: the one that the bundle names)\n"
    "  --help    this text\n";

typedef struct settings {
    bool ops, tree, json, palettes, verify, diff, plan;
    const char *parent; /* of --palettes */
    const char *model;
    layac_bundle_options bundle; /* of --plan */
} settings;

static int describe(const settings *set, const laya_package *package)
{
    laya_error error;
    char *json;
    if (laya_package_describe(package, set->ops, &json, &error) != LAYA_OK) return layac_fail_library(&error);
    int code = EXIT_OK;
    if (set->tree)
        code = layac_print_tree(json, strlen(json));
    else
        puts(json);
    laya_package_release(package, json);
    return code;
}

static int palettes(const settings *set, const laya_package *package)
{
    laya_error error;
    laya_package *parent = NULL;
    char *json = NULL;
    laya_status status = LAYA_OK;
    if (set->parent) status = laya_package_open(set->parent, NULL, &parent, &error);
    if (status == LAYA_OK) status = laya_package_palettes(package, parent, &json, &error);
    int code = status == LAYA_OK ? EXIT_OK : layac_fail_library(&error);
    if (json && set->tree)
        code = layac_print_palettes(json, strlen(json));
    else if (json)
        puts(json);
    laya_package_release(package, json);
    laya_package_close(parent);
    return code;
}

/* Print a report; a check that did not pass is no error of the command. */
static int report(const laya_package *package, char *json, bool passed)
{
    puts(json);
    laya_package_release(package, json);
    return passed ? EXIT_OK : EXIT_CHECK;
}

static int verify(const laya_package *package)
{
    laya_error error;
    char *json;
    int passed;
    if (laya_package_verify(package, &passed, &json, &error) != LAYA_OK) return layac_fail_library(&error);
    return report(package, json, passed);
}

static int compare(const laya_package *package, const char *other_path)
{
    laya_error error;
    laya_package *other;
    char *json;
    int equal;
    if (laya_package_open(other_path, NULL, &other, &error) != LAYA_OK) return layac_fail_library(&error);
    int code = laya_package_compare(package, other, &equal, &json, &error) == LAYA_OK ? report(package, json, equal)
                                                                                      : layac_fail_library(&error);
    laya_package_close(other);
    return code;
}

static int print_plan(laya_bundle *bundle, const char *path)
{
    laya_error error;
    char *json;
    if (laya_bundle_buckets(bundle) != 1)
        return layac_fail(EXIT_USAGE, "inspect: %s holds %zu packages; name one of them", path,
                          laya_bundle_buckets(bundle));
    if (laya_bundle_plan(bundle, 0, &json, &error) != LAYA_OK) return layac_fail_library(&error);
    puts(json);
    laya_bundle_release(bundle, json);
    return layac_finish();
}

static int plan(const settings *set, const char *path)
{
    layac_bundle_options options = set->bundle;
    laya_bundle *bundle;
    options.package = path;
    options.options.backend = LAYA_BACKEND_COREML;
    int code = layac_open_bundle(&options, set->model, NULL, 0, &bundle);
    if (code != EXIT_OK) return code;
    code = print_plan(bundle, path);
    laya_bundle_close(bundle);
    return code;
}

static int inspect(const settings *set, char **paths)
{
    laya_package *package;
    laya_error error;
    int code;
    if (set->plan) return plan(set, paths[0]);
    if (laya_package_open(paths[0], NULL, &package, &error) != LAYA_OK) return layac_fail_library(&error);
    if (set->diff)
        code = compare(package, paths[1]);
    else if (set->palettes)
        code = palettes(set, package);
    else
        code = set->verify ? verify(package) : describe(set, package);
    laya_package_close(package);
    if (code != EXIT_OK && code != EXIT_CHECK) return code;
    int finished = layac_finish();
    return finished == EXIT_OK ? code : finished;
}

/* Options that exclude each other. */
static int check(const settings *set)
{
    if (set->parent && !set->palettes) return layac_fail(EXIT_USAGE, "inspect: --parent goes with --palettes");
    if (set->palettes && (set->ops || set->verify || set->diff || set->plan))
        return layac_fail(EXIT_USAGE, "inspect: --ops, --verify, --diff and --plan do not go with --palettes");
    if (set->plan && (set->ops || set->tree || set->verify || set->diff))
        return layac_fail(EXIT_USAGE, "inspect: --ops, --tree, --verify and --diff do not go with --plan");
    if (!set->plan && (set->bundle.units || set->model))
        return layac_fail(EXIT_USAGE, "inspect: %s goes with --plan",
                          set->bundle.units ? "--compute-units" : "--model");
    if (set->verify && set->diff) return layac_fail(EXIT_USAGE, "inspect: give --verify or --diff, not both");
    if (set->tree && set->json) return layac_fail(EXIT_USAGE, "inspect: give --tree or --json, not both");
    if ((set->ops || set->tree) && (set->verify || set->diff))
        return layac_fail(EXIT_USAGE, "inspect: --ops and --tree do not go with --verify and --diff");
    return EXIT_OK;
}

int layac_inspect(int count, char **arguments)
{
    static const struct option options[] = {{"ops", no_argument, NULL, 'o'},
                                            {"tree", no_argument, NULL, 't'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"verify", no_argument, NULL, 'v'},
                                            {"diff", no_argument, NULL, 'd'},
                                            {"plan", no_argument, NULL, 'p'},
                                            {"palettes", no_argument, NULL, 'l'},
                                            {"parent", required_argument, NULL, 'P'},
                                            {"compute-units", required_argument, NULL, LAYAC_OPTION_UNITS},
                                            {"model", required_argument, NULL, 'm'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    settings set = {0};
    int code;
    layac_bundle_options_init(&set.bundle);
    for (int option; (option = getopt_long(count, arguments, "h", options, NULL)) != -1;) {
        switch (option) {
        case 'o': set.ops = true; break;
        case 't': set.tree = true; break;
        case 'j': set.json = true; break;
        case 'v': set.verify = true; break;
        case 'd': set.diff = true; break;
        case 'p': set.plan = true; break;
        case 'l': set.palettes = true; break;
        case 'P': set.parent = optarg; break;
        case 'm': set.model = optarg; break;
        case LAYAC_OPTION_UNITS:
            code = layac_bundle_option(&set.bundle, option, optarg);
            if (code != EXIT_OK) return code;
            break;
        case 'h': fputs(usage, stdout); return layac_finish();
        default: fputs(usage, stderr); return EXIT_USAGE;
        }
    }
    code = check(&set);
    if (code != EXIT_OK) return code;
    int wanted = set.diff ? 2 : 1;
    if (count - optind < wanted) {
        return layac_fail(EXIT_USAGE, set.diff ? "inspect: --diff needs two packages"
                                               : "inspect: no package; name a .mlpackage or a bundle");
    }
    if (count - optind > wanted)
        return layac_fail(EXIT_USAGE, "inspect: unexpected argument '%s'", arguments[optind + wanted]);
    return inspect(&set, arguments + optind);
}
