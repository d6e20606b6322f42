/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the input as a safetensors file and widens the first and the last value of every tensor. */
#include "fuzz.h"
#include "model/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    fuzz_memory memory;
    laya_safetensors tensors;
    laya_error error = {0};
    fuzz_memory_init(&memory, data[0]);
    /* A block of the exact size, so that a read past the end of the file is seen. */
    unsigned char *file = malloc(size - 1 ? size - 1 : 1);
    if (!file) return 0;
    memcpy(file, data + 1, size - 1);
    laya_status status = laya_safetensors_read(&tensors, file, size - 1, &memory.hooks, &error);
    fuzz_check_status(&memory, status, &error);
    if (status == LAYA_OK) {
        float value;
        fuzz_check(tensors.count > 0, "a file that is accepted has a tensor");
        for (uint32_t at = 0; at < tensors.count; at++) {
            const laya_tensor_entry *entry = &tensors.entries[at];
            size_t values = (size_t)entry->tensor.rows * entry->tensor.cols;
            laya_tensor_widen(&entry->tensor, 0, 1, &value);
            laya_tensor_widen(&entry->tensor, values - 1, 1, &value);
            fuzz_check(laya_safetensors_find(&tensors, entry->name) == entry, "a tensor is found by its name");
        }
    }
    laya_safetensors_close(&tensors);
    free(file);
    fuzz_memory_end(&memory);
    return 0;
}
