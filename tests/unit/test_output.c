/* SPDX-License-Identifier: Apache-2.0 */
/* Writing: SHA-256 in pieces, output files, staging directories, giving pages back. */
#include "support.h"

#include "base/file.h"
#include "base/output.h"
#include "base/staging.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* FIPS 180-4 examples and the empty message. */
#define SHA_EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define SHA_ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define SHA_MILLION_A "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
enum { MILLION = 1000000 };

/* ------------------------------------------------------------------ a directory for each test */

typedef struct test_place {
    char directory[TEST_PATH_SIZE];
    char path[TEST_PATH_SIZE]; /* what `at` made last */
} test_place;

static const char *at(test_place *place, const char *name)
{
    int size = snprintf(place->path, sizeof place->path, "%s/%s", place->directory, name);
    assert_true(size > 0 && (size_t)size < sizeof place->path);
    return place->path;
}

static int make_place(void **state)
{
    test_place *place = malloc(sizeof *place);
    const char *temporary = getenv("TMPDIR");
    if (!place) return -1;
    snprintf(place->directory, sizeof place->directory, "%s/laya-test-XXXXXX",
             temporary && *temporary ? temporary : "/tmp");
    *state = place;
    return mkdtemp(place->directory) ? 0 : -1;
}

/* What a test left behind makes this fail: every test cleans up by the calls under test or by itself. */
static int remove_place(void **state)
{
    test_place *place = *state;
    int result = rmdir(place->directory);
    free(place);
    return result;
}

/* Entries of the directory whose names hold `part`. */
static unsigned count_entries(const test_place *place, const char *part)
{
    unsigned count = 0;
    DIR *entries = opendir(place->directory);
    assert_non_null(entries);
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (strstr(entry->d_name, part)) count++;
    }
    closedir(entries);
    return count;
}

static bool exists(const char *path)
{
    struct stat facts;
    return lstat(path, &facts) == 0;
}

static mode_t mode_of(const char *path)
{
    struct stat facts;
    assert_int_equal(lstat(path, &facts), 0);
    return facts.st_mode & 0777;
}

/* ------------------------------------------------------------------ hash and meter */

static void hash_in_pieces(const void *data, size_t size, size_t piece, char hex[65])
{
    laya_hash *hash;
    assert_int_equal(laya_hash_open(&hash, NULL), LAYA_OK);
    for (size_t done = 0; done < size; done += piece) {
        size_t part = size - done < piece ? size - done : piece;
        assert_int_equal(laya_hash_update(hash, (const char *)data + done, part, NULL), LAYA_OK);
    }
    assert_int_equal(laya_hash_finish(hash, hex, NULL), LAYA_OK);
}

static void test_hash(void **state)
{
    (void)state;
    char hex[65];
    char *million = malloc(MILLION);
    assert_non_null(million);
    memset(million, 'a', MILLION);
    hash_in_pieces(NULL, 0, 1, hex);
    assert_string_equal(hex, SHA_EMPTY);
    hash_in_pieces("abc", 3, 1, hex);
    assert_string_equal(hex, SHA_ABC);
    hash_in_pieces(million, MILLION, 777, hex);
    assert_string_equal(hex, SHA_MILLION_A);
    free(million);
    laya_hash *hash;
    assert_int_equal(laya_hash_open(&hash, NULL), LAYA_OK);
    assert_int_equal(laya_hash_update(hash, NULL, 0, NULL), LAYA_OK);
    laya_hash_close(hash);
    laya_hash_close(NULL);
}

typedef struct byte_counter {
    uint64_t bytes, limit;
} byte_counter;

static laya_status count_bytes(void *user, uint64_t bytes, laya_error *error)
{
    (void)error;
    byte_counter *counter = user;
    counter->bytes += bytes;
    return counter->bytes > counter->limit ? LAYA_ERROR_STOPPED : LAYA_OK;
}

