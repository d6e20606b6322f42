/* SPDX-License-Identifier: Apache-2.0 */
/* Constants of the graph: views of the checkpoint's tensors, and small tables made here. */
#include "export/graph.h"

#include "base/error.h"
#include "base/half.h"
#include "model/rotary.h"

#include <string.h>

#define CHUNK 512u /* values converted at a time */

/* What a source reads: rows of a mapped tensor, each `row_size` values, in an order, as fp16 or fp32. */
typedef struct tensor_view {
    const laya_model *model;
    laya_tensor tensor;
    laya_tensor_order order;
    laya_mil_dtype dtype;
    uint64_t row_size;
} tensor_view;

static const char *tensor_name(const tensor_view *view)
{
    const laya_safetensors *file = &view->model->tensors;
    for (uint32_t at = 0; at < file->count; at++) {
        if (file->entries[at].tensor.data == view->tensor.data) return file->entries[at].name;
    }
    return "tensor";
}

static bool same_type(const tensor_view *view)
{
    return (view->tensor.dtype == LAYA_F16 && view->dtype == LAYA_MIL_FP16) ||
           (view->tensor.dtype == LAYA_F32 && view->dtype == LAYA_MIL_FP32);
}

/* Values `at` … of a tensor row, through the order of columns, as they are stored. */
static void gather(const tensor_view *view, uint64_t row, uint64_t at, size_t count, unsigned char *out)
{
    size_t size = laya_dtype_size(view->tensor.dtype);
    const unsigned char *from = view->tensor.data + row * view->row_size * size;
    const uint32_t *cols = view->order.cols;
    if (!cols) {
        memcpy(out, from + at * size, count * size);
    } else if (size == 2) {
        for (size_t i = 0; i < count; i++) memcpy(out + 2 * i, from + 2 * (size_t)cols[at + i], 2);
    } else {
        for (size_t i = 0; i < count; i++) memcpy(out + 4 * i, from + 4 * (size_t)cols[at + i], 4);
    }
}

/* Little-endian values of the constant's type. False: a value is not finite there. */
static bool narrow(const float *values, size_t count, laya_mil_dtype dtype, unsigned char *out)
{
    uint32_t finite = 1;
    if (dtype == LAYA_MIL_FP16) {
        for (size_t i = 0; i < count; i++) {
            uint16_t half = laya_float_to_half(values[i]);
            finite &= (half & 0x7c00u) != 0x7c00u;
            out[2 * i] = (unsigned char)(half & 0xff);
            out[2 * i + 1] = (unsigned char)(half >> 8);
        }
        return finite;
    }
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = laya_bits_of_float(values[i]);
        finite &= (bits & 0x7f800000u) != 0x7f800000u;
        for (size_t byte = 0; byte < 4; byte++) out[4 * i + byte] = (unsigned char)(bits >> (8 * byte));
    }
    return finite;
}

static laya_status fail_value(const tensor_view *view, uint64_t row, const float *values, size_t count, uint64_t at,
                              laya_error *error)
{
    size_t bad = 0;
    unsigned char out[4];
    while (bad + 1 < count && narrow(values + bad, 1, view->dtype, out)) bad++;
    return laya_fail(error, LAYA_ERROR_FORMAT,
                     "%s: the value %g at row %llu, column %llu is not finite as %s (at most %s); use --precision "
                     "fp32 or another checkpoint",
                     tensor_name(view), (double)values[bad], (unsigned long long)row, (unsigned long long)(at + bad),
                     laya_mil_dtype_name(view->dtype), view->dtype == LAYA_MIL_FP16 ? "65504" : "3.4e38");
}

static laya_status read_row(const tensor_view *view, uint64_t row, unsigned char *out, laya_error *error)
{
    unsigned char raw[CHUNK * 4];
    float values[CHUNK];
    uint64_t from = view->order.rows ? view->order.rows[row] : row;
    size_t size = view->dtype == LAYA_MIL_FP16 ? 2 : 4;
    float scale = view->order.scales ? view->order.scales[row] : 1.0f;
    for (uint64_t at = 0; at < view->row_size; at += CHUNK) {
        size_t count = view->row_size - at < CHUNK ? (size_t)(view->row_size - at) : CHUNK;
        gather(view, from, at, count, raw);
        laya_widen(raw, view->tensor.dtype, count, values);
        for (size_t i = 0; i < count; i++) values[i] *= scale;
        if (!narrow(values, count, view->dtype, out + at * size))
            return fail_value(view, from, values, count, at, error);
    }
    return LAYA_OK;
}

static laya_status read_rows(const void *user, uint64_t first, uint64_t count, unsigned char *out, laya_error *error)
{
    const tensor_view *view = user;
    size_t size = view->dtype == LAYA_MIL_FP16 ? 2 : 4;
    if (same_type(view) && !view->order.cols && !view->order.rows && !view->order.scales) {
        memcpy(out, view->tensor.data + first * view->row_size * size, (size_t)(count * view->row_size) * size);
        return LAYA_OK;
    }
    for (uint64_t row = first; row < first + count; row++) {
        LAYA_TRY(read_row(view, row, out + (row - first) * view->row_size * size, error));
    }
    return LAYA_OK;
}

static void forget(const void *user)
{
    const tensor_view *view = user;
    laya_file_forget(view->tensor.data,
                     (size_t)view->tensor.rows * view->tensor.cols * laya_dtype_size(view->tensor.dtype));
}

/* ------------------------------------------------------------------ constants over tensors */

