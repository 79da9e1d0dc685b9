// SPDX-License-Identifier: Apache-2.0
// fp8 and fp4: codes in bytes, converted and nothing else (CUDA Math API, "FP8 Conversion and Data
// Movement" and "FP4 Conversion and Data Movement").
#pragma once

using __nv_fp8_storage_t = unsigned char;
using __nv_fp8x2_storage_t = unsigned short;
using __nv_fp8x4_storage_t = unsigned int;
using __nv_fp4_storage_t = unsigned char;
using __nv_fp4x2_storage_t = unsigned char;
using __nv_fp4x4_storage_t = unsigned short;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };
enum __nv_fp4_interpretation_t { __NV_E2M1 };
enum cudaRoundMode { cudaRoundNearest, cudaRoundZero, cudaRoundPosInf, cudaRoundMinInf };

namespace kw {

// BITS of a code; BEYOND is the code after the largest number: an infinity, or NaN where the type has
// none, or no code at all (fp4).
template <int BITS, int DIGITS, int LEAST, unsigned BEYOND, unsigned NOT_A_NUMBER> struct Narrow {
    static constexpr int bits = BITS;
    static constexpr unsigned SIGN = 1u << (BITS - 1);

    static unsigned encode(double value, __nv_saturation_t saturate, Round mode = Round::NEAREST) {
        // What has no NaN takes its largest number for it.
        if (value != value) return NOT_A_NUMBER;
        const unsigned sign = std::signbit(value) ? SIGN : 0, last = BEYOND - 1;
        if (std::isinf(value)) return sign | (saturate == __NV_SATFINITE ? last : BEYOND);
        const auto code = size_code<DIGITS, LEAST>(value, mode);
        const unsigned most = saturate == __NV_SATFINITE ? last : BEYOND;
        return sign | unsigned(std::min<std::uint64_t>(code, most));
    }
    static float decode(unsigned code) {
        const unsigned size = code & (SIGN - 1);
        if (size >= BEYOND) {
            const bool is_infinite = BEYOND != NOT_A_NUMBER && size == BEYOND;
            return is_infinite ? (code & SIGN ? -INFINITY : INFINITY) : bits_as<float>(0x7fffffffu);
        }
        const int exponent = int(size >> (DIGITS - 1));
        const unsigned hidden = exponent ? 1u << (DIGITS - 1) : 0;
        const float steps = float((size & ((1u << (DIGITS - 1)) - 1)) + hidden);
        const float out = std::ldexp(steps, LEAST - DIGITS + 1 + std::max(exponent - 1, 0));
        return code & SIGN ? -out : out;
    }
};
using E4M3 = Narrow<8, 4, -6, 0x7f, 0x7f>;
using E5M2 = Narrow<8, 3, -14, 0x7c, 0x7f>;
struct E2M1 : Narrow<4, 2, 0, 8, 7> {
    static unsigned encode(double value, __nv_saturation_t, Round mode = Round::NEAREST) {
        return Narrow::encode(value, __NV_SATFINITE, mode);
    }
};

// Powers of two alone, from 2^-127: no sign and no zero.
struct E8M0 {
    static constexpr int bits = 8;
    static unsigned encode(double value, __nv_saturation_t saturate, Round mode = Round::UP) {
        if (value != value) return 0xff;
        // What is negative is taken by its size.
        const double size = std::fabs(value);
        if (size == 0.0) return 0;
        if (std::isinf(size)) return saturate == __NV_SATFINITE ? 0xfe : 0xff;
        int exponent = std::ilogb(size);
        const double beyond = size / std::ldexp(1.0, exponent);
        const bool is_up = mode == Round::UP ? beyond > 1.0 : mode == Round::NEAREST && beyond >= 1.5;
        exponent += is_up;
        if (exponent > 127) return saturate == __NV_SATFINITE ? 0xfe : 0xff;
        return unsigned(std::max(exponent, -127) + 127);
    }
    static float decode(unsigned code) {
        return code == 0xff ? bits_as<float>(0x7fffffffu) : std::ldexp(1.0f, int(code) - 127);
    }
};

// N codes side by side, the first in the lowest bits.
template <typename F, typename Storage> struct Coded {
    Storage __x;

    Coded() = default;
    template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
    explicit Coded(T value) : __x(Storage(F::encode(odd_of(value), __NV_SATFINITE))) {}
    template <typename H> explicit Coded(Float16<H> value) : Coded(float(value)) {}
    explicit operator float() const { return F::decode(__x); }
    explicit operator double() const { return F::decode(__x); }
    explicit operator __half() const { return __half(F::decode(__x)); }
    explicit operator __nv_bfloat16() const { return __nv_bfloat16(F::decode(__x)); }
    template <typename T, typename = std::enable_if_t<std::is_integral_v<T>>>
    explicit operator T() const {
        if constexpr (std::is_same_v<T, bool>) return F::decode(__x) != 0.0f;
        else return saturated<T>(std::trunc(double(F::decode(__x))));
    }

private:
    template <typename T> static double odd_of(T value) {
        if constexpr (std::is_integral_v<T> && sizeof(T) == 8)
            return odd_double(std::conditional_t<std::is_signed_v<T>, long long, unsigned long long>(value));
        else return double(value);
    }
};

template <typename F> unsigned encode_two(double x, double y) {
    return F::encode(x, __NV_SATFINITE) | F::encode(y, __NV_SATFINITE) << F::bits;
}
template <typename F> float decode_at(unsigned codes, int place) {
    return F::decode(codes >> place * F::bits & ((1u << F::bits) - 1));
}
template <typename F, typename Storage> struct CodedPair {
    Storage __x;

    CodedPair() = default;
    explicit CodedPair(float2 v) : __x(Storage(encode_two<F>(v.x, v.y))) {}
    explicit CodedPair(double2 v) : __x(Storage(encode_two<F>(v.x, v.y))) {}
    template <typename H> explicit CodedPair(Pair16<H> v)
        : __x(Storage(encode_two<F>(double(float(v.x)), double(float(v.y))))) {}
    explicit operator float2() const { return {decode_at<F>(__x, 0), decode_at<F>(__x, 1)}; }
    explicit operator __half2() const { return __float22half2_rn(float2(*this)); }
    explicit operator __nv_bfloat162() const { return __float22bfloat162_rn(float2(*this)); }
};
template <typename F, typename Storage> struct CodedFour {
    Storage __x;

    CodedFour() = default;
    explicit CodedFour(float4 v)
        : __x(Storage(encode_two<F>(v.x, v.y) | encode_two<F>(v.z, v.w) << 2 * F::bits)) {}
    explicit CodedFour(double4 v)
        : __x(Storage(encode_two<F>(v.x, v.y) | encode_two<F>(v.z, v.w) << 2 * F::bits)) {}
    template <typename H> CodedFour(Pair16<H> low, Pair16<H> high)
        : CodedFour(float4{float(low.x), float(low.y), float(high.x), float(high.y)}) {}
    explicit operator float4() const {
        return {decode_at<F>(__x, 0), decode_at<F>(__x, 1), decode_at<F>(__x, 2), decode_at<F>(__x, 3)};
    }
};

inline Round round_of(cudaRoundMode mode) {
    return mode == cudaRoundNearest ? Round::NEAREST
           : mode == cudaRoundZero  ? Round::ZERO
           : mode == cudaRoundPosInf ? Round::UP
                                     : Round::DOWN;
}
inline unsigned encode_fp8(double x, __nv_saturation_t saturate, __nv_fp8_interpretation_t type) {
    return type == __NV_E4M3 ? E4M3::encode(x, saturate) : E5M2::encode(x, saturate);
}
inline float decode_fp8(unsigned code, __nv_fp8_interpretation_t type) {
    return type == __NV_E4M3 ? E4M3::decode(code & 0xff) : E5M2::decode(code & 0xff);
}

}  // namespace kw

#define KW_CODED(NAME, F, ONE, TWO, FOUR, SUFFIX)                \
    using NAME##_##SUFFIX = kw::Coded<kw::F, ONE>;               \
    using NAME##x2_##SUFFIX = kw::CodedPair<kw::F, TWO>;         \
    using NAME##x4_##SUFFIX = kw::CodedFour<kw::F, FOUR>;
KW_CODED(__nv_fp8, E4M3, unsigned char, unsigned short, unsigned int, e4m3)
KW_CODED(__nv_fp8, E5M2, unsigned char, unsigned short, unsigned int, e5m2)
KW_CODED(__nv_fp8, E8M0, unsigned char, unsigned short, unsigned int, e8m0)
KW_CODED(__nv_fp4, E2M1, unsigned char, unsigned char, unsigned short, e2m1)
#undef KW_CODED
