/* SPDX-License-Identifier: Apache-2.0 */
/* A program of somebody else: opens the model named on its command line and asks one question. */
#include <laya/laya.h>

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    static const char state[] = "\"I was billed twice, please refund me.\"";
    static const char questions[] =
        "{\"refund\": {\"type\": \"noul\", \"instructions\": \"Is a refund requested?\"}}";
    laya_model *model = NULL;
    laya_context *context = NULL;
    laya_error error;
    const char *result = NULL;
    int failed = 0;

    if (argc != 2 || strcmp(laya_version(), LAYA_VERSION_STRING) != 0) return 2;
    if (laya_model_open(argv[1], NULL, &model, &error) != LAYA_OK ||
        laya_context_open(model, NULL, &context, &error) != LAYA_OK) {
        puts(error.message);
        failed = 1;
    } else if (laya_predict(context, state, strlen(state), questions, strlen(questions), NULL, &result, NULL) !=
               LAYA_OK) {
        puts(laya_context_error(context)->message);
        failed = 1;
    } else {
        puts(result);
    }
    laya_context_close(context);
    laya_model_close(model);
    return failed;
}
