/* SPDX-License-Identifier: Apache-2.0 */
/* The command layac, run as users run it: exit codes, standard output, standard error, files and pipes. */
#include "support.h"

#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOUL "{\"q\": {\"type\": \"noul\", \"instructions\": \"Is it about money?\"}}"

typedef enum output { KEPT, CLOSED, FULL } output;

typedef struct outcome {
    int code;
    char *out;
    size_t size;
    char *err;
} outcome;

static char folder[TEST_PATH_SIZE];

static const char *in_folder(char path[TEST_PATH_SIZE], const char *name)
{
    int size = snprintf(path, TEST_PATH_SIZE, "%s/%s", folder, name);
    assert_true(size > 0 && size < TEST_PATH_SIZE);
    return path;
}

static const char *program(void)
{
    const char *named = getenv("LAYA_LAYAC");
    return named && *named ? named : LAYA_BINARY_DIR "/bin/layac";
}

static void redirect(const char *path, int flags, int descriptor)
{
    int opened = open(path, flags, 0600);
    if (opened < 0 || dup2(opened, descriptor) < 0) _exit(99);
    if (opened != descriptor) close(opened);
}

enum { NOT_THERE = 98 };

/* Run a program with NULL-terminated arguments; `input` becomes its standard input. Release with end(). */
static outcome execute(const char *path, output where, const char *input, size_t input_size,
                       const char *const *arguments)
{
    char in[TEST_PATH_SIZE], out[TEST_PATH_SIZE], err[TEST_PATH_SIZE];
    char *copies[32] = {NULL};
    size_t count = 0;
    copies[count++] = strdup(path);
    for (; arguments[count - 1]; count++) {
        assert_true(count < 31);
        copies[count] = strdup(arguments[count - 1]);
    }
    in_folder(in, "in");
    in_folder(out, "out");
    in_folder(err, "err");
    test_write_file(in, input, input_size);
    test_write_file(out, NULL, 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        redirect(in, O_RDONLY, STDIN_FILENO);
        redirect(err, O_WRONLY | O_CREAT | O_TRUNC, STDERR_FILENO);
        if (where == CLOSED)
            close(STDOUT_FILENO);
        else
            redirect(where == FULL ? "/dev/full" : out, O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO);
        execvp(path, copies);
        _exit(NOT_THERE);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    for (size_t i = 0; i < count; i++) free(copies[i]);
    if (!WIFEXITED(status)) fail_msg("%s died of signal %d", path, WTERMSIG(status));
    outcome result = {.code = WEXITSTATUS(status)};
    result.out = test_read_file(out, &result.size);
    result.err = test_read_file(err, NULL);
    return result;
}

static outcome run_to(output where, const char *input, size_t input_size, const char *const *arguments)
{
    outcome result = execute(program(), where, input, input_size, arguments);
    if (result.code == NOT_THERE) fail_msg("%s cannot be run", program());
    return result;
}

#define RUN(input, ...) run_to(KEPT, input, strlen(input), (const char *const[]){__VA_ARGS__, NULL})

static void end(outcome *o)
{
    free(o->out);
    free(o->err);
}

/* A failure prints nothing on standard output and one reason on standard error. */
static void expect_failure(outcome o, int code, const char *reason)
{
    if (o.code != code) fail_msg("exit code %d instead of %d: %s", o.code, code, o.err);
    assert_int_equal(o.size, 0);
    assert_contains(o.err, reason);
    end(&o);
}

static char *expect_success(outcome o)
{
    if (o.code != 0) fail_msg("exit code %d: %s", o.code, o.err);
    assert_true(o.size > 0);
    free(o.err);
    return o.out;
}

/* The output is one JSON document and a newline. */
static char *expect_json(outcome o, laya_json *doc)
{
    laya_error error;
    char *out = expect_success(o);
    assert_int_equal(out[strlen(out) - 1], '\n');
    if (laya_json_parse(doc, out, strlen(out), NULL, &error) != LAYA_OK) fail_msg("%s: %s", error.message, out);
    return out;
}

static int make_folder(void **state)
{
    (void)state;
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/laya-cli-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    unsetenv("LAYA_MODEL");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"in", "out", "err", "file", "empty"};
    char path[TEST_PATH_SIZE];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(in_folder(path, names[i]));
    return rmdir(folder);
}

