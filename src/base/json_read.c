/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the text, no recursion: the open containers are a chain of node indices, and what may
 * come next is one of a few states. The number of nodes is bounded before by counting the bytes that can
 * begin a value, so that the array never grows.
 */
#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

typedef struct parser {
    laya_json *doc;
    const unsigned char *text;
    size_t size;
    size_t at;
    uint32_t open[LAYA_JSON_MAX_DEPTH]; /* nodes of the open containers */
    size_t depth;
    size_t strings_used;
    laya_error *error;
} parser;

static laya_status fail_at(const parser *p, size_t at, const char *what)
{
    size_t line = 1, start = 0;
    for (size_t i = 0; i < at && i < p->size; i++) {
        if (p->text[i] == '\n') {
            line++;
            start = i + 1;
        }
    }
    return laya_fail(p->error, LAYA_ERROR_INPUT, "line %zu, column %zu: %s", line, at - start + 1, what);
}

static bool is_space(unsigned char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static void skip_space(parser *p)
{
    size_t at = p->at;
    while (at < p->size && is_space(p->text[at])) {
        at++;
        /* Indentation, eight spaces at a time: half of the bytes of a pretty-printed file are that. */
        uint64_t eight;
        while (p->size - at >= sizeof eight) {
            memcpy(&eight, p->text + at, sizeof eight);
            if (eight != UINT64_C(0x2020202020202020)) break;
            at += sizeof eight;
        }
        uint32_t four;
        if (p->size - at >= sizeof four) {
            memcpy(&four, p->text + at, sizeof four);
            if (four == UINT32_C(0x20202020)) at += sizeof four;
        }
    }
    p->at = at;
}

static laya_json_node *push(parser *p, laya_json_type type)
{
    laya_json_node *node = &p->doc->nodes[p->doc->count++];
    *node = (laya_json_node){.type = type & 7u, .end = p->doc->count & LAYA_JSON_MAX_NODES};
    return node;
}

/* ------------------------------------------------------------------ strings */

/* Bytes that end a run of plain characters: controls, quote, backslash, and 0x80 and above. */
static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Advance over plain characters and valid UTF-8 up to a quote, a backslash, a control or bad bytes. */
static size_t plain_end(const unsigned char *text, size_t at, size_t size)
{
    while (at < size) {
        if (is_plain(text[at])) {
            at++;
        } else if (text[at] >= 0x80) {
            size_t run = at;
            while (run < size && text[run] >= 0x80) run++;
            size_t valid = laya_utf8_valid((const char *)text + at, run - at);
            at += valid;
            if (at < run) return at;
        } else {
            return at;
        }
    }
    return at;
}

static bool hex4(const unsigned char *text, uint32_t *value)
{
    uint32_t sum = 0;
    for (int i = 0; i < 4; i++) {
        unsigned char c = text[i];
        uint32_t digit;
        if (c >= '0' && c <= '9')
            digit = c - (uint32_t)'0';
        else if (c >= 'a' && c <= 'f')
            digit = c - (uint32_t)'a' + 10;
        else if (c >= 'A' && c <= 'F')
            digit = c - (uint32_t)'A' + 10;
        else
            return false;
        sum = sum << 4 | digit;
    }
    *value = sum;
    return true;
}

/* A \u escape whose backslash is at `at`; surrogate pairs are joined. */
static laya_status unicode_escape(parser *p, size_t *at, uint32_t *code)
{
    uint32_t low;
    if (p->size - *at < 6 || !hex4(p->text + *at + 2, code))
        return fail_at(p, *at, "expected four hexadecimal digits after \\u");
    size_t start = *at;
    *at += 6;
    if (*code < 0xD800 || *code > 0xDFFF) return LAYA_OK;
    if (*code < 0xDC00 && p->size - *at >= 6 && p->text[*at] == '\\' && p->text[*at + 1] == 'u' &&
        hex4(p->text + *at + 2, &low) && low >= 0xDC00 && low <= 0xDFFF) {
        *code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
        *at += 6;
        return LAYA_OK;
    }
    return fail_at(p, start, "a lone surrogate is no character; write the pair or the character itself");
}

static laya_status escape(parser *p, size_t *at, char *out, size_t *used)
{
    uint32_t code = 0;
    if (*at + 1 >= p->size) return fail_at(p, *at, "the text ends inside a string");
    switch (p->text[*at + 1]) {
    case '"': code = '"'; break;
    case '\\': code = '\\'; break;
    case '/': code = '/'; break;
    case 'b': code = '\b'; break;
    case 'f': code = '\f'; break;
    case 'n': code = '\n'; break;
    case 'r': code = '\r'; break;
    case 't': code = '\t'; break;
    case 'u': {
        LAYA_TRY(unicode_escape(p, at, &code));
        *used += laya_utf8_put(out + *used, code);
        return LAYA_OK;
    }
    default: return fail_at(p, *at, "unknown escape; expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u");
    }
    out[(*used)++] = (char)code;
    *at += 2;
    return LAYA_OK;
}

/* What stopped a string at `at`, where neither a quote nor an escape is. */
static laya_status fail_string(const parser *p, size_t at)
{
    if (at >= p->size) return fail_at(p, p->at, "this string does not end");
    if (p->text[at] >= 0x80) return fail_at(p, at, "invalid UTF-8");
    return fail_at(p, at, "a control character in a string must be written as an escape");
}

/* The string whose opening quote is at p->at. */
static laya_status string(parser *p)
{
    size_t start = p->at + 1;
    size_t at = plain_end(p->text, start, p->size);
    if (at < p->size && p->text[at] == '"') {
        laya_json_node *node = push(p, LAYA_JSON_STRING);
        node->text = (const char *)p->text + start;
        node->size = (uint32_t)(at - start);
        p->at = at + 1;
        return LAYA_OK;
    }
    if (at >= p->size || p->text[at] != '\\') return fail_string(p, at);
    if (!p->doc->strings) {
        /* A decoded string is never longer than its source, so the rest of the text bounds them all. */
        p->doc->strings = laya_alloc(&p->doc->allocator, p->size - start, 1);
        if (!p->doc->strings) return laya_fail_memory(p->error, p->size - start);
    }
    char *out = p->doc->strings + p->strings_used;
    size_t used = 0, run = start;
    while (at < p->size && p->text[at] == '\\') {
        memcpy(out + used, p->text + run, at - run);
        used += at - run;
        LAYA_TRY(escape(p, &at, out, &used));
        run = at;
        at = plain_end(p->text, at, p->size);
    }
    if (at >= p->size || p->text[at] != '"') return fail_string(p, at);
    memcpy(out + used, p->text + run, at - run);
    used += at - run;
    laya_json_node *node = push(p, LAYA_JSON_STRING);
    node->text = out;
    node->size = (uint32_t)used;
    p->strings_used += used;
    p->at = at + 1;
    return LAYA_OK;
}

/* ------------------------------------------------------------------ numbers and words */

static size_t digits(const parser *p, size_t at)
{
    while (at < p->size && p->text[at] >= '0' && p->text[at] <= '9') at++;
    return at;
}

static bool word(const parser *p, size_t at, const char *expected)
{
    size_t size = strlen(expected);
    return p->size - at >= size && memcmp(p->text + at, expected, size) == 0;
}

static laya_status number(parser *p)
{
    size_t start = p->at, at = start;
    laya_json_type type = LAYA_JSON_INTEGER;
    if (p->text[at] == '-') at++;
    if (word(p, at, "Infinity")) {
        type = LAYA_JSON_FLOAT;
        at += 8;
    } else {
        size_t first = at;
        at = digits(p, at);
        if (at == first) return fail_at(p, start, "expected a value");
        if (p->text[first] == '0' && at > first + 1) return fail_at(p, start, "a number must not begin with 0");
        if (at < p->size && p->text[at] == '.') {
            size_t fraction = digits(p, at + 1);
            if (fraction == at + 1) return fail_at(p, at, "expected digits after the decimal point");
            type = LAYA_JSON_FLOAT;
            at = fraction;
        }
        if (at < p->size && (p->text[at] == 'e' || p->text[at] == 'E')) {
            size_t power = at + 1;
            if (power < p->size && (p->text[power] == '+' || p->text[power] == '-')) power++;
            size_t end = digits(p, power);
            if (end == power) return fail_at(p, at, "expected digits in the exponent");
            type = LAYA_JSON_FLOAT;
            at = end;
        }
    }
    laya_json_node *node = push(p, type);
    node->text = (const char *)p->text + start;
    node->size = (uint32_t)(at - start);
    p->at = at;
    return LAYA_OK;
}

static laya_status literal(parser *p)
{
    static const struct {
        const char *text;
        laya_json_type type;
    } words[] = {
        {"true", LAYA_JSON_TRUE}, {"false", LAYA_JSON_FALSE}, {"null", LAYA_JSON_NULL}, {"NaN", LAYA_JSON_FLOAT}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!word(p, p->at, words[i].text)) continue;
        laya_json_node *node = push(p, words[i].type);
        if (words[i].type == LAYA_JSON_FLOAT) {
            node->text = (const char *)p->text + p->at;
            node->size = (uint32_t)strlen(words[i].text);
        }
        p->at += strlen(words[i].text);
        return LAYA_OK;
    }
    if (word(p, p->at, "\xEF\xBB\xBF"))
        return fail_at(p, p->at, "unexpected byte order mark; save the text without it");
    return fail_at(p, p->at, "expected a value");
}

