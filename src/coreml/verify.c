/* SPDX-License-Identifier: Apache-2.0 */
/* Verifying a package: the findings, the order of the checks, the report. */
#include "coreml/verify.h"

#include "base/json.h"

#include <stdio.h>
#include <string.h>

/* Warnings must not crowd out errors. */
#define MAX_WARNINGS (LAYA_MAX_FINDINGS / 2)

/* ------------------------------------------------------------------ findings */

static void keep(laya_checker *checker, bool error, laya_check_number check, const char *text)
{
    laya_verdict *verdict = checker->verdict;
    laya_error whole; /* its message becomes valid UTF-8 of a limited size */
    if (checker->function)
        laya_set_error(&whole, LAYA_ERROR_FORMAT, "function '%s': %s", checker->function, text);
    else
        laya_set_error(&whole, LAYA_ERROR_FORMAT, "%s", text);
    if (!verdict->findings)
        verdict->findings = laya_arena_alloc(&verdict->arena, LAYA_MAX_FINDINGS, sizeof *verdict->findings);
    char *copy = laya_arena_copy(&verdict->arena, whole.message, strlen(whole.message));
    if (!verdict->findings || !copy) {
        checker->failed = true;
        return;
    }
    verdict->findings[verdict->finding_count++] = (laya_finding){error, (unsigned)check, copy};
}

static void add(laya_checker *checker, bool error, laya_check_number check, const char *format, va_list arguments)
    LAYA_PRINTF(4, 0);

static void add(laya_checker *checker, bool error, laya_check_number check, const char *format, va_list arguments)
{
    laya_verdict *verdict = checker->verdict;
    if (error) {
        verdict->errors++;
        verdict->errors_of[check - 1]++;
    } else {
        verdict->warnings++;
        verdict->warnings_of[check - 1]++;
        if (checker->warnings_kept == MAX_WARNINGS) return;
    }
    if (verdict->finding_count == LAYA_MAX_FINDINGS) return;
    if (!error) checker->warnings_kept++;
    char text[LAYA_MESSAGE_SIZE];
    vsnprintf(text, sizeof text, format, arguments);
    keep(checker, error, check, text);
}

void laya_check_error(laya_checker *checker, laya_check_number check, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add(checker, true, check, format, arguments);
    va_end(arguments);
}

void laya_check_warning(laya_checker *checker, laya_check_number check, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add(checker, false, check, format, arguments);
    va_end(arguments);
}

/* ------------------------------------------------------------------ the checks */

static void begin(laya_checker *checker, const laya_package *package, laya_verdict *verdict)
{
    *verdict = (laya_verdict){0};
    laya_arena_init(&verdict->arena, &package->allocator);
    *checker = (laya_checker){.package = package, .verdict = verdict};
    laya_arena_init(&checker->scratch, &package->allocator);
}

static laya_status check_all(laya_checker *checker, laya_error *error)
{
    LAYA_TRY(laya_check_interface(checker, error));
    LAYA_TRY(laya_check_operations(checker, error));
    return laya_check_weight_file(checker, error);
}

/* Close the checker, and the verdict too where there is none. */
static laya_status end(laya_checker *checker, laya_status status, laya_error *error)
{
    laya_arena_close(&checker->scratch);
    if (status == LAYA_OK && checker->failed) status = laya_fail_memory(error, 0);
    if (status != LAYA_OK) laya_verdict_close(checker->verdict);
    return status;
}

laya_status laya_package_check(const laya_package *package, laya_verdict *verdict, laya_error *error)
{
    laya_checker checker;
    begin(&checker, package, verdict);
    return end(&checker, check_all(&checker, error), error);
}

void laya_verdict_close(laya_verdict *verdict)
{
    laya_arena_close(&verdict->arena);
    *verdict = (laya_verdict){.arena = verdict->arena};
}

/* ------------------------------------------------------------------ report */

