// SPDX-License-Identifier: Apache-2.0
// Conversions from and to half and bfloat16, by the names that CUDA has for them.
#pragma once

#define KW_CONVERSIONS(H, H2, NAME, NAME2, LOW, HIGH, LOWS, HIGHS)                            \
    inline H __float2##NAME(float x) { return H(x); }                                         \
    inline H __double2##NAME(double x) { return H(x); }                                       \
    inline float __##NAME##2float(H x) { return float(x); }                                   \
    inline H2 __float2##NAME##2_rn(float x) { return H2(H(x), H(x)); }                        \
    inline H2 __floats2##NAME##2_rn(float x, float y) { return H2(H(x), H(y)); }              \
    inline H2 __float22##NAME##2_rn(float2 v) { return H2(H(v.x), H(v.y)); }                  \
    inline float2 __##NAME2##2float2(H2 v) { return {float(v.x), float(v.y)}; }               \
    inline H2 __##NAME##2##NAME##2(H x) { return H2(x, x); }                                  \
    inline H2 __halves2##NAME##2(H x, H y) { return H2(x, y); }                               \
    inline H2 make_##NAME##2(H x, H y) { return H2(x, y); }                                   \
    inline H __low2##NAME(H2 v) { return v.x; }                                               \
    inline H __high2##NAME(H2 v) { return v.y; }                                              \
    inline H2 LOW(H2 a) { return H2(a.x, a.x); }                                              \
    inline H2 HIGH(H2 a) { return H2(a.y, a.y); }                                             \
    inline H2 LOWS(H2 a, H2 b) { return H2(a.x, b.x); }                                       \
    inline H2 HIGHS(H2 a, H2 b) { return H2(a.y, b.y); }                                      \
    inline signed char __##NAME##2char_rz(H x) {                                              \
        return kw::saturated<signed char>(std::trunc(float(x)));                              \
    }                                                                                         \
    inline unsigned char __##NAME##2uchar_rz(H x) {                                           \
        return kw::saturated<unsigned char>(std::trunc(float(x)));                            \
    }                                                                                         \
    inline unsigned short __##NAME##_as_ushort(H x) { return x.bits; }                        \
    inline short __##NAME##_as_short(H x) { return short(x.bits); }                           \
    inline H __ushort_as_##NAME(unsigned short x) { return H::of_bits(x); }                   \
    inline H __short_as_##NAME(short x) { return H::of_bits(std::uint16_t(x)); }              \
    inline H2 atomicAdd(H2* at, H2 v, KW_LINE) {                                              \
        /* Each half by itself, as the device documents. */                                   \
        return H2(atomicAdd(&at->x, v.x, line), atomicAdd(&at->y, v.y, line));                \
    }
KW_CONVERSIONS(__half, __half2, half, half2, __low2half2, __high2half2, __lows2half2,
               __highs2half2)
KW_CONVERSIONS(__nv_bfloat16, __nv_bfloat162, bfloat16, bfloat162, __low2bfloat162,
               __high2bfloat162, __lows2bfloat162, __highs2bfloat162)
#undef KW_CONVERSIONS

#define KW_FROM(H, NAME, MODE, ROUND, T, WORD) \
    inline H __##WORD##2##NAME##_##MODE(T x) { return H::rounded(x, kw::Round::ROUND); }
#define KW_ROUNDED(H, NAME, MODE, ROUND)                                                      \
    KW_FROM(H, NAME, MODE, ROUND, float, float)                                               \
    KW_FROM(H, NAME, MODE, ROUND, int, int) KW_FROM(H, NAME, MODE, ROUND, unsigned, uint)     \
    KW_FROM(H, NAME, MODE, ROUND, short, short)                                               \
    KW_FROM(H, NAME, MODE, ROUND, unsigned short, ushort)                                     \
    KW_FROM(H, NAME, MODE, ROUND, long long, ll)                                              \
    KW_FROM(H, NAME, MODE, ROUND, unsigned long long, ull)                                    \
    inline int __##NAME##2int_##MODE(H x) { return __float2int_##MODE(x); }                   \
    inline unsigned __##NAME##2uint_##MODE(H x) { return __float2uint_##MODE(x); }            \
    inline short __##NAME##2short_##MODE(H x) {                                               \
        return kw::saturated<short>(__float2int_##MODE(x));                                   \
    }                                                                                         \
    inline unsigned short __##NAME##2ushort_##MODE(H x) {                                     \
        return kw::saturated<unsigned short>(__float2uint_##MODE(x));                         \
    }                                                                                         \
    inline long long __##NAME##2ll_##MODE(H x) { return __float2ll_##MODE(x); }               \
    inline unsigned long long __##NAME##2ull_##MODE(H x) { return __float2ull_##MODE(x); }
#define KW_MODES(H, NAME)                                             \
    KW_ROUNDED(H, NAME, rn, NEAREST) KW_ROUNDED(H, NAME, rz, ZERO)    \
    KW_ROUNDED(H, NAME, ru, UP) KW_ROUNDED(H, NAME, rd, DOWN)
KW_MODES(__half, half)
KW_MODES(__nv_bfloat16, bfloat16)
#undef KW_MODES
#undef KW_ROUNDED
#undef KW_FROM

#define CUDART_INF_FP16 __ushort_as_half(0x7c00)
#define CUDART_NAN_FP16 __ushort_as_half(0x7fff)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7bff)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(0x0001)
#define CUDART_ONE_FP16 __ushort_as_half(0x3c00)
#define CUDART_ZERO_FP16 __ushort_as_half(0x0000)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half(0x8000)
#define CUDART_INF_BF16 __ushort_as_bfloat16(0x7f80)
#define CUDART_NAN_BF16 __ushort_as_bfloat16(0x7fff)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(0x7f7f)
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16(0x0001)
#define CUDART_ONE_BF16 __ushort_as_bfloat16(0x3f80)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(0x0000)
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16(0x8000)
