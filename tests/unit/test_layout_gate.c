/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the limits of the study's validation (S46) see of a wrong graph, on the demo model and its recorded answers.
 * Some changes of the layout tests are too small there: the limits bound what users see, they do not replace
 * test_layout.
 */
#include "gate/check.h"
#include "golden_files.h"
#include "layout_body.h"
#include "predict/answer.h"

#include <math.h>

#define DEMO_LENGTH 96u
#define DEMO_ROWS (TEST_SANITIZED ? 4 : 14)

typedef struct demo_rows {
    laya_row rows[DEMO_ROWS];
    uint32_t ids[DEMO_ROWS][DEMO_LENGTH], markers[DEMO_ROWS][LAYOUT_MAX_OPTIONS];
    layout_outputs recorded[DEMO_ROWS]; /* by PyTorch; no hidden states */
    size_t count;
} demo_rows;

static uint32_t type_of(laya_json_value question)
{
    static const laya_span names[] = {{"choice", 6}, {"score", 5}, {"noul", 4}};
    uint32_t type = 0;
    while (type < 2 && !golden_same(laya_json_get(question, "type"), names[type])) type++;
    return type;
}

/* Short rows of one case. */
static void add_rows(demo_rows *demo, laya_json_value root)
{
    laya_json_iterator questions = laya_json_first(laya_json_get(root, "questions"));
    for (laya_json_iterator it = laya_json_first(laya_json_get(root, "rows")); laya_json_present(it.value);
         laya_json_next(&it), laya_json_next(&questions)) {
        size_t at = demo->count;
        laya_json_value ids = laya_json_get(it.value, "input_ids"), markers = laya_json_get(it.value, "markers");
        if (at == DEMO_ROWS || laya_json_size(ids) > DEMO_LENGTH || laya_json_size(markers) > LAYOUT_MARKERS)
            continue;
        laya_row *row = &demo->rows[at];
        row->ids = demo->ids[at];
        row->markers = demo->markers[at];
        row->count = (uint32_t)golden_uints(ids, demo->ids[at], DEMO_LENGTH);
        row->options = (uint32_t)golden_uints(markers, demo->markers[at], LAYOUT_MAX_OPTIONS);
        row->type = type_of(questions.value);
        layout_outputs *recorded = &demo->recorded[at];
        golden_doubles(laya_json_get(it.value, "logits"), recorded->logits, LAYOUT_MAX_OPTIONS);
        golden_doubles(laya_json_get(it.value, "act_logits"), recorded->actions, LAYOUT_MAX_ACTIONS);
        demo->count++;
    }
}

static void read_demo_rows(demo_rows *demo)
{
    static const char *const names[] = {"capitals", "nonstring_instructions", "many_questions", "noul_criteria"};
    char folder[TEST_PATH_SIZE];
    test_path(folder, "tests/golden/laya-demo");
    demo->count = 0;
    for (size_t at = 0; at < sizeof names / sizeof *names; at++) {
        golden_document document;
        add_rows(demo, golden_open(&document, folder, names[at]));
        golden_close(&document);
    }
    assert_int_equal(demo->count, DEMO_ROWS);
}

static laya_answer answer_of(const laya_model *model, const laya_row *row, const layout_outputs *out,
                             float probabilities[LAYOUT_MAX_OPTIONS])
{
    float scratch[LAYOUT_MAX_OPTIONS];
    laya_answer answer = {.type = (laya_question_type)row->type, .count = row->options, .logits = out->logits};
    answer.probabilities = probabilities;
    answer.action_logits = out->actions;
    answer.action_count = model->config.actions;
    answer.temperature = laya_temperature_of(laya_calibration_for(&model->calibration, NULL), answer.type,
                                             answer.count);
    laya_softmax(answer.logits, answer.count, answer.temperature, probabilities);
    laya_answer_compute(&answer, scratch);
    return answer;
}

/* The product's gate on one question. */
static laya_question_check check_question(const laya_model *model, const laya_row *row,
                                          const layout_outputs *recorded, const layout_outputs *out)
{
    float expected_probabilities[LAYOUT_MAX_OPTIONS], probabilities[LAYOUT_MAX_OPTIONS];
    laya_answer expected = answer_of(model, row, recorded, expected_probabilities);
    laya_answer got = answer_of(model, row, out, probabilities);
    laya_question_check check = {.decided = got.best == expected.best, .finite = true, .tokens = true};
    for (size_t at = 0; at < got.count; at++) {
        double error = fabs((double)probabilities[at] - (double)expected_probabilities[at]);
        check.probability_error = fmax(check.probability_error, error);
        check.logit_error = fmax(check.logit_error, fabs(out->logits[at] - recorded->logits[at]));
    }
    check.action_probability_error = fabs(got.act_probability - expected.act_probability);
    return check;
}

/* How many questions the gate refuses; prints what it saw. */
static size_t count_refused(const laya_model *model, const demo_rows *demo, const layout_mutant *change)
{
    size_t refused = 0, decisions = 0;
    laya_question_check worst = {.decided = true};
    layout_body b;
    layout_open_body(&b, change, &model->config, &model->weights, LAYA_GRAPH_LEAN, DEMO_LENGTH);
    for (size_t at = 0; at < demo->count; at++) {
        layout_outputs out = {{0}, {0}, {0}};
        layout_run(&b, &demo->rows[at], &out);
        laya_question_check check = check_question(model, &demo->rows[at], &demo->recorded[at], &out);
        refused += !laya_question_passed(&check);
        decisions += !check.decided;
        worst.logit_error = fmax(worst.logit_error, check.logit_error);
        worst.probability_error = fmax(worst.probability_error, check.probability_error);
        worst.action_probability_error = fmax(worst.action_probability_error, check.action_probability_error);
    }
    layout_close(&b);
    print_message("%-40s %zu of %zu refused (%zu decisions); logit %.2g, probability %.2g, action %.2g\n",
                  change->name, refused, demo->count, decisions, worst.logit_error, worst.probability_error,
                  worst.action_probability_error);
    return refused;
}

static void test_gate_on_demo(void **state)
{
    (void)state;
    laya_model *model = test_open_model(TEST_DEMO);
    demo_rows *demo = calloc(1, sizeof *demo);
    assert_non_null(demo);
    read_demo_rows(demo);
    assert_int_equal(count_refused(model, demo, &layout_unchanged), 0);
    for (size_t at = 0; at < layout_mutant_count; at++) {
        const layout_mutant *change = &layout_mutants[at];
        assert_int_equal(count_refused(model, demo, change) > 0, change->refused);
    }
    free(demo);
    laya_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_gate_on_demo)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
