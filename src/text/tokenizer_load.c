/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From tokenizer.json to tables. Whatever can change ids and is not implemented is refused by name, keys
 * that nobody here knows included. Truncation, padding, post-processor and decoder do not take part in
 * encoding without special tokens; truncation and padding must be off all the same.
 */
#include "text/tokenizer.h"

#include "base/error.h"
#include "base/json.h"
#include "base/utf8.h"
#include "text/metaspace.h"
#include "text/unicode_tables.h"

#include <stdio.h>
#include <string.h>

/* ------------------------------------------------------------------ messages */

/* A short picture of a value for messages. Returns `out`. */
static const char *describe(laya_json_value value, char out[80])
{
    size_t size;
    const char *text;
    if (!laya_json_present(value)) return "nothing";
    switch (laya_json_typeof(value)) {
    case LAYA_JSON_NULL: return "null";
    case LAYA_JSON_FALSE: return "false";
    case LAYA_JSON_TRUE: return "true";
    case LAYA_JSON_ARRAY: return "a list";
    case LAYA_JSON_OBJECT: return "an object";
    case LAYA_JSON_STRING:
    case LAYA_JSON_INTEGER:
    case LAYA_JSON_FLOAT: break;
    }
    bool quoted = laya_json_typeof(value) == LAYA_JSON_STRING;
    text = laya_json_text(value, &size);
    snprintf(out, 80, "%s%.*s%s%s", quoted ? "\"" : "", size > 60 ? 60 : (int)size, text, size > 60 ? "..." : "",
             quoted ? "\"" : "");
    return out;
}

static laya_status unsupported(laya_error *error, const char *field, const char *expected, laya_json_value found)
{
    char text[80];
    return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "%s: expected %s, found %s; other values are not implemented",
                     field, expected, describe(found, text));
}

static laya_status malformed(laya_error *error, const char *field, const char *expected, laya_json_value found)
{
    char text[80];
    return laya_fail(error, LAYA_ERROR_FORMAT, "%s: expected %s, found %s", field, expected, describe(found, text));
}

/* ------------------------------------------------------------------ small checks */

/* Refuse keys that are not in the NULL-terminated list. */
static laya_status check_keys(laya_json_value object, const char *field, const char *const *known, laya_error *error)
{
    if (laya_json_typeof(object) != LAYA_JSON_OBJECT) return malformed(error, field, "an object", object);
    for (laya_json_iterator it = laya_json_first(object); laya_json_present(it.value); laya_json_next(&it)) {
        size_t i = 0;
        while (known[i] && !laya_json_equals(it.key, known[i])) i++;
        if (!known[i]) {
            char text[80];
            return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "%s: unknown key %s", field, describe(it.key, text));
        }
    }
    return LAYA_OK;
}

/* The value of a flag; `otherwise` when it is absent or null. */
static laya_status read_flag(laya_json_value value, const char *field, bool otherwise, bool *flag, laya_error *error)
{
    laya_json_type type = laya_json_typeof(value);
    *flag = type == LAYA_JSON_NULL ? otherwise : type == LAYA_JSON_TRUE;
    if (type != LAYA_JSON_NULL && type != LAYA_JSON_TRUE && type != LAYA_JSON_FALSE)
        return malformed(error, field, "true or false", value);
    return LAYA_OK;
}

/* A flag for which only one value is implemented. */
static laya_status require_flag(laya_json_value value, const char *field, bool otherwise, bool required,
                                laya_error *error)
{
    bool flag;
    LAYA_TRY(read_flag(value, field, otherwise, &flag, error));
    return flag == required ? LAYA_OK : unsupported(error, field, required ? "true" : "false", value);
}

static bool is_replace_space(laya_json_value pattern)
{
    return laya_json_size(pattern) == 1 && laya_json_equals(laya_json_get(pattern, "String"), " ");
}

/* ------------------------------------------------------------------ the pipeline */

