// SPDX-License-Identifier: Apache-2.0
// Mathematics: CUDA's names beyond those of C, integer intrinsics, conversions by rounding mode.
//
// The fast intrinsics are as wrong as the device's may be: each result is moved by a share of its
// documented error (CUDA C++ Programming Guide, "Mathematical Functions", intrinsics; PTX ISA, the
// .approx instructions), which its operands choose, so that a kernel that needs more precision than
// the hardware has fails here too. The share is a hash: the same call gives the same answer.
#pragma once

namespace kw {
template <typename To, typename From> inline To bits_as(From value) {
    static_assert(sizeof(To) == sizeof(From));
    To out;
    std::memcpy(&out, &value, sizeof out);
    return out;
}
// Conversions saturate, and NaN becomes 0, as on the device.
template <typename To, typename From> inline To saturated(From value) {
    if (value != value) return 0;
    const auto low = From(std::numeric_limits<To>::min());
    const auto high = From(std::numeric_limits<To>::max());
    if (value <= low) return std::numeric_limits<To>::min();
    if (value >= high) return std::numeric_limits<To>::max();
    return To(value);
}
// From -1 to 1, chosen by the bits of the operands.
inline double share_of(float a, float b = 0.0f) {
    std::uint32_t mixed = bits_as<std::uint32_t>(a) * 0x9E3779B1u ^ bits_as<std::uint32_t>(b);
    mixed = (mixed ^ mixed >> 15) * 0x85EBCA77u;
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE3Du;
    return double(mixed ^ mixed >> 16) / 2147483648.0 - 1.0;
}
// Zero, one and what is not finite are exact on the device, too.
inline float off_by(double exact, double error) {
    return exact == 0.0 || exact == 1.0 || !std::isfinite(exact) ? float(exact)
                                                                 : float(exact + error);
}
// 2^-21.41 and 2^-21.19, absolute.
constexpr double LOG_ERROR = 3.589e-7, SIN_ERROR = 3.589e-7, COS_ERROR = 4.180e-7;
constexpr double ULP = 0x1p-23;  // of a result: at most this share of it
inline float ex2_approx(float x) {
    const double exact = std::exp2(double(x));
    return off_by(exact, exact * share_of(x) * 0.9 * ULP);  // and rounding, and its argument's
}
// Within [0.5, 2] the error is absolute, beyond it in units of the last place.
inline float log_approx(double exact, float x, double absolute, double ulps) {
    const bool is_near = x >= 0.5f && x <= 2.0f;
    return off_by(exact, share_of(x) * (is_near ? absolute : ulps * ULP * std::fabs(exact)));
}
inline float sin_approx(double exact, float x, double absolute) {
    return off_by(exact, share_of(x) * absolute * std::fmax(1.0, std::fabs(double(x)) / M_PI));
}
template <typename A, typename B>
using Common = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>,
                                std::common_type_t<A, B>>;
}  // namespace kw

template <typename A, typename B> constexpr kw::Common<A, B> max(A a, B b) {
    using T = kw::Common<A, B>;
    if constexpr (std::is_floating_point_v<T>) {
        if (T(b) != T(b)) return a;
        if (T(a) != T(a)) return b;
    }
    return T(a) < T(b) ? T(b) : T(a);
}
template <typename A, typename B> constexpr kw::Common<A, B> min(A a, B b) {
    using T = kw::Common<A, B>;
    if constexpr (std::is_floating_point_v<T>) {
        if (T(b) != T(b)) return a;
        if (T(a) != T(a)) return b;
    }
    return T(b) < T(a) ? T(b) : T(a);
}
inline unsigned umax(unsigned a, unsigned b) { return a < b ? b : a; }
inline unsigned umin(unsigned a, unsigned b) { return b < a ? b : a; }

inline float rsqrtf(float x) {
    const double exact = 1.0 / std::sqrt(double(x));
    return kw::off_by(exact, exact * kw::share_of(x) * kw::ULP);
}
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
inline float rcbrtf(float x) { return 1.0f / std::cbrt(x); }
inline float sinpif(float x) { return float(std::sin(M_PI * x)); }
inline float cospif(float x) { return float(std::cos(M_PI * x)); }
inline float normcdff(float x) { return 0.5f * std::erfc(-x * float(M_SQRT1_2)); }
inline float norm3df(float a, float b, float c) { return std::hypot(a, b, c); }
inline float rnorm3df(float a, float b, float c) { return 1.0f / norm3df(a, b, c); }
inline float rhypotf(float a, float b) { return 1.0f / std::hypot(a, b); }

