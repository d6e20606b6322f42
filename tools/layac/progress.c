/* SPDX-License-Identifier: Apache-2.0 */
/* The progress bar. */
#include "layac.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define BAR_WIDTH 40
#define FIRST_SECONDS 2.0 /* calls that are shorter draw nothing */
#define NEXT_SECONDS 0.1

static double now(void)
{
    struct timespec time;
    if (clock_gettime(CLOCK_MONOTONIC, &time) != 0) return 0;
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void draw(void *user, uint64_t done, uint64_t total)
{
    layac_bar *bar = user;
    char line[BAR_WIDTH + 1];
    double time = now();
    if (!bar->terminal || total == 0 || time - bar->start < FIRST_SECONDS || time - bar->last < NEXT_SECONDS) return;
    double part = (double)done / (double)total;
    for (int at = 0; at < BAR_WIDTH; at++) line[at] = at < (int)(part * BAR_WIDTH) ? '#' : '.';
    line[BAR_WIDTH] = '\0';
    fprintf(stderr, "\r[%s] %3.0f %%", line, part * 100);
    bar->last = time;
    bar->drawn = true;
}

laya_progress layac_bar_start(layac_bar *bar)
{
    *bar = (layac_bar){.terminal = isatty(STDERR_FILENO) != 0, .start = now()};
    return (laya_progress){.user = bar, .report = draw};
}

void layac_bar_end(layac_bar *bar)
{
    if (bar->drawn) fprintf(stderr, "\r%*s\r", BAR_WIDTH + 10, "");
}