static laya_status load_normalizer(laya_tokenizer *tokenizer, laya_json_value value, laya_error *error)
{
    static const char *const nfc_keys[] = {"type", NULL};
    static const char *const replace_keys[] = {"type", "pattern", "content", NULL};
    laya_json_value type = laya_json_get(value, "type");
    tokenizer->normalizer = LAYA_NORMALIZER_NONE;
    if (laya_json_is_null(value)) return LAYA_OK;
    if (laya_json_equals(type, "NFC")) {
        tokenizer->normalizer = LAYA_NORMALIZER_NFC;
        return check_keys(value, "normalizer", nfc_keys, error);
    }
    if (laya_json_equals(type, "Replace")) {
        LAYA_TRY(check_keys(value, "normalizer", replace_keys, error));
        if (!is_replace_space(laya_json_get(value, "pattern")))
            return unsupported(error, "normalizer.pattern", "{\"String\": \" \"}", laya_json_get(value, "pattern"));
        if (!laya_json_equals(laya_json_get(value, "content"), LAYA_METASPACE))
            return unsupported(error, "normalizer.content", "\"" LAYA_METASPACE "\"",
                               laya_json_get(value, "content"));
        tokenizer->normalizer = LAYA_NORMALIZER_METASPACE;
        return LAYA_OK;
    }
    if (laya_json_typeof(value) != LAYA_JSON_OBJECT)
        return malformed(error, "normalizer", "an object or null", value);
    return unsupported(error, "normalizer.type", "\"NFC\" or \"Replace\"", type);
}

static laya_status load_byte_level(laya_json_value value, laya_error *error)
{
    static const char *const keys[] = {"type", "add_prefix_space", "trim_offsets", "use_regex", NULL};
    bool any;
    LAYA_TRY(check_keys(value, "pre_tokenizer", keys, error));
    laya_json_value prefix = laya_json_get(value, "add_prefix_space");
    LAYA_TRY(require_flag(prefix, "pre_tokenizer.add_prefix_space", true, false, error));
    LAYA_TRY(read_flag(laya_json_get(value, "trim_offsets"), "pre_tokenizer.trim_offsets", true, &any, error));
    return require_flag(laya_json_get(value, "use_regex"), "pre_tokenizer.use_regex", true, true, error);
}

static laya_status load_metaspace(laya_json_value value, laya_error *error)
{
    static const char *const keys[] = {"type",    "replacement", "prepend_scheme", "split", "add_prefix_space",
                                       "str_rep", NULL};
    LAYA_TRY(check_keys(value, "pre_tokenizer", keys, error));
    laya_json_value replacement = laya_json_get(value, "replacement");
    if (!laya_json_equals(replacement, LAYA_METASPACE))
        return unsupported(error, "pre_tokenizer.replacement", "\"" LAYA_METASPACE "\"", replacement);
    laya_json_value scheme = laya_json_get(value, "prepend_scheme"), older = laya_json_get(value, "str_rep");
    if (laya_json_present(scheme) && !laya_json_equals(scheme, "always"))
        return unsupported(error, "pre_tokenizer.prepend_scheme", "\"always\"", scheme);
    if (!laya_json_is_null(older) && !laya_json_equals(older, LAYA_METASPACE))
        return unsupported(error, "pre_tokenizer.str_rep", "\"" LAYA_METASPACE "\"", older);
    LAYA_TRY(require_flag(laya_json_get(value, "split"), "pre_tokenizer.split", true, true, error));
    laya_json_value prefix = laya_json_get(value, "add_prefix_space");
    return require_flag(prefix, "pre_tokenizer.add_prefix_space", true, true, error);
}

/* Gemma-2's Split at spaces does nothing, because its normalizer leaves no space. */
static laya_status load_split(const laya_tokenizer *tokenizer, laya_json_value value, laya_error *error)
{
    static const char *const keys[] = {"type", "pattern", "behavior", "invert", NULL};
    LAYA_TRY(check_keys(value, "pre_tokenizer", keys, error));
    laya_json_value pattern = laya_json_get(value, "pattern"), behavior = laya_json_get(value, "behavior");
    if (!is_replace_space(pattern))
        return unsupported(error, "pre_tokenizer.pattern", "{\"String\": \" \"}", pattern);
    if (!laya_json_equals(behavior, "MergedWithPrevious"))
        return unsupported(error, "pre_tokenizer.behavior", "\"MergedWithPrevious\"", behavior);
    laya_json_value invert = laya_json_get(value, "invert");
    if (laya_json_typeof(invert) != LAYA_JSON_FALSE)
        return unsupported(error, "pre_tokenizer.invert", "false", invert);
    if (tokenizer->normalizer != LAYA_NORMALIZER_METASPACE) {
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED,
                         "pre_tokenizer.type: \"Split\" is implemented only behind the normalizer \"Replace\"");
    }
    return LAYA_OK;
}

