/* SPDX-License-Identifier: Apache-2.0 */
/* Python's json.dumps(value, ensure_ascii=False) and repr(value), and the writer of our own documents. */
#include "base/json.h"
#include "base/number.h"
#include "base/utf8.h"

#include <math.h>
#include <string.h>

static const char hex_digits[] = "0123456789abcdef";

void laya_json_write_string(laya_buffer *out, const char *text, size_t size)
{
    size_t run = 0;
    laya_buffer_putc(out, '"');
    for (size_t at = 0; at < size; at++) {
        unsigned char c = (unsigned char)text[at];
        if (c >= 0x20 && c != '"' && c != '\\') continue;
        laya_buffer_append(out, text + run, at - run);
        run = at + 1;
        switch (c) {
        case '"': laya_buffer_puts(out, "\\\""); break;
        case '\\': laya_buffer_puts(out, "\\\\"); break;
        case '\n': laya_buffer_puts(out, "\\n"); break;
        case '\r': laya_buffer_puts(out, "\\r"); break;
        case '\t': laya_buffer_puts(out, "\\t"); break;
        case '\b': laya_buffer_puts(out, "\\b"); break;
        case '\f': laya_buffer_puts(out, "\\f"); break;
        default: {
            char escape[6] = {'\\', 'u', '0', '0', hex_digits[c >> 4], hex_digits[c & 15]};
            laya_buffer_append(out, escape, sizeof escape);
        }
        }
    }
    laya_buffer_append(out, text + run, size - run);
    laya_buffer_putc(out, '"');
}

void laya_json_write_string_repr(laya_buffer *out, const char *text, size_t size)
{
    bool single = size > 0 && memchr(text, '\'', size) != NULL;
    char quote = single && !memchr(text, '"', size) ? '"' : '\'';
    laya_buffer_putc(out, quote);
    for (size_t at = 0; at < size;) {
        size_t start = at;
        uint32_t code = laya_utf8_next(text, &at);
        char escape[4] = {'\\', 'x', hex_digits[code >> 4 & 15], hex_digits[code & 15]};
        if (code == '\\' || code == (uint32_t)quote) {
            laya_buffer_putc(out, '\\');
            laya_buffer_putc(out, (char)code);
        } else if (code == '\n') {
            laya_buffer_puts(out, "\\n");
        } else if (code == '\r') {
            laya_buffer_puts(out, "\\r");
        } else if (code == '\t') {
            laya_buffer_puts(out, "\\t");
        } else if (code < 0x20 || (code >= 0x7F && code <= 0xA0) || code == 0xAD) {
            laya_buffer_append(out, escape, sizeof escape);
        } else {
            laya_buffer_append(out, text + start, at - start);
        }
    }
    laya_buffer_putc(out, quote);
}

typedef enum style { STYLE_JSON, STYLE_REPR } style;

