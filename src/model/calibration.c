/* SPDX-License-Identifier: Apache-2.0 */
#include "model/calibration.h"

#include "base/error.h"
#include "base/number.h"

#include <math.h>
#include <string.h>

#define LOWEST_TEMPERATURE 0.5
#define HIGHEST_TEMPERATURE 5.0

unsigned laya_bucket_of(size_t count)
{
    return count <= 2 ? 0 : count <= 5 ? 1 : count <= 10 ? 2 : 3;
}

const char *laya_bucket_name(laya_question_type type, unsigned bucket)
{
    static const char *const names[3][LAYA_BUCKETS] = {
        {"choice:2", "choice:3-5", "choice:6-10", "choice:11+"},
        {"score:2", "score:3-5", "score:6-10", "score:11+"},
        {"noul:2", "noul:3-5", "noul:6-10", "noul:11+"},
    };
    return names[type][bucket];
}

/* ------------------------------------------------------------------ one value */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/*
 * Python's float(str): surrounding white space, a sign, digits with single underscores between them, a
 * fraction, an exponent. The words for NaN and infinity are not finite and so no temperature.
 */
static bool python_float(const char *text, size_t size, double *number)
{
    char plain[64];
    size_t used = 0, at = 0;
    bool negative = false;
    while (size > 0 && is_blank(text[size - 1])) size--;
    while (at < size && is_blank(text[at])) at++;
    if (at < size && (text[at] == '+' || text[at] == '-')) negative = text[at++] == '-';
    if (at == size || (!is_digit(text[at]) && text[at] != '.')) return false;
    if (text[at] == '.' && (at + 1 == size || !is_digit(text[at + 1]))) return false;
    for (; at < size; at++) {
        if (text[at] == '_') {
            if (at == 0 || !is_digit(text[at - 1]) || at + 1 == size || !is_digit(text[at + 1])) return false;
            continue;
        }
        if (used == sizeof plain) return false; /* no one writes a temperature in so many digits */
        plain[used++] = text[at];
    }
    if (!laya_parse_double(plain, used, number)) return false;
    if (negative) *number = -*number;
    return true;
}

static double usable(laya_json_value value)
{
    double number;
    if (laya_json_typeof(value) == LAYA_JSON_STRING) {
        size_t size;
        const char *text = laya_json_text(value, &size);
        if (!python_float(text, size, &number)) return 1.0;
    } else if (!laya_json_to_double(value, &number)) {
        return 1.0;
    }
    if (!isfinite(number)) return 1.0;
    if (number < LOWEST_TEMPERATURE) return LOWEST_TEMPERATURE;
    return number > HIGHEST_TEMPERATURE ? HIGHEST_TEMPERATURE : number;
}

/* Whether the value was usable as it stood: a number, or a numeric string, within the limits. */
static bool is_unchanged(laya_json_value value, double used)
{
    double number;
    size_t size;
    const char *text = laya_json_text(value, &size);
    if (laya_json_typeof(value) == LAYA_JSON_STRING) return python_float(text, size, &number) && number == used;
    return laya_json_to_double(value, &number) && number == used;
}

static void note_change(laya_buffer *changes, const char *name, laya_json_value raw, double used)
{
    char text[LAYA_NUMBER_SIZE];
    if (!changes || is_unchanged(raw, used)) return;
    if (changes->size) laya_buffer_puts(changes, ", ");
    laya_buffer_printf(changes, "%s=", name);
    laya_json_write_repr(changes, raw);
    laya_format_repr(text, used);
    laya_buffer_printf(changes, " -> %s", text);
}

/* ------------------------------------------------------------------ tables */

/* A list of three; false when it is something else. */
static bool read_types(laya_temperatures *out, laya_json_value list, laya_buffer *changes)
{
    static const char *const names[3] = {"temperature[choice]", "temperature[score]", "temperature[noul]"};
    if (laya_json_typeof(list) != LAYA_JSON_ARRAY || laya_json_size(list) != 3) return false;
    laya_json_iterator it = laya_json_first(list);
    for (unsigned type = 0; type < 3; type++, laya_json_next(&it)) {
        out->by_type[type] = usable(it.value);
        note_change(changes, names[type], it.value, out->by_type[type]);
    }
    return true;
}

/* An object bucket -> temperature; buckets that no question can have are left alone. */
static void read_buckets(laya_temperatures *out, laya_json_value map, laya_buffer *changes)
{
    for (unsigned type = 0; type < 3; type++) {
        for (unsigned bucket = 0; bucket < LAYA_BUCKETS; bucket++) {
            const char *name = laya_bucket_name((laya_question_type)type, bucket);
            laya_json_value value = laya_json_get(map, name);
            out->by_bucket[type][bucket] = 0;
            if (!laya_json_present(value)) continue;
            out->by_bucket[type][bucket] = usable(value);
            note_change(changes, name, value, out->by_bucket[type][bucket]);
        }
    }
}

