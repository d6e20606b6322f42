/* SPDX-License-Identifier: Apache-2.0 */
/* layac predict --package as users run it. */
#include "bundles.h"
#include "process.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOUL "{\"n\": {\"type\": \"noul\", \"instructions\": \"Is a refund requested?\"}}"
#define STATE "I was billed twice, please refund me."

static char shelter[TEST_PATH_SIZE]; /* what layac prints */
static char bundles[TEST_PATH_SIZE]; /* demo, lean: bundles/l64, bundles/l96 */
static char alone[TEST_PATH_SIZE];   /* demo, standalone, 64 tokens */

static int make_bundles(void **state)
{
    (void)state;
    char path[TEST_PATH_SIZE], demo[TEST_PATH_SIZE];
    test_make_folder(shelter);
    test_join(bundles, shelter, "bundles");
    test_path(demo, TEST_DEMO);
    test_export(demo, LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP16, 64, false, test_join(path, bundles, "l64"));
    test_export(demo, LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP16, 96, false, test_join(path, bundles, "l96"));
    test_export(demo, LAYA_GRAPH_LEAN, LAYA_PACKAGE_FP16, 64, true, test_join(alone, shelter, "alone"));
    unsetenv("LAYA_MODEL");
    return 0;
}

static int remove_bundles(void **state)
{
    (void)state;
    test_remove_tree(shelter);
    return 0;
}

#define PREDICT(...) TEST_LIST("predict", "--questions", NOUL, "--state", __VA_ARGS__)

static void answers(void **state)
{
    (void)state;
    char path[TEST_PATH_SIZE];
    const char *const *const calls[] = {
        PREDICT(STATE, "--package", bundles),
        PREDICT(STATE, "--package", alone),
        PREDICT(STATE, "--package", test_join(path, bundles, "l64"), "--backend", "interpreter", "--threads", "1"),
        PREDICT(STATE, "--package", bundles, "--numerics", "fp16", "--long", "native"),
    };
    char *first = NULL;
    for (size_t at = 0; at < sizeof calls / sizeof *calls; at++) {
        test_outcome o = test_run_layac(shelter, 0, calls[at]);
        assert_string_equal(o.err, "");
        assert_contains(o.out, "\"served_by\":{\"executor\":\"interpreter fp16\",\"length\":64}");
        if (first) assert_string_equal(o.out, first);
        if (!first) first = strdup(o.out);
        test_outcome_close(&o);
    }
    free(first);
}

/* --backend native is the CPU engine as without the option. */
static void native(void **state)
{
    (void)state;
    char demo[TEST_PATH_SIZE];
    test_path(demo, TEST_DEMO);
    test_outcome a = test_run_layac(shelter, 0, PREDICT(STATE, "--model", demo));
    test_outcome b = test_run_layac(shelter, 0, PREDICT(STATE, "--model", demo, "--backend", "native"));
    assert_string_equal(a.out, b.out);
    assert_null(strstr(a.out, "served_by"));
    test_outcome_close(&a);
    test_outcome_close(&b);
}

static void other_options(void **state)
{
    (void)state;
    char demo[TEST_PATH_SIZE];
    test_outcome o = test_run_layac(shelter, 0,
                                    PREDICT(STATE, "--package", alone, "--model", test_path(demo, TEST_DEMO), "--raw",
                                            "--numerics", "fp32", "--pretty", "--lang", "de", "--lang-temperatures",
                                            "{\"de\": {\"temperature\": [1, 1, 1.25]}}"));
    assert_contains(o.out, "\"executor\": \"interpreter fp32\"");
    assert_contains(o.out, "\"temperature\": 1.25,");
    test_outcome_close(&o);
    o = test_run_layac(shelter, 0, PREDICT(STATE, "--package", bundles, "--table"));
    assert_contains(o.out, "n (noul): ");
    test_outcome_close(&o);
}

