/* SPDX-License-Identifier: Apache-2.0 */
#include "coreml/weight_file.h"

#include "base/error.h"

#include <string.h>

/* Constants with fewer elements stay in the model, as coremltools has it. */
enum { MIN_ELEMENTS = 10, READ_BLOCK = 256 * 1024 };

bool laya_constant_in_file(const laya_mil_type *type, laya_mil_opset opset)
{
    uint64_t count;
    if (type->kind != LAYA_MIL_TENSOR || !laya_mil_type_count(type, &count) || count < MIN_ELEMENTS) return false;
    switch (type->dtype) {
    case LAYA_MIL_FP16:
    case LAYA_MIL_FP32:
    case LAYA_MIL_UINT8:
    case LAYA_MIL_INT8: return true;
    case LAYA_MIL_INT16:
    case LAYA_MIL_UINT16:
    case LAYA_MIL_INT32:
    case LAYA_MIL_UINT32:
    case LAYA_MIL_INT4:
    case LAYA_MIL_UINT1:
    case LAYA_MIL_UINT2:
    case LAYA_MIL_UINT3:
    case LAYA_MIL_UINT4:
    case LAYA_MIL_UINT6: return opset >= LAYA_MIL_COREML8;
    default: return false;
    }
}

/* ------------------------------------------------------------------ the constants of a program */

/* A constant that goes to the file. */
typedef struct weight_entry {
    struct weight_entry *next;
    laya_mil_constant *constant;
    uint64_t size, row; /* bytes; of a row of the source, else 1 */
    bool first;         /* of its content: it is written */
    char id[65];        /* SHA-256 over type code, number of elements and content */
} weight_entry;

typedef struct weight_writer {
    laya_arena arena; /* entries */
    laya_mil_names contents;
    laya_mil_opset opset;
    const laya_meter *meter;
    weight_entry *entries, **end;
    unsigned char *block; /* what a source reads */
    uint64_t block_size;  /* READ_BLOCK, or a row that is larger */
} weight_writer;

/* Bytes of a row (see laya_mil_source); 0 when it is not whole bytes. */
static uint64_t row_size(const laya_mil_type *type)
{
    laya_mil_type row = *type;
    uint64_t count;
    if (row.rank == 0) return 0;
    row.dims[0] = 1;
    if (!laya_mil_type_count(&row, &count)) return 0;
    uint64_t bits = count * laya_mil_dtype_bits(type->dtype);
    return bits % 8 == 0 ? bits / 8 : 0;
}

static laya_status add_constant(weight_writer *writer, const laya_mil_constant *found, laya_error *error)
{
    /* The program, which the caller lets us change, owns its constants; they are const for all who only look. */
    laya_mil_constant *constant = (laya_mil_constant *)found;
    constant->in_file = false;
    if (!laya_constant_in_file(&constant->type, writer->opset)) return LAYA_OK;
    uint64_t size, row = constant->source ? row_size(&constant->type) : 1;
    if (!laya_mil_type_size(&constant->type, &size) || row == 0) {
        char text[LAYA_MIL_TYPE_TEXT];
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "a constant of type %s cannot be stored: its rows are not whole bytes",
                         laya_mil_type_text(&constant->type, text));
    }
    weight_entry *added = laya_arena_alloc(&writer->arena, 1, sizeof *added);
    if (!added) return laya_fail_memory(error, sizeof *added);
    *added = (weight_entry){.constant = constant, .size = size, .row = row};
    *writer->end = added;
    writer->end = &added->next;
    if (row > writer->block_size) writer->block_size = row;
    return LAYA_OK;
}

static laya_status add_op(weight_writer *writer, const laya_mil_op *op, laya_error *error)
{
    for (uint32_t at = 0; at < op->attribute_count; at++)
        LAYA_TRY(add_constant(writer, op->attributes[at].value, error));
    for (uint32_t at = 0; at < op->input_count; at++) {
        const laya_mil_argument *argument = &op->inputs[at];
        for (uint32_t part = 0; part < argument->count; part++) {
            const laya_mil_constant *constant = argument->bindings[part].constant;
            if (constant) LAYA_TRY(add_constant(writer, constant, error));
        }
    }
    return LAYA_OK;
}