static void write_float(laya_buffer *out, const laya_json_node *node, style form)
{
    char text[LAYA_NUMBER_SIZE];
    double number = 0;
    laya_parse_double(node->text, node->size, &number);
    if (form == STYLE_REPR && !isfinite(number))
        laya_buffer_puts(out, isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
    else
        laya_buffer_append(out, text, laya_format_repr(text, number));
}

/* A value that is no container, or the opening bracket of one. */
static void write_node(laya_buffer *out, const laya_json_node *node, style form)
{
    const char *text = node->size ? node->text : "";
    switch (node->type) {
    case LAYA_JSON_NULL: laya_buffer_puts(out, form == STYLE_JSON ? "null" : "None"); break;
    case LAYA_JSON_FALSE: laya_buffer_puts(out, form == STYLE_JSON ? "false" : "False"); break;
    case LAYA_JSON_TRUE: laya_buffer_puts(out, form == STYLE_JSON ? "true" : "True"); break;
    case LAYA_JSON_INTEGER:
        if (node->size == 2 && memcmp(text, "-0", 2) == 0)
            laya_buffer_puts(out, "0");
        else
            laya_buffer_append(out, text, node->size);
        break;
    case LAYA_JSON_FLOAT: write_float(out, node, form); break;
    case LAYA_JSON_STRING:
        if (form == STYLE_JSON)
            laya_json_write_string(out, text, node->size);
        else
            laya_json_write_string_repr(out, text, node->size);
        break;
    case LAYA_JSON_ARRAY: laya_buffer_putc(out, '['); break;
    case LAYA_JSON_OBJECT: laya_buffer_putc(out, '{'); break;
    }
}

static void write_value(laya_buffer *out, laya_json_value value, style form)
{
    if (!laya_json_present(value)) return;
    const laya_json_node *nodes = value.doc->nodes;
    struct {
        uint32_t end;
        bool object;
        bool key; /* the next node is a key */
    } open[LAYA_JSON_MAX_DEPTH];
    size_t depth = 0;
    uint32_t end = nodes[value.at].end;
    for (uint32_t at = value.at; at < end; at++) {
        const laya_json_node *node = &nodes[at];
        bool container = node->type == LAYA_JSON_ARRAY || node->type == LAYA_JSON_OBJECT;
        bool is_key = depth > 0 && open[depth - 1].object && open[depth - 1].key;
        write_node(out, node, form);
        if (depth > 0 && open[depth - 1].object) open[depth - 1].key = !is_key;
        if (is_key) {
            laya_buffer_puts(out, ": ");
            continue;
        }
        if (container) {
            open[depth].end = node->end;
            open[depth].object = open[depth].key = node->type == LAYA_JSON_OBJECT;
            depth++;
        }
        bool opened = container && node->end > at + 1;
        while (depth > 0 && open[depth - 1].end == at + 1) {
            depth--;
            laya_buffer_putc(out, open[depth].object ? '}' : ']');
        }
        if (!opened && depth > 0) laya_buffer_puts(out, ", ");
    }
}

void laya_json_write_python(laya_buffer *out, laya_json_value value)
{
    write_value(out, value, STYLE_JSON);
}

void laya_json_write_repr(laya_buffer *out, laya_json_value value)
{
    write_value(out, value, STYLE_REPR);
}

/* ------------------------------------------------------------------ writing documents */

void laya_json_writer_init(laya_json_writer *writer, laya_buffer *out, bool pretty)
{
    *writer = (laya_json_writer){.out = out, .pretty = pretty};
}

static void new_line(laya_json_writer *writer)
{
    if (!writer->pretty) return;
    laya_buffer_putc(writer->out, '\n');
    for (unsigned level = 0; level < writer->depth; level++) laya_buffer_puts(writer->out, "  ");
}

/* What stands between the previous element and the next. */
static void separate(laya_json_writer *writer)
{
    if (writer->after_key) {
        writer->after_key = false;
        return;
    }
    if (writer->depth == 0) return;
    if (writer->filled[writer->depth]) laya_buffer_putc(writer->out, ',');
    writer->filled[writer->depth] = true;
    new_line(writer);
}

void laya_json_begin(laya_json_writer *writer, char bracket)
{
    separate(writer);
    laya_buffer_putc(writer->out, bracket);
    if (writer->depth == LAYA_JSON_WRITER_DEPTH) {
        writer->out->failed = true; /* no document of ours is this deep */
        return;
    }
    writer->filled[++writer->depth] = false;
}

void laya_json_end(laya_json_writer *writer, char bracket)
{
    if (writer->depth == 0) return;
    bool filled = writer->filled[writer->depth--];
    if (filled) new_line(writer);
    laya_buffer_putc(writer->out, bracket);
}

void laya_json_key(laya_json_writer *writer, const char *key, size_t size)
{
    separate(writer);
    laya_json_write_string(writer->out, key, size);
    laya_buffer_puts(writer->out, writer->pretty ? ": " : ":");
    writer->after_key = true;
}

void laya_json_name(laya_json_writer *writer, const char *key)
{
    laya_json_key(writer, key, strlen(key));
}

void laya_json_put_string(laya_json_writer *writer, const char *text, size_t size)
{
    separate(writer);
    laya_json_write_string(writer->out, text, size);
}

void laya_json_put_raw(laya_json_writer *writer, const char *text)
{
    separate(writer);
    laya_buffer_puts(writer->out, text);
}

void laya_json_put_bool(laya_json_writer *writer, bool value)
{
    laya_json_put_raw(writer, value ? "true" : "false");
}

void laya_json_put_uint(laya_json_writer *writer, uint64_t value)
{
    separate(writer);
    laya_buffer_printf(writer->out, "%llu", (unsigned long long)value);
}

void laya_json_put_repr(laya_json_writer *writer, double value)
{
    char text[LAYA_NUMBER_SIZE];
    laya_format_repr(text, value);
    laya_json_put_raw(writer, text);
}

void laya_json_put_round4(laya_json_writer *writer, double value)
{
    char text[LAYA_NUMBER_SIZE];
    laya_format_round4(text, value);
    laya_json_put_raw(writer, text);
}

void laya_json_put_double(laya_json_writer *writer, double value)
{
    if (isfinite(value))
        laya_json_put_repr(writer, value);
    else
        laya_json_put_raw(writer, "null");
}

void laya_json_put_value(laya_json_writer *writer, laya_json_value value)
{
    separate(writer);
    laya_json_write_python(writer->out, value);
}

void laya_json_member_string(laya_json_writer *writer, const char *key, const char *text)
{
    laya_json_name(writer, key);
    laya_json_put_string(writer, text, strlen(text));
}

void laya_json_member_path(laya_json_writer *writer, const char *key, const char *path)
{
    size_t size = path ? strlen(path) : 0;
    laya_json_name(writer, key);
    if (path && laya_utf8_valid(path, size) == size)
        laya_json_put_string(writer, path, size);
    else
        laya_json_put_raw(writer, "null");
}

void laya_json_member_uint(laya_json_writer *writer, const char *key, uint64_t value)
{
    laya_json_name(writer, key);
    laya_json_put_uint(writer, value);
}

void laya_json_member_round4(laya_json_writer *writer, const char *key, double value)
{
    laya_json_name(writer, key);
    laya_json_put_round4(writer, value);
}

void laya_json_member_double(laya_json_writer *writer, const char *key, double value)
{
    laya_json_name(writer, key);
    laya_json_put_double(writer, value);
}

void laya_json_member_bool(laya_json_writer *writer, const char *key, bool value)
{
    laya_json_name(writer, key);
    laya_json_put_bool(writer, value);
}
