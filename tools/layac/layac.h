/* SPDX-License-Identifier: Apache-2.0 */
/* What the subcommands of layac share. */
#ifndef LAYAC_H
#define LAYAC_H

#include "base/memory.h"
#include "laya/laya.h"

#include <stdbool.h>
#include <stdio.h>

/* Exit codes, as layac(1) documents them. */
enum {
    EXIT_OK = 0,
    EXIT_SYSTEM = 1,     /* internal or system error, standard output cannot be written */
    EXIT_USAGE = 2,      /* the command line */
    EXIT_INPUT = 3,      /* state or questions not acceptable */
    EXIT_CHECKPOINT = 4, /* checkpoint or package malformed or unsupported */
    EXIT_FILE = 5,       /* a file cannot be read or written */
    EXIT_MEMORY = 6,
    EXIT_CHECK = 7 /* a check did not pass: verification or validation failed, packages differ, outputs not stable */
};

int layac_predict(int count, char **arguments);
int layac_info(int count, char **arguments);
int layac_tokenize(int count, char **arguments);
int layac_export(int count, char **arguments);
int layac_inspect(int count, char **arguments);
int layac_reference(int count, char **arguments);
int layac_validate(int count, char **arguments);
int layac_benchmark(int count, char **arguments);
int layac_palettize(int count, char **arguments);

/* ------------------------------------------------------------------ arguments.c */

/* "layac: " + message on standard error. Returns `code`. */
int layac_fail(int code, const char *format, ...)
#if defined(__GNUC__)
    __attribute__((format(printf, 2, 3)))
#endif
    ;
/* Report a library error; returns the exit code for its status. */
int layac_fail_library(const laya_error *error);
/* The library's log lines, on standard error. */
laya_logger layac_logger(void);

/* A decimal number in [low, high]; reports a usage error and returns false otherwise. */
bool layac_number(const char *option, const char *text, uint32_t low, uint32_t high, uint32_t *number);

/* Read a file, or standard input for "-". The buffer is initialised here. Returns an exit code. */
int layac_read(const char *path, laya_buffer *text);
/* `text` itself when it begins with '{' or '[', after white space, else the contents of the file it names. */
int layac_json_argument(const char *text, laya_buffer *json);
/* Drop one newline ("\n" or "\r\n") at the end: editors and shells add it, it is not part of the text. */
void layac_drop_newline(laya_buffer *text);

/* Flush standard output and report what could not be written. Returns an exit code. */
int layac_finish(void);

/* ------------------------------------------------------------------ model.c */

/*
 * The directory of the model to use: `named`, else $LAYA_MODEL, else the built-in demo model beside this
 * program (one line on standard error says so). NULL with a report when there is none. Release with free().
 */
char *layac_model_directory(const char *named);
/* The fixture to use: `named`, else the one that is installed with this program. As layac_model_directory. */
char *layac_fixture_path(const char *named);
/* Open that model with the log on standard error. Returns an exit code. */
int layac_open_model(const char *named, const char *lang_temperatures, laya_model **model);

/* ------------------------------------------------------------------ progress.c */

/* A progress bar on standard error, for calls that take more than two seconds. */
typedef struct layac_bar {
    bool terminal; /* standard error is one */
    bool drawn;
    double start, last; /* seconds */
} layac_bar;

/* The hook that draws the bar. `bar` must live as long as it is used. */
laya_progress layac_bar_start(layac_bar *bar);
/* Take the bar off the terminal, if it was drawn. */
void layac_bar_end(layac_bar *bar);

/* ------------------------------------------------------------------ signals.c */

/*
 * From now on SIGINT, SIGTERM and SIGHUP are only noted, and the hook tells of them, so that a call can clean up. A file
 * size limit is reported by the write that hits it.
 */
laya_interrupt layac_catch_signals(void);
/* End the process by the signal that was noted, if there was one: what called this program should see it. */
void layac_pass_signal_on(void);

/* ------------------------------------------------------------------ table.c */

/* Print a result of laya_predict as a table for people. Returns an exit code. */
int layac_print_table(const char *result, size_t size);
/* Print a text, control characters as spaces, cut or padded to `width` characters (0: as long as it is). */
void layac_print_text(FILE *to, const char *text, size_t size, size_t width);

/* ------------------------------------------------------------------ tree.c */

/* Print a description of a package as a tree for people. Returns an exit code. */
int layac_print_tree(const char *description, size_t size);
/* The same for a report of a package's palettes. */
int layac_print_palettes(const char *report, size_t size);

/* ------------------------------------------------------------------ screen.c */

/* Print a report of laya_screen as tables for people. Returns an exit code. */
int layac_print_screen(const char *report, size_t size);

#endif
