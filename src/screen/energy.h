/* SPDX-License-Identifier: Apache-2.0 */
/* Activation energies: the mean square of every input channel of every convolution of a package. */
#ifndef LAYA_SCREEN_ENERGY_H
#define LAYA_SCREEN_ENERGY_H

#include "laya/palette.h"
#include "palette/bundle.h"

typedef struct laya_energies laya_energies;

/*
 * Answer the questions of a fixture with the float32 engine and average the squares of what goes into every dense
 * weight, over all tokens that the engine sends through it (rows longer than `length` of the package included). The
 * graph that the bundle was exported from is built again from the checkpoint, which tells the tensor, and the order of
 * its columns, behind every convolution.
 *
 * bundle  its directory, or its package
 *
 * Errors: IO, FORMAT (fixture; a checkpoint that the bundle was not made from; a package that this version exports
 * otherwise), UNSUPPORTED (a bundle that has palettes, or is no body), INPUT (a question), STOPPED, MEMORY, SYSTEM.
 */
laya_status laya_energies_measure(const char *bundle, const char *model_directory, const char *fixture,
                                  unsigned threads, const laya_allocator *allocator, const laya_progress *progress,
                                  const laya_interrupt *interrupt, laya_energies **out, laya_error *error);
void laya_energies_close(laya_energies *energies);

/* For laya_palette_choice.energy, user: the laya_energies. NULL: no such weight, or another number of channels. */
const float *laya_energies_find(void *user, const char *name, uint64_t row);
laya_energy_facts laya_energies_facts(const laya_energies *energies);

#endif
