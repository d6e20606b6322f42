/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that end a command let it clean up first. */
#include "layac.h"

#include <signal.h>

/* The signal that asked to stop; 0: none. */
static volatile sig_atomic_t stop_signal;

static void on_signal(int number)
{
    stop_signal = number;
}

static int stop_requested(void *user)
{
    (void)user;
    return stop_signal != 0;
}

laya_interrupt layac_catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {0}, old;
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_RESTART;
    action.sa_handler = on_signal;
    for (size_t at = 0; at < sizeof numbers / sizeof *numbers; at++) {
        if (sigaction(numbers[at], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(numbers[at], &action, NULL);
    }
    action.sa_handler = SIG_IGN;
    sigaction(SIGXFSZ, &action, NULL);
    return (laya_interrupt){.user = NULL, .requested = stop_requested};
}

void layac_pass_signal_on(void)
{
    if (stop_signal == 0) return;
    signal(stop_signal, SIG_DFL);
    raise(stop_signal);
}