static void test_hash_file(void **state)
{
    test_place *place = *state;
    char hex[65];
    uint64_t size = 7;
    laya_error error;
    byte_counter counter = {0, UINT64_MAX};
    laya_meter meter = {&counter, count_bytes};
    char *million = malloc(MILLION);
    assert_non_null(million);
    memset(million, 'a', MILLION);
    test_write_file(at(place, "million"), million, MILLION);
    free(million);
    assert_int_equal(laya_hash_file(place->path, hex, &size, &meter, &error), LAYA_OK);
    assert_string_equal(hex, SHA_MILLION_A);
    assert_int_equal(size, MILLION);
    assert_int_equal(counter.bytes, MILLION);

    counter.limit = counter.bytes + 1;
    assert_int_equal(laya_hash_file(place->path, hex, &size, &meter, &error), LAYA_ERROR_STOPPED);
    assert_string_equal(hex, "");
    assert_int_equal(size, 0);

    test_write_file(place->path, "", 0);
    assert_int_equal(laya_hash_file(place->path, hex, &size, NULL, &error), LAYA_OK);
    assert_string_equal(hex, SHA_EMPTY);
    unlink(place->path);
    assert_int_equal(laya_hash_file(place->path, hex, &size, NULL, &error), LAYA_ERROR_IO);
    assert_contains(error.message, "million: cannot be opened: no such file");
    assert_int_equal(laya_hash_file(place->directory, hex, &size, NULL, &error), LAYA_ERROR_IO);
    assert_contains(error.message, "expected a regular file");
}

/* ------------------------------------------------------------------ output files */

/* Sizes around the block, so that parts are copied, passed on whole, and split. */
static void test_output(void **state)
{
    test_place *place = *state;
    static const size_t sizes[] = {0, 1, LAYA_OUTPUT_BLOCK - 1, 5, LAYA_OUTPUT_BLOCK, 3 * LAYA_OUTPUT_BLOCK + 7, 1};
    size_t total = 0, largest = 3 * LAYA_OUTPUT_BLOCK + 7;
    unsigned char *data = malloc(largest);
    unsigned char *expected = malloc(2 * largest);
    assert_true(data && expected);
    for (size_t i = 0; i < largest; i++) data[i] = (unsigned char)(i * 2654435761u >> 13);

    byte_counter counter = {0, UINT64_MAX};
    laya_meter meter = {&counter, count_bytes};
    laya_output output;
    laya_error error;
    assert_int_equal(laya_output_open(&output, at(place, "file"), NULL, &meter, &error), LAYA_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(laya_output_write(&output, data, sizes[i], &error), LAYA_OK);
        memcpy(expected + total, data, sizes[i]);
        total += sizes[i];
        assert_int_equal(output.size, total);
    }
    assert_int_equal(laya_output_zeros(&output, 0, &error), LAYA_OK);
    assert_int_equal(laya_output_zeros(&output, 63, &error), LAYA_OK);
    assert_int_equal(laya_output_zeros(&output, 64, &error), LAYA_OK);
    assert_int_equal(laya_output_zeros(&output, 300, &error), LAYA_OK);
    memset(expected + total, 0, 427);
    total += 427;
    char hex[65], again[65];
    assert_int_equal(laya_output_finish(&output, hex, &error), LAYA_OK);
    laya_output_close(&output);
    assert_int_equal(output.size, total);
    assert_int_equal(counter.bytes, total);

    size_t size;
    char *written = test_read_file(place->path, &size);
    assert_int_equal(size, total);
    assert_memory_equal(written, expected, total);
    assert_int_equal(laya_sha256(expected, total, again, NULL), LAYA_OK);
    assert_string_equal(hex, again);
    free(written);
    free(data);
    free(expected);

    /* it exists now */
    assert_int_equal(laya_output_open(&output, place->path, NULL, NULL, &error), LAYA_ERROR_IO);
    assert_contains(error.message, "file: cannot be created: it exists already");
    laya_output_close(&output);
    unlink(place->path);
    assert_int_equal(laya_output_open(&output, at(place, "none/file"), NULL, NULL, &error), LAYA_ERROR_IO);
    assert_contains(error.message, "none/file: cannot be created: no such file or directory");
}

