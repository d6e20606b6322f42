/* SPDX-License-Identifier: Apache-2.0 */
/* Constants as float32 and int32 arrays. */
#include "base/dtype.h"
#include "interpreter/plan.h"

static bool is_floating(laya_mil_dtype dtype)
{
    return dtype == LAYA_MIL_FP16 || dtype == LAYA_MIL_FP32;
}

laya_status laya_plan_array(const laya_mil_type *type, laya_array *array, laya_error *error)
{
    static const laya_mil_dtype computed[] = {LAYA_MIL_BOOL,  LAYA_MIL_FP16,  LAYA_MIL_FP32,  LAYA_MIL_INT8,
                                              LAYA_MIL_INT16, LAYA_MIL_INT32, LAYA_MIL_UINT8, LAYA_MIL_UINT16};
    char text[LAYA_MIL_TYPE_TEXT];
    size_t at = 0, bytes;
    *array = (laya_array){.type = *type};
    while (at < sizeof computed / sizeof *computed && computed[at] != type->dtype) at++;
    if (type->kind != LAYA_MIL_TENSOR || at == sizeof computed / sizeof *computed) {
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "the interpreter does not compute with values of type %s",
                         laya_mil_type_text(type, text));
    }
    for (uint32_t axis = 0; axis < type->rank && axis < LAYA_MIL_MAX_RANK; axis++) {
        if (type->dims[axis] > 0) continue;
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "%s, found %s",
                         type->dims[axis] < 0 ? "the interpreter needs fixed shapes"
                                              : "the interpreter does not compute with empty tensors",
                         laya_mil_type_text(type, text));
    }
    if (!laya_mil_type_count(type, &array->count))
        return laya_fail(error, LAYA_ERROR_FORMAT, "a shape that does not fit: %s", laya_mil_type_text(type, text));
    if (array->count > SIZE_MAX || !laya_mul_size((size_t)array->count, sizeof(float), &bytes))
        return laya_fail_memory(error, 0);
    return LAYA_OK;
}

static laya_status widen_floats(laya_arena *arena, const laya_mil_constant *constant, laya_array *array,
                                laya_error *error)
{
    size_t count = (size_t)array->count;
    float *values = laya_arena_alloc(arena, count, sizeof *values);
    if (!values) return laya_fail_memory(error, count * sizeof *values);
    laya_widen(constant->bytes, constant->type.dtype == LAYA_MIL_FP16 ? LAYA_F16 : LAYA_F32, count, values);
    array->values = values;
    return LAYA_OK;
}

static laya_status widen_integers(laya_arena *arena, const laya_mil_constant *constant, laya_array *array,
                                  laya_error *error)
{
    size_t count = (size_t)array->count, read;
    char text[LAYA_MIL_TYPE_TEXT];
    int32_t *integers = laya_arena_alloc(arena, count, sizeof *integers);
    laya_arena_mark mark = laya_arena_save(arena);
    int64_t *wide = integers ? laya_arena_alloc(arena, count, sizeof *wide) : NULL;
    if (!wide) return laya_fail_memory(error, count * sizeof *wide);
    bool fits = laya_mil_constant_integers(constant, wide, count, &read);
    for (size_t at = 0; fits && at < count; at++) {
        fits = wide[at] >= INT32_MIN && wide[at] <= INT32_MAX;
        integers[at] = (int32_t)wide[at];
    }
    laya_arena_restore(arena, mark);
    if (!fits) {
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "a constant of type %s has values that do not fit into int32",
                         laya_mil_type_text(&constant->type, text));
    }
    array->integers = integers;
    return LAYA_OK;
}

laya_status laya_plan_widen(laya_arena *arena, const laya_mil_constant *constant, laya_array *array,
                            laya_error *error)
{
    const laya_mil_type *type = &constant->type;
    uint64_t size;
    char text[LAYA_MIL_TYPE_TEXT];
    if (array->values || array->integers) return LAYA_OK;
    *array = (laya_array){.type = *type};
    if (type->kind != LAYA_MIL_TENSOR) {
        return laya_fail(error, LAYA_ERROR_UNSUPPORTED, "the interpreter does not know constants of type %s",
                         laya_mil_type_text(type, text));
    }
    if (type->dtype == LAYA_MIL_STRING) return LAYA_OK;
    if (!laya_mil_type_count(type, &array->count) || !laya_mil_type_size(type, &size) || !constant->bytes ||
        constant->size != size || array->count > SIZE_MAX / sizeof(float)) {
        return laya_fail(error, LAYA_ERROR_FORMAT, "the bytes of a constant of type %s are not at hand",
                         laya_mil_type_text(type, text));
    }
    return is_floating(type->dtype) ? widen_floats(arena, constant, array, error)
                                    : widen_integers(arena, constant, array, error);
}

laya_status laya_plan_load(laya_arena *arena, const laya_mil_constant *constant, const laya_mil_constant **loaded,
                           laya_error *error)
{
    uint64_t size;
    *loaded = constant;
    if (!constant->source || constant->bytes) return LAYA_OK;
    if (!laya_mil_type_size(&constant->type, &size) || size > SIZE_MAX || constant->type.rank == 0)
        return laya_fail(error, LAYA_ERROR_FORMAT, "a constant that has a source has no rows");
    laya_mil_constant *copy = laya_arena_alloc(arena, 1, sizeof *copy);
    unsigned char *bytes = laya_arena_alloc(arena, (size_t)size, 1);
    if (!copy || !bytes) return laya_fail_memory(error, (size_t)size);
    const laya_mil_source *source = constant->source;
    LAYA_TRY(source->read(source->user, 0, (uint64_t)constant->type.dims[0], bytes, error));
    if (source->forget) source->forget(source->user);
    *copy = (laya_mil_constant){.type = constant->type, .bytes = bytes, .size = size};
    *loaded = copy;
    return LAYA_OK;
}
