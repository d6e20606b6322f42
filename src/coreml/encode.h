/* SPDX-License-Identifier: Apache-2.0 */
/* A program as the protobuf message CoreML.Specification.Model, and back. */
#ifndef LAYA_COREML_ENCODE_H
#define LAYA_COREML_ENCODE_H

#include "mil/program.h"

/*
 * Append the message: fields in the order of their numbers, map entries in the program's order, so that the same
 * program gives the same bytes. Constants with in_file set refer to the weight file, others hold their bytes. One
 * interface is the model's own description, several are descriptions of functions. Errors: MEMORY, what a source
 * returns, UNSUPPORTED (what only a program that was read can have: lists, tuples, dictionaries, images, several
 * shapes; blocks more than 26 deep). `out` is then unchanged.
 */
laya_status laya_model_encode(const laya_mil_program *program, laya_buffer *out, laya_error *error);

/*
 * Read a message into an initialised, empty program. `weights` is the weight file in memory (NULL: there is none);
 * it must outlive the program, whose constants point into it or into the arena. `message` need not. Names are bound
 * to the definition that comes before; one that is missing leaves value NULL. Unknown operations are kept like others.
 * Fields that the schema does not have are ignored. The weight file may have any name that begins with
 * "@model_path/", the same one in all references. Errors: FORMAT (malformed message, one beyond the limits of
 * coreml/wire.h, a constant whose bytes do not fit its type, a bad reference into the weight file), UNSUPPORTED (not
 * an ML Program; a rank above LAYA_MIL_MAX_RANK or not fixed; a constant of an unknown data type; two weight files),
 * MEMORY.
 */
laya_status laya_model_decode(laya_mil_program *program, const unsigned char *message, size_t size,
                              const unsigned char *weights, size_t weights_size, laya_error *error);

#endif
