/* SPDX-License-Identifier: Apache-2.0 */
#include "palettes.h"

laya_package *test_open_package(const char *path)
{
    laya_package *package;
    laya_error error;
    if (laya_package_open(path, NULL, &package, &error) != LAYA_OK) fail_msg("%s", error.message);
    return package;
}

laya_package *test_open_body(const char *folder, laya_graph graph, laya_package_precision precision)
{
    char directory[TEST_PATH_SIZE], path[TEST_PATH_SIZE];
    test_join(path, folder, "body");
    test_export(test_path(directory, TEST_DEMO), graph, precision, 16, false, path);
    return test_open_package(path);
}

uint32_t test_select_weights(laya_mil_program *program, uint32_t group_size, laya_palette_weight **weights)
{
    uint32_t count;
    laya_error error;
    if (laya_palettes_select(program, group_size, weights, &count, &error) != LAYA_OK) fail_msg("%s", error.message);
    return count;
}
