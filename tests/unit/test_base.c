/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, arena, buffer, errors, UTF-8, files, SHA-256. */
#include "support.h"

#include "base/error.h"
#include "base/file.h"
#include "base/half.h"
#include "base/memory.h"
#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ------------------------------------------------------------------ memory */

static void checked_arithmetic(void **state)
{
    (void)state;
    size_t result = 7;
    assert_true(laya_add_size(SIZE_MAX - 1, 1, &result));
    assert_true(result == SIZE_MAX);
    assert_false(laya_add_size(SIZE_MAX, 1, &result));
    assert_true(laya_mul_size(SIZE_MAX / 2, 2, &result));
    assert_true(result == SIZE_MAX - 1);
    assert_false(laya_mul_size(SIZE_MAX / 2 + 1, 2, &result));
    assert_true(laya_mul_size(0, SIZE_MAX, &result));
    assert_true(result == 0);
    assert_true(laya_mul_size(SIZE_MAX, 0, &result));
}

static void allocations_are_checked(void **state)
{
    (void)state;
    test_memory memory;
    test_memory_init(&memory);
    assert_null(laya_alloc(&memory.hooks, SIZE_MAX / 2, 3));
    assert_null(laya_alloc(&memory.hooks, 0, 8));
    assert_int_equal(memory.made, 0);
    unsigned char *block = laya_alloc_zero(&memory.hooks, 100, 3);
    assert_non_null(block);
    for (size_t at = 0; at < 300; at++) assert_int_equal(block[at], 0);
    laya_release(&memory.hooks, block);
    laya_release(&memory.hooks, NULL);
    assert_int_equal(memory.live, 0);
    test_memory_arm(&memory, 1);
    assert_null(laya_alloc(&memory.hooks, 1, 1));
}

static void default_hooks(void **state)
{
    (void)state;
    laya_allocator zero = {0}, own = laya_allocator_or_default(&zero);
    void *block = own.allocate(own.user, 64);
    assert_non_null(block);
    own.release(own.user, block);
    test_memory memory;
    test_memory_init(&memory);
    assert_ptr_equal(laya_allocator_or_default(&memory.hooks).user, &memory);
    assert_non_null(laya_allocator_or_default(NULL).allocate);
}

/* ------------------------------------------------------------------ arena */

static void arena_blocks(void **state)
{
    (void)state;
    test_memory memory;
    laya_arena arena;
    test_memory_init(&memory);
    laya_arena_init(&arena, &memory.hooks);
    unsigned char *last = NULL;
    for (size_t size = 0; size < 300; size += 7) {
        unsigned char *block = laya_arena_alloc(&arena, size, 1);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % 64, 0);
        if (last) assert_true(block >= last);
        memset(block, 1, size);
        last = block + size;
    }
    assert_int_equal(memory.made, 1);
    assert_null(laya_arena_alloc(&arena, SIZE_MAX / 2, 3));
    assert_null(laya_arena_alloc(&arena, SIZE_MAX, 1));
    assert_null(laya_arena_alloc(&arena, SIZE_MAX - 100, 1));
    assert_string_equal(laya_arena_copy(&arena, "texts", 4), "text");
    assert_string_equal(laya_arena_copy(&arena, NULL, 0), "");
    laya_arena_close(&arena);
    assert_int_equal(memory.live, 0);
    laya_arena_close(&arena); /* twice is harmless */
}

static void arena_grows_and_joins(void **state)
{
    (void)state;
    test_memory memory;
    laya_arena arena;
    test_memory_init(&memory);
    laya_arena_init(&arena, &memory.hooks);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 10; i++) {
            char *block = laya_arena_alloc(&arena, 200000, 1);
            assert_non_null(block);
            memset(block, i, 200000);
        }
        laya_arena_reset(&arena);
        assert_int_equal(memory.live, 1);
    }
    size_t warm = memory.made;
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 10; i++) assert_non_null(laya_arena_alloc(&arena, 200000, 1));
        laya_arena_reset(&arena);
    }
    assert_int_equal(memory.made, warm); /* a warm arena allocates nothing */
    laya_arena_close(&arena);
    assert_int_equal(memory.live, 0);
}