static laya_status read_base(laya_calibration *calibration, laya_json_value agent, laya_buffer *changes,
                             laya_error *error)
{
    laya_temperatures *base = &calibration->base;
    laya_json_value types = laya_json_get(agent, "temperature");
    laya_json_value buckets = laya_json_get(agent, "temperature_by_options");
    *base = (laya_temperatures){.by_type = {1, 1, 1}};
    if (!laya_json_is_null(types) && !read_types(base, types, changes))
        return laya_fail(error, LAYA_ERROR_FORMAT, "temperature: expected a list of 3 numbers");
    if (laya_json_is_null(buckets)) return LAYA_OK;
    if (laya_json_typeof(buckets) != LAYA_JSON_OBJECT)
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "temperature_by_options must be an object of bucket -> float, got %s",
                         laya_json_type_name(buckets));
    read_buckets(base, buckets, changes);
    return LAYA_OK;
}

/* ------------------------------------------------------------------ languages */

/* Bytes of the part before "-". */
static size_t primary(const char *code, size_t size)
{
    const char *dash = size ? memchr(code, '-', size) : NULL;
    return dash ? (size_t)(dash - code) : size;
}

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static laya_status read_language(laya_calibration *calibration, laya_language *language, laya_json_value code,
                                 laya_json_value entry, laya_error *error)
{
    size_t size;
    const char *text = laya_json_text(code, &size);
    int shown = size > 60 ? 60 : (int)size;
    laya_json_type kind = laya_json_typeof(entry);
    if (kind != LAYA_JSON_NULL && kind != LAYA_JSON_OBJECT)
        return laya_fail(error, LAYA_ERROR_INPUT, "Language override '%.*s' must be a mapping, got %s", shown, text,
                         laya_json_type_name(entry));
    laya_temperatures *out = &language->temperatures;
    *out = (laya_temperatures){0};
    memcpy(out->by_type, calibration->base.by_type, sizeof out->by_type);
    laya_json_value types = laya_json_get(entry, "temperature");
    laya_json_value buckets = laya_json_get(entry, "temperature_by_options");
    if (!laya_json_is_null(types) && !read_types(out, types, NULL))
        return laya_fail(error, LAYA_ERROR_INPUT, "Language override '%.*s' temperature must be a list of 3 floats",
                         shown, text);
    if (!laya_json_is_null(buckets) && laya_json_typeof(buckets) != LAYA_JSON_OBJECT)
        return laya_fail(error, LAYA_ERROR_INPUT,
                         "Language override '%.*s' temperature_by_options must be a mapping, got %s", shown, text,
                         laya_json_type_name(buckets));
    read_buckets(out, buckets, NULL);
    size = primary(text, size);
    language->code = laya_alloc(&calibration->allocator, size + 1, 1);
    if (!language->code) return laya_fail_memory(error, size + 1);
    for (size_t at = 0; at < size; at++) language->code[at] = lower(text[at]);
    language->code[size] = '\0';
    return LAYA_OK;
}

static laya_status read_languages(laya_calibration *calibration, laya_json_value overrides, laya_error *error)
{
    if (laya_json_is_null(overrides)) return LAYA_OK;
    if (laya_json_typeof(overrides) != LAYA_JSON_OBJECT)
        return laya_fail(error, LAYA_ERROR_INPUT,
                         "lang_temperatures must be a mapping of language -> override, got %s",
                         laya_json_type_name(overrides));
    size_t count = laya_json_size(overrides);
    if (count == 0) return LAYA_OK;
    calibration->languages = laya_alloc_zero(&calibration->allocator, count, sizeof *calibration->languages);
    if (!calibration->languages) return laya_fail_memory(error, count * sizeof *calibration->languages);
    laya_json_iterator it = laya_json_first(overrides);
    for (; laya_json_present(it.value); laya_json_next(&it)) {
        laya_language *language = &calibration->languages[calibration->language_count];
        LAYA_TRY(read_language(calibration, language, it.key, it.value, error));
        calibration->language_count++;
    }
    return LAYA_OK;
}

laya_status laya_calibration_read(laya_calibration *calibration, laya_json_value agent, laya_json_value overrides,
                                  const laya_allocator *allocator, laya_buffer *changes, laya_error *error)
{
    *calibration = (laya_calibration){.allocator = laya_allocator_or_default(allocator)};
    laya_status status = read_base(calibration, agent, changes, error);
    if (status == LAYA_OK) status = read_languages(calibration, overrides, error);
    if (status == LAYA_OK && changes && changes->failed) status = laya_fail_memory(error, 0);
    if (status != LAYA_OK) laya_calibration_close(calibration);
    return status;
}

void laya_calibration_close(laya_calibration *calibration)
{
    if (!calibration->languages) return;
    for (size_t at = 0; at < calibration->language_count; at++)
        laya_release(&calibration->allocator, calibration->languages[at].code);
    laya_release(&calibration->allocator, calibration->languages);
    calibration->languages = NULL;
    calibration->language_count = 0;
}

/* ------------------------------------------------------------------ look-up */

const laya_temperatures *laya_calibration_for(const laya_calibration *calibration, const char *lang)
{
    size_t size = lang ? primary(lang, strlen(lang)) : 0;
    for (size_t at = calibration->language_count; lang && at-- > 0;) {
        const char *code = calibration->languages[at].code;
        size_t same = 0;
        while (same < size && code[same] == lower(lang[same])) same++;
        if (same == size && code[same] == '\0') return &calibration->languages[at].temperatures;
    }
    return &calibration->base;
}

double laya_temperature_of(const laya_temperatures *temperatures, laya_question_type type, size_t count)
{
    double by_bucket = temperatures->by_bucket[type][laya_bucket_of(count)];
    return by_bucket > 0 ? by_bucket : temperatures->by_type[type];
}