static laya_mil_value *view_of(laya_graph_builder *graph, const char *label, const laya_tensor *tensor,
                               const laya_tensor_order *order, laya_mil_type type)
{
    uint64_t count = (uint64_t)tensor->rows * tensor->cols;
    tensor_view view = {
        .model = graph->model, .tensor = *tensor, .dtype = graph->dtype, .row_size = count / (uint64_t)type.dims[0]};
    if (order) view.order = *order;
    laya_mil_source source = {laya_mil_copy(&graph->mil, &view, sizeof view), read_rows, forget};
    return source.user ? laya_mil_const_source(&graph->mil, label, type, &source) : NULL;
}

laya_mil_value *laya_graph_kernel(laya_graph_builder *graph, const char *label, const laya_tensor *tensor,
                                  const laya_tensor_order *order)
{
    return view_of(graph, label, tensor, order, laya_mil_tensor4(graph->dtype, tensor->rows, tensor->cols, 1, 1));
}

bool laya_graph_kernel_view(const laya_mil_constant *constant, const laya_tensor **tensor, const uint32_t **cols)
{
    if (!constant->source || constant->source->read != read_rows) return false;
    const tensor_view *view = constant->source->user;
    *tensor = &view->tensor;
    *cols = view->order.cols;
    return true;
}

laya_mil_value *laya_graph_vector(laya_graph_builder *graph, const char *label, const laya_tensor *tensor,
                                  const laya_tensor_order *order)
{
    if (!tensor || !tensor->data) return NULL;
    return view_of(graph, label, tensor, order, laya_mil_vector(graph->dtype, tensor->cols));
}

laya_mil_value *laya_graph_column(laya_graph_builder *graph, const char *label, const laya_tensor *tensor)
{
    return view_of(graph, label, tensor, NULL, laya_mil_tensor4(graph->dtype, 1, tensor->cols, 1, 1));
}

/* ------------------------------------------------------------------ tables */

void laya_graph_fail_memory(laya_graph_builder *graph, size_t bytes)
{
    if (graph->mil.status == LAYA_OK) graph->mil.status = laya_fail_memory(graph->mil.error, bytes);
}

laya_mil_value *laya_graph_constant(laya_graph_builder *graph, const char *label, laya_mil_type type,
                                    const float *values)
{
    uint64_t count = 1;
    laya_mil_type_count(&type, &count);
    unsigned char *bytes = laya_arena_alloc(&graph->mil.program->arena, (size_t)count, 4);
    if (!bytes) {
        laya_graph_fail_memory(graph, (size_t)count * 4);
        return NULL;
    }
    narrow(values, (size_t)count, type.dtype, bytes);
    return laya_mil_const(&graph->mil, label, type, bytes);
}

/* [1, channels, 1, L] of cos or sin; the second half of the channels (lean) repeats the first. */
static laya_mil_value *rope_table(laya_graph_builder *graph, const char *label, double theta, uint32_t channels,
                                  double (*function)(double))
{
    size_t half = graph->config->head_size / 2, length = graph->length;
    float *values = laya_arena_alloc(&graph->mil.program->arena, channels * length, sizeof *values);
    if (!values) {
        laya_graph_fail_memory(graph, channels * length * sizeof *values);
        return NULL;
    }
    for (size_t c = 0; c < channels; c++) {
        for (size_t at = 0; at < length; at++) {
            double angle = laya_rotary_angle(theta, at, c % half, graph->config->head_size);
            values[c * length + at] = (float)function(angle);
        }
    }
    laya_mil_type type = laya_mil_tensor4(graph->dtype, 1, channels, 1, (int64_t)length);
    return laya_graph_constant(graph, label, type, values);
}

void laya_graph_make_rope(laya_graph_builder *graph, bool global)
{
    laya_rope_tables *rope = &graph->rope[global];
    double theta = global ? graph->config->global_rope_theta : graph->config->local_rope_theta;
    uint32_t size = graph->config->head_size, channels = graph->lean ? size : size / 2;
    rope->cosine = rope_table(graph, global ? "rope_global_cos" : "rope_local_cos", theta, channels, cos);
    rope->sine = rope_table(graph, global ? "rope_global_sin" : "rope_local_sin", theta, channels, sin);
}

void laya_graph_make_rotation(laya_graph_builder *graph)
{
    size_t size = graph->config->head_size, half = size / 2;
    float *values = laya_arena_alloc(&graph->mil.program->arena, size * size, sizeof *values);
    if (!values) {
        laya_graph_fail_memory(graph, size * size * sizeof *values);
        return;
    }
    memset(values, 0, size * size * sizeof *values);
    for (size_t c = 0; c < half; c++) {
        values[c * size + c + half] = -1.0f;
        values[(c + half) * size + c] = 1.0f;
    }
    laya_mil_type type = laya_mil_tensor4(graph->dtype, (int64_t)size, (int64_t)size, 1, 1);
    graph->rotation = laya_graph_constant(graph, "rope_rotation", type, values);
}

laya_mil_value *laya_graph_make_scale(laya_graph_builder *graph, const char *label, uint32_t head_size)
{
    float scale = (float)(1.0 / sqrt((double)head_size));
    return laya_graph_constant(graph, label, laya_mil_scalar(graph->dtype), &scale);
}

laya_mil_value *laya_graph_make_fill(laya_graph_builder *graph, const char *label, float value)
{
    size_t count = graph->config->hidden_size;
    float *values = laya_arena_alloc(&graph->mil.program->arena, count, sizeof *values);
    if (!values) {
        laya_graph_fail_memory(graph, count * sizeof *values);
        return NULL;
    }
    for (size_t at = 0; at < count; at++) values[at] = value;
    return laya_graph_constant(graph, label, laya_mil_vector(graph->dtype, (int64_t)count), values);
}
