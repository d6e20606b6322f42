/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers against CPython 3: repr, round(x, 4), float(text). The tables were printed by Python. */
#include "support.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/number.h"

#include "test_number_tables.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double of_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ------------------------------------------------------------------ repr */

static void check_repr(uint64_t bits, const char *expected)
{
    char text[LAYA_NUMBER_SIZE], negative[LAYA_NUMBER_SIZE + 1] = "-";
    size_t size = laya_format_repr(text, of_bits(bits));
    assert_string_equal(text, expected);
    assert_int_equal(size, strlen(expected));
    strcat(negative, expected);
    laya_format_repr(text, -of_bits(bits));
    if (expected[0] != '-') assert_string_equal(text, negative);
}

static void repr_table(void **state)
{
    (void)state;
    assert_true(sizeof reprs / sizeof *reprs >= 300);
    for (size_t i = 0; i < sizeof reprs / sizeof *reprs; i++) check_repr(reprs[i].bits, reprs[i].text);
}

static void repr_of_special_values(void **state)
{
    (void)state;
    char text[LAYA_NUMBER_SIZE];
    laya_format_repr(text, 0.0);
    assert_string_equal(text, "0.0");
    laya_format_repr(text, -0.0);
    assert_string_equal(text, "-0.0");
    laya_format_repr(text, INFINITY);
    assert_string_equal(text, "Infinity");
    laya_format_repr(text, -INFINITY);
    assert_string_equal(text, "-Infinity");
    laya_format_repr(text, NAN);
    assert_string_equal(text, "NaN");
}

/* The pairs that upstream's own dump recorded. */
static void repr_of_upstream(void **state)
{
    (void)state;
    char path[TEST_PATH_SIZE];
    size_t size;
    laya_json doc;
    char *json = test_read_file(test_path(path, "tests/golden/upstream/multilingual/repr_probe.json"), &size);
    assert_int_equal(laya_json_parse(&doc, json, size, NULL, NULL), LAYA_OK);
    size_t pairs = 0;
    for (laya_json_iterator it = laya_json_first(laya_json_root(&doc)); laya_json_present(it.value);
         laya_json_next(&it)) {
        size_t length;
        char expected[64] = "", hex[32] = "", text[LAYA_NUMBER_SIZE];
        const char *bits = laya_json_text(laya_json_get(it.value, "bits"), &length);
        assert_int_equal(length, 16);
        memcpy(hex, bits, length);
        const char *repr = laya_json_text(laya_json_get(it.value, "repr"), &length);
        assert_true(length > 0 && length < sizeof expected);
        memcpy(expected, repr, length);
        laya_format_repr(text, of_bits(strtoull(hex, NULL, 16)));
        assert_string_equal(text, expected);
        pairs++;
    }
    assert_int_equal(pairs, 40);
    laya_json_close(&doc);
    free(json);
}

/* Numbers that are too many for a table: the SHA-256 of their texts, a line each, as Python gave it. */
static void check_lines(laya_buffer *lines, const char *expected)
{
    char hex[65];
    assert_false(lines->failed);
    assert_int_equal(laya_sha256(lines->data, lines->size, hex, NULL), LAYA_OK);
    assert_string_equal(hex, expected);
    laya_buffer_close(lines);
}

static void add_line(laya_buffer *lines, const char *text, size_t size)
{
    laya_buffer_append(lines, text, size);
    laya_buffer_putc(lines, '\n');
}

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

static void repr_of_all_powers_of_two(void **state)
{
    (void)state;
    laya_buffer lines;
    char text[LAYA_NUMBER_SIZE];
    laya_buffer_init(&lines, NULL);
    for (int exponent = -1074; exponent < 1024; exponent++)
        add_line(&lines, text, laya_format_repr(text, ldexp(1, exponent)));
    check_lines(&lines, "8aba9d55b380187da683ba0518d653e2e387aac2acf8b9f563a8e2d01a9ccecd");
}

static void repr_of_random_bits(void **state)
{
    (void)state;
    laya_buffer lines;
    char text[LAYA_NUMBER_SIZE];
    uint64_t x = UINT64_C(88172645463325252);
    laya_buffer_init(&lines, NULL);
    for (int done = 0; done < 100000;) {
        double value = of_bits(next_random(&x));
        if (!isfinite(value)) continue;
        add_line(&lines, text, laya_format_repr(text, value));
        done++;
    }
    check_lines(&lines, "bc1fa64b272fe1db2d9d3d8942c94df8b09243b9ea2db8ba3619ae04922dd17c");
}

static void nine_digits_of_floats(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof nine_digits / sizeof *nine_digits; i++) {
        char text[LAYA_NUMBER_SIZE];
        float value, back;
        double wide;
        memcpy(&value, &nine_digits[i].bits, sizeof value);
        laya_format_float32(text, (double)value);
        assert_string_equal(text, nine_digits[i].text);
        assert_true(laya_parse_double(text, strlen(text), &wide));
        back = (float)wide;
        assert_memory_equal(&back, &value, sizeof value);
    }
}

/* ------------------------------------------------------------------ round */