static void arena_reset_survives_failure(void **state)
{
    (void)state;
    test_memory memory;
    laya_arena arena;
    test_memory_init(&memory);
    laya_arena_init(&arena, &memory.hooks);
    assert_non_null(laya_arena_alloc(&arena, 300000, 1));
    assert_non_null(laya_arena_alloc(&arena, 300000, 1));
    test_memory_arm(&memory, 1);
    laya_arena_reset(&arena);
    assert_true(memory.failed);
    assert_int_equal(memory.live, 0);
    assert_non_null(laya_arena_alloc(&arena, 10, 1));
    test_memory_arm(&memory, 1);
    assert_null(laya_arena_alloc(&arena, 1 << 20, 1));
    assert_non_null(laya_arena_alloc(&arena, 10, 1)); /* the first chunk still serves */
    laya_arena_close(&arena);
    assert_int_equal(memory.live, 0);
}

static void arena_poison(void **state)
{
    (void)state;
    laya_arena arena;
    laya_arena_init(&arena, NULL);
    arena.poison = true;
    float *values = laya_arena_alloc(&arena, 16, sizeof *values);
    for (size_t at = 0; at < 16; at++) assert_true(isnan(values[at]));
    values[3] = 1;
    laya_arena_reset(&arena);
    float *again = laya_arena_alloc(&arena, 16, sizeof *again);
    assert_ptr_equal(again, values);
    assert_true(isnan(again[3]));
    laya_arena_mark mark = laya_arena_save(&arena);
    values = laya_arena_alloc(&arena, 16, sizeof *values);
    values[3] = 1;
    laya_arena_restore(&arena, mark);
    again = laya_arena_alloc(&arena, 16, sizeof *again);
    assert_ptr_equal(again, values);
    assert_true(isnan(again[3]));
    laya_arena_close(&arena);
}

static void arena_marks(void **state)
{
    (void)state;
    laya_arena arena;
    laya_arena_init(&arena, NULL);
    laya_arena_mark empty = laya_arena_save(&arena);
    char *first = laya_arena_alloc(&arena, 1000, 1);
    laya_arena_mark mark = laya_arena_save(&arena);
    char *second = laya_arena_alloc(&arena, 1000, 1);
    laya_arena_restore(&arena, mark);
    assert_ptr_equal(laya_arena_alloc(&arena, 1000, 1), second);
    laya_arena_restore(&arena, mark);
    memset(first, 'x', 1000);
    /* Over a chunk's border: what lies below the mark stays untouched. */
    memset(laya_arena_alloc(&arena, 1 << 20, 1), 'y', 1 << 20);
    laya_arena_restore(&arena, mark);
    memset(laya_arena_alloc(&arena, 1 << 20, 1), 'z', 1 << 20);
    for (size_t at = 0; at < 1000; at++) assert_int_equal(first[at], 'x');
    laya_arena_restore(&arena, empty);
    assert_non_null(laya_arena_alloc(&arena, 10, 1));
    laya_arena_close(&arena);
}

/* ------------------------------------------------------------------ buffer */

static void buffer_appends(void **state)
{
    (void)state;
    test_memory memory;
    laya_buffer buffer;
    test_memory_init(&memory);
    laya_buffer_init(&buffer, &memory.hooks);
    assert_null(buffer.data);
    laya_buffer_append(&buffer, NULL, 0);
    assert_string_equal(buffer.data, "");
    laya_buffer_puts(&buffer, "ab");
    laya_buffer_putc(&buffer, '\0');
    laya_buffer_printf(&buffer, "%d-%s", 42, "x");
    assert_int_equal(buffer.size, 7);
    assert_memory_equal(buffer.data, "ab\00042-x", 8);
    char wide[700];
    memset(wide, 'w', sizeof wide - 1);
    wide[sizeof wide - 1] = '\0';
    laya_buffer_clear(&buffer);
    laya_buffer_printf(&buffer, "<%s>", wide); /* longer than the stack text of printf */
    assert_int_equal(buffer.size, 701);
    assert_int_equal(buffer.data[0], '<');
    assert_int_equal(buffer.data[700], '>');
    assert_int_equal(buffer.data[701], '\0');
    laya_buffer_close(&buffer);
    assert_int_equal(memory.live, 0);
}