static laya_status load_pre_tokenizer(laya_tokenizer *tokenizer, laya_json_value value, laya_error *error)
{
    laya_json_value type = laya_json_get(value, "type");
    if (laya_json_is_null(value) || laya_json_typeof(value) != LAYA_JSON_OBJECT)
        return unsupported(error, "pre_tokenizer", "an object", value);
    if (laya_json_equals(type, "ByteLevel")) {
        tokenizer->splitter = LAYA_SPLITTER_BYTE_LEVEL;
        LAYA_TRY(load_byte_level(value, error));
    } else if (laya_json_equals(type, "Metaspace")) {
        tokenizer->splitter = LAYA_SPLITTER_METASPACE;
        LAYA_TRY(load_metaspace(value, error));
    } else if (laya_json_equals(type, "Split")) {
        tokenizer->splitter = LAYA_SPLITTER_NONE;
        LAYA_TRY(load_split(tokenizer, value, error));
    } else {
        return unsupported(error, "pre_tokenizer.type", "\"ByteLevel\", \"Metaspace\" or \"Split\"", type);
    }
    bool fits = tokenizer->splitter == LAYA_SPLITTER_NONE || tokenizer->normalizer == LAYA_NORMALIZER_NONE ||
                (tokenizer->splitter == LAYA_SPLITTER_BYTE_LEVEL && tokenizer->normalizer == LAYA_NORMALIZER_NFC);
    if (fits) return LAYA_OK;
    char text[80];
    return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "normalizer: not implemented together with the pre_tokenizer %s",
                     describe(type, text));
}

static bool is_offsets_or_template(laya_json_value processor)
{
    laya_json_value type = laya_json_get(processor, "type");
    return laya_json_equals(type, "TemplateProcessing") || laya_json_equals(type, "ByteLevel");
}

static laya_status check_post_processor(laya_json_value value, laya_error *error)
{
    static const char known[] = "\"TemplateProcessing\" or \"ByteLevel\"";
    if (laya_json_is_null(value) || is_offsets_or_template(value)) return LAYA_OK;
    laya_json_value type = laya_json_get(value, "type");
    if (!laya_json_equals(type, "Sequence")) return unsupported(error, "post_processor.type", known, type);
    laya_json_value list = laya_json_get(value, "processors");
    if (laya_json_typeof(list) != LAYA_JSON_ARRAY)
        return malformed(error, "post_processor.processors", "a list", list);
    for (laya_json_iterator it = laya_json_first(list); laya_json_present(it.value); laya_json_next(&it)) {
        if (!is_offsets_or_template(it.value))
            return unsupported(error, "post_processor.processors[].type", known, laya_json_get(it.value, "type"));
    }
    return LAYA_OK;
}

/* ------------------------------------------------------------------ vocabulary
 *
 * The large loops below walk the nodes of the document directly, see laya_json_node.
 */

/* Note for each id the node of its spelling. Ids must be 0 .. members - 1, each once. */
static laya_status order_by_id(laya_json_value object, uint32_t members, uint32_t *node_of, laya_error *error)
{
    const laya_json_node *nodes = object.doc->nodes;
    char text[80];
    memset(node_of, 0, members * sizeof *node_of); /* node 0 is the document, no key */
    for (uint32_t key = object.at + 1; key < nodes[object.at].end; key = nodes[key + 1].end) {
        laya_json_value value = {object.doc, key + 1};
        uint32_t id;
        if (!laya_json_to_uint32(value, &id)) return malformed(error, "model.vocab", "integers as ids", value);
        if (id >= members) {
            return laya_fail(error, LAYA_ERROR_FORMAT,
                             "model.vocab: expected the ids 0 to %u without gaps, found %u for %s", members - 1, id,
                             describe((laya_json_value){object.doc, key}, text));
        }
        if (node_of[id]) {
            char other[80];
            return laya_fail(error, LAYA_ERROR_FORMAT, "model.vocab: %s and %s have the same id %u",
                             describe((laya_json_value){object.doc, node_of[id]}, other),
                             describe((laya_json_value){object.doc, key}, text), id);
        }
        node_of[id] = key;
    }
    return LAYA_OK;
}

