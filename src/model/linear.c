/* SPDX-License-Identifier: Apache-2.0 */
/* The blocked matrix product, LayerNorm, and the sum into the residual stream. */
#include "model/compute.h"

#include <math.h>
#include <string.h>

#define LINE 16u       /* floats of a cache line, and the widest tile */
#define PANELS 4u      /* panels that a task packs together */
#define ROW_BLOCK 96u  /* rows of A that stay in the second-level cache; a multiple of every mr */
#define TASK_ROWS 480u /* rows of A per task; each task packs its weights again */
#define NORM_ROWS 8u   /* rows of a norm task */
#define LANES 8u       /* partial sums of a norm */

size_t laya_row_stride(size_t cols)
{
    size_t lines = (cols + LINE - 1) / LINE;
    return (lines | 1) * LINE;
}

size_t laya_product_scratch(void)
{
    return (size_t)PANELS * LAYA_KERNEL_KC * LAYA_KERNEL_MAX_NR;
}

float *laya_worker_scratch(const laya_compute *compute, unsigned worker)
{
    return compute->scratch + worker * compute->scratch_stride;
}

const float *laya_load_vector(const laya_tensor *tensor, float *out)
{
    laya_tensor_widen(tensor, 0, tensor->cols, out);
    return out;
}

/* ------------------------------------------------------------------ product */

typedef struct product {
    const laya_compute *compute;
    const float *a;
    size_t a_stride;
    size_t m;
    const laya_tensor *w;
    const float *bias;
    bool relu;
    float *c;
    size_t c_stride;
    size_t panels;  /* per task */
    size_t columns; /* of tasks over N */
} product;

static void finish_rows(const product *p, size_t row0, size_t row1, size_t col0, size_t col1)
{
    for (size_t i = row0; i < row1; i++) {
        float *c = p->c + i * p->c_stride;
        if (p->bias) {
            for (size_t j = col0; j < col1; j++) c[j] += p->bias[j];
        }
        if (p->relu) {
            for (size_t j = col0; j < col1; j++) c[j] = c[j] < 0 ? 0 : c[j];
        }
    }
}

/*
 * One task: some panels of columns, up to TASK_ROWS rows, all of K. The order of a sum is that of the file comment of
 * kernels.h, whatever the task sizes: K in blocks of KC from the start, each block in order.
 */
static void product_task(void *argument, size_t index, unsigned worker)
{
    const product *p = argument;
    const laya_kernels *kernels = p->compute->kernels;
    float *packed = laya_worker_scratch(p->compute, worker);
    size_t mr = kernels->mr, nr = kernels->nr, n = p->w->rows, k_size = p->w->cols;
    size_t col0 = index % p->columns * p->panels * nr;
    size_t col1 = n - col0 < p->panels * nr ? n : col0 + p->panels * nr;
    size_t first = index / p->columns * TASK_ROWS;
    size_t last = p->m - first < TASK_ROWS ? p->m : first + TASK_ROWS;
    size_t value_size = laya_dtype_size(p->w->dtype);
    for (size_t k = 0; k < k_size; k += LAYA_KERNEL_KC) {
        size_t depth = k_size - k < LAYA_KERNEL_KC ? k_size - k : LAYA_KERNEL_KC;
        for (size_t col = col0; col < col1; col += nr) {
            size_t count = n - col < nr ? n - col : nr;
            kernels->pack_rows(p->w->data + (col * k_size + k) * value_size, p->w->dtype, k_size, count, depth,
                               packed + (col - col0) * LAYA_KERNEL_KC);
        }
        for (size_t block = first; block < last; block += ROW_BLOCK) {
            size_t end = last - block < ROW_BLOCK ? last : block + ROW_BLOCK;
            for (size_t col = col0; col < col1; col += nr) {
                const float *panel = packed + (col - col0) * LAYA_KERNEL_KC;
                for (size_t row = block; row < end; row += mr) {
                    kernels->tile(end - row < mr ? end - row : mr, depth, p->a + row * p->a_stride + k, p->a_stride,
                                  panel, p->c + row * p->c_stride + col, p->c_stride, k > 0);
                }
            }
            if (k + depth == k_size) finish_rows(p, block, end, col0, col1);
        }
    }
}