static void buffer_fails_once_and_stays(void **state)
{
    (void)state;
    test_memory memory;
    laya_buffer buffer;
    test_memory_init(&memory);
    laya_buffer_init(&buffer, &memory.hooks);
    laya_buffer_puts(&buffer, "kept");
    test_memory_arm(&memory, 1);
    char wide[1000] = {0};
    laya_buffer_append(&buffer, wide, sizeof wide);
    assert_true(buffer.failed);
    assert_int_equal(buffer.size, 4);
    assert_string_equal(buffer.data, "kept");
    laya_buffer_puts(&buffer, "more");
    assert_int_equal(buffer.size, 4);
    assert_int_equal(memory.made, 1);
    laya_buffer_clear(&buffer);
    laya_buffer_puts(&buffer, "again");
    assert_string_equal(buffer.data, "again");
    assert_false(laya_buffer_reserve(&buffer, SIZE_MAX));
    assert_true(buffer.failed);
    laya_buffer_close(&buffer);
    assert_int_equal(memory.live, 0);
}

/* ------------------------------------------------------------------ errors */

static void errors_are_set(void **state)
{
    (void)state;
    laya_error error;
    assert_int_equal(laya_fail(&error, LAYA_ERROR_IO, "%s: %d", "file", 3), LAYA_ERROR_IO);
    assert_int_equal(error.status, LAYA_ERROR_IO);
    assert_string_equal(error.message, "file: 3");
    laya_error_prefix(&error, "in %s: ", "there");
    assert_string_equal(error.message, "in there: file: 3");
    laya_error_clear(&error);
    assert_int_equal(error.status, LAYA_OK);
    assert_string_equal(error.message, "");
    assert_int_equal(laya_fail(NULL, LAYA_ERROR_INPUT, "x"), LAYA_ERROR_INPUT);
    laya_error_prefix(NULL, "x");
    laya_error_clear(NULL);
    assert_int_equal(laya_fail_memory(&error, 12), LAYA_ERROR_MEMORY);
    assert_string_equal(error.message, "out of memory: could not allocate 12 bytes");
    laya_fail_memory(&error, 0);
    assert_string_equal(error.message, "out of memory");
}

