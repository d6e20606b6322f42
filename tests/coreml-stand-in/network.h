/* SPDX-License-Identifier: Apache-2.0 */
/* What the stand-in's MLModel computes with: a package and the interpreter, behind plain C. */
#ifndef LAYA_STAND_IN_NETWORK_H
#define LAYA_STAND_IN_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct stand_in_network stand_in_network;

typedef struct stand_in_feature {
    const char *name;
    int64_t shape[4];
    bool half;     /* Float16, else Float32 */
    float *values; /* of the interpreter: written before a run, valid after it */
} stand_in_feature;

/* NULL when the package cannot be opened or run; `message` then says why. */
stand_in_network *stand_in_network_open(const char *directory, char message[1024]);
void stand_in_network_close(stand_in_network *network);

size_t stand_in_network_features(const stand_in_network *network, bool outputs);
stand_in_feature stand_in_network_feature(stand_in_network *network, bool outputs, size_t index);
bool stand_in_network_run(stand_in_network *network, char message[1024]);

#endif
