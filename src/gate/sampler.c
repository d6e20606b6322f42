/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/sampler.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/number.h"
#include "gate/statistics.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ------------------------------------------------------------------ energy counters */

/* A file with one decimal number. */
static laya_status read_number(int descriptor, const char *name, double *number, laya_error *error)
{
    char text[64];
    ssize_t size = pread(descriptor, text, sizeof text, 0);
    if (size < 0) return laya_fail_file(error, name, "cannot be read", errno);
    while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == ' ')) size--;
    if (!laya_parse_double(text, (size_t)size, number) || !isfinite(*number) || *number < 0)
        return laya_fail(error, LAYA_ERROR_IO, "%s: no number of microjoules", name);
    return LAYA_OK;
}

static laya_status open_number(const char *path, int *descriptor, double *number, laya_error *error)
{
    *descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (*descriptor < 0) return laya_fail_file(error, path, "cannot be opened", errno);
    laya_status status = read_number(*descriptor, path, number, error);
    if (status != LAYA_OK) close(*descriptor);
    return status;
}

static laya_status add_counter(laya_powercap *powercap, const char *root, unsigned package, laya_error *error)
{
    char path[1024];
    int descriptor;
    unsigned at = powercap->count;
    snprintf(path, sizeof path, "%s/intel-rapl:%u/max_energy_range_uj", root, package);
    LAYA_TRY(open_number(path, &descriptor, &powercap->ranges[at], error));
    close(descriptor);
    snprintf(path, sizeof path, "%s/intel-rapl:%u/energy_uj", root, package);
    LAYA_TRY(open_number(path, &powercap->counters[at], &powercap->last[at], error));
    powercap->count++;
    return LAYA_OK;
}

laya_status laya_powercap_open(laya_powercap *powercap, const char *root, laya_error *error)
{
    char path[1024];
    powercap->count = 0;
    for (unsigned package = 0; package < LAYA_POWERCAP_MAX; package++) {
        snprintf(path, sizeof path, "%s/intel-rapl:%u", root, package);
        if (!laya_path_is_directory(path)) break;
        laya_status status = add_counter(powercap, root, package, error);
        if (status == LAYA_OK) continue;
        laya_powercap_close(powercap);
        return status;
    }
    if (powercap->count == 0)
        return laya_fail(error, LAYA_ERROR_IO,
                         "%s: no energy counter intel-rapl:0 on this system; name a command "
                         "that prints watts instead",
                         root);
    return LAYA_OK;
}

laya_status laya_powercap_read(laya_powercap *powercap, double *joules, laya_error *error)
{
    *joules = 0;
    for (unsigned at = 0; at < powercap->count; at++) {
        double now = 0;
        LAYA_TRY(read_number(powercap->counters[at], "energy_uj", &now, error));
        double used = now - powercap->last[at];
        if (used < 0) used += powercap->ranges[at];
        powercap->last[at] = now;
        *joules += used * 1e-6;
    }
    return LAYA_OK;
}

void laya_powercap_close(laya_powercap *powercap)
{
    for (unsigned at = 0; at < powercap->count; at++) close(powercap->counters[at]);
    powercap->count = 0;
}

/* ------------------------------------------------------------------ the sampler */

#define LINE_SIZE 128u
#define READ_SIZE 512u
#define PIPE_READS 128u   /* of what a full pipe holds, 64 KiB */
#define WAIT_SECONDS 0.05 /* until the thread looks whether to stop */

struct laya_sampler {
    laya_allocator allocator;
    laya_power_sample *samples;
    size_t count, capacity;
    atomic_size_t seen; /* count, for other threads */
    double interval;
    laya_powercap powercap;
    pid_t child; /* -1: none */
    int input;   /* what the command prints; -1: none */
    char line[LINE_SIZE];
    size_t line_size;
    pthread_t thread;
    bool running;
    atomic_bool stop;
    laya_status status; /* of the thread */
    laya_error error;
};

static laya_status add_sample(laya_sampler *sampler, double watts)
{
    if (sampler->count == sampler->capacity) {
        size_t capacity = sampler->capacity ? 2 * sampler->capacity : 256;
        laya_power_sample *samples = laya_alloc(&sampler->allocator, capacity, sizeof *samples);
        if (!samples) return laya_fail_memory(&sampler->error, capacity * sizeof *samples);
        if (sampler->count) memcpy(samples, sampler->samples, sampler->count * sizeof *samples);
        laya_release(&sampler->allocator, sampler->samples);
        sampler->samples = samples;
        sampler->capacity = capacity;
    }
    sampler->samples[sampler->count++] = (laya_power_sample){laya_seconds(), watts};
    atomic_store(&sampler->seen, sampler->count);
    return LAYA_OK;
}

static laya_status add_line(laya_sampler *sampler)
{
    const char *text = sampler->line;
    size_t size = sampler->line_size;
    double watts;
    sampler->line_size = 0;
    while (size > 0 && (*text == ' ' || *text == '\t')) text++, size--;
    while (size > 0 && (text[size - 1] == ' ' || text[size - 1] == '\t' || text[size - 1] == '\r')) size--;
    if (size == 0) return LAYA_OK;
    if (size == LINE_SIZE || !laya_parse_double(text, size, &watts)) watts = NAN;
    return add_sample(sampler, watts);
}

/* Bytes of the command; false at the end of its output. */
static bool take_bytes(laya_sampler *sampler)
{
    char bytes[READ_SIZE];
    ssize_t size = read(sampler->input, bytes, sizeof bytes);
    if (size < 0) return errno == EINTR;
    for (ssize_t at = 0; at < size && sampler->status == LAYA_OK; at++) {
        if (bytes[at] == '\n')
            sampler->status = add_line(sampler);
        else if (sampler->line_size < LINE_SIZE)
            sampler->line[sampler->line_size++] = bytes[at];
    }
    return size > 0;
}