/* In order: an operation, what is nested in it, the next one. The stack holds the operations to go on with. */
static laya_status add_block(weight_writer *writer, const laya_mil_block *block, laya_buffer *stack,
                             laya_error *error)
{
    const laya_mil_op *op = block->first;
    laya_buffer_append(stack, (const char *)&op, sizeof op);
    while (stack->size > 0 && !stack->failed) {
        stack->size -= sizeof op;
        memcpy(&op, stack->data + stack->size, sizeof op);
        if (!op) continue;
        LAYA_TRY(add_op(writer, op, error));
        laya_buffer_append(stack, (const char *)&op->next, sizeof op);
        for (uint32_t at = op->block_count; at > 0; at--)
            laya_buffer_append(stack, (const char *)&op->blocks[at - 1].first, sizeof op);
    }
    return stack->failed ? laya_fail_memory(error, 0) : LAYA_OK;
}

static laya_status collect(weight_writer *writer, const laya_mil_program *program, laya_error *error)
{
    laya_buffer stack;
    laya_buffer_init(&stack, &writer->arena.allocator);
    laya_status status = LAYA_OK;
    for (uint32_t at = 0; at < program->function_count && status == LAYA_OK; at++)
        status = add_block(writer, &program->functions[at].body, &stack, error);
    laya_buffer_close(&stack);
    return status;
}

/* ------------------------------------------------------------------ content */

typedef laya_status receive(void *user, const void *data, size_t size, laya_error *error);

static laya_status hash_part(void *user, const void *data, size_t size, laya_error *error)
{
    return laya_hash_update(user, data, size, error);
}

static laya_status write_part(void *user, const void *data, size_t size, laya_error *error)
{
    return laya_output_write(user, data, size, error);
}

/* Pass the bytes of a constant on, in blocks. */
static laya_status read_content(const weight_writer *writer, const weight_entry *entry, receive *part, void *user,
                                laya_error *error)
{
    const laya_mil_constant *constant = entry->constant;
    const laya_mil_source *source = constant->source;
    uint64_t row = entry->row, rows = entry->size / row, step = writer->block_size / row;
    laya_status status = LAYA_OK;
    for (uint64_t first = 0; first < rows && status == LAYA_OK; first += step) {
        uint64_t count = rows - first < step ? rows - first : step;
        const unsigned char *bytes = writer->block;
        if (source)
            status = source->read(source->user, first, count, writer->block, error);
        else
            bytes = constant->bytes + first;
        if (status == LAYA_OK) status = part(user, bytes, (size_t)(count * row), error);
        if (status == LAYA_OK) status = laya_meter_add(writer->meter, count * row, error);
    }
    if (source && source->forget) source->forget(source->user);
    return status;
}

static void put32(unsigned char *bytes, uint32_t value)
{
    for (unsigned at = 0; at < 4; at++) bytes[at] = (unsigned char)(value >> 8 * at);
}

static void put64(unsigned char *bytes, uint64_t value)
{
    for (unsigned at = 0; at < 8; at++) bytes[at] = (unsigned char)(value >> 8 * at);
}

static laya_status identify(const weight_writer *writer, weight_entry *entry, laya_error *error)
{
    unsigned char prefix[12];
    uint64_t elements = 0; /* not the size: packed values of the same bytes may differ in the padding */
    laya_hash *hash;
    laya_mil_type_count(&entry->constant->type, &elements);
    put32(prefix, laya_mil_blob_dtype(entry->constant->type.dtype));
    put64(prefix + 4, elements);
    LAYA_TRY(laya_hash_open(&hash, error));
    laya_status status = laya_hash_update(hash, prefix, sizeof prefix, error);
    if (status == LAYA_OK) status = read_content(writer, entry, hash_part, hash, error);
    if (status == LAYA_OK) return laya_hash_finish(hash, entry->id, error);
    laya_hash_close(hash);
    return status;
}

static uint64_t align(uint64_t offset)
{
    return (offset + LAYA_BLOB_ALIGNMENT - 1) / LAYA_BLOB_ALIGNMENT * LAYA_BLOB_ALIGNMENT;
}

