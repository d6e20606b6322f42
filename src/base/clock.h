/* SPDX-License-Identifier: Apache-2.0 */
/* Time that only goes on. */
#ifndef LAYA_BASE_CLOCK_H
#define LAYA_BASE_CLOCK_H

/* Seconds of the monotonic clock; 0 where there is none. */
double laya_seconds(void);

#endif