/* A long message is cut between two characters, for every position of the cut. */
static void long_messages_are_cut(void **state)
{
    (void)state;
    static const char *const characters[] = {"a", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x91\x8d"};
    for (size_t kind = 0; kind < 4; kind++) {
        for (size_t shift = 0; shift < 8; shift++) {
            laya_error error;
            char text[2200] = "";
            size_t used = shift;
            memset(text, '.', shift);
            while (used + 4 < 2100) {
                memcpy(text + used, characters[kind], strlen(characters[kind]));
                used += strlen(characters[kind]);
            }
            laya_set_error(&error, LAYA_ERROR_INPUT, "%s", text);
            size_t size = strlen(error.message);
            assert_true(size > LAYA_MESSAGE_SIZE - 5 && size < LAYA_MESSAGE_SIZE);
            assert_int_equal(laya_utf8_valid(error.message, size), size);
            assert_memory_equal(error.message, text, size);
            laya_error_prefix(&error, "%s", "\xc3\xbc: ");
            size = strlen(error.message);
            assert_true(size > LAYA_MESSAGE_SIZE - 5 && size < LAYA_MESSAGE_SIZE);
            assert_int_equal(laya_utf8_valid(error.message, size), size);
        }
    }
}

/* What comes behind bytes that are no character is not lost. */
static void broken_bytes_in_messages(void **state)
{
    (void)state;
    laya_error error;
    laya_set_error(&error, LAYA_ERROR_IO, "%s: not found", "dir/\xff\xc3.bin");
    assert_string_equal(error.message, "dir/?\?.bin: not found");
    laya_set_error(&error, LAYA_ERROR_IO, "name '%.*s' is bad", 2, "\xe2\x82\xac");
    assert_string_equal(error.message, "name '?\?' is bad");
}

static void status_names(void **state)
{
    (void)state;
    static const char *const names[] = {"LAYA_OK",           "LAYA_ERROR_ARGUMENT",    "LAYA_ERROR_INPUT",
                                        "LAYA_ERROR_FORMAT", "LAYA_ERROR_UNSUPPORTED", "LAYA_ERROR_IO",
                                        "LAYA_ERROR_MEMORY", "LAYA_ERROR_SYSTEM",      "LAYA_ERROR_STOPPED"};
    for (int status = 0; status < 9; status++)
        assert_string_equal(laya_status_name((laya_status)status), names[status]);
    assert_string_equal(laya_status_name((laya_status)9), "unknown status");
    assert_string_equal(laya_version(), LAYA_VERSION_STRING);
}

/* ------------------------------------------------------------------ UTF-8 */

static void utf8_sequences(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size, valid;
    } cases[] = {
        {"", 0, 0},
        {"abc\0def", 7, 7},
        {"\xc2\x80\xdf\xbf", 4, 4},
        {"\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf", 12, 12},
        {"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 8, 8},
        {"a\x80", 2, 1},            /* continuation alone */
        {"ab\xc0\x80", 4, 2},       /* overlong */
        {"\xc1\xbf", 2, 0},         /* overlong */
        {"\xe0\x9f\xbf", 3, 0},     /* overlong */
        {"\xf0\x8f\xbf\xbf", 4, 0}, /* overlong */
        {"\xed\xa0\x80", 3, 0},     /* surrogate */
        {"\xed\xbf\xbf", 3, 0},     /* surrogate */
        {"\xf4\x90\x80\x80", 4, 0}, /* above U+10FFFF */
        {"\xf5\x80\x80\x80", 4, 0},
        {"\xff", 1, 0},
        {"x\xe2\x82", 3, 1},     /* cut */
        {"x\xf0\x9f\x91", 4, 1}, /* cut */
        {"\xe2\x28\xa1", 3, 0},
        {"\xe2\x82\x28", 3, 0},
        {"12345678\xc3\xa4"
         "1234567\xff"
         "8",
         19, 17}, /* the eight-byte path and back */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(laya_utf8_valid(cases[i].text, cases[i].size), cases[i].valid);
}

/* Every scalar value there and back, every surrogate refused. */
static void utf8_all_characters(void **state)
{
    (void)state;
    for (uint32_t code = 0; code <= 0x10FFFF; code++) {
        char text[4];
        size_t at = 0, size = laya_utf8_put(text, code);
        if (code >= 0xD800 && code <= 0xDFFF) {
            if (laya_utf8_valid(text, size) != 0) fail_msg("surrogate %x passes", code);
            continue;
        }
        if (laya_utf8_valid(text, size) != size || laya_utf8_next(text, &at) != code || at != size)
            fail_msg("U+%04X does not come back", code);
    }
}

/* ------------------------------------------------------------------ files */

static void files_are_mapped(void **state)
{
    (void)state;
    char *directory = test_make_checkpoint();
    char path[TEST_PATH_SIZE];
    laya_file file;
    laya_error error;
    snprintf(path, sizeof path, "%s/encoder/config.json", directory);
    test_change_file(directory, "encoder/config.json", "abc\0d", 5);
    assert_int_equal(laya_file_map(&file, path, &error), LAYA_OK);
    assert_int_equal(file.size, 5);
    assert_memory_equal(file.data, "abc\0d", 5);
    laya_file_unmap(&file);
    assert_null(file.data);
    laya_file_unmap(&file);

    test_change_file(directory, "encoder/config.json", "", 0);
    assert_int_equal(laya_file_map(&file, path, &error), LAYA_OK);
    assert_null(file.data);
    assert_int_equal(file.size, 0);

    test_change_file(directory, "encoder/config.json", NULL, 0);
    assert_int_equal(laya_file_map(&file, path, &error), LAYA_ERROR_IO);
    assert_contains(error.message, path);
    assert_contains(error.message, "no such file or directory");
    assert_false(laya_path_exists(path));

    snprintf(path, sizeof path, "%s/encoder", directory);
    assert_int_equal(laya_file_map(&file, path, &error), LAYA_ERROR_IO);
    assert_contains(error.message, "regular file");
    assert_true(laya_path_exists(path));
    assert_true(laya_path_is_directory(path));

    snprintf(path, sizeof path, "%s/pipe", directory); /* nobody writes: it must not wait */
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(laya_file_map(&file, path, &error), LAYA_ERROR_IO);
    assert_contains(error.message, "regular file");
    assert_int_equal(unlink(path), 0);

    snprintf(path, sizeof path, "%s/rl_agent_config.json/x", directory);
    assert_int_equal(laya_file_map(&file, path, &error), LAYA_ERROR_IO);
    assert_contains(error.message, "not a directory");
    test_remove_checkpoint(directory);
}

static void paths_are_joined(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"}, {"/", "b/c", "/b/c"}};
    test_memory memory;
    test_memory_init(&memory);
    for (size_t i = 0; i < 4; i++) {
        char *path = laya_path_join(&memory.hooks, cases[i][0], cases[i][1]);
        assert_string_equal(path, cases[i][2]);
        laya_release(&memory.hooks, path);
    }
    test_memory_arm(&memory, 1);
    assert_null(laya_path_join(&memory.hooks, "a", "b"));
    assert_int_equal(memory.live, 0);
}

/* FIPS 180-4 examples and the empty message. */
static void sha256(void **state)
{
    (void)state;
    char hex[65];
    char *million = malloc(1000000);
    assert_non_null(million);
    memset(million, 'a', 1000000);
    assert_int_equal(laya_sha256("abc", 3, hex, NULL), LAYA_OK);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(laya_sha256(NULL, 0, hex, NULL), LAYA_OK);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_int_equal(laya_sha256(million, 1000000, hex, NULL), LAYA_OK);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

/* ------------------------------------------------------------------ half precision */

/* All 65536 values against the definition: (-1)^s * 2^(e-15) * (1 + m/1024), subnormals m * 2^-24. */
static void half_to_float(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        unsigned exponent = bits >> 10 & 31, mantissa = bits & 1023;
        double sign = bits >> 15 ? -1.0 : 1.0, expected;
        float found = laya_half_to_float((uint16_t)bits);
        if (exponent == 31 && mantissa) {
            assert_true(isnan(found));
            continue;
        }
        if (exponent == 31)
            expected = sign * INFINITY;
        else if (exponent == 0)
            expected = sign * ldexp(mantissa, -24);
        else
            expected = sign * ldexp(1024.0 + mantissa, (int)exponent - 25);
        if ((double)found != expected || !signbit(found) != !signbit(expected))
            fail_msg("half %04x: %a", bits, (double)found);
    }
    assert_true(laya_bfloat_to_float(0x3f80) == 1.0f);
    assert_true(laya_bfloat_to_float(0xc049) == -3.140625f);
    assert_true(laya_bfloat_to_float(0x0001) == 0x1p-133f);
    assert_true(isinf(laya_bfloat_to_float(0x7f80)));
    assert_true(isnan(laya_bfloat_to_float(0x7fc0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checked_arithmetic),
        cmocka_unit_test(allocations_are_checked),
        cmocka_unit_test(default_hooks),
        cmocka_unit_test(arena_blocks),
        cmocka_unit_test(arena_grows_and_joins),
        cmocka_unit_test(arena_reset_survives_failure),
        cmocka_unit_test(arena_poison),
        cmocka_unit_test(arena_marks),
        cmocka_unit_test(buffer_appends),
        cmocka_unit_test(buffer_fails_once_and_stays),
        cmocka_unit_test(errors_are_set),
        cmocka_unit_test(long_messages_are_cut),
        cmocka_unit_test(broken_bytes_in_messages),
        cmocka_unit_test(status_names),
        cmocka_unit_test(utf8_sequences),
        cmocka_unit_test(utf8_all_characters),
        cmocka_unit_test(files_are_mapped),
        cmocka_unit_test(paths_are_joined),
        cmocka_unit_test(sha256),
        cmocka_unit_test(half_to_float),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