void laya_probe_rows(const laya_compute *compute, const laya_tensor *w, const float *a, size_t a_stride, size_t m)
{
    if (compute->probe) compute->probe->see(compute->probe->user, w, a, a_stride, m);
}

void laya_product(const laya_compute *compute, const float *a, size_t a_stride, size_t m, const laya_tensor *w,
                  const float *bias, bool relu, float *c, size_t c_stride)
{
    laya_probe_rows(compute, w, a, a_stride, m);
    product p = {.compute = compute,
                 .a = a,
                 .a_stride = a_stride,
                 .m = m,
                 .w = w,
                 .bias = bias,
                 .relu = relu,
                 .c_stride = c_stride};
    p.c = c; /* outside the initialiser: clang-tidy would take c for read-only */
    size_t panels = (w->rows + compute->kernels->nr - 1) / compute->kernels->nr;
    size_t threads = laya_pool_threads(compute->pool);
    /* Several tasks per thread, so that one slow core does not hold up the others. */
    p.panels = panels / (4 * threads);
    if (p.panels < 1) p.panels = 1;
    if (p.panels > PANELS) p.panels = PANELS;
    p.columns = (panels + p.panels - 1) / p.panels;
    size_t blocks = (m + TASK_ROWS - 1) / TASK_ROWS;
    laya_pool_run(compute->pool, p.columns * blocks, product_task, &p);
}

/* ------------------------------------------------------------------ norms */

/* The sum of f(x) over a row in LANES partial sums; power 1 sums x - mean, power 2 its square. */
static double sum_centred(const float *x, size_t d, double mean, bool square)
{
    double sums[LANES] = {0};
    size_t i = 0;
    if (square) {
        for (; i + LANES <= d; i += LANES) {
            for (size_t lane = 0; lane < LANES; lane++) {
                double centred = (double)x[i + lane] - mean;
                sums[lane] += centred * centred;
            }
        }
        for (; i < d; i++) sums[i % LANES] += ((double)x[i] - mean) * ((double)x[i] - mean);
    } else {
        for (; i + LANES <= d; i += LANES) {
            for (size_t lane = 0; lane < LANES; lane++) sums[lane] += (double)x[i + lane];
        }
        for (; i < d; i++) sums[i % LANES] += (double)x[i];
    }
    double sum = 0;
    for (size_t lane = 0; lane < LANES; lane++) sum += sums[lane];
    return sum;
}

void laya_norm_row(const float *in, size_t d, const float *gain, const float *shift, double eps, float *out)
{
    double mean = sum_centred(in, d, 0, false) / (double)d;
    double variance = sum_centred(in, d, mean, true) / (double)d;
    double factor = 1 / sqrt(variance + eps);
    for (size_t i = 0; i < d; i++) {
        float normal = (float)(((double)in[i] - mean) * factor);
        out[i] = shift ? normal * gain[i] + shift[i] : normal * gain[i];
    }
}

typedef struct norm_job {
    const laya_compute *compute;
    bool add;
    const float *gain;
    const float *shift;
    double eps;
} norm_job;

static void norm_task(void *argument, size_t index, unsigned worker)
{
    (void)worker;
    const norm_job *job = argument;
    const laya_compute *compute = job->compute;
    size_t d = compute->config->hidden_size;
    size_t end = (index + 1) * NORM_ROWS < compute->tokens ? (index + 1) * NORM_ROWS : compute->tokens;
    for (size_t t = index * NORM_ROWS; t < end; t++) {
        float *h = compute->h + t * compute->stride;
        if (job->add) {
            const float *y = compute->y + t * compute->stride;
            for (size_t i = 0; i < d; i++) h[i] += y[i];
        }
        if (job->gain) laya_norm_row(h, d, job->gain, job->shift, job->eps, compute->x + t * compute->stride);
    }
}

void laya_add_and_norm(const laya_compute *compute, bool add, const float *gain, const float *shift, double eps)
{
    norm_job job = {compute, add, gain, shift, eps};
    laya_pool_run(compute->pool, (compute->tokens + NORM_ROWS - 1) / NORM_ROWS, norm_task, &job);
}