static void test_output_empty(void **state)
{
    test_place *place = *state;
    laya_output output;
    char hex[65];
    mode_t mask = umask(027);
    assert_int_equal(laya_output_open(&output, at(place, "empty"), NULL, NULL, NULL), LAYA_OK);
    umask(mask);
    assert_int_equal(laya_output_finish(&output, hex, NULL), LAYA_OK);
    assert_string_equal(hex, SHA_EMPTY);
    assert_int_equal(mode_of(place->path), 0640);
    unlink(place->path);
    assert_int_equal(laya_output_open(&output, place->path, NULL, NULL, NULL), LAYA_OK);
    assert_int_equal(laya_output_finish(&output, NULL, NULL), LAYA_OK);
    unlink(place->path);
}

static void test_output_memory(void **state)
{
    test_place *place = *state;
    test_memory memory;
    laya_output output;
    laya_error error;
    test_memory_init(&memory);
    for (size_t fail = 1;; fail++) {
        test_memory_arm(&memory, fail);
        laya_status status = laya_output_open(&output, at(place, "file"), &memory.hooks, NULL, &error);
        if (!memory.failed) break;
        assert_int_equal(status, LAYA_ERROR_MEMORY);
        assert_int_equal(memory.live, 0);
        assert_false(exists(place->path));
    }
    laya_output_close(&output);
    assert_int_equal(memory.live, 0);
    unlink(place->path);
}

/* The first failure stays; `error` keeps its message. */
static void test_output_failure_stays(void **state)
{
    test_place *place = *state;
    byte_counter counter = {0, LAYA_OUTPUT_BLOCK};
    laya_meter meter = {&counter, count_bytes};
    laya_output output;
    laya_error error = {LAYA_OK, "as before"};
    char hex[65] = "x";
    char *data = calloc(LAYA_OUTPUT_BLOCK, 1);
    assert_non_null(data);
    assert_int_equal(laya_output_open(&output, at(place, "file"), NULL, &meter, &error), LAYA_OK);
    assert_int_equal(laya_output_write(&output, data, LAYA_OUTPUT_BLOCK, &error), LAYA_OK);
    assert_int_equal(laya_output_write(&output, data, LAYA_OUTPUT_BLOCK, &error), LAYA_ERROR_STOPPED);
    assert_int_equal(laya_output_write(&output, data, 1, &error), LAYA_ERROR_STOPPED);
    assert_int_equal(laya_output_zeros(&output, 1, &error), LAYA_ERROR_STOPPED);
    assert_int_equal(laya_output_finish(&output, hex, &error), LAYA_ERROR_STOPPED);
    assert_string_equal(hex, "");
    assert_string_equal(error.message, "as before");
    assert_int_equal(counter.bytes, 2 * LAYA_OUTPUT_BLOCK);
    free(data);
    unlink(place->path);
}

/* In a child, as the limit cannot be raised again: the file may have a block and a half. */
static int write_beyond_limit(const char *path)
{
    struct rlimit limit = {LAYA_OUTPUT_BLOCK * 3 / 2, LAYA_OUTPUT_BLOCK * 3 / 2};
    laya_output output;
    laya_error error;
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    if (laya_output_open(&output, path, NULL, NULL, &error) != LAYA_OK) return 2;
    if (laya_output_zeros(&output, LAYA_OUTPUT_BLOCK, &error) != LAYA_OK) return 3;
    if (laya_output_zeros(&output, LAYA_OUTPUT_BLOCK - 1, &error) != LAYA_OK) return 4;
    /* The last block is written by finish: half of it fits. */
    char hex[65];
    if (laya_output_finish(&output, hex, &error) != LAYA_ERROR_IO) return 5;
    if (!test_contains(error.message, "file: cannot be written: the file size limit is reached")) return 6;
    return hex[0] == '\0' ? 0 : 7;
}

