/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The token rows of recorded cases, built again with a real tokenizer.json:
 *
 *     laya-upstream-rows --tokenizer FILE --golden FOLDER --cls T --sep T --mask T --pad T
 *
 * For every case of the folder: token ids, markers and the usage numbers must be the recorded ones; max_len and
 * head_max_len come from its meta.json. One line per case; exit code 1 when anything differs, 2 for a bad call.
 */
#include "golden_files.h"
#include "laya/tokenizer.h"
#include "text/prompt.h"

#include <inttypes.h>

typedef struct oracle {
    const char *golden;
    const char *tokens[4]; /* cls, sep, mask, pad */
    laya_tokenizer *tokenizer;
    laya_specials specials;
    uint32_t max_len;
    uint32_t head_max_len;
    unsigned cases, rows, without_ids, differences;
    uint64_t ids;
} oracle;

/* What the rows of one case add up to. */
typedef struct totals {
    uint32_t input_tokens;
    uint32_t state_tokens;
    uint32_t dropped;
    laya_json_iterator truncated; /* walks the recorded truncated_questions */
    unsigned differences;
} totals;

static void differ(totals *sum, const char *name, laya_span qid, const char *what, uint64_t got, uint64_t want)
{
    printf("%s/%.*s: %s: got %" PRIu64 ", expected %" PRIu64 "\n", name, (int)qid.size, qid.text, what, got, want);
    sum->differences++;
}

/* The first difference of a recorded list of numbers, if there is one. */
static void compare_list(totals *sum, const char *name, laya_span qid, const char *what, laya_json_value want,
                         const uint32_t *got, size_t count)
{
    size_t at = 0;
    if (laya_json_size(want) != count) differ(sum, name, qid, what, count, laya_json_size(want));
    for (laya_json_iterator it = laya_json_first(want); laya_json_present(it.value) && at < count;
         laya_json_next(&it)) {
        uint32_t number = 0;
        if (!laya_json_to_uint32(it.value, &number) || number != got[at]) {
            printf("%s/%.*s: %s: first difference at index %zu\n", name, (int)qid.size, qid.text, what, at);
            sum->differences++;
            return;
        }
        at++;
    }
}

static void check_collision(totals *sum, const char *name, const laya_query *query, const laya_prompt_row *built,
                            laya_json_value usage)
{
    char id[256];
    snprintf(id, sizeof id, "%.*s", (int)query->id.size, query->id.text);
    laya_json_value recorded = laya_json_get(laya_json_get(usage, "options"), id);
    if (!laya_json_present(recorded)) {
        if (built->distinct != query->count)
            differ(sum, name, query->id, "distinct options", built->distinct, query->count);
        return;
    }
    uint32_t distinct = golden_uint(recorded, "distinct");
    if (built->distinct != distinct) differ(sum, name, query->id, "distinct options", built->distinct, distinct);
}

static void check_row(oracle *job, totals *sum, const char *name, const laya_query *query,
                      const laya_prompt_row *built, laya_json_value row, laya_json_value usage)
{
    laya_json_value ids = laya_json_get(row, "input_ids");
    if (laya_json_present(ids)) {
        compare_list(sum, name, query->id, "input_ids", ids, built->ids, built->count);
        job->ids += built->count;
    } else {
        uint32_t length = golden_uint(row, "input_ids_length");
        if (built->count != length) differ(sum, name, query->id, "length", built->count, length);
        job->without_ids++;
    }
    compare_list(sum, name, query->id, "markers", laya_json_get(row, "markers"), built->markers, query->count);
    check_collision(sum, name, query, built, usage);
    sum->input_tokens += built->count;
    if (built->dropped > sum->dropped) sum->dropped = built->dropped;
    if (built->dropped) {
        if (!golden_same(sum->truncated.value, query->id)) differ(sum, name, query->id, "truncated question", 1, 0);
        if (laya_json_present(sum->truncated.value)) laya_json_next(&sum->truncated);
    }
    job->rows++;
}

static void check_usage(totals *sum, const char *name, laya_json_value usage)
{
    const laya_span whole = {"usage", 5};
    bool truncated = laya_json_typeof(laya_json_get(usage, "truncated")) == LAYA_JSON_TRUE;
    uint32_t input = golden_uint(usage, "input_tokens"), state = golden_uint(usage, "state_tokens");
    uint32_t dropped = golden_uint(usage, "state_tokens_dropped");
    if (sum->input_tokens != input) differ(sum, name, whole, "input_tokens", sum->input_tokens, input);
    if (sum->state_tokens != state) differ(sum, name, whole, "state_tokens", sum->state_tokens, state);
    if (sum->dropped != dropped) differ(sum, name, whole, "state_tokens_dropped", sum->dropped, dropped);
    if (truncated != (sum->dropped > 0)) differ(sum, name, whole, "truncated", sum->dropped > 0, truncated);
    if (laya_json_present(sum->truncated.value)) differ(sum, name, whole, "more truncated questions", 0, 1);
}