/* Read model.vocab and leave room for the added tokens. */
static laya_status load_vocab(laya_tokenizer *tokenizer, laya_json_value object, laya_json_value added,
                              laya_error *error)
{
    if (laya_json_typeof(object) != LAYA_JSON_OBJECT) return malformed(error, "model.vocab", "an object", object);
    const laya_json_node *nodes = object.doc->nodes;
    const laya_allocator *allocator = &tokenizer->allocator;
    size_t members = laya_json_size(object), total = members + laya_json_size(added), bytes = 0, size;
    if (members == 0) return laya_fail(error, LAYA_ERROR_FORMAT, "model.vocab: there are no entries");
    if (total > LAYA_TOKENIZER_MAX_IDS)
        return laya_fail(error, LAYA_ERROR_FORMAT, "model.vocab: %zu entries are too many", total);
    for (uint32_t key = object.at + 1; key < nodes[object.at].end; key = nodes[key + 1].end) bytes += nodes[key].size;
    for (laya_json_iterator it = laya_json_first(added); laya_json_present(it.value); laya_json_next(&it)) {
        laya_json_text(laya_json_get(it.value, "content"), &size);
        bytes += size;
    }
    /* A document is below 4 GiB, and its decoded strings are not longer than it. */
    uint32_t *node_of = laya_alloc(allocator, members, sizeof *node_of);
    if (!node_of) return laya_fail_memory(error, members * sizeof *node_of);
    laya_status status = order_by_id(object, (uint32_t)members, node_of, error);
    if (status == LAYA_OK && !laya_vocab_init(&tokenizer->bpe.vocab, allocator, (uint32_t)total, bytes))
        status = laya_fail_memory(error, 0);
    if (status == LAYA_OK) {
        for (size_t id = 0; id < members; id++)
            laya_vocab_append(&tokenizer->bpe.vocab, nodes[node_of[id]].text, nodes[node_of[id]].size);
        tokenizer->bpe.vocab.model_count = (uint32_t)members;
    }
    laya_release(allocator, node_of);
    return status;
}

/* ------------------------------------------------------------------ merges */

/*
 * Half a million merges mean two million look-ups in tables that no cache holds. They go batch by batch,
 * each step over the whole batch, so that the processor waits for many of them at once.
 */
#define MERGE_BATCH 32

typedef struct merge_batch {
    uint32_t count;
    /* left, right, and both together of each merge */
    const char *text[MERGE_BATCH * 3];
    size_t size[MERGE_BATCH * 3];
    uint64_t key[MERGE_BATCH * 3];
    uint32_t slot[MERGE_BATCH * 3];
    uint32_t id[MERGE_BATCH * 3];
    volatile uint32_t touched;  /* takes what was read early, so that the reads are made */
    size_t joined[MERGE_BATCH]; /* where the text of both together is in the buffer, if it is longer than 8 bytes */
    laya_buffer buffer;
} merge_batch;

static laya_status bad_merge(laya_error *error, uint32_t rank, const char *what)
{
    return laya_fail(error, LAYA_ERROR_FORMAT, "model.merges[%u]: %s", rank, what);
}

/* Find left and right of a merge: a pair of strings, or one string with exactly one space. */
static laya_status split_merge(const laya_json_node *node, bool pairs, uint32_t rank, const char **text, size_t *size,
                               laya_error *error)
{
    if (pairs) {
        if (node->type != LAYA_JSON_ARRAY || node->size != 2 || node[1].type != LAYA_JSON_STRING ||
            node[2].type != LAYA_JSON_STRING) {
            return bad_merge(error, rank, "expected a list of two strings, as the first merge is");
        }
        text[0] = node[1].text;
        size[0] = node[1].size;
        text[1] = node[2].text;
        size[1] = node[2].size;
        return LAYA_OK;
    }
    if (node->type != LAYA_JSON_STRING) return bad_merge(error, rank, "expected a string, as the first merge is");
    const char *space = node->size ? memchr(node->text, ' ', node->size) : NULL;
    if (!space) return bad_merge(error, rank, "expected two parts with a space between them");
    text[0] = node->text;
    size[0] = (size_t)(space - node->text);
    text[1] = space + 1;
    size[1] = node->size - size[0] - 1;
    if (memchr(text[1], ' ', size[1])) return bad_merge(error, rank, "expected exactly one space");
    return LAYA_OK;
}

/* Old merges.txt files begin with "#version: ..."; such strings are skipped wherever they are. */
static bool is_version(const laya_json_node *node)
{
    return node->type == LAYA_JSON_STRING && node->size >= 8 && memcmp(node->text, "#version", 8) == 0;
}

/* Read the texts of up to MERGE_BATCH merges from node *at on, and make their keys. */
static laya_status read_merges(merge_batch *batch, const laya_json_node *nodes, uint32_t *at, uint32_t end,
                               bool pairs, uint32_t rank, laya_error *error)
{
    batch->count = 0;
    laya_buffer_clear(&batch->buffer);
    for (; *at < end && batch->count < MERGE_BATCH; *at = nodes[*at].end) {
        const char **text = &batch->text[batch->count * 3];
        size_t *size = &batch->size[batch->count * 3];
        if (!pairs && is_version(&nodes[*at])) continue;
        LAYA_TRY(split_merge(&nodes[*at], pairs, rank + batch->count, text, size, error));
        size[2] = size[0] + size[1];
        if (size[2] > 8) {
            batch->joined[batch->count] = batch->buffer.size;
            laya_buffer_append(&batch->buffer, text[0], size[0]);
            laya_buffer_append(&batch->buffer, text[1], size[1]);
        }
        batch->count++;
    }
    if (batch->buffer.failed) return laya_fail_memory(error, 0);
    for (uint32_t i = 0; i < batch->count; i++) {
        const char **text = &batch->text[i * 3];
        const size_t *size = &batch->size[i * 3];
        uint64_t *key = &batch->key[i * 3];
        key[0] = laya_vocab_key(text[0], size[0]);
        key[1] = laya_vocab_key(text[1], size[1]);
        text[2] = size[2] > 8 ? batch->buffer.data + batch->joined[i] : NULL;
        key[2] = text[2] ? laya_vocab_key(text[2], size[2]) : laya_vocab_join(key[0], size[0], key[1]);
    }
    return LAYA_OK;
}