/* Run a function in a child; its value is the child's exit status. */
static int run_child(int (*function)(const char *path), const char *path)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(function(path));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_output_limit(void **state)
{
    test_place *place = *state;
    assert_int_equal(run_child(write_beyond_limit, at(place, "file")), 0);
    unlink(place->path);
}

/* ------------------------------------------------------------------ staging */

/* A file and a directory with a file in the staging directory. */
static void fill(const laya_staging *staging)
{
    char path[TEST_PATH_SIZE];
    laya_error error;
    snprintf(path, sizeof path, "%s/inner", staging->directory);
    if (laya_make_directory(path, &error) != LAYA_OK) fail_msg("%s", error.message);
    snprintf(path, sizeof path, "%s/inner/file", staging->directory);
    test_write_file(path, "abc", 3);
}

static void open_staging(laya_staging *staging, const char *target)
{
    laya_error error;
    if (laya_staging_open(staging, target, NULL, &error) != LAYA_OK) fail_msg("%s", error.message);
}

static void commit(laya_staging *staging)
{
    laya_error error;
    if (laya_staging_commit(staging, &error) != LAYA_OK) fail_msg("%s", error.message);
}

static void remove_filled(test_place *place, const char *name)
{
    char path[TEST_PATH_SIZE];
    snprintf(path, sizeof path, "%s/inner/file", name);
    assert_int_equal(unlink(at(place, path)), 0);
    snprintf(path, sizeof path, "%s/inner", name);
    assert_int_equal(rmdir(at(place, path)), 0);
    assert_int_equal(rmdir(at(place, name)), 0);
}

static void test_commit(void **state)
{
    test_place *place = *state;
    laya_staging staging;
    mode_t mask = umask(027);
    open_staging(&staging, at(place, "out"));
    fill(&staging);
    umask(mask);
    /* a sibling, and nothing has the name yet */
    assert_int_equal(count_entries(place, "out.partial-"), 1);
    assert_int_equal(count_entries(place, ""), 1);
    assert_int_equal(mode_of(staging.directory), 0750);
    commit(&staging);
    assert_int_equal(count_entries(place, ""), 1);
    assert_int_equal(mode_of(at(place, "out")), 0750);
    char *text = test_read_file(at(place, "out/inner/file"), NULL);
    assert_string_equal(text, "abc");
    free(text);
    laya_staging_discard(&staging); /* nothing */
    remove_filled(place, "out");
}

static void test_discard(void **state)
{
    test_place *place = *state;
    char outside[TEST_PATH_SIZE], link[TEST_PATH_SIZE];
    laya_staging staging;
    test_write_file(at(place, "kept"), "abc", 3);
    open_staging(&staging, at(place, "out"));
    fill(&staging);
    /* links are removed, not what they point to */
    snprintf(outside, sizeof outside, "%s", place->directory);
    snprintf(link, sizeof link, "%s/inner/link", staging.directory);
    assert_int_equal(symlink(outside, link), 0);
    laya_staging_discard(&staging);
    laya_staging_discard(&staging);
    assert_int_equal(count_entries(place, ""), 1);
    unlink(at(place, "kept"));
}

/* A name in the current directory, and slashes at the end. */
static void test_relative_target(void **state)
{
    test_place *place = *state;
    laya_staging staging;
    char before[TEST_PATH_SIZE];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(place->directory), 0);
    open_staging(&staging, "out//");
    fill(&staging);
    commit(&staging);
    assert_true(exists("out/inner/file"));
    remove_filled(place, "out");
    open_staging(&staging, "a/b");
    commit(&staging);
    assert_int_equal(rmdir("a/b"), 0);
    assert_int_equal(rmdir("a"), 0);
    assert_int_equal(chdir(before), 0);
}