/* ------------------------------------------------------------------ duplicate keys */

typedef struct member {
    const char *text;
    uint32_t size;
    uint32_t index; /* position in the object */
    uint32_t node;  /* of the key */
} member;

static int compare_members(const void *left, const void *right)
{
    const member *a = left, *b = right;
    uint32_t common = a->size < b->size ? a->size : b->size;
    int order = common ? memcmp(a->text, b->text, common) : 0;
    if (order) return order;
    if (a->size != b->size) return a->size < b->size ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static bool same_key(const laya_json_node *a, const laya_json_node *b)
{
    return a->size == b->size && (a->size == 0 || memcmp(a->text, b->text, a->size) == 0);
}

static uint64_t hash_text(const char *text, uint32_t size)
{
    uint64_t hash = UINT64_C(0x9E3779B97F4A7C15) ^ size;
    while (size >= 8) {
        uint64_t eight;
        memcpy(&eight, text, 8);
        hash = (hash ^ eight) * UINT64_C(0xD6E8FEB86659FD93);
        hash ^= hash >> 32;
        text += 8;
        size -= 8;
    }
    uint64_t rest = 0;
    if (size) memcpy(&rest, text, size);
    hash = (hash ^ rest) * UINT64_C(0xD6E8FEB86659FD93);
    return hash ^ hash >> 29;
}

/*
 * Whether an object surely has no key twice. Small objects are compared pair by pair, larger ones through
 * a hash table; when the probes pile up (keys made to collide) the answer is "not sure".
 */
static laya_status surely_distinct(parser *p, uint32_t object, bool *distinct)
{
    const laya_json_node *nodes = p->doc->nodes;
    uint32_t members = nodes[object].size, end = p->doc->count;
    *distinct = true;
    if (members <= 8) {
        for (uint32_t a = object + 1; a < end; a = nodes[a + 1].end) {
            for (uint32_t b = object + 1; b < a; b = nodes[b + 1].end) {
                if (same_key(&nodes[a], &nodes[b])) *distinct = false;
            }
        }
        return LAYA_OK;
    }
    size_t slots = 32;
    while (slots < (size_t)members * 2) slots *= 2;
    uint32_t *table = laya_alloc_zero(&p->doc->allocator, slots, sizeof *table);
    if (!table) return laya_fail_memory(p->error, slots * sizeof *table);
    uint64_t probes_left = (uint64_t)members * 16 + 1000;
    for (uint32_t key = object + 1; key < end && *distinct; key = nodes[key + 1].end) {
        size_t slot = (size_t)hash_text(nodes[key].text, nodes[key].size) & (slots - 1);
        while (table[slot] && *distinct) {
            if (same_key(&nodes[key], &nodes[table[slot]]) || probes_left-- == 0) *distinct = false;
            slot = (slot + 1) & (slots - 1);
        }
        if (*distinct) table[slot] = key;
    }
    laya_release(&p->doc->allocator, table);
    return LAYA_OK;
}

/* Copy the subtree [from, end) to `to`, moving its `end` fields along. */
static uint32_t move_nodes(const laya_json_node *source, uint32_t from, uint32_t end, laya_json_node *target,
                           uint32_t to)
{
    for (uint32_t i = from; i < end; i++) {
        target[to] = source[i];
        target[to].end = (source[i].end - from + (to - (i - from))) & LAYA_JSON_MAX_NODES;
        to++;
    }
    return to;
}

/* Give each repeated key of an object its first position and its last value, as Python's dict does. */
static laya_status drop_duplicates(parser *p, uint32_t object)
{
    laya_json_node *nodes = p->doc->nodes;
    uint32_t members = nodes[object].size, end = p->doc->count, used = 0;
    const laya_allocator *allocator = &p->doc->allocator;
    member *sorted = laya_alloc(allocator, members, sizeof *sorted);
    uint32_t *value_of = laya_alloc(allocator, members, sizeof *value_of); /* 0: this member is dropped */
    laya_json_node *old = laya_alloc(allocator, end - object, sizeof *old);
    laya_status status = LAYA_OK;
    if (!sorted || !value_of || !old) {
        status = laya_fail_memory(p->error, 0);
        goto done;
    }
    for (uint32_t key = object + 1; key < end; key = nodes[key + 1].end) {
        sorted[used] = (member){nodes[key].text, nodes[key].size, used, key};
        used++;
    }
    qsort(sorted, members, sizeof *sorted, compare_members);
    for (uint32_t first = 0, next; first < members; first = next) {
        for (next = first + 1; next < members; next++) {
            if (!same_key(&nodes[sorted[first].node], &nodes[sorted[next].node])) break;
            value_of[sorted[next].index] = 0;
        }
        value_of[sorted[first].index] = sorted[next - 1].node + 1;
    }
    /* Node numbers inside `old` are relative to the object; so are the `end` fields after the shift. */
    memcpy(old, nodes + object, (end - object) * sizeof *old);
    for (uint32_t i = 0; i < end - object; i++) old[i].end = (old[i].end - object) & LAYA_JSON_MAX_NODES;
    uint32_t to = object + 1, kept = 0, index = 0;
    for (uint32_t key = 1; key < end - object; key = old[key + 1].end, index++) {
        if (!value_of[index]) continue;
        uint32_t value = value_of[index] - object;
        to = move_nodes(old, key, key + 1, nodes, to);
        to = move_nodes(old, value, old[value].end, nodes, to);
        kept++;
    }
    nodes[object].size = kept;
    p->doc->count = to;
done:
    laya_release(allocator, sorted);
    laya_release(allocator, value_of);
    laya_release(allocator, old);
    return status;
}

/* ------------------------------------------------------------------ structure */

static laya_status open_container(parser *p, laya_json_type type)
{
    if (p->depth == LAYA_JSON_MAX_DEPTH) return fail_at(p, p->at, "nested too deeply; at most 512 levels are read");
    p->open[p->depth++] = p->doc->count;
    push(p, type);
    p->at++;
    return LAYA_OK;
}

static laya_status close_container(parser *p)
{
    uint32_t container = p->open[--p->depth];
    p->at++;
    if (p->doc->nodes[container].type == LAYA_JSON_OBJECT) {
        bool distinct;
        LAYA_TRY(surely_distinct(p, container, &distinct));
        if (!distinct) LAYA_TRY(drop_duplicates(p, container));
    }
    p->doc->nodes[container].end = p->doc->count & LAYA_JSON_MAX_NODES;
    return LAYA_OK;
}

static laya_status key_and_colon(parser *p)
{
    skip_space(p);
    if (p->at >= p->size || p->text[p->at] != '"') return fail_at(p, p->at, "expected a key in double quotes");
    LAYA_TRY(string(p));
    skip_space(p);
    if (p->at >= p->size || p->text[p->at] != ':') return fail_at(p, p->at, "expected ':' after the key");
    p->at++;
    return LAYA_OK;
}

/* One value, or the opening of a container. */
static laya_status value(parser *p)
{
    skip_space(p);
    if (p->at >= p->size) return fail_at(p, p->at, "expected a value, but the text ends");
    unsigned char c = p->text[p->at];
    if (c == '"') return string(p);
    if (c == '{') return open_container(p, LAYA_JSON_OBJECT);
    if (c == '[') return open_container(p, LAYA_JSON_ARRAY);
    if (c == '-' || (c >= '0' && c <= '9') || c == 'I') return number(p);
    return literal(p);
}

static laya_status parse(parser *p)
{
    LAYA_TRY(value(p));
    bool fresh = p->depth > 0; /* a container was just opened */
    while (p->depth > 0) {
        laya_json_node *container = &p->doc->nodes[p->open[p->depth - 1]];
        bool object = container->type == LAYA_JSON_OBJECT;
        skip_space(p);
        if (p->at >= p->size)
            return fail_at(p, p->at, object ? "this object does not end" : "this array does not end");
        unsigned char c = p->text[p->at];
        if (c == (object ? '}' : ']')) {
            LAYA_TRY(close_container(p));
            fresh = false;
            continue;
        }
        if (!fresh) {
            if (c != ',') return fail_at(p, p->at, object ? "expected ',' or '}'" : "expected ',' or ']'");
            p->at++;
        }
        if (object) LAYA_TRY(key_and_colon(p));
        container->size++;
        size_t depth = p->depth;
        LAYA_TRY(value(p));
        fresh = p->depth > depth;
    }
    skip_space(p);
    if (p->at < p->size) return fail_at(p, p->at, "expected the end of the text");
    return LAYA_OK;
}

/* Whether a byte can stand just before a value: each value begins the text or follows one of these. */
static uint8_t precedes(unsigned char c)
{
    return (uint8_t)((c == ',') + (c == ':') + (c == '[') + (c == '{'));
}

/* Upper bound on the nodes of a text. Counted in bytes within a block, so that the loop vectorises. */
static size_t bound_nodes(const unsigned char *text, size_t size)
{
    enum { BLOCK = 128 };
    size_t nodes = 1, at = 0;
    for (; size - at >= BLOCK; at += BLOCK) {
        uint8_t count = 0;
        for (size_t i = 0; i < BLOCK; i++) count = (uint8_t)(count + precedes(text[at + i]));
        nodes += count;
    }
    for (; at < size; at++) nodes += precedes(text[at]);
    return nodes;
}

laya_status laya_json_parse(laya_json *doc, const char *text, size_t size, const laya_allocator *allocator,
                            laya_error *error)
{
    *doc = (laya_json){.allocator = laya_allocator_or_default(allocator)};
    if (size >= UINT32_MAX) return laya_fail(error, LAYA_ERROR_INPUT, "a JSON text must be shorter than 4 GiB");
    parser p = {.doc = doc, .text = (const unsigned char *)text, .size = size, .error = error};
    size_t nodes = bound_nodes(p.text, size);
    if (nodes > LAYA_JSON_MAX_NODES)
        return laya_fail(error, LAYA_ERROR_INPUT, "a JSON text must have fewer than %u values", LAYA_JSON_MAX_NODES);
    doc->nodes = laya_alloc(&doc->allocator, nodes, sizeof *doc->nodes);
    if (!doc->nodes) return laya_fail_memory(error, nodes * sizeof *doc->nodes);
    laya_status status = parse(&p);
    if (status != LAYA_OK) laya_json_close(doc);
    return status;
}

void laya_json_close(laya_json *doc)
{
    if (!doc->nodes) return;
    laya_release(&doc->allocator, doc->nodes);
    laya_release(&doc->allocator, doc->strings);
    *doc = (laya_json){.allocator = doc->allocator};
}

/* ------------------------------------------------------------------ access */

static const laya_json_node *node_of(laya_json_value value)
{
    return &value.doc->nodes[value.at];
}

laya_json_value laya_json_root(const laya_json *doc)
{
    return (laya_json_value){doc->count ? doc : NULL, 0};
}

bool laya_json_present(laya_json_value value)
{
    return value.doc != NULL;
}

laya_json_type laya_json_typeof(laya_json_value value)
{
    return value.doc ? (laya_json_type)node_of(value)->type : LAYA_JSON_NULL;
}

bool laya_json_is_null(laya_json_value value)
{
    return laya_json_typeof(value) == LAYA_JSON_NULL;
}

const char *laya_json_type_name(laya_json_value value)
{
    switch (laya_json_typeof(value)) {
    case LAYA_JSON_NULL: return "NoneType";
    case LAYA_JSON_FALSE:
    case LAYA_JSON_TRUE: return "bool";
    case LAYA_JSON_INTEGER: return "int";
    case LAYA_JSON_FLOAT: return "float";
    case LAYA_JSON_STRING: return "str";
    case LAYA_JSON_ARRAY: return "list";
    case LAYA_JSON_OBJECT: return "dict";
    }
    return "?";
}

const char *laya_json_text(laya_json_value value, size_t *size)
{
    laya_json_type type = laya_json_typeof(value);
    if (type != LAYA_JSON_STRING && type != LAYA_JSON_INTEGER && type != LAYA_JSON_FLOAT) {
        *size = 0;
        return "";
    }
    *size = node_of(value)->size;
    return *size ? node_of(value)->text : "";
}

size_t laya_json_size(laya_json_value value)
{
    laya_json_type type = laya_json_typeof(value);
    return type == LAYA_JSON_ARRAY || type == LAYA_JSON_OBJECT ? node_of(value)->size : 0;
}

bool laya_json_equals(laya_json_value value, const char *text)
{
    size_t size;
    if (laya_json_typeof(value) != LAYA_JSON_STRING) return false;
    const char *own = laya_json_text(value, &size);
    return size == strlen(text) && memcmp(own, text, size) == 0;
}

laya_json_iterator laya_json_first(laya_json_value container)
{
    laya_json_iterator it = {{NULL, 0}, {NULL, 0}, 0};
    if (laya_json_size(container) == 0) return it;
    bool object = laya_json_typeof(container) == LAYA_JSON_OBJECT;
    it.end = node_of(container)->end;
    if (object) it.key = (laya_json_value){container.doc, container.at + 1};
    it.value = (laya_json_value){container.doc, container.at + 1 + object};
    return it;
}

void laya_json_next(laya_json_iterator *it)
{
    const laya_json *doc = it->value.doc;
    uint32_t next = node_of(it->value)->end;
    if (next >= it->end) {
        it->key.doc = it->value.doc = NULL;
        return;
    }
    bool object = laya_json_present(it->key);
    if (object) it->key = (laya_json_value){doc, next};
    it->value = (laya_json_value){doc, next + object};
}

laya_json_value laya_json_get(laya_json_value object, const char *key)
{
    if (laya_json_typeof(object) != LAYA_JSON_OBJECT) return (laya_json_value){NULL, 0};
    laya_json_iterator it = laya_json_first(object);
    while (laya_json_present(it.value) && !laya_json_equals(it.key, key)) laya_json_next(&it);
    return it.value;
}

bool laya_json_to_uint32(laya_json_value value, uint32_t *number)
{
    if (laya_json_typeof(value) != LAYA_JSON_INTEGER) return false;
    size_t size;
    const char *text = laya_json_text(value, &size);
    if (size == 2 && memcmp(text, "-0", 2) == 0) {
        *number = 0;
        return true;
    }
    uint64_t sum = 0;
    for (size_t at = 0; at < size; at++) {
        if (text[at] < '0' || text[at] > '9') return false;
        sum = sum * 10 + (uint64_t)(text[at] - '0');
        if (sum > UINT32_MAX) return false;
    }
    *number = (uint32_t)sum;
    return true;
}

bool laya_json_to_double(laya_json_value value, double *number)
{
    laya_json_type type = laya_json_typeof(value);
    if (type != LAYA_JSON_INTEGER && type != LAYA_JSON_FLOAT) return false;
    size_t size;
    const char *text = laya_json_text(value, &size);
    return laya_parse_double(text, size, number);
}
