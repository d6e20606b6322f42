/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Model files for tests. Messages are written in a text form, which a few lines below turn into bytes without
 * protobuf-c:
 *     1=7 2{...} 3"text" 4#a8be00        varint, message, text, bytes (also packed lists) of fields 1 to 4
 */
#ifndef LAYA_TESTS_MESSAGES_H
#define LAYA_TESTS_MESSAGES_H

#include "support.h"

#include "base/error.h"
#include "coreml/encode.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ bytes */

static inline void put_varint(laya_buffer *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) laya_buffer_putc(out, (char)(value | 0x80));
    laya_buffer_putc(out, (char)value);
}

/* Hex digits up to another character; spaces are passed over where `spaces` is set. */
static inline const char *put_hex(laya_buffer *out, const char *text, bool spaces)
{
    for (;;) {
        char pair[3] = {text[0], text[0] ? text[1] : '\0', '\0'}, *end;
        unsigned long byte = strtoul(pair, &end, 16);
        if (spaces && *text == ' ') {
            text++;
        } else if (end == pair + 2 && *text != ' ') {
            laya_buffer_putc(out, (char)byte);
            text += 2;
        } else {
            return text;
        }
    }
}

/* Insert a varint in front of what stands from `start` on. */
static inline void insert_varint(laya_buffer *out, size_t start, uint64_t value)
{
    size_t size = out->size - start;
    put_varint(out, value); /* makes room, and tells how long it is */
    size_t added = out->size - start - size;
    char bytes[10];
    memcpy(bytes, out->data + start + size, added);
    memmove(out->data + start + added, out->data + start, size);
    memcpy(out->data + start, bytes, added);
}

/* The bytes from `start` on are all of a message or text: its length goes in front. */
static inline void put_length(laya_buffer *out, size_t start)
{
    insert_varint(out, start, out->size - start);
}

/* All that was written becomes a field of a message. */
static inline void wrap(laya_buffer *out, unsigned field)
{
    put_length(out, 0);
    insert_varint(out, 0, field << 3 | 2);
}

static inline void put_message(laya_buffer *out, const char *text)
{
    size_t starts[64] = {0}, depth = 0;
    while (*text) {
        if (*text == ' ' || *text == '}') {
            if (*text++ != '}') continue;
            assert_true(depth > 0);
            put_length(out, starts[--depth]);
            continue;
        }
        char *at;
        uint64_t field = strtoull(text, &at, 10);
        assert_true(at != text);
        put_varint(out, field << 3 | (*at == '=' ? 0u : 2u));
        text = at + 1;
        size_t start = out->size;
        if (*at == '=') {
            put_varint(out, (uint64_t)strtoll(text, &at, 10));
            text = at;
        } else if (*at == '{') {
            starts[depth++] = start;
        } else if (*at == '"') {
            size_t length = strcspn(text, "\"");
            laya_buffer_append(out, text, length);
            put_length(out, start);
            text += length + 1;
        } else {
            text = put_hex(out, text, false);
            put_length(out, start);
        }
    }
    assert_int_equal(depth, 0);
    assert_false(out->failed);
}

static inline void assert_bytes(const laya_buffer *found, const laya_buffer *expected)
{
    size_t at = 0;
    while (at < found->size && at < expected->size && found->data[at] == expected->data[at]) at++;
    if (found->size != expected->size || at < found->size) {
        fail_msg("%zu bytes, expected %zu; they differ from byte %zu on", found->size, expected->size, at);
    }
}

/* Whether `part`, in hex, stands in the bytes. */
static inline bool has_bytes(const laya_buffer *bytes, const char *part)
{
    laya_buffer wanted;
    bool found = false;
    laya_buffer_init(&wanted, NULL);
    put_hex(&wanted, part, true);
    for (size_t at = 0; at + wanted.size <= bytes->size && !found; at++)
        found = memcmp(bytes->data + at, wanted.data, wanted.size) == 0;
    laya_buffer_close(&wanted);
    return found;
}

/* ------------------------------------------------------------------ messages */

#define MAIN(block) "1=7 2{} 502{1=1 2{1\"main\" 2{2\"CoreML6\" 3{1\"CoreML6\" 2{" block "}}}}}"
#define SCALAR(dtype) "1{1=" dtype "}"
#define VECTOR(dtype, size) "1{1=" dtype " 2=1 3{1{1=" size "}}}"
#define NAMED(type, value) "3{1\"const\" 3{1\"c\" 2{" type "}} 5{1\"val\" 2{2{" type "} " value "}}}"
#define CONST(type, value) MAIN(NAMED(type, value))
#define IN_PLACE(tensor) "3{1{" tensor "}}"