static void expect_refusal(test_place *place, const char *target, const char *text)
{
    laya_staging staging;
    laya_error error;
    unsigned before = count_entries(place, "");
    assert_int_equal(laya_staging_open(&staging, target, NULL, &error), LAYA_ERROR_IO);
    assert_contains(error.message, text);
    assert_null(staging.directory);
    laya_staging_discard(&staging);
    assert_int_equal(count_entries(place, ""), before);
}

static void test_existing_target(void **state)
{
    test_place *place = *state;
    const char *text = "exists already and is not overwritten; give another name or remove it first";
    test_write_file(at(place, "file"), "abc", 3);
    expect_refusal(place, place->path, text);
    expect_refusal(place, at(place, "file/out"), "/file: expected a directory");
    assert_int_equal(unlink(at(place, "file")), 0);

    assert_int_equal(mkdir(at(place, "directory"), 0700), 0);
    expect_refusal(place, place->path, text);
    expect_refusal(place, at(place, "directory/"), text);
    expect_refusal(place, at(place, "directory/."), text);
    expect_refusal(place, at(place, "new/."), text); /* the parents made for it are removed */
    assert_int_equal(rmdir(at(place, "directory")), 0);

    assert_int_equal(symlink("nowhere", at(place, "link")), 0);
    expect_refusal(place, place->path, text);
    assert_int_equal(unlink(place->path), 0);

    expect_refusal(place, "/", text);
    expect_refusal(place, "///", text);
    expect_refusal(place, "", "the output has an empty name");
}

/* Something takes the name while the directory is filled. */
static void test_commit_refused(void **state)
{
    test_place *place = *state;
    laya_staging staging;
    laya_error error;
    open_staging(&staging, at(place, "parent/out"));
    fill(&staging);
    test_write_file(place->path, "abc", 3);
    assert_int_equal(laya_staging_commit(&staging, &error), LAYA_ERROR_IO);
    assert_contains(error.message, "parent/out: exists already");
    assert_null(staging.directory);
    assert_true(exists(place->path));
    assert_int_equal(unlink(place->path), 0);
    assert_int_equal(count_entries(place, ""), 1); /* the parent, in use by another, stays, and nothing is in it */
    assert_int_equal(rmdir(at(place, "parent")), 0);
}

static void test_parents(void **state)
{
    test_place *place = *state;
    laya_staging staging;
    laya_error error;
    assert_int_equal(mkdir(at(place, "old"), 0700), 0);
    open_staging(&staging, at(place, "old/a//b/out/"));
    assert_true(exists(at(place, "old/a/b")));
    fill(&staging);
    laya_staging_discard(&staging);
    assert_false(exists(at(place, "old/a")));
    assert_true(exists(at(place, "old")));

    /* one that another uses by now stays, with those around it */
    open_staging(&staging, at(place, "old/a/b/out"));
    test_write_file(at(place, "old/a/other"), "", 0);
    laya_staging_discard(&staging);
    assert_false(exists(at(place, "old/a/b")));
    assert_int_equal(unlink(at(place, "old/a/other")), 0);
    assert_int_equal(rmdir(at(place, "old/a")), 0);

    open_staging(&staging, at(place, "old/a/b/out"));
    commit(&staging);
    assert_int_equal(rmdir(at(place, "old/a/b/out")), 0);
    assert_int_equal(rmdir(at(place, "old/a/b")), 0);
    assert_int_equal(rmdir(at(place, "old/a")), 0);
    assert_int_equal(rmdir(at(place, "old")), 0);

    assert_int_equal(laya_make_directory(at(place, "old/a"), &error), LAYA_ERROR_IO);
    assert_contains(error.message, "old/a: cannot be created: no such file or directory");
}

