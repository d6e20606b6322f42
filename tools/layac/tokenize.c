/* SPDX-License-Identifier: Apache-2.0 */
/* layac tokenize */
#include "base/json.h"
#include "layac.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: layac tokenize [--model DIR | --tokenizer FILE] [--text TEXT | --file FILE] [--lines] [--tokens]\n"
    "\n"
    "Prints the token ids of a text as JSON, without special tokens around it.\n"
    "\n"
    "  --model DIR       checkpoint directory (default: $LAYA_MODEL, else the demo model)\n"
    "  --tokenizer FILE  a tokenizer.json by itself\n"
    "  --text TEXT       the text\n"
    "  --file FILE       a file; - or nothing: standard input. One newline at its end is not part of the text\n"
    "  --lines           every line is a text of its own; one JSON line each\n"
    "  --tokens          also the tokens in the vocabulary's spelling\n"
    "  --help            this text\n";

typedef struct settings {
    const char *model;
    const char *tokenizer;
    const char *text;
    const char *file;
    bool lines;
    bool tokens;
} settings;

/* {"count":..,"ids":[..],"tokens":[..]} and a newline. */
static int print_ids(const settings *set, const laya_tokenizer *tokenizer, const char *text, size_t size)
{
    laya_error error;
    uint32_t *ids;
    size_t count;
    laya_buffer out;
    laya_json_writer w;
    if (laya_tokenizer_encode(tokenizer, text, size, &ids, &count, &error) != LAYA_OK)
        return layac_fail_library(&error);
    laya_buffer_init(&out, NULL);
    laya_json_writer_init(&w, &out, false);
    laya_json_begin(&w, '{');
    laya_json_member_uint(&w, "count", count);
    laya_json_name(&w, "ids");
    laya_json_begin(&w, '[');
    for (size_t at = 0; at < count; at++) laya_json_put_uint(&w, ids[at]);
    laya_json_end(&w, ']');
    if (set->tokens) {
        laya_json_name(&w, "tokens");
        laya_json_begin(&w, '[');
        for (size_t at = 0; at < count; at++) {
            size_t length;
            const char *token = laya_tokenizer_token(tokenizer, ids[at], &length);
            laya_json_put_string(&w, token ? token : "", length);
        }
        laya_json_end(&w, ']');
    }
    laya_json_end(&w, '}');
    laya_tokenizer_release(tokenizer, ids);
    int code = out.failed ? layac_fail(EXIT_MEMORY, "out of memory") : EXIT_OK;
    if (code == EXIT_OK) puts(out.data);
    laya_buffer_close(&out);
    return code;
}

static int print_lines(const settings *set, const laya_tokenizer *tokenizer, const char *text, size_t size)
{
    int code = EXIT_OK;
    while (size > 0 && code == EXIT_OK) {
        const char *newline = memchr(text, '\n', size);
        size_t line = newline ? (size_t)(newline - text) : size;
        code = print_ids(set, tokenizer, text, line);
        size_t step = line + (newline != NULL);
        text += step;
        size -= step;
    }
    return code;
}

static int tokenize(const settings *set, const laya_tokenizer *tokenizer)
{
    laya_buffer text;
    int code = EXIT_OK;
    if (set->text) {
        laya_buffer_init(&text, NULL);
        laya_buffer_puts(&text, set->text);
        if (text.failed) return layac_fail(EXIT_MEMORY, "out of memory");
    } else {
        code = layac_read(set->file ? set->file : "-", &text);
        if (!set->lines) layac_drop_newline(&text);
    }
    const char *data = text.data ? text.data : "";
    if (code == EXIT_OK && set->lines) code = print_lines(set, tokenizer, data, text.size);
    if (code == EXIT_OK && !set->lines) code = print_ids(set, tokenizer, data, text.size);
    laya_buffer_close(&text);
    return code == EXIT_OK ? layac_finish() : code;
}

static int run(const settings *set)
{
    laya_error error;
    laya_tokenizer *tokenizer;
    laya_model *model;
    int code;
    if (set->tokenizer) {
        if (laya_tokenizer_open(set->tokenizer, NULL, &tokenizer, &error) != LAYA_OK)
            return layac_fail_library(&error);
        code = tokenize(set, tokenizer);
        laya_tokenizer_close(tokenizer);
        return code;
    }
    code = layac_open_model(set->model, NULL, &model);
    if (code != EXIT_OK) return code;
    code = tokenize(set, laya_model_tokenizer(model));
    laya_model_close(model);
    return code;
}

int layac_tokenize(int count, char **arguments)
{
    static const struct option options[] = {
        {"model", required_argument, NULL, 'm'}, {"tokenizer", required_argument, NULL, 'T'},
        {"text", required_argument, NULL, 't'},  {"file", required_argument, NULL, 'f'},
        {"lines", no_argument, NULL, 'l'},       {"tokens", no_argument, NULL, 'k'},
        {"help", no_argument, NULL, 'h'},        {0}};
    settings set = {0};
    for (int option; (option = getopt_long(count, arguments, "m:h", options, NULL)) != -1;) {
        switch (option) {
        case 'm': set.model = optarg; break;
        case 'T': set.tokenizer = optarg; break;
        case 't': set.text = optarg; break;
        case 'f': set.file = optarg; break;
        case 'l': set.lines = true; break;
        case 'k': set.tokens = true; break;
        case 'h': fputs(usage, stdout); return layac_finish();
        default: fputs(usage, stderr); return EXIT_USAGE;
        }
    }
    if (optind < count) return layac_fail(EXIT_USAGE, "tokenize: unexpected argument '%s'", arguments[optind]);
    if (set.model && set.tokenizer) return layac_fail(EXIT_USAGE, "tokenize: name --model or --tokenizer, not both");
    if (set.text && set.file) return layac_fail(EXIT_USAGE, "tokenize: give --text or --file, not both");
    return run(&set);
}