/* Until asked to stop; what the pipe holds by then is read too. */
static void *sample_command(void *argument)
{
    laya_sampler *sampler = argument;
    struct pollfd input = {.fd = sampler->input, .events = POLLIN};
    unsigned left = PIPE_READS;
    while (sampler->status == LAYA_OK && left > 0) {
        bool stop = atomic_load(&sampler->stop);
        int ready = poll(&input, 1, stop ? 0 : (int)(WAIT_SECONDS * 1000));
        if (ready > 0 && !take_bytes(sampler)) break;
        if (stop && ready <= 0) break;
        if (stop) left--;
    }
    return NULL;
}

static void *sample_counters(void *argument)
{
    laya_sampler *sampler = argument;
    double last = laya_seconds();
    while (!atomic_load(&sampler->stop) && sampler->status == LAYA_OK) {
        double joules, now = laya_seconds(), wait = last + sampler->interval - now;
        if (wait > 0) {
            poll(NULL, 0, (int)((wait < WAIT_SECONDS ? wait : WAIT_SECONDS) * 1000) + 1);
            continue;
        }
        sampler->status = laya_powercap_read(&sampler->powercap, &joules, &sampler->error);
        if (sampler->status == LAYA_OK) sampler->status = add_sample(sampler, joules / (now - last));
        last = now;
    }
    return NULL;
}

/* ------------------------------------------------------------------ starting and ending */

/* The command leads a process group of its own, so that all of it can be ended. */
static int spawn(const char *command, int output, pid_t *child)
{
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    char shell[] = "sh", option[] = "-c";
    char *arguments[] = {shell, option, (char *)(uintptr_t)command, NULL};
    int code = posix_spawnattr_init(&attributes);
    if (code != 0) return code;
    code = posix_spawn_file_actions_init(&actions);
    if (code == 0) {
        code = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
        if (code == 0) code = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
        if (code == 0) code = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        if (code == 0) code = posix_spawn(child, "/bin/sh", &actions, &attributes, arguments, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    posix_spawnattr_destroy(&attributes);
    return code;
}

static laya_status start_command(laya_sampler *sampler, const char *command, laya_error *error)
{
    int ends[2];
    pid_t child;
    if (pipe(ends) != 0) return laya_fail(error, LAYA_ERROR_SYSTEM, "pipe: %s", strerror(errno));
    sampler->input = ends[0];
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    int code = spawn(command, ends[1], &child);
    close(ends[1]);
    if (code != 0)
        return laya_fail(error, LAYA_ERROR_SYSTEM, "the sampler '%s' cannot be started: %s", command, strerror(code));
    sampler->child = child;
    return LAYA_OK;
}

static laya_status start(laya_sampler *sampler, const char *command, laya_error *error)
{
    bool counters = strcmp(command, LAYA_POWERCAP) == 0;
    if (counters)
        LAYA_TRY(laya_powercap_open(&sampler->powercap, LAYA_POWERCAP_ROOT, error));
    else
        LAYA_TRY(start_command(sampler, command, error));
    int code = pthread_create(&sampler->thread, NULL, counters ? sample_counters : sample_command, sampler);
    if (code != 0) return laya_fail(error, LAYA_ERROR_SYSTEM, "a thread cannot be started: %s", strerror(code));
    sampler->running = true;
    return LAYA_OK;
}

laya_status laya_sampler_open(const char *command, double interval, const laya_allocator *allocator,
                              laya_sampler **sampler, laya_error *error)
{
    laya_allocator hooks = laya_allocator_or_default(allocator);
    *sampler = NULL;
    laya_sampler *opened = laya_alloc_zero(&hooks, 1, sizeof *opened);
    if (!opened) return laya_fail_memory(error, sizeof *opened);
    opened->allocator = hooks;
    opened->interval = interval;
    opened->child = -1;
    opened->input = -1;
    atomic_init(&opened->stop, false);
    atomic_init(&opened->seen, 0);
    laya_status status = start(opened, command, error);
    if (status != LAYA_OK) {
        laya_sampler_close(opened);
        return status;
    }
    *sampler = opened;
    return LAYA_OK;
}

/* Ask it to end, wait a second, then end it. */
static void end_command(pid_t child)
{
    const int wait_ms = 10, attempts = 100;
    kill(-child, SIGTERM);
    for (int at = 0; at < attempts; at++) {
        if (waitpid(child, NULL, WNOHANG) == child) return;
        poll(NULL, 0, wait_ms);
    }
    kill(-child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) continue;
}

laya_status laya_sampler_stop(laya_sampler *sampler, laya_error *error)
{
    if (sampler->child > 0) end_command(sampler->child);
    sampler->child = -1;
    atomic_store(&sampler->stop, true);
    if (sampler->running) pthread_join(sampler->thread, NULL);
    sampler->running = false;
    if (sampler->input >= 0) close(sampler->input);
    sampler->input = -1;
    laya_powercap_close(&sampler->powercap);
    if (sampler->status != LAYA_OK) laya_set_error(error, sampler->status, "%s", sampler->error.message);
    return sampler->status;
}

size_t laya_sampler_count(const laya_sampler *sampler)
{
    return atomic_load(&sampler->seen);
}

const laya_power_sample *laya_sampler_samples(const laya_sampler *sampler, size_t *count)
{
    *count = sampler->count;
    return sampler->samples;
}

void laya_sampler_close(laya_sampler *sampler)
{
    if (!sampler) return;
    laya_error error;
    (void)laya_sampler_stop(sampler, &error);
    laya_release(&sampler->allocator, sampler->samples);
    laya_release(&sampler->allocator, sampler);
}