static int open_in_read_only(const char *path)
{
    char deeper[TEST_PATH_SIZE + 8];
    laya_staging staging;
    laya_error error;
    if (geteuid() == 0 && setuid(65534) != 0) return 1; /* root may write anywhere */
    if (laya_staging_open(&staging, path, NULL, &error) != LAYA_ERROR_IO) return 2;
    if (!test_contains(error.message, "cannot be created: permission denied")) return 3;
    snprintf(deeper, sizeof deeper, "%s/out", path);
    if (laya_staging_open(&staging, deeper, NULL, &error) != LAYA_ERROR_IO) return 4;
    return test_contains(error.message, "parent/out: cannot be created: permission denied") ? 0 : 5;
}

static void test_read_only_parent(void **state)
{
    test_place *place = *state;
    assert_int_equal(chmod(place->directory, 0755), 0);
    assert_int_equal(mkdir(at(place, "parent"), 0555), 0);
    assert_int_equal(run_child(open_in_read_only, at(place, "parent/out")), 0);
    assert_int_equal(rmdir(at(place, "parent")), 0);
}

static void make_sibling(test_place *place, const char *name)
{
    char path[TEST_PATH_SIZE];
    assert_int_equal(mkdir(at(place, name), 0700), 0);
    snprintf(path, sizeof path, "%s/file", name);
    test_write_file(at(place, path), "abc", 3);
}

static void remove_sibling(test_place *place, const char *name)
{
    char path[TEST_PATH_SIZE];
    snprintf(path, sizeof path, "%s/file", name);
    assert_int_equal(unlink(at(place, path)), 0);
    assert_int_equal(rmdir(at(place, name)), 0);
}

/* What a killed process left is removed; what only looks like it stays. */
static void test_stale_sibling(void **state)
{
    test_place *place = *state;
    static const char *const kept[] = {"out.partial-abc12",   "out.partial-abc1234", "out.partial-abc.23",
                                       "out2.partial-abc123", "xout.partial-abc123", "out.partial_abc123"};
    const size_t count = sizeof kept / sizeof *kept;
    laya_staging staging;
    for (size_t i = 0; i < count; i++) make_sibling(place, kept[i]);
    make_sibling(place, "out.partial-abc123");
    make_sibling(place, "out.partial-zzzzzz");
    test_write_file(at(place, "out.partial-file01"), "", 0);
    assert_int_equal(symlink(kept[0], at(place, "out.partial-link01")), 0);
    bool root = geteuid() == 0;
    if (root) {
        make_sibling(place, "out.partial-other1"); /* of another user */
        assert_int_equal(chown(at(place, "out.partial-other1"), 65534, 65534), 0);
    }
    open_staging(&staging, at(place, "out"));
    if (root) remove_sibling(place, "out.partial-other1");
    assert_false(exists(at(place, "out.partial-abc123")));
    assert_false(exists(at(place, "out.partial-zzzzzz")));
    assert_int_equal(unlink(at(place, "out.partial-file01")), 0);
    assert_int_equal(unlink(at(place, "out.partial-link01")), 0);
    laya_staging_discard(&staging);
    assert_int_equal(count_entries(place, ""), count);
    for (size_t i = 0; i < count; i++) remove_sibling(place, kept[i]);
}

/* Another process works on the same target. Killed, it leaves its directory, which goes with the next opening. */
static void test_locked_sibling(void **state)
{
    test_place *place = *state;
    int ready[2], status;
    char byte;
    laya_staging staging;
    assert_int_equal(pipe(ready), 0);
    at(place, "out");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (laya_staging_open(&staging, place->path, NULL, NULL) != LAYA_OK) _exit(1);
        if (write(ready[1], "r", 1) != 1) _exit(2);
        for (;;) pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    open_staging(&staging, place->path);
    assert_int_equal(count_entries(place, "out.partial-"), 2);
    laya_staging_discard(&staging);
    assert_int_equal(count_entries(place, "out.partial-"), 1);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(count_entries(place, "out.partial-"), 1);
    open_staging(&staging, place->path);
    assert_int_equal(count_entries(place, "out.partial-"), 1);
    laya_staging_discard(&staging);
}