static void write_checks(laya_json_writer *w, const laya_verdict *verdict)
{
    static const char *const names[LAYA_CHECKS] = {
        "names and order", "interface",         "types and stored constants",
        "parameters",      "values and limits", "hashes of the bundle"};
    laya_json_name(w, "checks");
    laya_json_begin(w, '[');
    for (unsigned at = 0; at < LAYA_CHECKS; at++) {
        laya_json_begin(w, '{');
        laya_json_member_uint(w, "check", at + 1);
        laya_json_member_string(w, "name", names[at]);
        laya_json_member_uint(w, "errors", verdict->errors_of[at]);
        laya_json_member_uint(w, "warnings", verdict->warnings_of[at]);
        laya_json_end(w, '}');
    }
    laya_json_end(w, ']');
}

static void write_facts(laya_json_writer *w, const laya_checker *checker, bool bundle, uint32_t hashed)
{
    const laya_verdict *verdict = checker->verdict;
    laya_json_name(w, "operations");
    laya_json_begin(w, '{');
    laya_json_member_uint(w, "checked", verdict->checked_ops);
    laya_json_member_uint(w, "unknown", verdict->unknown_ops);
    laya_json_end(w, '}');
    laya_json_name(w, "constants");
    laya_json_begin(w, '{');
    laya_json_member_uint(w, "count", verdict->constants);
    laya_json_member_uint(w, "bytes", verdict->constant_bytes);
    laya_json_end(w, '}');
    laya_json_name(w, "bundle");
    laya_json_put_bool(w, bundle);
    laya_json_name(w, "files");
    laya_json_begin(w, '{');
    laya_json_member_uint(w, "model_bytes", checker->package->model_file.size);
    laya_json_member_uint(w, "weight_bytes", checker->package->weight_file.size);
    laya_json_member_uint(w, "hashed", hashed);
    laya_json_end(w, '}');
}

static void write_findings(laya_json_writer *w, const laya_verdict *verdict)
{
    laya_json_name(w, "findings");
    laya_json_begin(w, '[');
    for (uint32_t at = 0; at < verdict->finding_count; at++) {
        const laya_finding *finding = &verdict->findings[at];
        laya_json_begin(w, '{');
        laya_json_member_string(w, "severity", finding->error ? "error" : "warning");
        laya_json_member_uint(w, "check", finding->check);
        laya_json_member_string(w, "text", finding->text);
        laya_json_end(w, '}');
    }
    laya_json_end(w, ']');
}

static laya_status write_report(const laya_checker *checker, bool bundle, uint32_t hashed, char **json,
                                laya_error *error)
{
    const laya_verdict *verdict = checker->verdict;
    laya_buffer out;
    laya_json_writer w;
    laya_buffer_init(&out, &checker->package->allocator);
    laya_json_writer_init(&w, &out, true);
    laya_json_begin(&w, '{');
    laya_json_member_path(&w, "package", checker->package->path);
    laya_json_name(&w, "passed");
    laya_json_put_bool(&w, verdict->errors == 0);
    laya_json_member_uint(&w, "errors", verdict->errors);
    laya_json_member_uint(&w, "warnings", verdict->warnings);
    write_checks(&w, verdict);
    write_facts(&w, checker, bundle, hashed);
    write_findings(&w, verdict);
    laya_json_end(&w, '}');
    if (out.failed) {
        laya_buffer_close(&out);
        return laya_fail_memory(error, 0);
    }
    *json = out.data;
    return LAYA_OK;
}

laya_status laya_package_verify(const laya_package *package, int *passed, char **json, laya_error *error)
{
    laya_error_clear(error);
    if (passed) *passed = 0;
    if (json) *json = NULL;
    if (!package || !passed || !json) {
        return laya_fail(error, LAYA_ERROR_ARGUMENT,
                         "laya_package_verify: package, passed and json must not be NULL");
    }
    laya_verdict verdict;
    laya_checker checker;
    bool bundle = false;
    uint32_t hashed = 0;
    begin(&checker, package, &verdict);
    laya_status status = check_all(&checker, error);
    if (status == LAYA_OK) status = laya_check_bundle(&checker, &bundle, &hashed, error);
    status = end(&checker, status, error);
    if (status == LAYA_OK) status = write_report(&checker, bundle, hashed, json, error);
    if (status == LAYA_OK) *passed = verdict.errors == 0;
    laya_verdict_close(&verdict);
    return status;
}
