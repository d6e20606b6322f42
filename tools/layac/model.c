/* SPDX-License-Identifier: Apache-2.0 */
/* Which model and which fixture to use. */
#include "layac.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__APPLE__)
#include <mach-o/dyld.h>
#endif

/* From the folder of this program, in the build tree as after an installation. */
#define DEMO_MODEL "../share/laya/models/laya-demo"
#define FIXTURE "../share/laya/fixtures/questions.json"
#define PATH_SIZE 4096

/* The path of the running program. */
static bool program_path(char path[PATH_SIZE])
{
#if defined(__APPLE__)
    uint32_t size = PATH_SIZE;
    char found[PATH_SIZE];
    if (_NSGetExecutablePath(found, &size) != 0) return false;
    char *real = realpath(found, NULL);
    if (!real) return false;
    bool fits = strlen(real) < PATH_SIZE;
    if (fits) memcpy(path, real, strlen(real) + 1);
    free(real);
    return fits;
#else
    ssize_t size = readlink("/proc/self/exe", path, PATH_SIZE - 1);
    if (size <= 0) return false;
    path[size] = '\0';
    return true;
#endif
}

static char *copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *result = malloc(size);
    if (result)
        memcpy(result, text, size);
    else
        layac_fail(EXIT_MEMORY, "out of memory");
    return result;
}

/* The absolute path of what is installed at `place`, seen from the folder of this program; NULL: nothing is. */
static char *installed(const char *place)
{
    char program[PATH_SIZE], path[PATH_SIZE + sizeof DEMO_MODEL + sizeof FIXTURE];
    if (!program_path(program)) return NULL;
    char *slash = strrchr(program, '/');
    if (slash) *slash = '\0';
    snprintf(path, sizeof path, "%s/%s", program, place);
    return realpath(path, NULL);
}

char *layac_model_directory(const char *named)
{
    const char *environment = getenv("LAYA_MODEL");
    if (!named && environment && *environment) named = environment;
    if (named) return copy(named);
    char *path = installed(DEMO_MODEL);
    if (path)
        fprintf(stderr, "layac: no model named; using the built-in demo model %s\n", path);
    else
        layac_fail(EXIT_USAGE,
                   "no model named and the demo model is not installed beside this program; use --model DIR");
    return path;
}

char *layac_fixture_path(const char *named)
{
    if (named) return copy(named);
    char *path = installed(FIXTURE);
    if (!path)
        layac_fail(EXIT_USAGE, "no fixture named and none is installed beside this program; use --fixture FILE");
    return path;
}

int layac_open_model(const char *named, const char *lang_temperatures, laya_model **model)
{
    laya_error error;
    laya_model_options options;
    *model = NULL;
    char *directory = layac_model_directory(named);
    if (!directory) return EXIT_USAGE;
    laya_model_options_init(&options);
    options.logger = layac_logger();
    options.lang_temperatures = lang_temperatures;
    laya_status status = laya_model_open(directory, &options, model, &error);
    free(directory);
    return status == LAYA_OK ? EXIT_OK : layac_fail_library(&error);
}