/* Many processes open, fill and commit under one name at once: a cleaner never takes what another has just made, and
   one of them wins. */
enum { RACE_ROUNDS = 400 };

static int race(const char *path)
{
    for (int round = 0; round < RACE_ROUNDS; round++) {
        laya_staging staging;
        laya_error error;
        if (laya_staging_open(&staging, path, NULL, &error) != LAYA_OK)
            return test_contains(error.message, "exists") ? 3 : 1;
        char file[TEST_PATH_SIZE];
        snprintf(file, sizeof file, "%s/file", staging.directory);
        int descriptor = open(file, O_WRONLY | O_CREAT | O_EXCL, 0600);
        if (descriptor < 0) return 2;
        close(descriptor);
        if (round < RACE_ROUNDS - 1) {
            laya_staging_discard(&staging);
        } else if (laya_staging_commit(&staging, &error) != LAYA_OK) {
            return test_contains(error.message, "exists") ? 3 : 4;
        }
    }
    return 0;
}

static void test_race(void **state)
{
    test_place *place = *state;
    enum { CHILDREN = 6 };
    pid_t children[CHILDREN];
    unsigned winners = 0;
    at(place, "out");
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) _exit(race(place->path));
    }
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status));
        assert_true(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3);
        if (WEXITSTATUS(status) == 0) winners++;
    }
    assert_int_equal(winners, 1);
    assert_int_equal(count_entries(place, ""), 1);
    remove_sibling(place, "out");
}

static void test_staging_memory(void **state)
{
    test_place *place = *state;
    test_memory memory;
    laya_staging staging;
    laya_error error;
    test_memory_init(&memory);
    for (size_t fail = 1;; fail++) {
        make_sibling(place, "out.partial-abc123");
        mkdir(at(place, "parent"), 0700);
        test_memory_arm(&memory, fail);
        laya_status status = laya_staging_open(&staging, at(place, "out"), &memory.hooks, &error);
        if (!memory.failed) {
            assert_int_equal(status, LAYA_OK);
            break;
        }
        assert_int_equal(status, LAYA_ERROR_MEMORY);
        assert_int_equal(memory.live, 0);
        if (exists(at(place, "out.partial-abc123"))) remove_sibling(place, "out.partial-abc123");
        assert_int_equal(count_entries(place, "out"), 0);
    }
    laya_staging_discard(&staging);
    assert_int_equal(memory.live, 0);
    assert_int_equal(rmdir(at(place, "parent")), 0);
}

/* ------------------------------------------------------------------ pages */

/* The contents are the same afterwards, whatever the range: only whole pages are given back, and read again. */
static void test_forget(void **state)
{
    test_place *place = *state;
    enum { SIZE = 5 * 4096 + 100 };
    unsigned char *data = malloc(SIZE);
    laya_file file;
    assert_non_null(data);
    for (size_t i = 0; i < SIZE; i++) data[i] = (unsigned char)(i * 31 + 1);
    test_write_file(at(place, "file"), data, SIZE);
    assert_int_equal(laya_file_map(&file, place->path, NULL), LAYA_OK);
    static const size_t ranges[][2] = {{0, SIZE}, {1, SIZE - 1}, {4095, 2}, {4096, 4096}, {100, 10}, {0, 0}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        laya_file_forget(file.data + ranges[i][0], ranges[i][1]);
        assert_memory_equal(file.data, data, SIZE);
    }
    laya_file_unmap(&file);
    unlink(place->path);
    free(data);
}

/* ------------------------------------------------------------------ a single file */

