/* SPDX-License-Identifier: Apache-2.0 */
#include "interpreter/product.h"

#include <string.h>

#define ROW_BLOCK 96u  /* rows of a task, at most; a multiple of every mr */
#define COL_BLOCK 128u /* columns of a task, at most; a multiple of every nr */
#define MIN_ROWS 12u   /* that a task is cut down to; a multiple of every mr */
#define TASKS 4u       /* per thread, so that one slow core does not hold up the others */
/* Multiplications below which waking the other threads costs more than they save. */
#define PARALLEL_WORK (1u << 20)

/* The parts of a worker's scratch. */
#define LEFT_SIZE ((size_t)ROW_BLOCK * LAYA_KERNEL_KC)
#define RIGHT_SIZE ((size_t)COL_BLOCK * LAYA_KERNEL_KC)
#define TAIL_SIZE ((size_t)ROW_BLOCK * LAYA_KERNEL_MAX_NR)

size_t laya_gemm_scratch(void)
{
    return LEFT_SIZE + RIGHT_SIZE + TAIL_SIZE;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t round_up(size_t value, size_t unit)
{
    return (value + unit - 1) / unit * unit;
}

size_t laya_gemm_batches(const laya_gemm *gemm)
{
    size_t count = 1;
    for (uint32_t axis = 0; axis < gemm->batch_rank; axis++) count *= gemm->batch_dims[axis];
    return count;
}

size_t laya_gemm_offset(const laya_gemm *gemm, size_t batch, const size_t *strides)
{
    size_t offset = 0;
    for (uint32_t axis = gemm->batch_rank; axis-- > 0;) {
        offset += batch % gemm->batch_dims[axis] * strides[axis];
        batch /= gemm->batch_dims[axis];
    }
    return offset;
}

laya_gemm_matrix laya_gemm_operand(const laya_operand *operand)
{
    laya_gemm_matrix matrix = {.values = operand->array->values};
    if (!matrix.values && operand->constant) {
        matrix.bytes = operand->constant->bytes;
        matrix.dtype = operand->constant->type.dtype == LAYA_MIL_FP16 ? LAYA_F16 : LAYA_F32;
    }
    return matrix;
}

bool laya_product_is_strict(const laya_run *run, const laya_step *step)
{
    return run->strict && step->outputs[0]->type.dtype == LAYA_MIL_FP16;
}

/* ------------------------------------------------------------------ one block of one product */

/* A rectangle of the output, at most ROW_BLOCK x COL_BLOCK, and what it is made of. */
typedef struct rectangle {
    const laya_kernels *kernels;
    const laya_gemm *gemm;
    size_t batch;
    size_t row0, row1, col0, col1;
    float *left, *right, *tail; /* scratch */
} rectangle;

/* `count` values in a row from element `at` of a matrix, as floats. */
static void read_values(const laya_kernels *kernels, const laya_gemm_matrix *matrix, size_t at, size_t count,
                        float *out)
{
    if (matrix->values)
        memcpy(out, matrix->values + at, count * sizeof *out);
    else
        kernels->widen(matrix->bytes + at * laya_dtype_size(matrix->dtype), matrix->dtype, count, out);
}

/* Rows of the left matrix at k .. k + depth - 1, each contiguous: in place, or copied. */
static const float *left_rows(const rectangle *r, size_t k, size_t depth, size_t *stride)
{
    const laya_gemm_matrix *left = &r->gemm->left;
    size_t at = laya_gemm_offset(r->gemm, r->batch, left->batch_strides) + r->row0 * left->row_stride +
                k * left->col_stride;
    if (left->values && left->col_stride == 1) {
        *stride = left->row_stride;
        return left->values + at;
    }
    *stride = LAYA_KERNEL_KC;
    size_t rows = r->row1 - r->row0;
    if (left->col_stride == 1) {
        for (size_t i = 0; i < rows; i++)
            read_values(r->kernels, left, at + i * left->row_stride, depth, r->left + i * LAYA_KERNEL_KC);
        return r->left;
    }
    float column[ROW_BLOCK];
    for (size_t j = 0; j < depth; j++) {
        read_values(r->kernels, left, at + j * left->col_stride, rows, column);
        for (size_t i = 0; i < rows; i++) r->left[i * LAYA_KERNEL_KC + j] = column[i];
    }
    return r->left;
}

/* A panel of the right matrix as it is stored: columns next to each other. */
static void pack_stored_columns(const laya_kernels *kernels, const laya_gemm_matrix *right, size_t at,
                                const laya_gemm_block *block, float *panel)
{
    for (size_t k = 0; k < block->depth; k++) {
        float *row = panel + k * block->nr;
        read_values(kernels, right, at + k * right->row_stride, block->cols, row);
        for (size_t j = block->cols; j < block->nr; j++) row[j] = 0;
    }
}

static void pack_panel(const rectangle *r, const laya_gemm_block *block, float *panel)
{
    const laya_kernels *kernels = r->kernels;
    const laya_gemm_matrix *right = &r->gemm->right;
    size_t batch = laya_gemm_offset(r->gemm, r->batch, right->batch_strides);
    size_t at = batch + block->k0 * right->row_stride + block->col * right->col_stride;
    if (r->gemm->pack) {
        r->gemm->pack(r->gemm->pack_user, right->values + batch, block, panel);
    } else if (right->values && right->col_stride == 1) {
        kernels->pack_cols(right->values + at, right->row_stride, block->depth, block->cols, panel);
    } else if (right->values) {
        kernels->pack_floats(right->values + at, right->col_stride, block->cols, block->depth, panel);
    } else if (right->col_stride == 1) {
        pack_stored_columns(kernels, right, at, block, panel);
    } else {
        kernels->pack_rows(right->bytes + at * laya_dtype_size(right->dtype), right->dtype, right->col_stride,
                           block->cols, block->depth, panel);
    }
}

/* The tile of laya_kernels with sums in fp16, from the sum so far. */
static void strict_tile(size_t nr, size_t rows, size_t depth, const float *a, size_t a_stride, const float *panel,
                        float *c, size_t c_stride, bool add)
{
    for (size_t i = 0; i < rows; i++) {
        float *sums = c + i * c_stride;
        for (size_t j = 0; j < nr && !add; j++) sums[j] = 0;
        for (size_t k = 0; k < depth; k++) {
            float value = a[i * a_stride + k];
            for (size_t j = 0; j < nr; j++) sums[j] += value * panel[k * nr + j];
            laya_round_fp16_array(sums, nr);
        }
    }
}

/* One panel of columns over all rows of the rectangle. */
static void multiply_panel(const rectangle *r, const float *left, size_t stride, size_t depth, const float *panel,
                           float *c, size_t c_stride, bool add)
{
    size_t mr = r->kernels->mr, rows = r->row1 - r->row0;
    for (size_t i = 0; i < rows; i += mr) {
        size_t count = smaller(mr, rows - i);
        const float *a = left + i * stride;
        if (r->gemm->strict)
            strict_tile(r->kernels->nr, count, depth, a, stride, panel, c + i * c_stride, c_stride, add);
        else
            r->kernels->tile(count, depth, a, stride, panel, c + i * c_stride, c_stride, add);
    }
}

/* Columns that do not fill a tile were summed apart; then the bias is added. */
static void finish(const rectangle *r, float *out)
{
    const laya_gemm *gemm = r->gemm;
    size_t nr = r->kernels->nr, cols = r->col1 - r->col0, rest = cols % nr;
    const float *bias = gemm->bias.values;
    if (bias) {
        bias += laya_gemm_offset(gemm, r->batch, gemm->bias.batch_strides) + r->row0 * gemm->bias.row_stride +
                r->col0 * gemm->bias.col_stride;
    }
    for (size_t i = 0; i < r->row1 - r->row0; i++) {
        float *row = out + i * gemm->out_stride;
        if (rest) memcpy(row + cols - rest, r->tail + i * nr, rest * sizeof *row);
        if (!bias) continue;
        const float *added = bias + i * gemm->bias.row_stride;
        for (size_t j = 0; j < cols; j++) row[j] += added[j * gemm->bias.col_stride];
    }
}

static void multiply_rectangle(const rectangle *r)
{
    const laya_gemm *gemm = r->gemm;
    size_t nr = r->kernels->nr;
    float *out = gemm->out + laya_gemm_offset(gemm, r->batch, gemm->out_batch_strides) + r->row0 * gemm->out_stride +
                 r->col0;
    for (size_t k = 0; k < gemm->depth; k += LAYA_KERNEL_KC) {
        size_t depth = smaller(LAYA_KERNEL_KC, gemm->depth - k), stride;
        const float *left = left_rows(r, k, depth, &stride);
        for (size_t col = r->col0; col < r->col1; col += nr) {
            const laya_gemm_block block = {k, depth, col, smaller(nr, r->col1 - col), nr};
            float *panel = r->right + (col - r->col0) * LAYA_KERNEL_KC;
            pack_panel(r, &block, panel);
            bool whole = block.cols == nr;
            multiply_panel(r, left, stride, depth, panel, whole ? out + (col - r->col0) : r->tail,
                           whole ? gemm->out_stride : nr, k > 0);
        }
    }
    finish(r, out);
}

/* ------------------------------------------------------------------ the whole stack */

typedef struct job {
    const laya_run *run;
    const laya_gemm *gemm;
    size_t row_block, col_block;
    size_t row_tasks, col_tasks; /* of one product */
} job;

static rectangle make_rectangle(const laya_kernels *kernels, const laya_gemm *gemm, float *scratch)
{
    rectangle r = {.kernels = kernels, .gemm = gemm};
    r.left = scratch;
    r.right = scratch + LEFT_SIZE;
    r.tail = r.right + RIGHT_SIZE;
    return r;
}

static void multiply_task(void *argument, size_t index, unsigned worker)
{
    const job *j = argument;
    const laya_gemm *gemm = j->gemm;
    rectangle r = make_rectangle(j->run->kernels, gemm, j->run->scratch + worker * j->run->scratch_size);
    r.row0 = index % j->row_tasks * j->row_block;
    index /= j->row_tasks;
    r.col0 = index % j->col_tasks * j->col_block;
    r.batch = index / j->col_tasks;
    r.row1 = smaller(r.row0 + j->row_block, gemm->rows);
    r.col1 = smaller(r.col0 + j->col_block, gemm->cols);
    multiply_rectangle(&r);
}

static size_t count_tasks(job *j, size_t batches)
{
    j->row_tasks = (j->gemm->rows + j->row_block - 1) / j->row_block;
    j->col_tasks = (j->gemm->cols + j->col_block - 1) / j->col_block;
    return batches * j->row_tasks * j->col_tasks;
}

/* Cut the longer side of a task in halves until there are enough of them. */
static size_t cut_tasks(job *j, size_t batches, size_t wanted)
{
    size_t tasks = count_tasks(j, batches), nr = j->run->kernels->nr;
    j->row_block = round_up(smaller(j->row_block, j->gemm->rows), MIN_ROWS);
    j->col_block = round_up(smaller(j->col_block, j->gemm->cols), nr);
    while (tasks < wanted && (j->row_block > MIN_ROWS || j->col_block > nr)) {
        if (j->row_block > MIN_ROWS && (j->gemm->rows >= j->gemm->cols || j->col_block == nr))
            j->row_block = round_up(j->row_block / 2, MIN_ROWS);
        else
            j->col_block = round_up(j->col_block / 2, nr);
        tasks = count_tasks(j, batches);
    }
    return tasks;
}

void laya_gemm_run(const laya_run *run, const laya_gemm *gemm)
{
    job j = {.run = run, .gemm = gemm, .row_block = ROW_BLOCK, .col_block = COL_BLOCK};
    size_t batches = laya_gemm_batches(gemm), tasks = count_tasks(&j, batches);
    unsigned threads = laya_pool_threads(run->pool);
    double work = (double)batches * (double)gemm->rows * (double)gemm->depth * (double)gemm->cols;
    if (threads == 1 || work < PARALLEL_WORK) {
        for (size_t index = 0; index < tasks; index++) multiply_task(&j, index, 0);
        return;
    }
    tasks = cut_tasks(&j, batches, (size_t)TASKS * threads);
    laya_pool_run(run->pool, tasks, multiply_task, &j);
}

void laya_gemm_one(const laya_kernels *kernels, const laya_gemm *gemm, size_t batch, float *scratch)
{
    rectangle r = make_rectangle(kernels, gemm, scratch);
    r.batch = batch;
    for (r.col0 = 0; r.col0 < gemm->cols; r.col0 = r.col1) {
        r.col1 = smaller(r.col0 + COL_BLOCK, gemm->cols);
        for (r.row0 = 0; r.row0 < gemm->rows; r.row0 = r.row1) {
            r.row1 = smaller(r.row0 + ROW_BLOCK, gemm->rows);
            multiply_rectangle(&r);
        }
    }
}