static void refused(void **state)
{
    (void)state;
    char path[TEST_PATH_SIZE], tiny[TEST_PATH_SIZE], text[1024] = "";
    for (int at = 0; at < 100; at++) strcat(text, "refund ");
    test_layac_fails(shelter, 3, "but the longest package takes 96; export one with --length",
                     PREDICT(text, "--package", bundles));
    test_layac_fails(shelter, 3, "or use --long native", PREDICT(text, "--package", bundles));
    test_outcome o = test_run_layac(shelter, 0, PREDICT(text, "--package", bundles, "--long", "native"));
    assert_contains(o.out, "\"served_by\":{\"executor\":\"native\",\"length\":null}");
    test_outcome_close(&o);
    test_layac_fails(shelter, 5, "absent: not found",
                     PREDICT(STATE, "--package", test_join(path, shelter, "absent")));
    test_layac_fails(shelter, 4, "belongs to another checkpoint",
                     PREDICT(STATE, "--package", bundles, "--model", test_path(tiny, TEST_TINY)));
#if !defined(__APPLE__)
    test_layac_fails(shelter, 4, "Core ML needs macOS; use --backend interpreter",
                     PREDICT(STATE, "--package", bundles, "--backend", "coreml", "--compute-units", "all"));
#endif
    test_flip_byte(test_join(path, alone, "model.mlpackage/Data/com.apple.CoreML/weights/weight.bin"));
    test_layac_fails(shelter, 4, "weight.bin: expected SHA-256", PREDICT(STATE, "--package", alone));
    test_flip_byte(path);
}

/* A compute plan is Core ML's. */
static void plan(void **state)
{
    (void)state;
    char tiny[TEST_PATH_SIZE];
    test_path(tiny, TEST_TINY);
    test_layac_fails(shelter, 4, "belongs to another checkpoint",
                     TEST_LIST("inspect", "--plan", "--model", tiny, bundles));
#if !defined(__APPLE__)
    test_layac_fails(shelter, 4, "model.mlpackage: Core ML needs macOS", TEST_LIST("inspect", "--plan", alone));
    test_layac_fails(shelter, 4, "Core ML needs macOS",
                     TEST_LIST("inspect", "--plan", "--json", "--compute-units", "all", alone));
#endif
}

static void usage_errors(void **state)
{
    (void)state;
    const struct {
        const char *reason;
        const char *const *arguments;
    } cases[] = {
        {"--backend: expected native, interpreter or coreml, got 'gpu'", PREDICT(STATE, "--backend", "gpu")},
        {"--compute-units: expected cpu, cpu_gpu, cpu_ne or all, got 'ane'",
         PREDICT(STATE, "--compute-units", "ane")},
        {"--numerics: expected fp16, fp16-strict or fp32, got 'int8'", PREDICT(STATE, "--numerics", "int8")},
        {"--long: expected native, got 'yes'", PREDICT(STATE, "--long", "yes")},
        {"--backend native runs no package", PREDICT(STATE, "--package", bundles, "--backend", "native")},
        {"--backend needs a package", PREDICT(STATE, "--backend", "interpreter")},
        {"--numerics needs a package", PREDICT(STATE, "--numerics", "fp32")},
        {"--compute-units needs a package", PREDICT(STATE, "--compute-units", "all")},
        {"--cache needs a package", PREDICT(STATE, "--cache", "x")},
        {"--long needs a package", PREDICT(STATE, "--long", "native")},
        {"--compute-units goes with --backend coreml",
         PREDICT(STATE, "--package", bundles, "--compute-units", "cpu")},
        {"--cache goes with --backend coreml", PREDICT(STATE, "--package", bundles, "--cache", "x")},
        {"--numerics goes with --backend interpreter",
         PREDICT(STATE, "--package", bundles, "--backend", "coreml", "--numerics", "fp16")},
        {"for a package use --numerics", PREDICT(STATE, "--package", bundles, "--precision", "double")},
    };
    for (size_t at = 0; at < sizeof cases / sizeof *cases; at++)
        test_layac_fails(shelter, 2, cases[at].reason, cases[at].arguments);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(answers),       cmocka_unit_test(native),
                                       cmocka_unit_test(other_options), cmocka_unit_test(refused),
                                       cmocka_unit_test(plan),          cmocka_unit_test(usage_errors)};
    return cmocka_run_group_tests(tests, make_bundles, remove_bundles);
}