/* A weight file: the uint3 values 1, 2, 3, 4, 5 at 64 and the fp16 values 1, -2, 0.5 at 192. */
static inline unsigned char *make_weights(size_t *size)
{
    static const char text[] = "02000000 02000000",
                      uint3[] = "efbeadde 0c000000 0200000000000000 8000000000000000 01",
                      fp16[] = "efbeadde 01000000 0600000000000000 0001000000000000";
    laya_buffer bytes;
    laya_buffer_init(&bytes, NULL);
    unsigned char *file = calloc(1, 262);
    assert_non_null(file);
    put_hex(&bytes, text, true);
    memcpy(file, bytes.data, bytes.size);
    laya_buffer_clear(&bytes);
    put_hex(&bytes, uint3, true);
    memcpy(file + 64, bytes.data, bytes.size);
    memcpy(file + 128, "\xd1\x58", 2);
    laya_buffer_clear(&bytes);
    put_hex(&bytes, fp16, true);
    memcpy(file + 192, bytes.data, bytes.size);
    memcpy(file + 256, "\x00\x3c\x00\xc0\x00\x38", 6);
    laya_buffer_close(&bytes);
    *size = 262;
    return file;
}

/* Decode a message in a block of its exact size. */
static inline laya_status decode(laya_mil_program *program, const laya_buffer *message, const unsigned char *weights,
                                 size_t weights_size, laya_error *error)
{
    unsigned char *copy = malloc(message->size + 1);
    assert_non_null(copy);
    if (message->size > 0) memcpy(copy + 1, message->data, message->size);
    laya_error_clear(error);
    laya_mil_program_init(program, NULL);
    laya_status status = laya_model_decode(program, copy + 1, message->size, weights, weights_size, error);
    free(copy); /* nothing of the program may point into it */
    return status;
}

/* Read a message that must be right. `weights` may be NULL. */
static inline void read_message(laya_mil_program *program, const char *text, const unsigned char *weights,
                                size_t size)
{
    laya_buffer message;
    laya_error error;
    laya_buffer_init(&message, NULL);
    put_message(&message, text);
    if (decode(program, &message, weights, size, &error) != LAYA_OK) fail_msg("%s\n%s", text, error.message);
    laya_buffer_close(&message);
}

static inline void expect_error(const char *text, const unsigned char *weights, size_t weights_size,
                                laya_status status, const char *expected)
{
    laya_buffer message;
    laya_mil_program program;
    laya_error error;
    laya_buffer_init(&message, NULL);
    put_message(&message, text);
    laya_status found = decode(&program, &message, weights, weights_size, &error);
    if (found != status || error.status != status || !test_contains(error.message, expected)) {
        fail_msg("%s\nexpected %s with \"%s\", got %s: %s", text, laya_status_name(status), expected,
                 laya_status_name(found), error.message);
    }
    laya_mil_program_close(&program);
    laya_buffer_close(&message);
}

/* Reading a message and writing it again gives the same bytes. */
static inline void expect_round_trip(const char *text)
{
    size_t size;
    unsigned char *weights = make_weights(&size);
    laya_buffer message, again;
    laya_mil_program program;
    laya_error error;
    laya_buffer_init(&message, NULL);
    laya_buffer_init(&again, NULL);
    put_message(&message, text);
    if (decode(&program, &message, weights, size, &error) != LAYA_OK) fail_msg("%s\n%s", text, error.message);
    laya_buffer_putc(&again, 'x'); /* the message is appended */
    if (laya_model_encode(&program, &again, &error) != LAYA_OK) fail_msg("%s\n%s", text, error.message);
    laya_buffer_close(&message);
    laya_buffer_init(&message, NULL);
    laya_buffer_putc(&message, 'x');
    put_message(&message, text);
    assert_bytes(&again, &message);
    laya_mil_program_close(&program);
    laya_buffer_close(&message);
    laya_buffer_close(&again);
    free(weights);
}

/* ------------------------------------------------------------------ golden bytes */

/* relu of x, fp16 [1, 4, 1, 8], to y; specification 7, opset CoreML6; 204 bytes. */
static const char golden[] =
    "080712260a110a01781a0c2a0a0a04010401081090800452110a01791a0c2a0a0a040104010810908004b21f9e01"
    "08011299010a046d61696e1290010a230a0178121e0a1c080a10041a040a0208011a040a0208041a040a0208011a"
    "040a0208081207436f72654d4c361a600a07436f72654d4c3612551201791a500a0472656c75120a0a017812050a"
    "030a01781a230a0179121e0a1c080a10041a040a0208011a040a0208041a040a0208011a040a0208082a170a046e"
    "616d65120f12040a0208021a070a0522030a0179";

#endif
