/* SPDX-License-Identifier: Apache-2.0 */
/* Running layac and other programs in tests. */
#ifndef LAYA_TEST_PROCESS_H
#define LAYA_TEST_PROCESS_H

#include "support.h"

#include <sys/resource.h>
#include <sys/types.h>

typedef struct test_child {
    pid_t pid;
    char out[TEST_PATH_SIZE], err[TEST_PATH_SIZE];
} test_child;

typedef struct test_outcome {
    int code;   /* -1: ended by a signal */
    int signal; /* 0: none */
    char *out, *err;
} test_outcome;

/* A NULL-terminated list of arguments. */
#define TEST_LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Path of layac: $LAYA_LAYAC, else that of the build. */
const char *test_layac(void);
/*
 * Start a program; what it prints goes into files of `folder`. Signals have their default effect. file_limit: the largest
 * file, in bytes, that it may write; 0: no limit.
 */
test_child test_start(const char *program, const char *folder, rlim_t file_limit, const char *const *arguments);
/* Start layac without a limit. */
test_child test_start_layac(const char *folder, const char *const *arguments);
/* Wait for its end; release with test_outcome_close. */
test_outcome test_wait(test_child *child);
void test_outcome_close(test_outcome *outcome);

/* Run it and look at the exit code; the message is shown when it is another. */
test_outcome test_run_layac(const char *folder, int code, const char *const *arguments);
/* Another exit code fails the test; so does anything but one line on standard error that holds `reason`, and nothing on
   standard output. Closes the outcome. */
void test_expect_failure(test_outcome outcome, int code, const char *reason);
/* The same, of a run that fails: one line on standard error that holds `reason`, nothing on standard output. */
void test_layac_fails(const char *folder, int code, const char *reason, const char *const *arguments);

#endif
