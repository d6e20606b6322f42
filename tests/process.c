/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include "tree.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_ARGUMENTS = 40, CANNOT_EXECUTE = 98, CANNOT_REDIRECT = 99 };

const char *test_layac(void)
{
    const char *named = getenv("LAYA_LAYAC");
    return named && *named ? named : LAYA_BINARY_DIR "/bin/layac";
}

static void redirect(const char *path, int descriptor)
{
    int opened = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (opened < 0 || dup2(opened, descriptor) < 0) _exit(CANNOT_REDIRECT);
    close(opened);
}

test_child test_start(const char *program, const char *folder, rlim_t file_limit, const char *const *arguments)
{
    test_child child;
    char *copies[MAX_ARGUMENTS + 2] = {strdup(program)};
    size_t count = 1;
    for (; arguments[count - 1]; count++) {
        assert_true(count <= MAX_ARGUMENTS);
        copies[count] = strdup(arguments[count - 1]);
    }
    test_join(child.out, folder, "standard-output");
    test_join(child.err, folder, "standard-error");
    child.pid = fork();
    assert_true(child.pid >= 0);
    if (child.pid == 0) {
        redirect(child.out, STDOUT_FILENO);
        redirect(child.err, STDERR_FILENO);
        signal(SIGINT, SIG_DFL); /* nohup and shells set them aside */
        signal(SIGHUP, SIG_DFL);
        struct rlimit limit = {file_limit, file_limit};
        if (file_limit && setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(CANNOT_REDIRECT);
        execv(copies[0], copies);
        _exit(CANNOT_EXECUTE);
    }
    for (size_t at = 0; at < count; at++) free(copies[at]);
    return child;
}

test_child test_start_layac(const char *folder, const char *const *arguments)
{
    return test_start(test_layac(), folder, 0, arguments);
}

test_outcome test_wait(test_child *child)
{
    int status;
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    test_outcome outcome = {.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                            .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0};
    if (outcome.code == CANNOT_EXECUTE || outcome.code == CANNOT_REDIRECT) fail_msg("the program cannot be run");
    outcome.out = test_read_file(child->out, NULL);
    outcome.err = test_read_file(child->err, NULL);
    return outcome;
}

void test_outcome_close(test_outcome *outcome)
{
    free(outcome->out);
    free(outcome->err);
    *outcome = (test_outcome){0};
}

test_outcome test_run_layac(const char *folder, int code, const char *const *arguments)
{
    test_child child = test_start_layac(folder, arguments);
    test_outcome outcome = test_wait(&child);
    if (outcome.code != code)
        fail_msg("exit code %d (signal %d) instead of %d: %s", outcome.code, outcome.signal, code, outcome.err);
    return outcome;
}

void test_expect_failure(test_outcome outcome, int code, const char *reason)
{
    if (outcome.code != code)
        fail_msg("exit code %d (signal %d) instead of %d: %s", outcome.code, outcome.signal, code, outcome.err);
    assert_string_equal(outcome.out, "");
    assert_contains(outcome.err, reason);
    assert_ptr_equal(strchr(outcome.err, '\n'), outcome.err + strlen(outcome.err) - 1);
    test_outcome_close(&outcome);
}

void test_layac_fails(const char *folder, int code, const char *reason, const char *const *arguments)
{
    test_child child = test_start_layac(folder, arguments);
    test_expect_failure(test_wait(&child), code, reason);
}