static void round4_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rounded / sizeof *rounded; i++) {
        char text[LAYA_NUMBER_SIZE];
        double value = of_bits(rounded[i].bits);
        laya_format_repr(text, laya_round4(value));
        assert_string_equal(text, rounded[i].text);
        if (fabs(value) >= 1e9) continue;
        assert_int_equal(laya_format_round4(text, value), strlen(rounded[i].text));
        assert_string_equal(text, rounded[i].text);
    }
    assert_true(isnan(laya_round4(NAN)));
    assert_true(isinf(laya_round4(-INFINITY)));
}

static void round4_of_random_probabilities(void **state)
{
    (void)state;
    laya_buffer lines;
    char text[LAYA_NUMBER_SIZE];
    uint64_t x = UINT64_C(88172645463325252);
    laya_buffer_init(&lines, NULL);
    for (int done = 0; done < 100000; done++)
        add_line(&lines, text, laya_format_round4(text, (double)(next_random(&x) >> 11) * 0x1p-53));
    check_lines(&lines, "c1a8742bcb4baa8b857889d370684ed5f6bfa993d765bd555b0696e23c08bcb4");
}

/* ------------------------------------------------------------------ parse */

static void check_parse(const char *text, size_t size, uint64_t expected)
{
    double value = 12;
    char *copy = malloc(size); /* the exact size, no terminator */
    assert_non_null(copy);
    memcpy(copy, text, size);
    if (!laya_parse_double(copy, size, &value) || bits_of(value) != expected)
        fail_msg("%.60s...: %016llx, expected %016llx", text, (unsigned long long)bits_of(value),
                 (unsigned long long)expected);
    free(copy);
}

static void parse_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof parsed / sizeof *parsed; i++)
        check_parse(parsed[i].text, strlen(parsed[i].text), parsed[i].bits);
    for (size_t i = 0; i < sizeof reprs / sizeof *reprs; i++)
        check_parse(reprs[i].text, strlen(reprs[i].text), reprs[i].bits);
}

static void parse_long_texts(void **state)
{
    (void)state;
    char text[4096];
    for (size_t i = 0; i < sizeof parsed_long / sizeof *parsed_long; i++) {
        size_t used = strlen(parsed_long[i].before), count = (size_t)parsed_long[i].count;
        memcpy(text, parsed_long[i].before, used);
        memset(text + used, parsed_long[i].digit, count);
        memcpy(text + used + count, parsed_long[i].after, strlen(parsed_long[i].after));
        check_parse(text, used + count + strlen(parsed_long[i].after), parsed_long[i].bits);
    }
}

static void parse_middles(void **state)
{
    (void)state;
    char text[2400];
    for (size_t i = 0; i < sizeof middles / sizeof *middles; i++) {
        size_t size = strlen(middles[i].text);
        check_parse(middles[i].text, size, middles[i].middle);
        assert_true(middles[i].middle == middles[i].below + (middles[i].below & 1)); /* ties to even */
        memcpy(text, middles[i].text, size);
        memset(text + size, '0', 1000);
        text[size + 1000] = '1'; /* a digit far behind decides */
        check_parse(text, size + 1001, middles[i].above);
        assert_true(middles[i].above == middles[i].below + 1);
    }
}

static void texts_that_are_no_numbers(void **state)
{
    (void)state;
    static const char *const texts[] = {"",    "-",   ".",  "e5", "1e",  "1e+",  "1x",      "1.2.3", "--1", "nan",
                                        "inf", "0x1", "1 ", " 1", "1,5", "1e5x", "Infinit", "NaNx",  "+1",  "1e1.5"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        double value;
        if (laya_parse_double(texts[i], strlen(texts[i]), &value)) fail_msg("'%s' passes", texts[i]);
    }
    double value;
    assert_true(laya_parse_double("-Infinity", 9, &value) && value == -INFINITY);
    assert_true(laya_parse_double("Infinity", 8, &value) && value == INFINITY);
    assert_true(laya_parse_double("NaN", 3, &value) && isnan(value));
}

/* ------------------------------------------------------------------ locale */

static void a_comma_locale_changes_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8",  "fr_FR.UTF-8", "fr_FR.utf8",
                                        "pt_BR.UTF-8", "ru_RU.UTF-8", "de_DE",       "nl_NL.UTF-8"};
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++) {
        char text[16];
        found = setlocale(LC_ALL, names[i]) != NULL;
        if (found) snprintf(text, sizeof text, "%.1f", 0.5);
        found = found && strcmp(text, "0,5") == 0;
    }
    if (!found) {
        setlocale(LC_ALL, "C");
        print_message(
            "SKIPPED: no locale with a decimal comma is installed (tried de_DE, fr_FR, pt_BR, ru_RU, nl_NL)\n");
        skip();
    }
    repr_table(state);
    nine_digits_of_floats(state);
    round4_table(state);
    parse_table(state);
    parse_long_texts(state);
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repr_table),
        cmocka_unit_test(repr_of_special_values),
        cmocka_unit_test(repr_of_upstream),
        cmocka_unit_test(repr_of_all_powers_of_two),
        cmocka_unit_test(repr_of_random_bits),
        cmocka_unit_test(nine_digits_of_floats),
        cmocka_unit_test(round4_table),
        cmocka_unit_test(round4_of_random_probabilities),
        cmocka_unit_test(parse_table),
        cmocka_unit_test(parse_long_texts),
        cmocka_unit_test(parse_middles),
        cmocka_unit_test(texts_that_are_no_numbers),
        cmocka_unit_test(a_comma_locale_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
