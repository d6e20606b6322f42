/* SPDX-License-Identifier: Apache-2.0 */
/* Messages, numbers, and the files that arguments name. */
#include "layac.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int layac_fail(int code, const char *format, ...)
{
    va_list arguments;
    fputs("layac: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return code;
}

int layac_fail_library(const laya_error *error)
{
    int code = EXIT_SYSTEM;
    switch (error->status) {
    case LAYA_OK:
    case LAYA_ERROR_STOPPED:
    case LAYA_ERROR_SYSTEM: code = EXIT_SYSTEM; break;
    case LAYA_ERROR_ARGUMENT: code = EXIT_USAGE; break;
    case LAYA_ERROR_INPUT: code = EXIT_INPUT; break;
    case LAYA_ERROR_FORMAT:
    case LAYA_ERROR_UNSUPPORTED: code = EXIT_CHECKPOINT; break;
    case LAYA_ERROR_IO: code = EXIT_FILE; break;
    case LAYA_ERROR_MEMORY: code = EXIT_MEMORY; break;
    }
    return layac_fail(code, "%s", error->message);
}

static void log_line(void *user, laya_log_level level, const char *message)
{
    (void)user;
    fprintf(stderr, "layac: %s%s\n", level == LAYA_LOG_WARNING ? "warning: " : "", message);
}

laya_logger layac_logger(void)
{
    return (laya_logger){.user = NULL, .log = log_line};
}

bool layac_number(const char *option, const char *text, uint32_t low, uint32_t high, uint32_t *number)
{
    uint64_t value = 0;
    bool good = *text != '\0';
    for (const char *at = text; *at && good; at++) {
        good = *at >= '0' && *at <= '9';
        value = value * 10 + (uint64_t)(*at - '0');
        good = good && value <= UINT32_MAX;
    }
    if (good && value >= low && value <= high) {
        *number = (uint32_t)value;
        return true;
    }
    layac_fail(EXIT_USAGE, "%s: expected a whole number from %u to %u, got '%s'", option, low, high, text);
    return false;
}

int layac_read(const char *path, laya_buffer *text)
{
    bool input = strcmp(path, "-") == 0;
    const char *name = input ? "standard input" : path;
    laya_buffer_init(text, NULL);
    FILE *file = input ? stdin : fopen(path, "rb");
    if (!file) return layac_fail(EXIT_FILE, "%s: %s", name, strerror(errno));
    int code = EXIT_OK;
    while (code == EXIT_OK && !feof(file)) {
        char block[65536];
        size_t got = fread(block, 1, sizeof block, file);
        if (ferror(file)) {
            code = layac_fail(EXIT_FILE, "%s: %s", name, strerror(errno));
        } else {
            laya_buffer_append(text, block, got);
            if (text->failed) code = layac_fail(EXIT_MEMORY, "%s: out of memory", name);
        }
    }
    if (!input) fclose(file);
    return code;
}

int layac_json_argument(const char *text, laya_buffer *json)
{
    size_t space = strspn(text, " \t\r\n");
    if (text[space] != '{' && text[space] != '[') return layac_read(text, json);
    laya_buffer_init(json, NULL);
    laya_buffer_puts(json, text);
    return json->failed ? layac_fail(EXIT_MEMORY, "out of memory") : EXIT_OK;
}

void layac_drop_newline(laya_buffer *text)
{
    if (text->size == 0 || text->data[text->size - 1] != '\n') return;
    text->size--;
    if (text->size > 0 && text->data[text->size - 1] == '\r') text->size--;
    text->data[text->size] = '\0';
}

int layac_finish(void)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return layac_fail(EXIT_SYSTEM, "standard output cannot be written: %s", strerror(errno));
    return EXIT_OK;
}
