/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Version, export macro, status codes, errors, allocator and log hooks of liblaya.
 *
 * Conventions of the whole interface
 *
 *   - Functions that can fail return a laya_status and give their results through pointers. On failure
 *     the results are set to NULL or zero, and nothing needs to be released.
 *   - Text is UTF-8. Where a size is passed, the text may hold NUL bytes and needs no terminator.
 *   - The library never exits, never prints, and has no global mutable state.
 *   - Structs that callers fill begin with `size`; their *_init function sets it and all defaults.
 */
#ifndef LAYA_BASE_H
#define LAYA_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LAYA_VERSION_MAJOR 0
#define LAYA_VERSION_MINOR 1
#define LAYA_VERSION_PATCH 0
#define LAYA_VERSION_STRING "0.1.0"
/* One number that grows with every release: 0xMMmmpp. */
#define LAYA_VERSION_NUMBER ((LAYA_VERSION_MAJOR << 16) | (LAYA_VERSION_MINOR << 8) | LAYA_VERSION_PATCH)

#if defined(LAYA_STATIC)
#define LAYA_API
#elif defined(_WIN32)
#define LAYA_API __declspec(dllimport)
#elif defined(__GNUC__)
#define LAYA_API __attribute__((visibility("default")))
#else
#define LAYA_API
#endif

/* What kind of thing went wrong. The values are part of the ABI and never change. */
typedef enum laya_status {
    LAYA_OK = 0,
    LAYA_ERROR_ARGUMENT = 1,    /* a call breaks the rules of its documentation (a NULL, an option out of range) */
    LAYA_ERROR_INPUT = 2,       /* the state or the questions are not acceptable */
    LAYA_ERROR_FORMAT = 3,      /* a file of the checkpoint is malformed or does not fit the others */
    LAYA_ERROR_UNSUPPORTED = 4, /* a file asks for something that this version does not implement */
    LAYA_ERROR_IO = 5,          /* a file cannot be opened, read or mapped */
    LAYA_ERROR_MEMORY = 6,      /* the allocator returned NULL */
    LAYA_ERROR_SYSTEM = 7,      /* the operating system refused something else (a thread, a lock) */
    LAYA_ERROR_STOPPED = 8      /* the caller's interrupt asked for it */
} laya_status;

#define LAYA_MESSAGE_SIZE 1024

/*
 * The status of a call and one line of English that names the file or question, the field, what was
 * expected and what was found. Callers may pass NULL wherever a laya_error is asked for.
 */
typedef struct laya_error {
    laya_status status;
    char message[LAYA_MESSAGE_SIZE]; /* UTF-8, NUL-terminated, cut at a character boundary; "" on success */
} laya_error;

/* The name of a status, such as "LAYA_ERROR_INPUT"; "unknown status" for other values. Static storage. */
LAYA_API const char *laya_status_name(laya_status status);

/* The version of the library that is running, such as "0.1.0". Static storage. */
LAYA_API const char *laya_version(void);

/*
 * Where the library takes its memory from. `allocate` returns a block of at least `size` bytes
 * (size > 0) aligned for any scalar type, or NULL; `release` accepts what `allocate` gave. Both may be
 * called from several threads at once. A zero-initialised struct means malloc and free.
 */
typedef struct laya_allocator {
    void *user;
    void *(*allocate)(void *user, size_t size);
    void (*release)(void *user, void *block);
} laya_allocator;

typedef enum laya_log_level {
    LAYA_LOG_WARNING = 1, /* the caller should know: a value was clamped, an answer is less reliable */
    LAYA_LOG_INFO = 2     /* facts, such as what was loaded and how long it took */
} laya_log_level;

/* Receives log lines (no newline at the end). A zero-initialised struct drops them. */
typedef struct laya_logger {
    void *user;
    void (*log)(void *user, laya_log_level level, const char *message);
} laya_logger;

/*
 * Told how far a call has come: done / total of its work, on the calling thread, some dozens of times a call. It must
 * not call into the library. A zero-initialised struct is never called.
 */
typedef struct laya_progress {
    void *user;
    void (*report)(void *user, uint64_t done, uint64_t total);
} laya_progress;

/*
 * Asked some dozens of times a call whether to give up: a non-zero answer ends the call with LAYA_ERROR_STOPPED, and
 * what it wrote is removed. May be called from any thread of the call. A zero-initialised struct never stops.
 */
typedef struct laya_interrupt {
    void *user;
    int (*requested)(void *user);
} laya_interrupt;

#ifdef __cplusplus
}
#endif

#endif
