/* SPDX-License-Identifier: Apache-2.0 */
#include "predict/gate.h"

#include "base/error.h"
#include "base/json.h"
#include "base/number.h"

#include <string.h>

static laya_status fail_repr(const char *before, laya_json_value value, const laya_allocator *allocator,
                             laya_error *error)
{
    laya_buffer text;
    laya_buffer_init(&text, allocator);
    laya_json_write_repr(&text, value);
    laya_status status;
    if (text.failed)
        status = laya_fail_memory(error, 0);
    else
        status = laya_fail(error, LAYA_ERROR_INPUT, "%s%s", before, text.data);
    laya_buffer_close(&text);
    return status;
}

/* A number in [0, 1]; NaN is not. */
static bool threshold(laya_json_value value, double *number)
{
    return laya_json_to_double(value, number) && *number >= 0 && *number <= 1;
}

static void fill(laya_gate *gate, double value)
{
    for (unsigned type = 0; type < 3; type++) {
        for (unsigned bucket = 0; bucket < LAYA_BUCKETS; bucket++) gate->by_bucket[type][bucket] = value;
    }
}

static laya_status read_map(laya_gate *gate, laya_json_value map, const laya_allocator *allocator, laya_error *error)
{
    double value = 0;
    if (laya_json_size(map) == 0)
        return fail_repr("a min_confidence map must be a non-empty dict of bucket -> float, got ", map, allocator,
                         error);
    for (laya_json_iterator it = laya_json_first(map); laya_json_present(it.value); laya_json_next(&it)) {
        if (!threshold(it.value, &value))
            return fail_repr("min_confidence must be a float in [0.0, 1.0], got ", it.value, allocator, error);
    }
    fill(gate, laya_json_to_double(laya_json_get(map, "default"), &value) ? value : 0.0);
    for (unsigned type = 0; type < 3; type++) {
        for (unsigned bucket = 0; bucket < LAYA_BUCKETS; bucket++) {
            const char *name = laya_bucket_name((laya_question_type)type, bucket);
            if (laya_json_to_double(laya_json_get(map, name), &value)) gate->by_bucket[type][bucket] = value;
        }
    }
    return LAYA_OK;
}

laya_status laya_gate_read(laya_gate *gate, const char *min_confidence, const laya_allocator *allocator,
                           laya_error *error)
{
    laya_json doc;
    double value;
    *gate = (laya_gate){0};
    if (!min_confidence) return LAYA_OK;
    laya_status status = laya_json_parse(&doc, min_confidence, strlen(min_confidence), allocator, error);
    if (status != LAYA_OK) {
        laya_error_prefix(error, "min_confidence: ");
        return status;
    }
    gate->active = true;
    laya_json_value root = laya_json_root(&doc);
    if (laya_json_typeof(root) == LAYA_JSON_OBJECT)
        status = read_map(gate, root, allocator, error);
    else if (threshold(root, &value))
        fill(gate, value);
    else
        status = fail_repr("min_confidence must be a float in [0.0, 1.0], got ", root, allocator, error);
    laya_json_close(&doc);
    return status;
}

void laya_gate_apply(const laya_gate *gate, laya_answer *answer)
{
    answer->abstention = LAYA_GATE_NONE;
    answer->abstention_threshold = 0;
    if (!gate->active) return;
    answer->abstention_threshold = gate->by_bucket[answer->type][laya_bucket_of(answer->count)];
    bool low = laya_round4(answer->answer_confidence) < answer->abstention_threshold;
    answer->abstention = low ? LAYA_GATE_ABSTAINED : LAYA_GATE_PASSED;
}
