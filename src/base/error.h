/* SPDX-License-Identifier: Apache-2.0 */
/* Setting laya_error, and the check macro that the sources use. */
#ifndef LAYA_BASE_ERROR_H
#define LAYA_BASE_ERROR_H

#include "laya/base.h"

#include <stdarg.h>

#if defined(__GNUC__)
#define LAYA_PRINTF(format_at, first_at) __attribute__((format(printf, format_at, first_at)))
#else
#define LAYA_PRINTF(format_at, first_at)
#endif

/* Set status and message (printf style, cut at a UTF-8 boundary). `error` may be NULL. */
void laya_set_error(laya_error *error, laya_status status, const char *format, ...) LAYA_PRINTF(3, 4);

/* The same as an expression whose value is the status, so that a caller (and an analyzer) sees what is returned. */
#define laya_fail(error, status, ...) (laya_set_error((error), (status), __VA_ARGS__), (status))

/* LAYA_ERROR_MEMORY with the one standard text; bytes 0 when the size is not known. */
static inline laya_status laya_fail_memory(laya_error *error, size_t bytes)
{
    if (bytes == 0) return laya_fail(error, LAYA_ERROR_MEMORY, "out of memory");
    return laya_fail(error, LAYA_ERROR_MEMORY, "out of memory: could not allocate %zu bytes", bytes);
}

/* Clear an error: LAYA_OK and an empty message. `error` may be NULL. */
void laya_error_clear(laya_error *error);

/* Put text in front of the message, such as "dir/config.json: ". `error` may be NULL. */
void laya_error_prefix(laya_error *error, const char *format, ...) LAYA_PRINTF(2, 3);

#define LAYA_TRY(call)                                                                                               \
    do {                                                                                                             \
        laya_status laya_try_status = (call);                                                                        \
        if (laya_try_status != LAYA_OK) return laya_try_status;                                                      \
    } while (0)

#endif
