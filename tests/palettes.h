/* SPDX-License-Identifier: Apache-2.0 */
/* Programs whose weights tests select and replace. */
#ifndef LAYA_TESTS_PALETTES_H
#define LAYA_TESTS_PALETTES_H

#include "bundles.h"

#include "coreml/package.h"
#include "palette/palettes.h"

/* Open a package; fails the test when that is not possible. */
laya_package *test_open_package(const char *path);
/* Export a body of the demo model of 16 tokens to FOLDER/body and open it. */
laya_package *test_open_body(const char *folder, laya_graph graph, laya_package_precision precision);
/* The weights of a program; fails the test when a group size does not fit. */
uint32_t test_select_weights(laya_mil_program *program, uint32_t group_size, laya_palette_weight **weights);

#endif