/* Find each text's id. Where a table is read early, that is only to have it at hand in the next loop. */
static laya_status find_merge_ids(const laya_vocab *vocab, merge_batch *batch, uint32_t rank, laya_error *error)
{
    uint32_t texts = batch->count * 3, touched = 0;
    for (uint32_t i = 0; i < texts; i++) {
        batch->slot[i] = laya_vocab_slot_of(vocab, batch->key[i], batch->size[i]);
        touched |= vocab->slots[batch->slot[i]].id;
    }
    batch->touched |= touched;
    for (uint32_t i = 0; i < texts; i++) {
        batch->id[i] = laya_vocab_find_from(vocab, batch->slot[i], batch->key[i], batch->text[i], batch->size[i]);
        if (batch->id[i] != LAYA_NO_ID) continue;
        const char **text = &batch->text[i / 3 * 3];
        const size_t *size = &batch->size[i / 3 * 3];
        int left = i % 3 == 1 ? 0 : size[0] > 60 ? 60 : (int)size[0];
        int right = i % 3 == 0 ? 0 : size[1] > 60 ? 60 : (int)size[1];
        return laya_fail(error, LAYA_ERROR_FORMAT, "model.merges[%u]: \"%.*s%.*s\" is not in model.vocab",
                         rank + i / 3, left, text[0], right, text[1]);
    }
    return LAYA_OK;
}

static void add_merges(laya_bpe *bpe, merge_batch *batch, uint32_t rank)
{
    uint32_t touched = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        batch->slot[i] = laya_bpe_merge_slot(bpe, batch->id[i * 3], batch->id[i * 3 + 1]);
        touched |= bpe->merges[batch->slot[i]].rank;
    }
    batch->touched |= touched;
    for (uint32_t i = 0; i < batch->count; i++) {
        const uint32_t *id = &batch->id[i * 3];
        laya_bpe_add_merge(bpe, batch->slot[i], rank + i, id[0], id[1], id[2]);
    }
}

static laya_status load_merge_nodes(laya_bpe *bpe, laya_json_value list, merge_batch *batch, laya_error *error)
{
    const laya_json_node *nodes = list.doc->nodes;
    uint32_t at = list.at + 1, end = nodes[list.at].end, rank = 0;
    bool pairs = at < end && nodes[at].type == LAYA_JSON_ARRAY;
    while (at < end) {
        LAYA_TRY(read_merges(batch, nodes, &at, end, pairs, rank, error));
        LAYA_TRY(find_merge_ids(&bpe->vocab, batch, rank, error));
        add_merges(bpe, batch, rank);
        rank += batch->count;
    }
    return LAYA_OK;
}

static laya_status load_merges(laya_tokenizer *tokenizer, laya_json_value list, laya_error *error)
{
    if (laya_json_typeof(list) != LAYA_JSON_ARRAY) return malformed(error, "model.merges", "a list", list);
    size_t count = laya_json_size(list);
    if (count > LAYA_TOKENIZER_MAX_IDS)
        return laya_fail(error, LAYA_ERROR_FORMAT, "model.merges: %zu merges are too many", count);
    if (!laya_bpe_init_merges(&tokenizer->bpe, &tokenizer->allocator, (uint32_t)count))
        return laya_fail_memory(error, 0);
    merge_batch batch;
    batch.touched = 0;
    laya_buffer_init(&batch.buffer, &tokenizer->allocator);
    laya_status status = load_merge_nodes(&tokenizer->bpe, list, &batch, error);
    laya_buffer_close(&batch.buffer);
    return status;
}

/* ------------------------------------------------------------------ model */

static bool is_zero(laya_json_value value)
{
    double number;
    return laya_json_to_double(value, &number) && number == 0.0;
}

