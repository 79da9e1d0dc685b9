// SPDX-License-Identifier: Apache-2.0
// half and bfloat16: 16 bits in memory, arithmetic in float, rounded to nearest even.
#pragma once

namespace kw {

#ifdef __F16C__
typedef float Floats __attribute__((vector_size(16)));
typedef short Shorts __attribute__((vector_size(16)));
#endif

struct HalfFormat {
    static float widen(std::uint16_t bits) {
#ifdef __F16C__
        return __builtin_ia32_vcvtph2ps(Shorts{short(bits)})[0];
#else
        const unsigned sign = unsigned(bits & 0x8000) << 16, exponent = bits >> 10 & 31;
        const unsigned fraction = bits & 0x3ff;
        if (exponent == 31) return bits_as<float>(sign | 0x7f800000u | fraction << 13);
        if (exponent) return bits_as<float>(sign | (exponent + 112) << 23 | fraction << 13);
        const float small = float(fraction) * 0x1p-24f;
        return sign ? -small : small;
#endif
    }
    static std::uint16_t narrow(float value) {
#ifdef __F16C__
        return std::uint16_t(__builtin_ia32_vcvtps2ph(Floats{value}, 0)[0]);
#else
        const unsigned raw = bits_as<unsigned>(value), sign = raw >> 16 & 0x8000;
        const float size = std::fabs(value);
        if (size != size) return std::uint16_t(sign | 0x7e00);
        if (size >= 65520.0f) return std::uint16_t(sign | 0x7c00);
        if (size < 0x1p-14f) return std::uint16_t(sign | unsigned(std::nearbyint(size * 0x1p24f)));
        unsigned bits = (raw & 0x7fffffff) - (112u << 23);
        bits += 0xfff + (bits >> 13 & 1);
        return std::uint16_t(sign | bits >> 13);
#endif
    }
};

struct BrainFormat {
    static float widen(std::uint16_t bits) { return bits_as<float>(unsigned(bits) << 16); }
    static std::uint16_t narrow(float value) {
        unsigned raw = bits_as<unsigned>(value);
        if (value != value) return std::uint16_t(raw >> 16 | 0x40);
        raw += 0x7fff + (raw >> 16 & 1);
        return std::uint16_t(raw >> 16);
    }
};

// Functions stand inside as friends, so that a call with one such argument converts the others.
template <typename F> struct Float16 {
    std::uint16_t bits;

    Float16() = default;
    template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
    Float16(T value) : bits(F::narrow(float(value))) {}
    operator float() const { return F::widen(bits); }
    static Float16 of_bits(std::uint16_t bits) {
        Float16 out;
        out.bits = bits;
        return out;
    }
    using H = Float16;

    Float16& operator+=(H b) { return *this = *this + b; }
    Float16& operator-=(H b) { return *this = *this - b; }
    Float16& operator*=(H b) { return *this = *this * b; }
    Float16& operator/=(H b) { return *this = *this / b; }
    friend H operator+(H a, H b) { return H(float(a) + float(b)); }
    friend H operator-(H a, H b) { return H(float(a) - float(b)); }
    friend H operator*(H a, H b) { return H(float(a) * float(b)); }
    friend H operator/(H a, H b) { return H(float(a) / float(b)); }
    friend H operator-(H a) { return of_bits(a.bits ^ 0x8000); }
    friend H operator+(H a) { return a; }
    friend bool operator==(H a, H b) { return float(a) == float(b); }
    friend bool operator!=(H a, H b) { return float(a) != float(b); }
    friend bool operator<(H a, H b) { return float(a) < float(b); }
    friend bool operator<=(H a, H b) { return float(a) <= float(b); }
    friend bool operator>(H a, H b) { return float(a) > float(b); }
    friend bool operator>=(H a, H b) { return float(a) >= float(b); }

    friend H __hadd(H a, H b) { return a + b; }
    friend H __hsub(H a, H b) { return a - b; }
    friend H __hmul(H a, H b) { return a * b; }
    friend H __hdiv(H a, H b) { return a / b; }
    friend H __hadd_rn(H a, H b) { return a + b; }
    friend H __hsub_rn(H a, H b) { return a - b; }
    friend H __hmul_rn(H a, H b) { return a * b; }
    friend H __hadd_sat(H a, H b) { return H(__saturatef(float(a) + float(b))); }
    friend H __hsub_sat(H a, H b) { return H(__saturatef(float(a) - float(b))); }
    friend H __hmul_sat(H a, H b) { return H(__saturatef(float(a) * float(b))); }
    friend H __hfma(H a, H b, H c) { return H(std::fma(float(a), float(b), float(c))); }
    friend H __hfma_sat(H a, H b, H c) {
        return H(__saturatef(std::fma(float(a), float(b), float(c))));
    }
    friend H __hfma_relu(H a, H b, H c) {
        return H(std::fmax(std::fma(float(a), float(b), float(c)), 0.0f));
    }
    friend H __hneg(H a) { return -a; }
    friend H __habs(H a) { return of_bits(a.bits & 0x7fff); }
    friend bool __heq(H a, H b) { return a == b; }
    friend bool __hne(H a, H b) { return a < b || a > b; }
    friend bool __hlt(H a, H b) { return a < b; }
    friend bool __hle(H a, H b) { return a <= b; }
    friend bool __hgt(H a, H b) { return a > b; }
    friend bool __hge(H a, H b) { return a >= b; }
    friend H __hmax(H a, H b) { return H(std::fmax(float(a), float(b))); }
    friend H __hmin(H a, H b) { return H(std::fmin(float(a), float(b))); }
    friend H __hmax_nan(H a, H b) { return a != a ? a : b != b ? b : __hmax(a, b); }
    friend H __hmin_nan(H a, H b) { return a != a ? a : b != b ? b : __hmin(a, b); }
    friend bool __hisnan(H a) { return a != a; }
    friend int __hisinf(H a) { return std::isinf(float(a)) ? (float(a) > 0 ? 1 : -1) : 0; }
    friend H hexp(H a) { return H(std::exp(float(a))); }
    friend H hexp2(H a) { return H(std::exp2(float(a))); }
    friend H hlog(H a) { return H(std::log(float(a))); }
    friend H hlog2(H a) { return H(std::log2(float(a))); }
    friend H hsqrt(H a) { return H(std::sqrt(float(a))); }
    friend H hrsqrt(H a) { return H(1.0f / std::sqrt(float(a))); }
    friend H hrcp(H a) { return H(1.0f / float(a)); }
    friend H hsin(H a) { return H(std::sin(float(a))); }
    friend H hcos(H a) { return H(std::cos(float(a))); }
    friend H htanh(H a) { return H(std::tanh(float(a))); }
    friend H hfloor(H a) { return H(std::floor(float(a))); }
    friend H hceil(H a) { return H(std::ceil(float(a))); }
    friend H htrunc(H a) { return H(std::trunc(float(a))); }
    friend H hrint(H a) { return H(std::nearbyint(float(a))); }
};

template <typename F> struct __attribute__((aligned(4))) Pair16 {
    using H = Float16<F>;
    using P = Pair16;
    H x, y;

    Pair16() = default;
    Pair16(H x, H y) : x(x), y(y) {}
    Pair16& operator+=(P b) { return *this = *this + b; }
    Pair16& operator-=(P b) { return *this = *this - b; }
    Pair16& operator*=(P b) { return *this = *this * b; }
    Pair16& operator/=(P b) { return *this = *this / b; }
    friend P operator+(P a, P b) { return {a.x + b.x, a.y + b.y}; }
    friend P operator-(P a, P b) { return {a.x - b.x, a.y - b.y}; }
    friend P operator*(P a, P b) { return {a.x * b.x, a.y * b.y}; }
    friend P operator/(P a, P b) { return {a.x / b.x, a.y / b.y}; }
    friend P operator-(P a) { return {-a.x, -a.y}; }
    friend bool operator==(P a, P b) { return a.x == b.x && a.y == b.y; }

    friend P __hadd2(P a, P b) { return a + b; }
    friend P __hsub2(P a, P b) { return a - b; }
    friend P __hmul2(P a, P b) { return a * b; }
    friend P __h2div(P a, P b) { return a / b; }
    friend P __hadd2_rn(P a, P b) { return a + b; }
    friend P __hsub2_rn(P a, P b) { return a - b; }
    friend P __hmul2_rn(P a, P b) { return a * b; }
    friend P __hfma2(P a, P b, P c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
    friend P __hfma2_relu(P a, P b, P c) {
        return {__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)};
    }
    friend P __hneg2(P a) { return -a; }
    friend P __habs2(P a) { return {__habs(a.x), __habs(a.y)}; }
    friend P __hmax2(P a, P b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }
    friend P __hmin2(P a, P b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }
    friend P __heq2(P a, P b) { return {H(a.x == b.x), H(a.y == b.y)}; }
    friend P __hne2(P a, P b) { return {H(__hne(a.x, b.x)), H(__hne(a.y, b.y))}; }
    friend P __hlt2(P a, P b) { return {H(a.x < b.x), H(a.y < b.y)}; }
    friend P __hle2(P a, P b) { return {H(a.x <= b.x), H(a.y <= b.y)}; }
    friend P __hgt2(P a, P b) { return {H(a.x > b.x), H(a.y > b.y)}; }
    friend P __hge2(P a, P b) { return {H(a.x >= b.x), H(a.y >= b.y)}; }
    friend bool __hbeq2(P a, P b) { return a == b; }
    friend P h2exp(P a) { return {hexp(a.x), hexp(a.y)}; }
    friend P h2exp2(P a) { return {hexp2(a.x), hexp2(a.y)}; }
    friend P h2log(P a) { return {hlog(a.x), hlog(a.y)}; }
    friend P h2sqrt(P a) { return {hsqrt(a.x), hsqrt(a.y)}; }
    friend P h2rsqrt(P a) { return {hrsqrt(a.x), hrsqrt(a.y)}; }
    friend P h2rcp(P a) { return {hrcp(a.x), hrcp(a.y)}; }
    friend P h2tanh(P a) { return {htanh(a.x), htanh(a.y)}; }
    friend P __lowhigh2highlow(P a) { return {a.y, a.x}; }
    friend P __low2half2(P a) { return {a.x, a.x}; }
    friend P __high2half2(P a) { return {a.y, a.y}; }
    friend P __lows2half2(P a, P b) { return {a.x, b.x}; }
    friend P __highs2half2(P a, P b) { return {a.y, b.y}; }
    friend float __low2float(P a) { return a.x; }
    friend float __high2float(P a) { return a.y; }
};

}  // namespace kw

