/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

/*
 * Make a message valid UTF-8: a character that vsnprintf cut at the end is dropped, any other invalid byte (of a
 * path, of a name that a message shows in part) becomes '?'.
 */
static void trim(char *message)
{
    size_t size = strlen(message), at = 0;
    while ((at += laya_utf8_valid(message + at, size - at)) < size) {
        if (size == LAYA_MESSAGE_SIZE - 1 && size - at < 4) {
            message[at] = '\0';
            return;
        }
        message[at++] = '?';
    }
}

void laya_set_error(laya_error *error, laya_status status, const char *format, ...)
{
    if (!error) return;
    va_list arguments;
    va_start(arguments, format);
    error->status = status;
    vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    trim(error->message);
}

void laya_error_clear(laya_error *error)
{
    if (!error) return;
    error->status = LAYA_OK;
    error->message[0] = '\0';
}

void laya_error_prefix(laya_error *error, const char *format, ...)
{
    if (!error) return;
    char joined[LAYA_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(joined, sizeof joined, format, arguments);
    va_end(arguments);
    if (size < 0) return;
    size_t used = strlen(joined);
    snprintf(joined + used, sizeof joined - used, "%s", error->message);
    trim(joined);
    memcpy(error->message, joined, sizeof joined);
}

const char *laya_status_name(laya_status status)
{
    switch (status) {
    case LAYA_OK: return "LAYA_OK";
    case LAYA_ERROR_ARGUMENT: return "LAYA_ERROR_ARGUMENT";
    case LAYA_ERROR_INPUT: return "LAYA_ERROR_INPUT";
    case LAYA_ERROR_FORMAT: return "LAYA_ERROR_FORMAT";
    case LAYA_ERROR_UNSUPPORTED: return "LAYA_ERROR_UNSUPPORTED";
    case LAYA_ERROR_IO: return "LAYA_ERROR_IO";
    case LAYA_ERROR_MEMORY: return "LAYA_ERROR_MEMORY";
    case LAYA_ERROR_SYSTEM: return "LAYA_ERROR_SYSTEM";
    case LAYA_ERROR_STOPPED: return "LAYA_ERROR_STOPPED";
    }
    return "unknown status";
}

const char *laya_version(void)
{
    return LAYA_VERSION_STRING;
}
