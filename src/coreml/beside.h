/* SPDX-License-Identifier: Apache-2.0 */
/* The bundle that a package lies in: manifest.json beside it, for verifier and inspector. */
#ifndef LAYA_COREML_BESIDE_H
#define LAYA_COREML_BESIDE_H

#include "base/json.h"

#define LAYA_BESIDE_MANIFEST "manifest.json"

/*
 * The directory that holds the one at `path`; `name` receives the last component, or NULL where the path has none.
 * Both lie in the arena. Errors: MEMORY.
 */
laya_status laya_beside_directory(const char *path, laya_arena *arena, const char **directory, const char **name,
                                  laya_error *error);

/* A manifest of ours that speaks of the package of this name (NULL: the name is not known). */
bool laya_beside_is_bundle(laya_json_value root, const char *name);

#endif
