/* SPDX-License-Identifier: Apache-2.0 */
#include "network.h"

#include "coreml/package.h"
#include "interpreter/interpreter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct stand_in_network {
    laya_package *package;
    laya_pool *pool;
    laya_interpreter *interpreter;
};

static bool passed(laya_status status, const laya_error *error, char message[1024])
{
    snprintf(message, 1024, "%s", status == LAYA_OK ? "" : error->message);
    return status == LAYA_OK;
}

stand_in_network *stand_in_network_open(const char *directory, char message[1024])
{
    laya_error error = {0};
    stand_in_network *network = calloc(1, sizeof *network);
    if (!network) return NULL;
    laya_status status = laya_package_open(directory, NULL, &network->package, &error);
    if (status == LAYA_OK) status = laya_pool_open(1, NULL, &network->pool, &error);
    if (status == LAYA_OK)
        status = laya_interpreter_open(&network->package->program, NULL, LAYA_NUMERICS_FP16, network->pool, NULL,
                                       &network->interpreter, &error);
    if (passed(status, &error, message)) return network;
    stand_in_network_close(network);
    return NULL;
}

void stand_in_network_close(stand_in_network *network)
{
    if (!network) return;
    if (network->interpreter) laya_interpreter_close(network->interpreter);
    if (network->pool) laya_pool_close(network->pool);
    laya_package_close(network->package);
    free(network);
}

size_t stand_in_network_features(const stand_in_network *network, bool outputs)
{
    return outputs ? laya_interpreter_output_count(network->interpreter)
                   : laya_interpreter_input_count(network->interpreter);
}

stand_in_feature stand_in_network_feature(stand_in_network *network, bool outputs, size_t index)
{
    stand_in_feature feature = {.half = true};
    const laya_array *array = outputs ? laya_interpreter_output(network->interpreter, (uint32_t)index, &feature.name)
                                      : laya_interpreter_input(network->interpreter, (uint32_t)index, &feature.name);
    memcpy(feature.shape, array->type.dims, sizeof feature.shape);
    feature.half = array->type.dtype == LAYA_MIL_FP16;
    feature.values = array->values;
    return feature;
}

bool stand_in_network_run(stand_in_network *network, char message[1024])
{
    laya_error error = {0};
    return passed(laya_interpreter_run(network->interpreter, &error), &error, message);
}
