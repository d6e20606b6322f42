/* SPDX-License-Identifier: Apache-2.0 */
/* A program as the protobuf message CoreML.Specification.Model, and back. */
#ifndef LAYA_COREML_ENCODE_H
#define LAYA_COREML_ENCODE_H

#include "mil/program.h"

/*
 * Append the message: fields in the order of their numbers, map entries in the program's order, so that the same
 * program gives the same bytes. Constants with in_file set refer to the weight file, others hold their bytes. Errors:
 * MEMORY, UNSUPPORTED (lists, tuples and dictionaries, which only a program that was read can have).
 */
laya_status laya_model_encode(const laya_mil_program *program, laya_buffer *out, laya_error *error);

/*
 * Read a message into an initialised, empty program. `weights` is the weight file in memory (NULL: there is none); it
 * and `message` must outlive the program (constants point into them or into the arena). Names are bound to the
 * definition that comes before; one that is missing leaves value NULL. Unknown operations are kept like others.
 * Fields that the schema does not have are ignored. Errors: FORMAT (malformed message, nesting beyond a limit, a
 * constant whose bytes do not fit its type, a bad reference into the weight file), UNSUPPORTED (not an ML Program;
 * a rank above LAYA_MIL_MAX_RANK), MEMORY.
 */
laya_status laya_model_decode(laya_mil_program *program, const unsigned char *message, size_t size,
                              const unsigned char *weights, size_t weights_size, laya_error *error);

#endif
