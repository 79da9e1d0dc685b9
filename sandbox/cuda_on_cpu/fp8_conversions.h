// SPDX-License-Identifier: Apache-2.0
// Conversions between codes of fp8 and fp4 and wider floats, by the names that CUDA has for them.
#pragma once

#define KW_SAT __nv_saturation_t saturate
#define KW_TO_FP8(NAME, TWO, X, X2, VALUE, FIRST, SECOND)                                     \
    inline __nv_fp8_storage_t __nv_cvt_##NAME##_to_fp8(X v, KW_SAT,                           \
                                                       __nv_fp8_interpretation_t type) {      \
        return __nv_fp8_storage_t(kw::encode_fp8(VALUE, saturate, type));                     \
    }                                                                                         \
    inline __nv_fp8x2_storage_t __nv_cvt_##TWO##_to_fp8x2(X2 v, KW_SAT,                       \
                                                          __nv_fp8_interpretation_t type) {   \
        return __nv_fp8x2_storage_t(kw::encode_fp8(FIRST, saturate, type) |                   \
                                    kw::encode_fp8(SECOND, saturate, type) << 8);             \
    }                                                                                         \
    inline __nv_fp4_storage_t __nv_cvt_##NAME##_to_fp4(X v, __nv_fp4_interpretation_t,        \
                                                       cudaRoundMode mode) {                  \
        return __nv_fp4_storage_t(kw::E2M1::encode(VALUE, __NV_SATFINITE, kw::round_of(mode))); \
    }                                                                                         \
    inline __nv_fp4x2_storage_t __nv_cvt_##TWO##_to_fp4x2(X2 v, __nv_fp4_interpretation_t,    \
                                                          cudaRoundMode mode) {               \
        const kw::Round round = kw::round_of(mode);                                           \
        return __nv_fp4x2_storage_t(kw::E2M1::encode(FIRST, __NV_SATFINITE, round) |          \
                                    kw::E2M1::encode(SECOND, __NV_SATFINITE, round) << 4);    \
    }
KW_TO_FP8(float, float2, float, float2, v, v.x, v.y)
KW_TO_FP8(double, double2, double, double2, v, v.x, v.y)
KW_TO_FP8(halfraw, halfraw2, __half_raw, __half2_raw, float(__half(v)), float(__half2(v).x),
          float(__half2(v).y))
KW_TO_FP8(bfloat16raw, bfloat16raw2, __nv_bfloat16_raw, __nv_bfloat162_raw, float(__nv_bfloat16(v)),
          float(__nv_bfloat162(v).x), float(__nv_bfloat162(v).y))
#undef KW_TO_FP8

#define KW_TO_E8M0(NAME, TWO, X, X2, VALUE, FIRST, SECOND)                                    \
    inline __nv_fp8_storage_t __nv_cvt_##NAME##_to_e8m0(X v, KW_SAT, cudaRoundMode mode) {    \
        return __nv_fp8_storage_t(kw::E8M0::encode(VALUE, saturate, kw::round_of(mode)));     \
    }                                                                                         \
    inline __nv_fp8x2_storage_t __nv_cvt_##TWO##_to_e8m0x2(X2 v, KW_SAT, cudaRoundMode mode) { \
        const kw::Round round = kw::round_of(mode);                                           \
        return __nv_fp8x2_storage_t(kw::E8M0::encode(FIRST, saturate, round) |                \
                                    kw::E8M0::encode(SECOND, saturate, round) << 8);          \
    }
KW_TO_E8M0(float, float2, float, float2, v, v.x, v.y)
KW_TO_E8M0(double, double2, double, double2, v, v.x, v.y)
KW_TO_E8M0(bfloat16raw, bfloat162raw, __nv_bfloat16_raw, __nv_bfloat162_raw,
           float(__nv_bfloat16(v)), float(__nv_bfloat162(v).x), float(__nv_bfloat162(v).y))
#undef KW_TO_E8M0
#undef KW_SAT

inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t type) {
    return __half(kw::decode_fp8(x, type));
}
inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x,
                                              __nv_fp8_interpretation_t type) {
    return __half2(kw::decode_fp8(x, type), kw::decode_fp8(x >> 8, type));
}
inline __half_raw __nv_cvt_fp4_to_halfraw(__nv_fp4_storage_t x, __nv_fp4_interpretation_t) {
    return __half(kw::decode_at<kw::E2M1>(x, 0));
}
inline __half2_raw __nv_cvt_fp4x2_to_halfraw2(__nv_fp4x2_storage_t x, __nv_fp4_interpretation_t) {
    return __half2(kw::decode_at<kw::E2M1>(x, 0), kw::decode_at<kw::E2M1>(x, 1));
}
inline __nv_bfloat16_raw __nv_cvt_e8m0_to_bf16raw(__nv_fp8_storage_t x) {
    return __nv_bfloat16(kw::E8M0::decode(x));
}
inline __nv_bfloat162_raw __nv_cvt_e8m0x2_to_bf162raw(__nv_fp8x2_storage_t x) {
    return __nv_bfloat162(kw::decode_at<kw::E8M0>(x, 0), kw::decode_at<kw::E8M0>(x, 1));
}