/*
 * Without an unknown token the reference drops a character that has neither a token nor byte tokens,
 * silently. Such a vocabulary is refused: byte-level text needs every byte that UTF-8 can hold, other
 * text needs byte tokens (or, for ASCII, the characters themselves).
 */
static laya_status check_coverage(const laya_tokenizer *tokenizer, laya_error *error)
{
    const laya_bpe *bpe = &tokenizer->bpe;
    bool byte_level = tokenizer->splitter == LAYA_SPLITTER_BYTE_LEVEL;
    if (bpe->unk != LAYA_NO_ID) return LAYA_OK;
    for (unsigned byte = 0; byte < 0xF5; byte++) {
        char text[4] = {(char)byte};
        size_t size = 1;
        bool covered = !byte_level && byte < 128 && bpe->ascii[byte] != LAYA_NO_ID;
        if (byte == 0xC0 || byte == 0xC1) continue;
        if (byte_level) {
            size = laya_utf8_put(text, laya_byte_level_char(byte));
            covered = bpe->alphabet[byte] != LAYA_NO_ID;
        }
        if (covered || laya_bpe_has_bytes(bpe, text, size)) continue;
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED,
                         "model.unk_token: expected a token, found null, while model.vocab has nothing for the byte "
                         "0x%02X; characters with it would be dropped silently",
                         byte);
    }
    return LAYA_OK;
}

static laya_status load_model(laya_tokenizer *tokenizer, laya_json_value model, laya_json_value added,
                              laya_error *error)
{
    static const char *const keys[] = {"type",
                                       "dropout",
                                       "unk_token",
                                       "continuing_subword_prefix",
                                       "end_of_word_suffix",
                                       "fuse_unk",
                                       "byte_fallback",
                                       "ignore_merges",
                                       "vocab",
                                       "merges",
                                       NULL};
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    laya_bpe *bpe = &tokenizer->bpe;
    if (laya_json_typeof(model) != LAYA_JSON_OBJECT) return malformed(error, "model", "an object", model);
    laya_json_value type = laya_json_get(model, "type");
    if (!laya_json_equals(type, "BPE")) return unsupported(error, "model.type", "\"BPE\"", type);
    LAYA_TRY(check_keys(model, "model", keys, error));
    laya_json_value dropout = laya_json_get(model, "dropout");
    if (!laya_json_is_null(dropout) && !is_zero(dropout))
        return unsupported(error, "model.dropout", "null or 0", dropout);
    for (size_t i = 0; i < 2; i++) {
        laya_json_value affix = laya_json_get(model, affixes[i]);
        if (laya_json_is_null(affix) || laya_json_equals(affix, "")) continue;
        char field[48];
        snprintf(field, sizeof field, "model.%s", affixes[i]);
        return unsupported(error, field, "null or \"\"", affix);
    }
    laya_json_value ignore = laya_json_get(model, "ignore_merges"), unk = laya_json_get(model, "unk_token");
    LAYA_TRY(require_flag(ignore, "model.ignore_merges", false, false, error));
    LAYA_TRY(read_flag(laya_json_get(model, "fuse_unk"), "model.fuse_unk", false, &bpe->fuse_unk, error));
    laya_json_value fallback = laya_json_get(model, "byte_fallback");
    LAYA_TRY(read_flag(fallback, "model.byte_fallback", false, &bpe->byte_fallback, error));

    LAYA_TRY(load_vocab(tokenizer, laya_json_get(model, "vocab"), added, error));
    bpe->unk = LAYA_NO_ID;
    if (!laya_json_is_null(unk)) {
        size_t size;
        const char *text = laya_json_text(unk, &size);
        if (laya_json_typeof(unk) != LAYA_JSON_STRING)
            return malformed(error, "model.unk_token", "a string or null", unk);
        bpe->unk = laya_vocab_find(&bpe->vocab, text, size);
        if (bpe->unk == LAYA_NO_ID) return malformed(error, "model.unk_token", "an entry of model.vocab", unk);
    }
    laya_bpe_fill_characters(bpe);
    LAYA_TRY(check_coverage(tokenizer, error));
    return load_merges(tokenizer, laya_json_get(model, "merges"), error);
}

/* ------------------------------------------------------------------ added tokens */

