/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <time.h>

double laya_seconds(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) return 0;
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
