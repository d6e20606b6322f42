/* SPDX-License-Identifier: Apache-2.0 */
/* The machine and the time of a report. */
#ifndef LAYA_GATE_HOST_H
#define LAYA_GATE_HOST_H

#define LAYA_HOST_TEXT 160

typedef struct laya_host {
    char system[LAYA_HOST_TEXT];    /* "Linux 6.1.0 x86_64" */
    char processor[LAYA_HOST_TEXT]; /* as the system names it; "unknown" */
    unsigned cpus;                  /* that this process may use */
    const char *kernels;            /* of the matrix products */
    char date[32];                  /* UTC, "2026-11-29T12:00:00Z" */
} laya_host;

/* Texts are UTF-8. */
void laya_host_get(laya_host *host);

#endif
