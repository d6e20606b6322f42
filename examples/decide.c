/* SPDX-License-Identifier: Apache-2.0 */
/* Questions as structs, answers as numbers: decide MODEL_DIRECTORY */
#include <laya/laya.h>

#include <stdio.h>
#include <string.h>

static const char *const teams[] = {"billing", "technical", "sales"};
static const char *const team_texts[] = {"invoices, payments, refunds", "bugs, outages, errors", NULL};

static int ask(laya_context *context)
{
    const char *text = "I was billed twice for March, please refund me.";
    const laya_state state = {.text = text, .size = strlen(text)};
    const laya_question questions[] = {
        {.id = "team",
         .type = LAYA_CHOICE,
         .instructions = "Which department should handle this?",
         .count = 3,
         .labels = teams,
         .descriptions = team_texts},
        {.id = "refund", .type = LAYA_NOUL, .instructions = "Does the user ask for money back?"}};
    laya_result result;

    if (laya_decide(context, &state, questions, 2, NULL, &result) != LAYA_OK) {
        fprintf(stderr, "%s\n", laya_context_error(context)->message);
        return 1;
    }
    const laya_answer *team = &result.answers[0], *refund = &result.answers[1];
    printf("team: %s (%.4f)\n", teams[team->best], (double)team->probabilities[team->best]);
    printf("refund: %.4f\n", (double)refund->probabilities[1]);
    return 0;
}

int main(int argc, char **argv)
{
    laya_model *model;
    laya_context *context;
    laya_error error;
    int code = 1;

    if (argc != 2) return 2;
    if (laya_model_open(argv[1], NULL, &model, &error) != LAYA_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    if (laya_context_open(model, NULL, &context, &error) == LAYA_OK) {
        code = ask(context);
        laya_context_close(context);
    } else {
        fprintf(stderr, "%s\n", error.message);
    }
    laya_model_close(model);
    return code;
}
