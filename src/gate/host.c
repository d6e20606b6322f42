/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/host.h"

#include "base/threads.h"
#include "kernels/kernels.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#if defined(__APPLE__)
#include <sys/sysctl.h>
#endif

/* Printable ASCII alone. */
static void clean(char *text)
{
    for (; *text; text++) {
        if (*text < 0x20 || *text > 0x7E) *text = ' ';
    }
}

#if defined(__APPLE__)
static void name_processor(char text[LAYA_HOST_TEXT])
{
    size_t size = LAYA_HOST_TEXT;
    if (sysctlbyname("machdep.cpu.brand_string", text, &size, NULL, 0) != 0 || size < 2)
        snprintf(text, LAYA_HOST_TEXT, "unknown");
}
#else
/* The first "model name" of /proc/cpuinfo. */
static void name_processor(char text[LAYA_HOST_TEXT])
{
    char line[512];
    snprintf(text, LAYA_HOST_TEXT, "unknown");
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (!file) return;
    while (fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", sizeof "model name" - 1) != 0 || !colon) continue;
        colon += strspn(colon, ": \t");
        snprintf(text, LAYA_HOST_TEXT, "%.*s", (int)strcspn(colon, "\n"), colon);
        break;
    }
    fclose(file);
}
#endif

void laya_host_get(laya_host *host)
{
    struct utsname names;
    struct tm utc;
    time_t now = time(NULL);
    if (uname(&names) == 0)
        snprintf(host->system, sizeof host->system, "%.48s %.48s %.48s", names.sysname, names.release, names.machine);
    else
        snprintf(host->system, sizeof host->system, "unknown");
    name_processor(host->processor);
    clean(host->system);
    clean(host->processor);
    host->cpus = laya_online_cpus();
    host->kernels = laya_kernels_select(LAYA_CPU_ALL)->name;
    if (now == (time_t)-1 || !gmtime_r(&now, &utc) ||
        strftime(host->date, sizeof host->date, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0)
        snprintf(host->date, sizeof host->date, "unknown");
}
