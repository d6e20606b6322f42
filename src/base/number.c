/* SPDX-License-Identifier: Apache-2.0 */
/*
 * printf and strtod follow the process's locale. Formatting here takes only the digits out of what snprintf
 * writes, and parsing gives strtod an integer with an exponent, so that no decimal separator is ever read.
 */
#include "base/number.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct decimal {
    char digits[20]; /* significant digits, NUL-terminated */
    int count;
    int point; /* value = 0.digits * 10^point */
} decimal;

/* `count` significant digits (1..17) of a positive finite value, correctly rounded. */
static decimal to_decimal(double value, int count)
{
    char text[64];
    decimal result = {.count = count};
    snprintf(text, sizeof text, "%.*e", count - 1, value);
    const char *at = text;
    int used = 0;
    for (; *at && *at != 'e'; at++) {
        if (*at >= '0' && *at <= '9' && used < count) result.digits[used++] = *at;
    }
    result.digits[used] = '\0';
    result.point = (*at == 'e' ? (int)strtol(at + 1, NULL, 10) : 0) + 1;
    return result;
}

static double of_decimal(const decimal *number)
{
    char text[48];
    snprintf(text, sizeof text, "%se%d", number->digits, number->point - number->count);
    return strtod(text, NULL);
}

/* The next larger decimal with as many digits; false when it would need one more. */
static bool increment(decimal *number)
{
    for (int at = number->count - 1; at >= 0; at--) {
        if (number->digits[at] != '9') {
            number->digits[at]++;
            return true;
        }
        number->digits[at] = '0';
    }
    return false;
}

/* The shortest decimal that reads back as `value` > 0, and the nearest of those. */
static decimal shortest(double value)
{
    if (value >= DBL_MIN) {
        decimal number = to_decimal(value, DBL_DIG);
        if (of_decimal(&number) == value) return number;
    }
    int exponent;
    bool power_of_two = frexp(value, &exponent) == 0.5;
    for (int count = value >= DBL_MIN ? DBL_DIG + 1 : 1; count < 17; count++) {
        decimal number = to_decimal(value, count);
        if (of_decimal(&number) == value) return number;
        /* Below a power of two the doubles are twice as dense: the nearest decimal can lie outside the
         * interval that rounds to the value while the next one above lies inside. */
        if (power_of_two && increment(&number) && of_decimal(&number) == value) return number;
    }
    return to_decimal(value, 17);
}

static size_t put(char *text, const char *source)
{
    size_t size = strlen(source);
    memcpy(text, source, size + 1);
    return size;
}

static size_t put_special(char *text, double value)
{
    if (isnan(value)) return put(text, "NaN");
    return put(text, value < 0 ? "-Infinity" : "Infinity");
}

/* Python's layout: fixed from 1e-4 up to below 1e16, else with an exponent of at least two digits. */
static size_t put_decimal(char *text, bool negative, decimal number)
{
    size_t used = 0;
    while (number.count > 1 && number.digits[number.count - 1] == '0') number.digits[--number.count] = '\0';
    if (negative) text[used++] = '-';
    if (number.point > -4 && number.point <= 16) {
        if (number.point <= 0) {
            text[used++] = '0';
            text[used++] = '.';
            for (int zero = number.point; zero < 0; zero++) text[used++] = '0';
            return used + put(text + used, number.digits);
        }
        for (int at = 0; at < number.point; at++) text[used++] = at < number.count ? number.digits[at] : '0';
        text[used++] = '.';
        return used + put(text + used, number.point < number.count ? number.digits + number.point : "0");
    }
    text[used++] = number.digits[0];
    if (number.count > 1) {
        text[used++] = '.';
        used += put(text + used, number.digits + 1);
    }
    int exponent = number.point - 1;
    return used + (size_t)snprintf(text + used, LAYA_NUMBER_SIZE - used, "e%c%02d", exponent < 0 ? '-' : '+',
                                   exponent < 0 ? -exponent : exponent);
}

size_t laya_format_repr(char text[LAYA_NUMBER_SIZE], double value)
{
    if (!isfinite(value)) return put_special(text, value);
    if (value == 0) return put(text, signbit(value) ? "-0.0" : "0.0");
    return put_decimal(text, value < 0, shortest(fabs(value)));
}

size_t laya_format_float32(char text[LAYA_NUMBER_SIZE], double value)
{
    if (!isfinite(value)) return put_special(text, value);
    if (value == 0) return put(text, signbit(value) ? "-0.0" : "0.0");
    return put_decimal(text, value < 0, to_decimal(fabs(value), 9));
}

/* "%.4f" of a finite value as a sign and an integer count of ten-thousandths in text. */
static void ten_thousandths(double value, char digits[340], bool *negative)
{
    char text[340];
    size_t used = 0;
    snprintf(text, sizeof text, "%.4f", value);
    *negative = text[0] == '-';
    for (const char *at = text; *at; at++) {
        if (*at >= '0' && *at <= '9') digits[used++] = *at;
    }
    digits[used] = '\0';
}

double laya_round4(double value)
{
    char digits[340], text[344];
    bool negative;
    if (!isfinite(value)) return value;
    ten_thousandths(value, digits, &negative);
    snprintf(text, sizeof text, "%se-4", digits);
    double rounded = strtod(text, NULL);
    return negative ? -rounded : rounded;
}

size_t laya_format_round4(char text[LAYA_NUMBER_SIZE], double value)
{
    return laya_format_repr(text, laya_round4(value));
}

bool laya_parse_double(const char *text, size_t size, double *value)
{
    /* 767 significant digits decide every double; one more non-zero digit stands for all that follow. */
    enum { KEPT = 780 };
    char number[KEPT + 32];
    size_t at = 0, used = 0;
    int64_t exponent = 0;
    bool negative = false, any = false, more = false;

    if (at < size && text[at] == '-') {
        negative = true;
        at++;
    }
    if (size - at == 8 && memcmp(text + at, "Infinity", 8) == 0) {
        *value = negative ? -INFINITY : INFINITY;
        return true;
    }
    if (!negative && size == 3 && memcmp(text, "NaN", 3) == 0) {
        *value = NAN;
        return true;
    }
    bool fraction = false;
    for (; at < size; at++) {
        char c = text[at];
        if (c == '.' && !fraction) {
            fraction = true;
            continue;
        }
        if (c < '0' || c > '9') break;
        any = true;
        if (used < KEPT) {
            if (used > 0 || c != '0') number[used++] = c;
            if (fraction) exponent--;
        } else {
            more = more || c != '0';
            if (!fraction) exponent++;
        }
    }
    if (!any) return false;
    if (at < size) {
        if (text[at] != 'e' && text[at] != 'E') return false;
        at++;
        bool minus = at < size && text[at] == '-';
        if (at < size && (text[at] == '-' || text[at] == '+')) at++;
        if (at == size) return false;
        int64_t given = 0;
        for (; at < size; at++) {
            if (text[at] < '0' || text[at] > '9') return false;
            if (given < 1000000000) given = given * 10 + (text[at] - '0');
        }
        exponent += minus ? -given : given;
    }
    if (used == 0) {
        *value = negative ? -0.0 : 0.0;
        return true;
    }
    if (more) {
        number[used++] = '1';
        exponent--;
    }
    if (exponent > 100000) exponent = 100000;
    if (exponent < -100000) exponent = -100000;
    snprintf(number + used, sizeof number - used, "e%d", (int)exponent);
    double parsed = strtod(number, NULL);
    *value = negative ? -parsed : parsed;
    return true;
}
