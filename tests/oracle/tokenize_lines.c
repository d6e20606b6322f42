/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver of tokenizer_oracle.py: tokenize_lines tokenizer.json < texts > ids
 *
 * Each text on standard input is its length in bytes (decimal), a newline, and the bytes. Each gets one
 * line of ids on standard output, or "error STATUS message". With --time the time to open the file is
 * printed instead (milliseconds, several runs), and nothing is read.
 */
#include "laya/tokenizer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static int measure(const char *path)
{
    for (int run = 0; run < 7; run++) {
        laya_tokenizer *tokenizer;
        laya_error error;
        double start = now();
        if (laya_tokenizer_open(path, NULL, &tokenizer, &error) != LAYA_OK) {
            fprintf(stderr, "%s\n", error.message);
            return 1;
        }
        printf("open: %.1f ms, %zu ids\n", now() - start, laya_tokenizer_vocab_size(tokenizer));
        laya_tokenizer_close(tokenizer);
    }
    return 0;
}

/* Read the length line. Returns 0 at the end of the input, and for a line that is no number. */
static int read_length(size_t *length)
{
    char line[32], *end;
    if (!fgets(line, sizeof line, stdin)) return 0;
    *length = (size_t)strtoull(line, &end, 10);
    return end != line && *end == '\n';
}

static int encode_all(const laya_tokenizer *tokenizer)
{
    char *text = NULL;
    size_t capacity = 0, length;
    while (read_length(&length)) {
        if (!text || length > capacity) {
            free(text);
            capacity = length < SIZE_MAX / 2 ? 2 * length + 1 : length;
            text = malloc(capacity);
            if (!text) return 1;
        }
        if (fread(text, 1, length, stdin) != length) {
            free(text);
            return 1;
        }
        uint32_t *ids;
        size_t count;
        laya_error error;
        if (laya_tokenizer_encode(tokenizer, text, length, &ids, &count, &error) != LAYA_OK) {
            printf("error %s %s", laya_status_name(error.status), error.message);
        }
        for (size_t i = 0; i < count; i++) printf(i ? " %" PRIu32 : "%" PRIu32, ids[i]);
        putchar('\n');
        laya_tokenizer_release(tokenizer, ids);
    }
    free(text);
    return ferror(stdout) ? 1 : 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--time") == 0) return measure(argv[2]);
    if (argc != 2) {
        fprintf(stderr, "usage: tokenize_lines [--time] tokenizer.json\n");
        return 2;
    }
    laya_tokenizer *tokenizer;
    laya_error error;
    if (laya_tokenizer_open(argv[1], NULL, &tokenizer, &error) != LAYA_OK) {
        fprintf(stderr, "%s %s\n", laya_status_name(error.status), error.message);
        return 1;
    }
    int status = encode_all(tokenizer);
    laya_tokenizer_close(tokenizer);
    return status;
}
