/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IEEE binary16 and bfloat16 to float32, exactly (branch-free, so that loops over it vectorise), and float32 to
 * binary16.
 */
#ifndef LAYA_BASE_HALF_H
#define LAYA_BASE_HALF_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline float laya_float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t laya_bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float laya_half_to_float(uint16_t half)
{
    uint32_t magnitude = half & 0x7fffu;
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t normal = (magnitude << 13) + (magnitude >= 0x7c00u ? (224u << 23) : (112u << 23));
    uint32_t subnormal = laya_bits_of_float((float)(int32_t)magnitude * 0x1p-24f);
    return laya_float_of_bits(sign | (magnitude < 0x0400u ? subnormal : normal));
}

static inline float laya_bfloat_to_float(uint16_t bfloat)
{
    return laya_float_of_bits((uint32_t)bfloat << 16);
}

/* The nearest binary16, ties to even; beyond 65504 infinity. NaN stays NaN. */
static inline uint16_t laya_float_to_half(float value)
{
    uint32_t bits = laya_bits_of_float(value);
    uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu, half;
    if (magnitude > 0x7f800000u)
        half = 0x7e00u;
    else if (magnitude >= 0x47800000u)
        half = 0x7c00u;
    else if (magnitude < 0x38800000u) /* 0.5 has the unit in the last place that subnormal halves have */
        half = laya_bits_of_float(laya_float_of_bits(magnitude) + 0.5f) - 0x3f000000u;
    else
        half = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    return (uint16_t)(sign | half);
}

/* The nearest binary16 of a float64, ties to even, rounded once: what float32 cannot hold leaves a trace in its last bit,
   which keeps the second step from seeing a tie that is none. */
static inline uint16_t laya_double_to_half(double value)
{
    float near = (float)value;
    uint32_t bits = laya_bits_of_float(near);
    double back = (double)near;
    bool away = value < 0 ? back < value : back > value;
    if (back == value || value != value || (bits & 0x7fffffffu) == 0x7f800000u) return laya_float_to_half(near);
    return laya_float_to_half(laya_float_of_bits((away ? bits - 1 : bits) | 1u));
}

/* The float32 value of the nearest binary16, without branches, so that loops over it become vector code. */
static inline float laya_round_to_half(float value)
{
    uint32_t bits = laya_bits_of_float(value);
    uint32_t sign = bits & 0x80000000u;
    int32_t magnitude = (int32_t)(bits & 0x7fffffffu);
    int32_t normal = (int32_t)(((uint32_t)magnitude + 0xfffu + ((uint32_t)magnitude >> 13 & 1u)) & ~0x1fffu);
    /* 0.5 has the unit in the last place that subnormal halves have */
    int32_t subnormal = (int32_t)laya_bits_of_float((laya_float_of_bits((uint32_t)magnitude) + 0.5f) - 0.5f);
    int32_t rounded = magnitude < 0x38800000 ? subnormal : normal;
    rounded = magnitude >= 0x477ff000 ? 0x7f800000 : rounded;
    rounded = magnitude > 0x7f800000 ? 0x7fc00000 : rounded;
    return laya_float_of_bits(sign | (uint32_t)rounded);
}

#endif