// x log2(e) is rounded before the exponential: its error grows with |x|.
inline float __expf(float x) { return kw::ex2_approx(x * 1.4426950408889634f); }
inline float __exp10f(float x) { return kw::ex2_approx(x * 3.3219280948873623f); }
inline float __logf(float x) { return kw::log_approx(std::log(double(x)), x, kw::LOG_ERROR, 2); }
inline float __log2f(float x) { return kw::log_approx(std::log2(double(x)), x, 0x1p-22, 1); }
inline float __log10f(float x) { return kw::log_approx(std::log10(double(x)), x, 0x1p-24, 2); }
inline float __sinf(float x) { return kw::sin_approx(std::sin(double(x)), x, kw::SIN_ERROR); }
inline float __cosf(float x) { return kw::sin_approx(std::cos(double(x)), x, kw::COS_ERROR); }
inline float __tanf(float x) { return __sinf(x) / __cosf(x); }
inline float __tanhf(float x) {
    const double exact = std::tanh(double(x));
    return kw::off_by(exact, exact * kw::share_of(x) * 0x1p-11);
}
inline void __sincosf(float x, float* s, float* c) { *s = __sinf(x), *c = __cosf(x); }
inline float __powf(float x, float y) { return kw::ex2_approx(y * __log2f(x)); }
// Beyond 2^126 the reciprocal of the divisor is a zero.
inline float __fdividef(float a, float b) {
    if (std::isfinite(b) && std::fabs(b) > 0x1p126f) return std::isinf(a) ? NAN : a * 0.0f;
    const double exact = double(a) / double(b);
    return kw::off_by(exact, exact * kw::share_of(a, b) * 1.5 * kw::ULP);
}
inline float fdividef(float a, float b) { return __fdividef(a, b); }
inline float __saturatef(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

#define KW_ROUNDED(MODE)                                                                 \
    inline float __fadd_##MODE(float a, float b) { return a + b; }                       \
    inline float __fsub_##MODE(float a, float b) { return a - b; }                       \
    inline float __fmul_##MODE(float a, float b) { return a * b; }                       \
    inline float __fdiv_##MODE(float a, float b) { return a / b; }                       \
    inline float __frcp_##MODE(float a) { return 1.0f / a; }                             \
    inline float __fsqrt_##MODE(float a) { return std::sqrt(a); }                        \
    inline float __fmaf_##MODE(float a, float b, float c) { return std::fma(a, b, c); }  \
    inline double __dadd_##MODE(double a, double b) { return a + b; }                    \
    inline double __dsub_##MODE(double a, double b) { return a - b; }                    \
    inline double __dmul_##MODE(double a, double b) { return a * b; }                    \
    inline double __ddiv_##MODE(double a, double b) { return a / b; }                    \
    inline double __dsqrt_##MODE(double a) { return std::sqrt(a); }                      \
    inline double __fma_##MODE(double a, double b, double c) { return std::fma(a, b, c); } \
    inline float __double2float_##MODE(double x) { return float(x); }                    \
    inline float __int2float_##MODE(int x) { return float(x); }                          \
    inline float __uint2float_##MODE(unsigned x) { return float(x); }                    \
    inline float __ll2float_##MODE(long long x) { return float(x); }                     \
    inline float __ull2float_##MODE(unsigned long long x) { return float(x); }
// The other modes differ in the last bit, which no comparison of ours rests on.
KW_ROUNDED(rn) KW_ROUNDED(rz) KW_ROUNDED(ru) KW_ROUNDED(rd)
#undef KW_ROUNDED
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline double __int2double_rn(int x) { return x; }
inline double __uint2double_rn(unsigned x) { return x; }

#define KW_TO_INTEGER(MODE, ROUND)                                                           \
    inline int __float2int_##MODE(float x) { return kw::saturated<int>(ROUND(x)); }          \
    inline unsigned __float2uint_##MODE(float x) { return kw::saturated<unsigned>(ROUND(x)); } \
    inline long long __float2ll_##MODE(float x) { return kw::saturated<long long>(ROUND(x)); } \
    inline unsigned long long __float2ull_##MODE(float x) {                                  \
        return kw::saturated<unsigned long long>(ROUND(x));                                  \
    }                                                                                        \
    inline int __double2int_##MODE(double x) { return kw::saturated<int>(ROUND(x)); }        \
    inline unsigned __double2uint_##MODE(double x) { return kw::saturated<unsigned>(ROUND(x)); } \
    inline long long __double2ll_##MODE(double x) { return kw::saturated<long long>(ROUND(x)); }
