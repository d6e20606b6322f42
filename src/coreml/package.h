/* SPDX-License-Identifier: Apache-2.0 */
/* The .mlpackage directory: writing, opening, verifying, describing, comparing. */
#ifndef LAYA_COREML_PACKAGE_H
#define LAYA_COREML_PACKAGE_H

#include "base/file.h"
#include "coreml/weight_file.h"
#include "laya/coreml.h"
#include "mil/program.h"

#define LAYA_PACKAGE_MANIFEST "Manifest.json"
#define LAYA_PACKAGE_MODEL "Data/com.apple.CoreML/model.mlmodel"
#define LAYA_PACKAGE_WEIGHTS "Data/com.apple.CoreML/weights/weight.bin"

/* The files of a package that was written, sorted by path. */
typedef struct laya_package_files {
    laya_written manifest, model, weights; /* weights.size 0: there is none */
} laya_package_files;

/*
 * Write a package into a new directory (the caller's staging; it must not exist). Identifiers in Manifest.json are
 * UUIDs made from SHA-256 values of the contents. Errors: IO, MEMORY, SYSTEM, FORMAT.
 */
laya_status laya_package_write(laya_mil_program *program, const char *directory, const laya_meter *meter,
                               laya_package_files *files, laya_error *error);

/* SHA-256 over the lines "<sha256>  <path>\n" of the files, sorted by path: the digest of a package's contents. */
laya_status laya_package_digest(const laya_package_files *files, char hex[65], laya_error *error);

struct laya_package {
    laya_allocator allocator;
    char *path;         /* of the .mlpackage directory */
    char *model_path;   /* of the model file, by Manifest.json */
    char *weights_path; /* of the weight file; NULL: there is none */
    laya_file model_file;
    laya_file weight_file;
    laya_mil_program program;
};

/* ------------------------------------------------------------------ findings of the verifier */

#define LAYA_CHECKS 6u

typedef struct laya_finding {
    bool error;       /* else a warning */
    unsigned check;   /* 1 … LAYA_CHECKS, as docs/GRAPHS.md numbers them */
    const char *text; /* one line that names the operation or file */
} laya_finding;

typedef struct laya_verdict {
    laya_arena arena;
    laya_finding *findings; /* at most LAYA_MAX_FINDINGS are kept */
    uint32_t finding_count;
    uint32_t errors, warnings;                                 /* all of them */
    uint32_t errors_of[LAYA_CHECKS], warnings_of[LAYA_CHECKS]; /* by check, from check 1 */
    uint32_t checked_ops;                                      /* operations whose types were inferred again */
    uint32_t unknown_ops;                                      /* operations that are not known here */
    uint32_t constants;
    uint64_t constant_bytes;
} laya_verdict;

#define LAYA_MAX_FINDINGS 200u

/* All checks on an open package. Errors: MEMORY; what is wrong with the package is a finding, not an error. */
laya_status laya_package_check(const laya_package *package, laya_verdict *verdict, laya_error *error);
void laya_verdict_close(laya_verdict *verdict);

/*
 * Check 6 on a package just written: every constant of `written` equals, byte for byte, the constant of the same name
 * in `read`, the program of an open package. The meter (may be NULL) is told of the bytes compared. Errors: FORMAT
 * (message names the constant), MEMORY, and what sources and the meter say.
 */
laya_status laya_package_match(const laya_mil_program *written, const laya_mil_program *read, const laya_meter *meter,
                               laya_error *error);

/*
 * Read a package back that was just written: open it, check it, match it with its program. `name` is what messages call
 * it. Errors: FORMAT (the first finding), and as laya_package_open and laya_package_match.
 */
laya_status laya_package_read_back(const laya_mil_program *written, const char *path, const char *name,
                                   const laya_meter *meter, laya_error *error);

#endif