static void test_commit_file(void **state)
{
    test_place *place = *state;
    laya_staging staging;
    laya_error error;
    size_t size;
    mode_t mask = umask(027);
    open_staging(&staging, at(place, "new/out"));
    assert_int_equal(count_entries(place, ""), 1);
    assert_int_equal(laya_staging_commit_file(&staging, "a\0c", 3, &error), LAYA_OK);
    umask(mask);
    assert_null(staging.directory);
    assert_int_equal(mode_of(at(place, "new/out")), 0640);
    char *text = test_read_file(place->path, &size);
    assert_int_equal(size, 3);
    assert_memory_equal(text, "a\0c", 3);
    free(text);
    laya_staging_discard(&staging); /* nothing */
    expect_refusal(place, place->path, "new/out: exists already");
    assert_int_equal(unlink(place->path), 0);
    assert_int_equal(rmdir(at(place, "new")), 0); /* nothing else is in it */

    open_staging(&staging, at(place, "empty"));
    assert_int_equal(laya_staging_commit_file(&staging, NULL, 0, &error), LAYA_OK);
    free(test_read_file(place->path, &size));
    assert_int_equal(size, 0);
    assert_int_equal(unlink(place->path), 0);
}

/* Something takes the name meanwhile, also what a rename of a directory would replace. */
static void test_commit_file_refused(void **state)
{
    test_place *place = *state;
    laya_staging staging;
    laya_error error;
    open_staging(&staging, at(place, "out"));
    test_write_file(place->path, "mine", 4);
    assert_int_equal(laya_staging_commit_file(&staging, "abc", 3, &error), LAYA_ERROR_IO);
    assert_contains(error.message, "/out: exists already and is not overwritten");
    assert_null(staging.directory);
    char *text = test_read_file(at(place, "out"), NULL);
    assert_string_equal(text, "mine");
    free(text);
    assert_int_equal(unlink(place->path), 0);
    open_staging(&staging, at(place, "out"));
    assert_int_equal(mkdir(place->path, 0700), 0);
    assert_int_equal(laya_staging_commit_file(&staging, "abc", 3, &error), LAYA_ERROR_IO);
    assert_int_equal(rmdir(at(place, "out")), 0);
    assert_int_equal(count_entries(place, ""), 0);
}

static void test_commit_file_memory(void **state)
{
    test_place *place = *state;
    test_memory memory;
    laya_error error;
    size_t fail = 1;
    test_memory_init(&memory);
    for (;; fail++) {
        laya_staging staging;
        test_memory_arm(&memory, 0);
        assert_int_equal(laya_staging_open(&staging, at(place, "out"), &memory.hooks, &error), LAYA_OK);
        test_memory_arm(&memory, fail);
        laya_status status = laya_staging_commit_file(&staging, "abc", 3, &error);
        assert_int_equal(memory.live, 0);
        if (!memory.failed) break;
        assert_int_equal(status, LAYA_ERROR_MEMORY);
        assert_int_equal(count_entries(place, ""), 0);
    }
    assert_true(fail > 3);
    assert_int_equal(unlink(at(place, "out")), 0);
}

int main(void)
{
#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, make_place, remove_place)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hash),
        IN_PLACE(test_hash_file),
        IN_PLACE(test_output),
        IN_PLACE(test_output_empty),
        IN_PLACE(test_output_memory),
        IN_PLACE(test_output_failure_stays),
        IN_PLACE(test_output_limit),
        IN_PLACE(test_commit),
        IN_PLACE(test_discard),
        IN_PLACE(test_relative_target),
        IN_PLACE(test_existing_target),
        IN_PLACE(test_commit_refused),
        IN_PLACE(test_commit_file),
        IN_PLACE(test_commit_file_refused),
        IN_PLACE(test_commit_file_memory),
        IN_PLACE(test_parents),
        IN_PLACE(test_read_only_parent),
        IN_PLACE(test_stale_sibling),
        IN_PLACE(test_locked_sibling),
        IN_PLACE(test_race),
        IN_PLACE(test_staging_memory),
        IN_PLACE(test_forget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
