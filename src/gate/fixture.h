/* SPDX-License-Identifier: Apache-2.0 */
/* Fixtures: named cases of a state with questions, as fixtures/questions.json holds them. */
#ifndef LAYA_GATE_FIXTURE_H
#define LAYA_GATE_FIXTURE_H

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

#define LAYA_FIXTURE_FORMAT "laya-fixture"
#define LAYA_FIXTURE_MAX_CASES 1024u

/* One case. The texts are JSON for laya_predict, NUL-terminated. */
typedef struct laya_fixture_case {
    const char *name;
    const char *state;
    size_t state_size;
    const char *questions;
    size_t questions_size;
    size_t count; /* questions, at least 1 */
} laya_fixture_case;

typedef struct laya_fixture {
    char sha256[65]; /* of the file */
    const laya_fixture_case *cases;
    size_t count;     /* cases, at least 1 */
    size_t questions; /* in all cases */
    laya_arena arena;
} laya_fixture;

/*
 * Read {"format": "laya-fixture", "version": 1, "cases": [{"name", "state", "questions"}, ...]}. Names differ and are not
 * empty; questions are an object with at least one member, which laya_predict checks further. Errors: IO, FORMAT, MEMORY.
 */
laya_status laya_fixture_open(laya_fixture *fixture, const char *path, const laya_allocator *allocator,
                              laya_error *error);
/* The same for the text of a file, which is not needed afterwards; messages do not name one. Errors: FORMAT, MEMORY. */
laya_status laya_fixture_parse(laya_fixture *fixture, const char *text, size_t size, const laya_allocator *allocator,
                               laya_error *error);
void laya_fixture_close(laya_fixture *fixture);

/* Read one case from an object with "name", "state" and "questions". `where` names it in messages. */
laya_status laya_fixture_case_read(laya_fixture_case *out, laya_json_value object, const char *where,
                                   laya_arena *arena, laya_error *error);
/* No other of the first `count` objects of the list `before` may have this name. */
laya_status laya_fixture_check_name(const laya_fixture_case *input, laya_json_value before, size_t count,
                                    const char *where, laya_error *error);

#endif
