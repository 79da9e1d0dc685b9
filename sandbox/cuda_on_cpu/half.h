// SPDX-License-Identifier: Apache-2.0
// half and bfloat16: 16 bits in memory, arithmetic in what is wider, rounded once.
#pragma once

struct __half_raw { unsigned short x; };
struct __nv_bfloat16_raw { unsigned short x; };

namespace kw {

#ifdef __F16C__
typedef float Floats __attribute__((vector_size(16)));
typedef short Shorts __attribute__((vector_size(16)));
#endif

struct HalfFormat {
    using Raw = __half_raw;
    static constexpr unsigned INFINITE = 0x7c00;
    static constexpr int DIGITS = 11, LEAST = -14;
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
        if (value != value) return 0x7fff;
#ifdef __F16C__
        return std::uint16_t(__builtin_ia32_vcvtps2ph(Floats{value}, 0)[0]);
#else
        const unsigned raw = bits_as<unsigned>(value), sign = raw >> 16 & 0x8000;
        const float size = std::fabs(value);
        if (size >= 65520.0f) return std::uint16_t(sign | 0x7c00);
        if (size < 0x1p-14f) return std::uint16_t(sign | unsigned(std::nearbyint(size * 0x1p24f)));
        unsigned bits = (raw & 0x7fffffff) - (112u << 23);
        bits += 0xfff + (bits >> 13 & 1);
        return std::uint16_t(sign | bits >> 13);
#endif
    }
};

struct BrainFormat {
    using Raw = __nv_bfloat16_raw;
    static constexpr unsigned INFINITE = 0x7f80;
    static constexpr int DIGITS = 8, LEAST = -126;
    static float widen(std::uint16_t bits) { return bits_as<float>(unsigned(bits) << 16); }
    static std::uint16_t narrow(float value) {
        unsigned raw = bits_as<unsigned>(value);
        if (value != value) return 0x7fff;
        raw += 0x7fff + (raw >> 16 & 1);
        return std::uint16_t(raw >> 16);
    }
};

template <typename F>
struct Float16 : HalfArithmetic<Float16<F>>, HalfComparisons<Float16<F>>, HalfMathematics<Float16<F>> {
    std::uint16_t bits;

    Float16() = default;
    template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
    Float16(T value) : Float16(rounded(value, Round::NEAREST)) {}
    template <typename G> explicit Float16(Float16<G> other) : Float16(float(other)) {}
    Float16(typename F::Raw raw) : bits(raw.x) {}
    operator float() const { return F::widen(bits); }
    operator typename F::Raw() const { return {bits}; }

    static Float16 of_bits(std::uint16_t bits) {
        Float16 out;
        out.bits = bits;
        return out;
    }
    static Float16 nearest(float value) { return of_bits(F::narrow(value)); }
    // Of what is exact, or rounded to odd.
    static Float16 nearest(double value) { return nearest(odd_float(value)); }
    template <typename T> static Float16 rounded(T value, Round mode) {
        if constexpr (std::is_same_v<T, float>) {
            if (mode == Round::NEAREST) return nearest(value);
        }
        double wide;
        if constexpr (std::is_integral_v<T> && sizeof(T) == 8)
            wide = odd_double(std::conditional_t<std::is_signed_v<T>, long long, unsigned long long>(value));
        else wide = double(value);
        if (mode == Round::NEAREST || !std::isfinite(wide)) return nearest(wide);
        const auto code = size_code<F::DIGITS, F::LEAST>(wide, mode);
        const unsigned most = goes_to_infinity(wide, mode) ? F::INFINITE : F::INFINITE - 1;
        const auto size = unsigned(std::min<std::uint64_t>(code, most));
        return of_bits(std::uint16_t(size | (std::signbit(wide) ? 0x8000 : 0)));
    }
};

}  // namespace kw

using __half = kw::Float16<kw::HalfFormat>;
using half = __half;
using __nv_half = __half;
using nv_half = __half;
using __nv_bfloat16 = kw::Float16<kw::BrainFormat>;
using nv_bfloat16 = __nv_bfloat16;
