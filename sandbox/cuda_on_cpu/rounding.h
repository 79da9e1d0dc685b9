// SPDX-License-Identifier: Apache-2.0
// Rounding to the narrow float types: half, bfloat16, tf32, fp8 and fp4.
//
// Sums and products of them are computed wider and rounded once more. That is right where the wider
// answer is exact, or rounded to odd: its last bit is set wherever something was cut off (Boldo and
// Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
#pragma once

namespace kw {

// To the nearest with ties to even, towards zero, up, down; to the nearest with ties away from zero.
enum class Round { NEAREST, ZERO, UP, DOWN, AWAY };

// The sum, exact or rounded to odd.
inline double odd_sum(double a, double b) {
    const double sum = a + b;
    if (!std::isfinite(sum)) return sum;
    const double from_b = sum - a, error = (a - (sum - from_b)) + (b - from_b);
    if (error == 0.0 || bits_as<std::uint64_t>(sum) & 1) return sum;
    return std::nextafter(sum, error > 0.0 ? INFINITY : -INFINITY);
}
inline double odd_double(unsigned long long x) {
    if (x >> 53 == 0) return double(x);
    return double(x >> 11 | ((x & 0x7ff) != 0)) * 0x1p11;
}
inline double odd_double(long long x) {
    const auto size = (unsigned long long)(x);
    return x < 0 ? -odd_double(0 - size) : odd_double(size);
}
inline float odd_float(double x) {
    const float near = float(x);
    if (double(near) == x || x != x) return near;
    if (std::isinf(near)) return std::copysign(std::numeric_limits<float>::max(), near);
    const auto bits = bits_as<std::uint32_t>(near);
    if (bits & 1) return near;
    return bits_as<float>(std::fabs(double(near)) > std::fabs(x) ? bits - 1 : bits + 1);
}

// The code, without its sign, of a number of a type with so many binary digits, whose normal numbers
// start at 2^LEAST and whose denormals are kept; the exponents go on for ever. The number is finite.
template <int DIGITS, int LEAST> std::uint64_t size_code(double value, Round mode) {
    const double size = std::fabs(value);
    if (size == 0.0) return 0;
    const int exponent = std::max(std::ilogb(size), LEAST);
    const double steps = std::ldexp(size, DIGITS - 1 - exponent), down = std::floor(steps);
    const bool is_up = mode == Round::NEAREST ? std::nearbyint(steps) > down
                       : mode == Round::AWAY  ? steps - down >= 0.5
                       : mode == Round::UP    ? steps > down && value > 0
                       : mode == Round::DOWN  ? steps > down && value < 0
                                              : false;
    return (std::uint64_t(exponent - LEAST) << (DIGITS - 1)) + std::uint64_t(down) + is_up;
}

// Whether a number too large for a type becomes an infinity, not the largest number.
inline bool goes_to_infinity(double value, Round mode) {
    return mode == Round::NEAREST || mode == Round::AWAY ||
           mode == (value < 0 ? Round::DOWN : Round::UP);
}

// What a tensor core takes of a float: tf32 has 11 binary digits, and the exponents of float.
inline float rounded_tf32(float value, Round mode) {
    if (!std::isfinite(value)) return value;
    const auto code = size_code<11, -126>(value, mode);
    return std::copysign(bits_as<float>(unsigned(code << 13)), value);
}
inline float cut_tf32(float value) {
    return bits_as<float>(bits_as<std::uint32_t>(value) & 0xffffe000u);
}

}  // namespace kw
