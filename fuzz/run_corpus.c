/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for libFuzzer where there is none: gives every file of the folders and files named on the command line to
 * the target once, in order of their names. Fails when there is no input at all.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return -1;
    }
    /* A block of the input's exact size, so that a sanitizer sees a read past its end. */
    size_t capacity = 4096, size = 0;
    uint8_t *data = malloc(capacity);
    while (data) {
        size += fread(data + size, 1, capacity - size, file);
        if (size < capacity) break;
        capacity *= 2;
        uint8_t *larger = realloc(data, capacity);
        if (!larger) free(data);
        data = larger;
    }
    int failed = ferror(file);
    fclose(file);
    uint8_t *exact = data && !failed ? malloc(size ? size : 1) : NULL;
    if (exact) memcpy(exact, data, size);
    free(data);
    if (!exact) {
        fprintf(stderr, "%s: cannot be read\n", path);
        return -1;
    }
    printf("%s: %zu bytes\n", path, size);
    fflush(stdout);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 0;
}

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* The number of inputs that were run, -1 on failure. */
static long run_path(const char *path)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, is_input, alphasort);
    if (count < 0) return run_file(path) == 0 ? 1 : -1;
    long done = 0;
    for (int i = 0; i < count; i++) {
        char name[4096];
        int length = snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        if (length < 0 || (size_t)length >= sizeof name || run_file(name) != 0) done = -1;
        if (done >= 0) done++;
        free(entries[i]);
    }
    free(entries);
    return done;
}

int main(int argc, char **argv)
{
    long total = 0;
    for (int i = 1; i < argc; i++) {
        long done = run_path(argv[i]);
        if (done < 0) return 1;
        total += done;
    }
    printf("%ld inputs\n", total);
    return total > 0 ? 0 : 1;
}