/* ------------------------------------------------------------------ help, usage */

static void version_and_help(void **state)
{
    (void)state;
    char *out = expect_success(RUN("", "--version"));
    assert_string_equal(out, "layac " LAYA_VERSION_STRING "\n");
    free(out);
    out = expect_success(RUN("", "-V"));
    assert_string_equal(out, "layac " LAYA_VERSION_STRING "\n");
    free(out);
    char *help = expect_success(RUN("", "help"));
    assert_contains(help, "usage: layac predict");
    static const char *const flags[] = {"--help", "-h"};
    for (size_t i = 0; i < 2; i++) {
        out = expect_success(RUN("", flags[i]));
        assert_string_equal(out, help);
        free(out);
    }
    free(help);
    static const char *const commands[] = {"predict", "info", "tokenize"};
    for (size_t i = 0; i < 3; i++) {
        char start[64];
        help = expect_success(RUN("", "help", commands[i]));
        out = expect_success(RUN("", commands[i], "--help"));
        assert_string_equal(out, help);
        snprintf(start, sizeof start, "usage: layac %s ", commands[i]);
        assert_memory_equal(out, start, strlen(start));
        free(out);
        free(help);
    }
}

static void usage_errors(void **state)
{
    (void)state;
    static const char *const cases[][8] = {
        /* reason, arguments */
        {"usage: layac predict", NULL},
        {"unknown command 'predct'", "predct"},
        {"unknown command 'x'", "help", "x"},
        {"usage: layac predict", "predict", "--nonsense"},
        {"usage: layac predict", "predict", "--questions"},
        {"unexpected argument 'x'", "predict", "--questions", NOUL, "x"},
        {"no questions", "predict", "--state", "x"},
        {"more than one state", "predict", "--questions", NOUL, "--state", "a", "--state-json=1"},
        {"cannot both come from standard input", "predict", "--questions", "-"},
        {"cannot both come from standard input", "predict", "--questions", "-", "--state-json-file", "-"},
        {"--max-len: expected a whole number from 1 to 4294967295, got '0'", "predict", "--max-len", "0"},
        {"--max-len: expected a whole number", "predict", "--max-len", "4294967296"},
        {"--max-len: expected a whole number", "predict", "--max-len", ""},
        {"--head-max-len: expected a whole number", "predict", "--head-max-len", "-1"},
        {"--threads: expected a whole number from 1 to 1024, got '0'", "predict", "--threads", "0"},
        {"--threads: expected a whole number", "predict", "--threads", "1025"},
        {"--threads: expected a whole number", "predict", "--threads", "2x"},
        {"--precision: expected float or double, got 'half'", "predict", "--precision", "half"},
        {"max_len=1025 is longer than the 1024 positions", "predict", "--state", "x", "--questions", NOUL,
         "--max-len=1025"},
        {"usage: layac info", "info", "--nonsense"},
        {"unexpected argument 'x'", "info", "x"},
        {"usage: layac tokenize", "tokenize", "--nonsense"},
        {"unexpected argument 'x'", "tokenize", "x"},
        {"not both", "tokenize", "--model", "a", "--tokenizer", "b"},
        {"not both", "tokenize", "--text", "a", "--file", "b"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_failure(run_to(KEPT, "", 0, cases[i] + 1), 2, cases[i][0]);
}

/* ------------------------------------------------------------------ what is refused */

static void input_errors(void **state)
{
    (void)state;
    static const char *const cases[][8] = {
        {"question 'q': definition must be a dict, got int", "--state", "x", "--questions", "{\"q\": 1}"},
        {"questions must be a dict of question id -> definition, got list", "--state", "x", "--questions", "[]"},
        {"questions: line 1, column 2", "--state", "x", "--questions", "{"},
        {"state: line 1, column 1", "--state-json", "x", "--questions", NOUL},
        {"state must not be None", "--state-json", "null", "--questions", NOUL},
        {"state: line 1, column 3: invalid UTF-8", "--state", "a\xff", "--questions", NOUL},
        {"min_confidence must be a float in [0.0, 1.0], got 2", "--state", "x", "--questions", NOUL,
         "--min-confidence=2"},
        {"min_confidence: line 1", "--state", "x", "--questions", NOUL, "--min-confidence=x"},
        {"lang_temperatures must be a mapping", "--state", "x", "--questions", NOUL, "--lang-temperatures=[]"},
        {"only 0 of its 2 option markers fit in max_len=3", "--state", "x", "--questions", NOUL, "--max-len=3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *arguments[10] = {"predict"};
        for (size_t at = 1; at < 8 && cases[i][at]; at++) arguments[at] = cases[i][at];
        expect_failure(run_to(KEPT, "", 0, arguments), 3, cases[i][0]);
    }
    char path[TEST_PATH_SIZE];
    test_write_file(in_folder(path, "empty"), NULL, 0);
    expect_failure(RUN("", "predict", "--state", "x", "--questions", NOUL, "--lang-temperatures", path), 3,
                   "lang_temperatures: line 1, column 1");
    expect_failure(RUN("", "predict", "--state", "x", "--questions", path), 3, "questions: line 1, column 1");
    expect_failure(RUN("", "predict", "--state-json-file", path, "--questions", NOUL), 3, "state: line 1, column 1");
    expect_failure(RUN("", "tokenize", "--text", "a\xff"), 3, "not UTF-8 at byte offset 1");
}

static void checkpoint_errors(void **state)
{
    (void)state;
    char *directory = test_make_checkpoint();
    char path[TEST_PATH_SIZE + 64];
    test_edit_file(directory, "encoder/config.json", "\"hidden_size\": 192", "\"hidden_size\": \"a\"");
    expect_failure(RUN("", "predict", "--model", directory, "--state", "x", "--questions", NOUL), 4,
                   "encoder/config.json: 'hidden_size' must be an integer, found str");
    expect_failure(RUN("", "info", "--model", directory), 4, "hidden_size");
    expect_failure(RUN("", "tokenize", "--model", directory), 4, "hidden_size");
    test_edit_file(directory, "tokenizer/tokenizer.json", "\"BPE\"", "\"WordPiece\"");
    snprintf(path, sizeof path, "%s/tokenizer/tokenizer.json", directory);
    expect_failure(RUN("x", "tokenize", "--tokenizer", path), 4, "WordPiece");
    test_remove_checkpoint(directory);
}

static void file_errors(void **state)
{
    (void)state;
    expect_failure(RUN("", "predict", "--state", "x", "--questions", "/does/not/exist"), 5, "/does/not/exist");
    expect_failure(RUN("", "predict", "--state-file", "/does/not/exist", "--questions", NOUL), 5, "/does/not/exist");
    expect_failure(RUN("", "predict", "--state-json-file", "/does/not/exist", "--questions", NOUL), 5,
                   "/does/not/exist");
    expect_failure(RUN("", "predict", "--state", "x", "--questions", NOUL, "--lang-temperatures", "/does/not/exist"),
                   5, "/does/not/exist");
    expect_failure(RUN("", "predict", "--state", "x", "--questions", folder), 5, folder);
    expect_failure(RUN("", "predict", "--model", "/does/not/exist", "--state", "x", "--questions", NOUL), 5,
                   "Local model path not found: /does/not/exist");
    expect_failure(RUN("", "info", "--model", folder), 5, "does not contain 'rl_agent_config.json'");
    expect_failure(RUN("", "tokenize", "--tokenizer", "/does/not/exist"), 5, "/does/not/exist");
    expect_failure(RUN("", "tokenize", "--file", "/does/not/exist"), 5, "/does/not/exist");
}

/* What cannot be written is not lost silently. */
static void output_that_cannot_be_written(void **state)
{
    (void)state;
    static const char *const cases[][6] = {
        {"--version"},
        {"help"},
        {"predict", "--state", "x", "--questions", NOUL},
        {"info"},
        {"tokenize", "--text", "x"},
        {"predict", "--help"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        outcome o = run_to(CLOSED, "", 0, cases[i]);
        assert_int_equal(o.code, 1);
        assert_contains(o.err, "standard output cannot be written");
        end(&o);
        if (access("/dev/full", W_OK) != 0) continue;
        o = run_to(FULL, "", 0, cases[i]);
        assert_int_equal(o.code, 1);
        assert_contains(o.err, "standard output cannot be written");
        end(&o);
    }
}

/* ------------------------------------------------------------------ predict */

static void the_model_is_found(void **state)
{
    (void)state;
    char demo[TEST_PATH_SIZE], tiny[TEST_PATH_SIZE];
    test_path(demo, TEST_DEMO);
    test_path(tiny, TEST_TINY);
    outcome built_in = RUN("", "predict", "--state", "x", "--questions", NOUL);
    assert_int_equal(built_in.code, 0);
    assert_contains(built_in.err, "layac: no model named; using the built-in demo model ");
    outcome named = RUN("", "predict", "--model", demo, "--state", "x", "--questions", NOUL);
    assert_int_equal(named.code, 0);
    assert_string_equal(named.out, built_in.out);
    assert_string_equal(named.err, "");
    setenv("LAYA_MODEL", tiny, 1);
    outcome other = RUN("", "predict", "--state", "x", "--questions", NOUL);
    assert_int_equal(other.code, 0);
    assert_string_not_equal(other.out, built_in.out);
    assert_contains(other.err, "layac: warning: laya: this checkpoint ships invalid temperatures");
    end(&other);
    other = RUN("", "predict", "-m", demo, "--state", "x", "-q", NOUL); /* the option wins */
    assert_string_equal(other.out, built_in.out);
    end(&other);
    setenv("LAYA_MODEL", "", 1);
    other = RUN("", "predict", "--state", "x", "--questions", NOUL);
    assert_string_equal(other.out, built_in.out);
    unsetenv("LAYA_MODEL");
    end(&other);
    end(&named);
    end(&built_in);
}

/* The same state by every way gives the same bytes; one newline at the end of a text is not part of it. */
static void ways_to_give_a_state(void **state)
{
    (void)state;
    char path[TEST_PATH_SIZE];
    static const char spaced[] = " \n" NOUL; /* still inline */
    const char *raw = "--raw";
    char *expected = expect_success(RUN("", "predict", raw, "--state", "Pay me\nnow", "--questions", NOUL));
    static const char *const inputs[] = {"Pay me\nnow", "Pay me\nnow\n", "Pay me\nnow\r\n"};
    for (size_t i = 0; i < 3; i++) {
        outcome ways[4] = {RUN(inputs[i], "predict", raw, "--questions", NOUL),
                           RUN(inputs[i], "predict", raw, "--questions", NOUL, "--state-file", "-")};
        test_write_file(in_folder(path, "file"), inputs[i], strlen(inputs[i]));
        ways[2] = RUN("", "predict", raw, "--questions", NOUL, "--state-file", path);
        ways[3] = RUN("\"Pay me\\nnow\"\n", "predict", raw, "--questions", NOUL, "--state-json-file", "-");
        for (size_t way = 0; way < 4; way++) {
            char *out = expect_success(ways[way]);
            assert_string_equal(out, expected);
            free(out);
        }
    }
    outcome more = RUN("Pay me\nnow\n\n", "predict", raw, "--questions", NOUL); /* the second newline is */
    assert_string_not_equal(more.out, expected);
    end(&more);
    more = RUN("", "predict", raw, "--state", "Pay me\nnow\n", "--questions",
               NOUL); /* an argument is taken as it is */
    assert_string_not_equal(more.out, expected);
    end(&more);
    more = RUN("", "predict", raw, "--state-json", "\"Pay me\\nnow\"", "--questions", NOUL);
    assert_string_equal(more.out, expected);
    end(&more);
    test_write_file(in_folder(path, "file"), NOUL, strlen(NOUL));
    more = RUN("", "predict", raw, "--state", "Pay me\nnow", "--questions", path);
    assert_string_equal(more.out, expected);
    end(&more);
    more = RUN(NOUL, "predict", raw, "--state", "Pay me\nnow", "--questions", "-");
    assert_string_equal(more.out, expected);
    end(&more);
    more = RUN("", "predict", raw, "--state", "Pay me\nnow", "--questions", spaced);
    assert_string_equal(more.out, expected);
    end(&more);
    /* NUL bytes and quotes go through */
    outcome nul = run_to(KEPT, "a\0\"b\n", 5, (const char *const[]){"predict", raw, "--questions", NOUL, NULL});
    more = RUN("", "predict", raw, "--state-json", "\"a\\u0000\\\"b\"", "--questions", NOUL);
    assert_int_equal(nul.code, 0);
    assert_string_equal(nul.out, more.out);
    end(&nul);
    end(&more);
    free(expected);
}

static void options_of_predict(void **state)
{
    (void)state;
    laya_json doc;
    char *plain = expect_json(RUN("", "predict", "--state", "x", "--questions", NOUL), &doc);
    assert_int_equal(strchr(plain, '\n') - plain, strlen(plain) - 1); /* one line */
    assert_false(test_contains(plain, "\"raw\""));
    laya_json_close(&doc);
    char *out = expect_json(RUN("", "predict", "--state", "x", "--questions", NOUL, "--raw"), &doc);
    assert_contains(out, ",\"raw\":{\"logits\":[");
    laya_json_close(&doc);
    free(out);
    out = expect_json(RUN("", "predict", "--state", "x", "--questions", NOUL, "--pretty"), &doc);
    assert_contains(
        out, "{\n  \"model\": \"laya-rl-agent\",\n  \"answers\": {\n    \"q\": {\n      \"type\": \"noul\",\n");
    laya_json_close(&doc);
    free(out);
    out = expect_json(RUN("", "predict", "--state", "x", "--questions", NOUL, "--state-token-counts"), &doc);
    assert_contains(out, "\"state_tokens\":1,\"state_tokens_dropped\":0,");
    laya_json_close(&doc);
    free(out);
    out = expect_json(RUN("", "predict", "--state", "x", "--questions", NOUL, "--min-confidence", "1"), &doc);
    assert_contains(out, ",\"abstention\":\"abstained\",\"abstention_threshold\":1.0,\"low_confidence\":true}");
    laya_json_close(&doc);
    free(out);
    out = expect_json(RUN("", "predict", "--state", "x", "--questions", NOUL, "--min-confidence", "{\"default\": 0}"),
                      &doc);
    assert_contains(out, ",\"abstention\":\"passed\",\"abstention_threshold\":0.0}");
    laya_json_close(&doc);
    free(out);
    out = expect_json(
        RUN("", "predict", "--state", "x y z x y z", "--questions", NOUL, "--max-len", "30", "--head-max-len", "30"),
        &doc);
    assert_contains(out, "\"input_tokens\":30,");
    assert_contains(out, "\"truncated\":true,\"truncated_questions\":[\"q\"]");
    laya_json_close(&doc);
    free(out);
    static const char *const threads[] = {"1", "2", "3"};
    for (size_t i = 0; i < 3; i++) {
        out = expect_success(RUN("", "predict", "--state", "x", "--questions", NOUL, "--threads", threads[i]));
        assert_string_equal(out, plain);
        free(out);
    }
    out = expect_json(RUN("", "predict", "--state", "x", "--questions", NOUL, "--precision", "double"), &doc);
    laya_json_close(&doc);
    free(out);
    free(plain);
}

static void languages(void **state)
{
    (void)state;
    static const char temperatures[] = "{\"de\": {\"temperature\": [1, 2, 3.25]}}";
    char path[TEST_PATH_SIZE];
    char *out = expect_success(RUN("", "predict", "--state", "x", "--questions", NOUL, "--raw", "--lang", "de-AT",
                                   "--lang-temperatures", temperatures));
    assert_contains(out, "\"temperature\":3.25,");
    test_write_file(in_folder(path, "file"), temperatures, strlen(temperatures));
    char *again = expect_success(RUN("", "predict", "--state", "x", "--questions", NOUL, "--raw", "--lang", "DE",
                                     "--lang-temperatures", path));
    assert_string_equal(again, out);
    free(again);
    free(out);
    out = expect_success(RUN("", "predict", "--state", "x", "--questions", NOUL, "--raw", "--lang", "fr",
                             "--lang-temperatures", temperatures));
    assert_contains(out, "\"temperature\":2.7197935581207275,");
    free(out);
}

static void a_table(void **state)
{
    (void)state;
    static const char questions[] = "{\"team\\u0007\": {\"type\": \"choice\", \"instructions\": \"Which?\", "
                                    "\"criteria\": [\"billing\", \"a label that is "
                                    "much longer than the forty-four characters of a table\"]}, \"how\": {\"type\": "
                                    "\"score\", \"instructions\": \"?\", "
                                    "\"criteria\": [\"low\", \"\", \"high\"]}, \"is\": {\"type\": \"noul\", "
                                    "\"instructions\": \"?\"}, \"one\": {\"type\": "
                                    "\"score\", \"instructions\": \"?\", \"criteria\": [\"only\"]}}";
    char *out = expect_success(
        RUN("", "predict", "--state", "x", "--questions", questions, "--table", "--min-confidence", "1"));
    assert_contains(out, "team  (choice): ");
    assert_contains(out, "    billing ");
    assert_contains(out, "a label that is much longer than the forty-\xe2\x80\xa6  0.");
    assert_contains(out, "how (score): ");
    assert_contains(out, " on a scale from 0 to 2   [confidence 0.");
    assert_contains(out, "    0  low   0.");
    assert_contains(out, "    1        0.");
    assert_contains(out, "is (noul): ");
    assert_contains(out, ", probability of true 0.");
    assert_contains(out, "  ABSTAINED\n");
    assert_contains(out, "one (score): 0.0000 on a scale from 0 to 0   [confidence 1.0000");
    assert_contains(out, " tokens read\n");
    free(out);
    out = expect_success(
        RUN("", "predict", "--state", "x y z x y z", "--questions", NOUL, "--table", "--max-len", "30"));
    assert_contains(out, "30 tokens read; the state was cut for 1 question(s)\n");
    free(out);
}

/* ------------------------------------------------------------------ info, tokenize */

/* By sha256sum where there is one, else by shasum. */
static void sum_of(const char *path, char hex[65])
{
    outcome o = execute("sha256sum", KEPT, "", 0, (const char *const[]){path, NULL});
    if (o.code == NOT_THERE) {
        end(&o);
        o = execute("shasum", KEPT, "", 0, (const char *const[]){"-a", "256", path, NULL});
    }
    assert_int_equal(o.code, 0);
    assert_true(o.size > 64);
    memcpy(hex, o.out, 64);
    hex[64] = '\0';
    end(&o);
}

static void info(void **state)
{
    (void)state;
    static const char *const names[] = {"rl_agent_config.json", "encoder/config.json", "model.safetensors",
                                        "tokenizer/tokenizer.json", "tokenizer/tokenizer_config.json"};
    char demo[TEST_PATH_SIZE], name[200], path[TEST_PATH_SIZE], hex[65];
    laya_json doc;
    test_path(demo, TEST_DEMO);
    char *out = expect_json(RUN("", "info", "--model", demo), &doc);
    assert_false(test_contains(out, "sha256"));
    assert_true(laya_json_equals(laya_json_get(laya_json_root(&doc), "model_name"), "laya-demo"));
    assert_true(laya_json_equals(laya_json_get(laya_json_root(&doc), "directory"), demo));
    laya_json_close(&doc);
    free(out);
    out = expect_json(RUN("", "info", "--model", demo, "--hashes"), &doc);
    for (size_t i = 0; i < 5; i++) {
        snprintf(name, sizeof name, TEST_DEMO "/%s", names[i]);
        sum_of(test_path(path, name), hex);
        assert_true(laya_json_equals(laya_json_get(laya_json_get(laya_json_root(&doc), "sha256"), names[i]), hex));
    }
    laya_json_close(&doc);
    free(out);
}

/* The ids of "I was billed twice for March, please refund me." come from Hugging Face's tokenizers. */
static void tokenize(void **state)
{
    (void)state;
    static const char text[] = "I was billed twice for March, please refund me.";
    static const char ids[] = "{\"count\":11,\"ids\":[404,684,2754,2335,429,3874,283,721,665,476,285]";
    char expected[400], path[TEST_PATH_SIZE], with_newline[100];
    snprintf(expected, sizeof expected, "%s}\n", ids);
    snprintf(with_newline, sizeof with_newline, "%s\n", text);
    test_write_file(in_folder(path, "file"), with_newline, strlen(with_newline));
    outcome ways[4] = {RUN("", "tokenize", "--text", text), RUN(text, "tokenize"),
                       RUN(with_newline, "tokenize", "--file", "-"), RUN("", "tokenize", "--file", path)};
    for (size_t i = 0; i < 4; i++) {
        char *out = expect_success(ways[i]);
        assert_string_equal(out, expected);
        free(out);
    }
    char *out = expect_success(RUN("", "tokenize", "--text", text, "--tokens"));
    snprintf(expected, sizeof expected,
             "%s,\"tokens\":[\"\xe2\x96\x81I\",\"\xe2\x96\x81was\",\"\xe2\x96\x81"
             "billed\",\"\xe2\x96\x81twice\",\"\xe2\x96\x81"
             "for\",\"\xe2\x96\x81March\",\",\",\"\xe2\x96\x81please\",\"\xe2\x96\x81refund\",\"\xe2\x96\x81me\",\"."
             "\"]}\n",
             ids);
    assert_string_equal(out, expected);
    free(out);
    out = expect_success(RUN("", "tokenize", "--text", ""));
    assert_string_equal(out, "{\"count\":0,\"ids\":[]}\n");
    free(out);
    /* every line a text, empty ones too; a last newline begins no line */
    out = expect_success(RUN("me.\n\nme.\n", "tokenize", "--lines"));
    assert_string_equal(
        out, "{\"count\":2,\"ids\":[476,285]}\n{\"count\":0,\"ids\":[]}\n{\"count\":2,\"ids\":[476,285]}\n");
    free(out);
    out = expect_success(RUN("me.\nme.", "tokenize", "--lines"));
    assert_string_equal(out, "{\"count\":2,\"ids\":[476,285]}\n{\"count\":2,\"ids\":[476,285]}\n");
    free(out);
    char file[TEST_PATH_SIZE];
    out = expect_success(
        RUN("me.", "tokenize", "--tokenizer", test_path(file, TEST_DEMO "/tokenizer/tokenizer.json")));
    assert_string_equal(out, "{\"count\":2,\"ids\":[476,285]}\n");
    free(out);
}

/* The file's contents are test_reference's matter. */
static void reference(void **state)
{
    (void)state;
    char path[TEST_PATH_SIZE], tiny[TEST_PATH_SIZE], fixture[TEST_PATH_SIZE];
    in_folder(path, "reference.json");
    test_path(tiny, TEST_TINY);
    outcome o = RUN("", "reference", "--model", tiny, "--output", path, "--threads", "2"); /* the installed fixture */
    if (o.code != 0) fail_msg("exit code %d: %s", o.code, o.err);
    assert_int_equal(o.size, 0);
    end(&o);
    char *text = test_read_file(path, NULL);
    assert_contains(text, "\"class\":\"native fp32 engine\"");
    assert_contains(text, "\"name\":\"twenty_options\"");
    free(text);
    expect_failure(RUN("", "reference", "--model", tiny, "--output", path), 5, "exists already");
    assert_int_equal(unlink(path), 0);
    expect_failure(RUN("", "reference", "--model", tiny), 2, "reference: no output; use --output FILE");
    expect_failure(RUN("", "reference", "--output", path, "more"), 2, "unexpected argument 'more'");
    expect_failure(RUN("", "reference", "--output", path, "--threads", "0"), 2, "--threads: expected a whole number");
    expect_failure(RUN("", "reference", "--model", tiny, "--output", path, "--fixture", "/nonexistent"), 5,
                   "/nonexistent: cannot be opened");
    test_write_file(in_folder(fixture, "fixture.json"), "{}", 2);
    expect_failure(RUN("", "reference", "--model", tiny, "--output", path, "--fixture", fixture), 4,
                   "expected an object with \"format\": \"laya-fixture\"");
    assert_int_equal(unlink(fixture), 0);
    assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_and_help),
        cmocka_unit_test(usage_errors),
        cmocka_unit_test(input_errors),
        cmocka_unit_test(checkpoint_errors),
        cmocka_unit_test(file_errors),
        cmocka_unit_test(output_that_cannot_be_written),
        cmocka_unit_test(the_model_is_found),
        cmocka_unit_test(ways_to_give_a_state),
        cmocka_unit_test(options_of_predict),
        cmocka_unit_test(languages),
        cmocka_unit_test(a_table),
        cmocka_unit_test(info),
        cmocka_unit_test(tokenize),
        cmocka_unit_test(reference),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