/* Read one entry; its text points into the document. */
static laya_status read_added(laya_json_value entry, uint32_t index, laya_added_token *token, bool *normalized,
                              laya_error *error)
{
    static const char *const keys[] = {"id",     "content",    "single_word", "lstrip",
                                       "rstrip", "normalized", "special",     NULL};
    char field[48], place[32];
    bool flags[5];
    snprintf(place, sizeof place, "added_tokens[%u]", index);
    LAYA_TRY(check_keys(entry, place, keys, error));
    laya_json_value id = laya_json_get(entry, "id"), content = laya_json_get(entry, "content");
    if (!laya_json_to_uint32(id, &token->id)) {
        snprintf(field, sizeof field, "%s.id", place);
        return malformed(error, field, "an integer from 0 to 4294967295", id);
    }
    size_t size;
    token->text = laya_json_text(content, &size);
    if (laya_json_typeof(content) != LAYA_JSON_STRING || size == 0) {
        snprintf(field, sizeof field, "%s.content", place);
        return malformed(error, field, "a string that is not empty", content);
    }
    token->size = (uint32_t)size;
    for (int i = 0; i < 5; i++) {
        laya_json_value flag = laya_json_get(entry, keys[2 + i]);
        laya_json_type type = laya_json_typeof(flag);
        snprintf(field, sizeof field, "%s.%s", place, keys[2 + i]);
        if (type != LAYA_JSON_TRUE && type != LAYA_JSON_FALSE) return malformed(error, field, "true or false", flag);
        flags[i] = type == LAYA_JSON_TRUE;
    }
    token->single_word = flags[0];
    token->lstrip = flags[1];
    token->rstrip = flags[2];
    *normalized = flags[3];
    return LAYA_OK;
}

/*
 * Give an added token its id as the reference does: that of the model's entry with the same spelling, else
 * the next free one. The reference ignores the id in the file; a file that says otherwise is refused.
 */
static laya_status assign_id(laya_vocab *vocab, bool *taken, const laya_added_token *token, uint32_t index,
                             laya_error *error)
{
    uint32_t id = laya_vocab_find(vocab, token->text, token->size);
    if (id == LAYA_NO_ID) {
        id = vocab->count;
        laya_vocab_append(vocab, token->text, token->size);
    } else if (id >= vocab->model_count || taken[id]) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "added_tokens[%u].content: \"%.*s\" comes twice", index,
                         token->size > 60 ? 60 : (int)token->size, token->text);
    } else {
        taken[id] = true;
    }
    if (id == token->id) return LAYA_OK;
    return laya_fail(error, LAYA_ERROR_FORMAT, "added_tokens[%u].id: expected %u (%s), found %u", index, id,
                     id < vocab->model_count ? "as in model.vocab" : "the next free id", token->id);
}

static bool only_spaces(const laya_added_token *token)
{
    for (size_t at = 0; at < token->size;) {
        if (!(laya_unicode_flags(laya_utf8_next(token->text, &at)) & LAYA_UNICODE_SPACE)) return false;
    }
    return true;
}

/*
 * White space that a token with rstrip has taken may hold a whole token of white space; when that one has
 * lstrip, the reference computes a piece that ends before it begins, and crashes.
 */
static laya_status check_strips(const laya_added_set *set, laya_error *error)
{
    bool rstrip = false;
    for (uint32_t i = 0; i < set->count; i++) rstrip = rstrip || set->tokens[i].rstrip;
    for (uint32_t i = 0; i < set->count && rstrip; i++) {
        if (!set->tokens[i].lstrip || !only_spaces(&set->tokens[i])) continue;
        return laya_fail(
            error, LAYA_ERROR_UNSUPPORTED,
            "added_tokens: the token %u of white space with lstrip is not possible beside one with rstrip",
            set->tokens[i].id);
    }
    return LAYA_OK;
}

static laya_status finish_set(laya_added_set *set, laya_error *error)
{
    const laya_added_token *twice = laya_added_finish(set);
    if (twice) {
        return laya_fail(error, LAYA_ERROR_FORMAT,
                         "added_tokens: the token %u equals another one after normalization", twice->id);
    }
    return check_strips(set, error);
}

/* What the walk over added_tokens needs: the entries, and the normalized texts one after the other. */
typedef struct added_work {
    laya_added_token *tokens;
    bool *normalized;
    bool *taken; /* [model_count] entries of the model that an added token names */
    laya_buffer text;
    laya_nfc_memory nfc;
} added_work;