/* Give every constant its offset; equal contents share one. */
static laya_status place(weight_writer *writer, uint32_t *count, laya_error *error)
{
    uint64_t end = LAYA_BLOB_ALIGNMENT;
    for (weight_entry *entry = writer->entries; entry; entry = entry->next) {
        LAYA_TRY(identify(writer, entry, error));
        const laya_mil_constant *same = laya_mil_names_get(&writer->contents, entry->id);
        entry->first = !same;
        entry->constant->in_file = true;
        entry->constant->offset = same ? same->offset : align(end);
        if (same) continue;
        if (!laya_mil_names_put(&writer->contents, entry->id, entry->constant, NULL))
            return laya_fail_memory(error, 0);
        end = entry->constant->offset + LAYA_BLOB_ALIGNMENT + entry->size;
        ++*count;
    }
    return LAYA_OK;
}

/* ------------------------------------------------------------------ writing */

static laya_status write_blob(const weight_writer *writer, laya_output *output, const weight_entry *entry,
                              laya_error *error)
{
    unsigned char record[LAYA_BLOB_ALIGNMENT] = {0};
    const laya_mil_type *type = &entry->constant->type;
    uint64_t elements = 0;
    laya_mil_type_count(type, &elements);
    put32(record, LAYA_BLOB_SENTINEL);
    put32(record + 4, laya_mil_blob_dtype(type->dtype));
    put64(record + 8, entry->size);
    put64(record + 16, entry->constant->offset + LAYA_BLOB_ALIGNMENT);
    put64(record + 24, entry->size * 8 - elements * laya_mil_dtype_bits(type->dtype));
    LAYA_TRY(laya_output_zeros(output, (size_t)(entry->constant->offset - output->size), error));
    LAYA_TRY(laya_output_write(output, record, sizeof record, error));
    return read_content(writer, entry, write_part, output, error);
}

static laya_status write_file(const weight_writer *writer, const char *path, uint32_t count, laya_written *written,
                              laya_error *error)
{
    laya_output output;
    unsigned char header[LAYA_BLOB_ALIGNMENT] = {0};
    put32(header, count);
    put32(header + 4, LAYA_BLOB_VERSION);
    LAYA_TRY(laya_output_open(&output, path, &writer->arena.allocator, NULL, error));
    laya_status status = laya_output_write(&output, header, sizeof header, error);
    for (const weight_entry *entry = writer->entries; entry && status == LAYA_OK; entry = entry->next) {
        if (entry->first)
            status = write_blob(writer, &output, entry, error);
        else
            status = laya_meter_add(writer->meter, entry->size, error);
    }
    if (status == LAYA_OK) status = laya_output_finish(&output, written->sha256, error);
    laya_output_close(&output);
    if (status == LAYA_OK) written->size = output.size;
    return status;
}

laya_status laya_weight_file_write(laya_mil_program *program, laya_mil_opset opset, const char *path,
                                   const laya_meter *meter, laya_written *written, uint32_t *count, laya_error *error)
{
    const laya_allocator *allocator = &program->arena.allocator;
    weight_writer writer = {.opset = opset, .meter = meter, .block_size = READ_BLOCK};
    writer.end = &writer.entries;
    *written = (laya_written){0, ""};
    *count = 0;
    laya_arena_init(&writer.arena, allocator);
    laya_mil_names_init(&writer.contents, allocator);
    laya_status status = collect(&writer, program, error);
    if (status == LAYA_OK && writer.entries) {
        writer.block = laya_alloc(allocator, (size_t)writer.block_size, 1);
        if (!writer.block) status = laya_fail_memory(error, (size_t)writer.block_size);
    }
    if (status == LAYA_OK) status = place(&writer, count, error);
    if (status == LAYA_OK && *count > 0) status = write_file(&writer, path, *count, written, error);
    if (status != LAYA_OK) *count = 0;
    laya_release(allocator, writer.block);
    laya_mil_names_close(&writer.contents);
    laya_arena_close(&writer.arena);
    return status;
}