KW_TO_INTEGER(rn, std::nearbyint)
KW_TO_INTEGER(rz, std::trunc)
KW_TO_INTEGER(ru, std::ceil)
KW_TO_INTEGER(rd, std::floor)
#undef KW_TO_INTEGER

inline int __float_as_int(float x) { return kw::bits_as<int>(x); }
inline unsigned __float_as_uint(float x) { return kw::bits_as<unsigned>(x); }
inline float __int_as_float(int x) { return kw::bits_as<float>(x); }
inline float __uint_as_float(unsigned x) { return kw::bits_as<float>(x); }
inline long long __double_as_longlong(double x) { return kw::bits_as<long long>(x); }
inline double __longlong_as_double(long long x) { return kw::bits_as<double>(x); }
inline int __double2hiint(double x) { return int(__double_as_longlong(x) >> 32); }
inline int __double2loint(double x) { return int(__double_as_longlong(x)); }
inline double __hiloint2double(int high, int low) {
    return kw::bits_as<double>(std::uint64_t(unsigned(high)) << 32 | unsigned(low));
}

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(std::uint64_t(x)) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __fns(unsigned mask, unsigned base, int offset) {
    const int step = offset < 0 ? -1 : 1;
    int left = offset < 0 ? -offset : offset;
    for (int bit = int(base); bit >= 0 && bit < 32; bit += step)
        if (mask >> bit & 1 && (offset == 0 || --left == 0)) return bit;
    return -1;
}
inline unsigned __brev(unsigned x) {
    unsigned out = 0;
    for (int i = 0; i < 32; ++i) out |= (x >> i & 1) << (31 - i);
    return out;
}
inline unsigned long long __brevll(unsigned long long x) {
    return (unsigned long long)(__brev(unsigned(x))) << 32 | __brev(unsigned(x >> 32));
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned select) {
    const std::uint64_t both = std::uint64_t(y) << 32 | x;
    unsigned out = 0;
    for (int i = 0; i < 4; ++i) {
        const unsigned code = select >> 4 * i & 15;
        unsigned byte = unsigned(both >> 8 * (code & 7)) & 255;
        if (code & 8) byte = byte & 128 ? 255 : 0;
        out |= byte << 8 * i;
    }
    return out;
}
inline int __mul24(int a, int b) {
    return int(unsigned(int(unsigned(a) << 8) >> 8) * unsigned(int(unsigned(b) << 8) >> 8));
}
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
inline int __mulhi(int a, int b) { return int((long long)(a) * b >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned(std::uint64_t(a) * b >> 32); }
inline long long __mul64hi(long long a, long long b) { return (long long)(__int128(a) * b >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)(a) * b >> 64);
}
inline unsigned __sad(int a, int b, unsigned c) {
    return c + (a < b ? unsigned(b) - unsigned(a) : unsigned(a) - unsigned(b));
}
inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a < b ? b - a : a - b); }
inline int __hadd(int a, int b) { return int(((long long)(a) + b) >> 1); }
inline int __rhadd(int a, int b) { return int(((long long)(a) + b + 1) >> 1); }
inline unsigned __uhadd(unsigned a, unsigned b) { return unsigned((std::uint64_t(a) + b) >> 1); }
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return unsigned((std::uint64_t(high) << 32 | low) << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return unsigned((std::uint64_t(high) << 32 | low) >> (shift & 31));
}
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
    return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
    return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}
inline int __dp4a(int a, int b, int c) {
    unsigned sum = unsigned(c);
    for (int i = 0; i < 32; i += 8)
        sum += unsigned(int(std::int8_t(a >> i)) * int(std::int8_t(b >> i)));
    return int(sum);
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
    for (int i = 0; i < 32; i += 8) c += (a >> i & 255) * (b >> i & 255);
    return c;
}