static laya_status read_all_added(laya_tokenizer *tokenizer, laya_json_value list, added_work *work,
                                  laya_error *error)
{
    uint32_t index = 0, count[2] = {0, 0};
    size_t bytes[2] = {0, 0};
    for (laya_json_iterator it = laya_json_first(list); laya_json_present(it.value); laya_json_next(&it), index++) {
        laya_added_token *token = &work->tokens[index];
        bool unchanged = true;
        LAYA_TRY(read_added(it.value, index, token, &work->normalized[index], error));
        LAYA_TRY(assign_id(&tokenizer->bpe.vocab, work->taken, token, index, error));
        size_t start = work->text.size;
        if (work->normalized[index] && !laya_tokenizer_normalize(tokenizer->normalizer, &work->nfc, token->text,
                                                                 token->size, &work->text, &unchanged)) {
            return laya_fail_memory(error, 0);
        }
        if (unchanged) laya_buffer_append(&work->text, token->text, token->size);
        if (work->text.failed) return laya_fail_memory(error, 0);
        token->size = (uint32_t)(work->text.size - start);
        count[work->normalized[index]]++;
        bytes[work->normalized[index]] += token->size;
    }
    if (!laya_added_init(&tokenizer->raw, &tokenizer->allocator, count[0], bytes[0]) ||
        !laya_added_init(&tokenizer->normalized, &tokenizer->allocator, count[1], bytes[1])) {
        return laya_fail_memory(error, 0);
    }
    const char *text = work->text.data;
    for (uint32_t i = 0; i < index; i++) {
        work->tokens[i].text = text;
        text += work->tokens[i].size;
        laya_added_add(work->normalized[i] ? &tokenizer->normalized : &tokenizer->raw, &work->tokens[i]);
    }
    LAYA_TRY(finish_set(&tokenizer->raw, error));
    return finish_set(&tokenizer->normalized, error);
}

static laya_status load_added(laya_tokenizer *tokenizer, laya_json_value list, laya_error *error)
{
    const laya_allocator *allocator = &tokenizer->allocator;
    size_t count = laya_json_size(list);
    if (count == 0) return LAYA_OK;
    added_work work = {.nfc = {.allocator = allocator}};
    laya_buffer_init(&work.text, allocator);
    work.tokens = laya_alloc_zero(allocator, count, sizeof *work.tokens);
    work.normalized = laya_alloc_zero(allocator, count, sizeof *work.normalized);
    work.taken = laya_alloc_zero(allocator, tokenizer->bpe.vocab.model_count, sizeof *work.taken);
    laya_status status = work.tokens && work.normalized && work.taken
                             ? read_all_added(tokenizer, list, &work, error)
                             : laya_fail_memory(error, count * sizeof *work.tokens);
    laya_release(allocator, work.tokens);
    laya_release(allocator, work.normalized);
    laya_release(allocator, work.taken);
    laya_buffer_close(&work.text);
    laya_nfc_close(&work.nfc);
    return status;
}

/* ------------------------------------------------------------------ the file */

static laya_status load_root(laya_tokenizer *tokenizer, laya_json_value root, laya_error *error)
{
    static const char *const keys[] = {"version",       "truncation",     "padding", "added_tokens", "normalizer",
                                       "pre_tokenizer", "post_processor", "decoder", "model",        NULL};
    if (laya_json_typeof(root) != LAYA_JSON_OBJECT)
        return laya_fail(error, LAYA_ERROR_FORMAT, "expected an object, found %s", laya_json_type_name(root));
    LAYA_TRY(check_keys(root, "top level", keys, error));
    laya_json_value version = laya_json_get(root, "version"), added = laya_json_get(root, "added_tokens");
    if (!laya_json_equals(version, "1.0")) return unsupported(error, "version", "\"1.0\"", version);
    for (int i = 1; i <= 2; i++) {
        laya_json_value value = laya_json_get(root, keys[i]);
        if (!laya_json_is_null(value)) return unsupported(error, keys[i], "null", value);
    }
    if (laya_json_present(added) && laya_json_typeof(added) != LAYA_JSON_ARRAY)
        return malformed(error, "added_tokens", "a list", added);
    LAYA_TRY(load_normalizer(tokenizer, laya_json_get(root, "normalizer"), error));
    LAYA_TRY(load_pre_tokenizer(tokenizer, laya_json_get(root, "pre_tokenizer"), error));
    LAYA_TRY(check_post_processor(laya_json_get(root, "post_processor"), error));
    LAYA_TRY(load_model(tokenizer, laya_json_get(root, "model"), added, error));
    return load_added(tokenizer, added, error);
}

laya_status laya_tokenizer_load(laya_tokenizer *tokenizer, const char *text, size_t size, laya_error *error)
{
    laya_json doc;
    laya_status status = laya_json_parse(&doc, text, size, &tokenizer->allocator, error);
    if (status == LAYA_ERROR_INPUT) {
        status = LAYA_ERROR_FORMAT;
        if (error) error->status = status;
    }
    if (status != LAYA_OK) return status;
    status = load_root(tokenizer, laya_json_root(&doc), error);
    laya_json_close(&doc);
    return status;
}