using __half = kw::Float16<kw::HalfFormat>;
using __half2 = kw::Pair16<kw::HalfFormat>;
using half = __half;
using half2 = __half2;
using __nv_bfloat16 = kw::Float16<kw::BrainFormat>;
using __nv_bfloat162 = kw::Pair16<kw::BrainFormat>;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;
struct __half_raw { unsigned short x; };
struct __half2_raw { unsigned short x, y; };

#define KW_CONVERSIONS(H, H2, NAME, NAME2)                                                    \
    inline H __float2##NAME(float x) { return H(x); }                                         \
    inline H __float2##NAME##_rn(float x) { return H(x); }                                    \
    inline H __float2##NAME##_rz(float x) { return H(x); }                                    \
    inline H __double2##NAME(double x) { return H(x); }                                       \
    inline H __int2##NAME##_rn(int x) { return H(x); }                                        \
    inline H __uint2##NAME##_rn(unsigned x) { return H(x); }                                  \
    inline H __short2##NAME##_rn(short x) { return H(x); }                                    \
    inline H __ushort2##NAME##_rn(unsigned short x) { return H(x); }                          \
    inline float __##NAME##2float(H x) { return x; }                                          \
    inline H2 __float2##NAME##2_rn(float x) { return H2(H(x), H(x)); }                        \
    inline H2 __floats2##NAME##2_rn(float x, float y) { return H2(H(x), H(y)); }              \
    inline H2 __float22##NAME##2_rn(float2 v) { return H2(H(v.x), H(v.y)); }                  \
    inline float2 __##NAME2##2float2(H2 v) { return {float(v.x), float(v.y)}; }               \
    inline H2 __##NAME##2##NAME##2(H x) { return H2(x, x); }                                  \
    inline H2 __halves2##NAME##2(H x, H y) { return H2(x, y); }                               \
    inline H2 make_##NAME##2(H x, H y) { return H2(x, y); }                                   \
    inline H __low2##NAME(H2 v) { return v.x; }                                               \
    inline H __high2##NAME(H2 v) { return v.y; }                                              \
    inline unsigned short __##NAME##_as_ushort(H x) { return x.bits; }                        \
    inline short __##NAME##_as_short(H x) { return short(x.bits); }                           \
    inline H __ushort_as_##NAME(unsigned short x) { return H::of_bits(x); }                   \
    inline H __short_as_##NAME(short x) { return H::of_bits(std::uint16_t(x)); }              \
    inline H2 atomicAdd(H2* at, H2 v, KW_LINE) {                                              \
        return H2(atomicAdd(&at->x, v.x, line), atomicAdd(&at->y, v.y, line));                \
    }
KW_CONVERSIONS(__half, __half2, half, half2)
KW_CONVERSIONS(__nv_bfloat16, __nv_bfloat162, bfloat16, bfloat162)
#undef KW_CONVERSIONS
#define KW_ROUNDED_HALF(H, NAME, MODE)                                                        \
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
KW_ROUNDED_HALF(__half, half, rn) KW_ROUNDED_HALF(__half, half, rz)
KW_ROUNDED_HALF(__half, half, ru) KW_ROUNDED_HALF(__half, half, rd)
KW_ROUNDED_HALF(__nv_bfloat16, bfloat16, rn) KW_ROUNDED_HALF(__nv_bfloat16, bfloat16, rz)
KW_ROUNDED_HALF(__nv_bfloat16, bfloat16, ru) KW_ROUNDED_HALF(__nv_bfloat16, bfloat16, rd)
#undef KW_ROUNDED_HALF

