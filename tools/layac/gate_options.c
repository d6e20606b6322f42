/* SPDX-License-Identifier: Apache-2.0 */
#include "gate_options.h"

#include "base/threads.h"

void layac_gate_options_init(layac_gate_options *set)
{
    *set = (layac_gate_options){0};
    layac_bundle_options_init(&set->bundle);
    set->bundle.options.logger = layac_logger();
}

bool layac_is_gate_option(int option)
{
    return layac_is_bundle_option(option) || option == 'm' || option == 'o' || option == LAYAC_OPTION_LENGTH ||
           option == LAYAC_OPTION_THREADS;
}

int layac_gate_option(layac_gate_options *set, int option, const char *argument)
{
    uint32_t number;
    if (layac_is_bundle_option(option)) return layac_bundle_option(&set->bundle, option, argument);
    switch (option) {
    case 'm': set->bundle.options.model_directory = argument; break;
    case 'o': set->output = argument; break;
    case LAYAC_OPTION_LENGTH:
        if (!layac_number("--length", argument, 1, UINT32_MAX, &set->length)) return EXIT_USAGE;
        break;
    default:
        if (!layac_number("--threads", argument, 1, LAYA_MAX_THREADS, &number)) return EXIT_USAGE;
        set->bundle.options.threads = number;
        break;
    }
    return EXIT_OK;
}

int layac_gate_check(const layac_gate_options *set, const char *command)
{
    if (set->bundle.native)
        return layac_fail(EXIT_USAGE, "%s: --backend native runs no package; it is the reference", command);
    if (!set->bundle.package) return layac_fail(EXIT_USAGE, "%s: no package; use --package PATH", command);
    if (!set->output || !*set->output)
        return layac_fail(EXIT_USAGE, "%s: no output; use --output FILE, a file that does not exist", command);
    return layac_bundle_check(&set->bundle, command);
}

/* ------------------------------------------------------------------ printing reports */

void layac_copy_member(laya_json_writer *w, laya_json_value object, const char *name)
{
    laya_json_value value = laya_json_get(object, name);
    if (!laya_json_present(value)) return;
    laya_json_name(w, name);
    laya_json_put_value(w, value);
}

int layac_print_report(const laya_report *report, void (*show)(laya_json_value report),
                       void (*summarize)(laya_json_writer *w, laya_json_value report))
{
    laya_json doc;
    laya_json_writer w;
    laya_buffer summary;
    laya_error error;
    size_t size;
    const char *text = laya_report_json(report, &size);
    if (laya_json_parse(&doc, text, size, NULL, &error) != LAYA_OK) return layac_fail_library(&error);
    if (show) show(laya_json_root(&doc));
    laya_buffer_init(&summary, NULL);
    laya_json_writer_init(&w, &summary, true);
    summarize(&w, laya_json_root(&doc));
    laya_json_close(&doc);
    if (!summary.failed) puts(summary.data);
    int code = summary.failed ? layac_fail(EXIT_MEMORY, "out of memory") : layac_finish();
    laya_buffer_close(&summary);
    if (code != EXIT_OK) return code;
    return laya_report_passed(report) ? EXIT_OK : EXIT_CHECK;
}