static laya_status build_case(oracle *job, totals *sum, const char *name, laya_json_value root, laya_arena *arena,
                              laya_buffer *scratch, laya_error *error)
{
    const laya_prompt prompt = {.tokenizer = job->tokenizer,
                                .specials = &job->specials,
                                .max_len = job->max_len,
                                .head_max_len = job->head_max_len,
                                .arena = arena};
    laya_tokens state;
    laya_json_value state_value = laya_json_get(root, "state");
    laya_json_value usage = laya_json_get(laya_json_get(root, "result"), "usage");
    laya_json_iterator question = laya_json_first(golden_questions(root));
    laya_json_iterator row = laya_json_first(laya_json_get(root, "rows"));
    sum->truncated = laya_json_first(laya_json_get(usage, "truncated_questions"));
    laya_status status = laya_prompt_tokens(&prompt, golden_state(state_value, scratch), &state, error);
    if (status != LAYA_OK) return status;
    sum->state_tokens = state.count;
    bool keep_end = laya_json_typeof(state_value) == LAYA_JSON_ARRAY;
    for (; laya_json_present(question.value); laya_json_next(&question), laya_json_next(&row)) {
        laya_query query;
        laya_prompt_row built;
        status = laya_query_from_json(&query, question.key, question.value, arena, error);
        if (status == LAYA_OK) status = laya_prompt_build(&prompt, &query, state, keep_end, &built, error);
        if (status != LAYA_OK) return status;
        if (!golden_same(laya_json_get(row.value, "qid"), query.id))
            differ(sum, name, query.id, "recorded question", 0, 1);
        check_row(job, sum, name, &query, &built, row.value, usage);
    }
    if (laya_json_present(row.value)) differ(sum, name, (laya_span){"rows", 4}, "more recorded rows", 0, 1);
    check_usage(sum, name, usage);
    return LAYA_OK;
}

static void check_case(oracle *job, const char *name)
{
    golden_document document;
    laya_arena arena;
    laya_buffer scratch;
    laya_error error;
    totals sum = {0};
    unsigned before = job->rows;
    laya_arena_init(&arena, NULL);
    laya_buffer_init(&scratch, NULL);
    laya_json_value root = golden_open(&document, job->golden, name);
    if (build_case(job, &sum, name, root, &arena, &scratch, &error) != LAYA_OK) {
        printf("%s: %s\n", name, error.message);
        sum.differences++;
    }
    printf("%-24s %2u rows, %5" PRIu32 " tokens: %s\n", name, job->rows - before, sum.input_tokens,
           sum.differences ? "DIFFERENT" : "equal");
    job->cases++;
    job->differences += sum.differences;
    golden_close(&document);
    laya_buffer_close(&scratch);
    laya_arena_close(&arena);
}

static bool read_specials(oracle *job)
{
    uint32_t *const ids[4] = {&job->specials.cls, &job->specials.sep, &job->specials.mask, &job->specials.pad};
    for (int at = 0; at < 4; at++) {
        if (laya_tokenizer_find(job->tokenizer, job->tokens[at], strlen(job->tokens[at]), ids[at])) continue;
        fprintf(stderr, "the tokenizer has no token '%s'\n", job->tokens[at]);
        return false;
    }
    job->specials.mask_text = (laya_span){job->tokens[2], strlen(job->tokens[2])};
    return true;
}

/* The recorded special ids must be those of the tokenizer, or everything below would differ for one dull reason. */
static void read_meta(oracle *job)
{
    static const char *const names[4] = {"cls_id", "sep_id", "mask_id", "pad_id"};
    const uint32_t ids[4] = {job->specials.cls, job->specials.sep, job->specials.mask, job->specials.pad};
    golden_document document;
    laya_json_value meta = golden_open(&document, job->golden, "meta");
    job->max_len = golden_uint(meta, "max_len");
    job->head_max_len = golden_uint(meta, "head_max_len");
    for (int at = 0; at < 4; at++) {
        uint32_t want = golden_uint(laya_json_get(meta, "special_tokens"), names[at]);
        if (ids[at] == want) continue;
        printf("%s: got %" PRIu32 ", expected %" PRIu32 "\n", names[at], ids[at], want);
        job->differences++;
    }
    golden_close(&document);
}

static int usage(void)
{
    fputs("usage: laya-upstream-rows --tokenizer FILE --golden FOLDER --cls T --sep T --mask T --pad T\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    static const char *const names[6] = {"--cls", "--sep", "--mask", "--pad", "--tokenizer", "--golden"};
    const char *values[6] = {0};
    for (int at = 1; at + 1 < argc; at += 2) {
        int name = 0;
        while (name < 6 && strcmp(argv[at], names[name]) != 0) name++;
        if (name == 6) return usage();
        values[name] = argv[at + 1];
    }
    for (int name = 0; name < 6; name++) {
        if (!values[name] || argc != 13) return usage();
    }
    oracle job = {.golden = values[5], .tokens = {values[0], values[1], values[2], values[3]}};
    laya_error error;
    if (laya_tokenizer_open(values[4], NULL, &job.tokenizer, &error) != LAYA_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    bool ready = read_specials(&job);
    if (ready) {
        golden_list list;
        read_meta(&job);
        golden_find(&list, job.golden);
        for (size_t at = 0; at < list.count; at++) check_case(&job, list.names[at]);
        printf("%u cases, %u rows (%u by length and markers only), %" PRIu64 " ids compared, %u differences\n",
               job.cases, job.rows, job.without_ids, job.ids, job.differences);
    }
    laya_tokenizer_close(job.tokenizer);
    return ready && job.cases > 0 && job.differences == 0 ? 0 : 1;
}
