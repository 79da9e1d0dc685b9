// SPDX-License-Identifier: Apache-2.0
// cvt of inline PTX: one type into another by a mode of rounding, and pairs packed into one register.
#pragma once

namespace kw::ptx {

template <typename T> inline constexpr bool IS_NARROW =
    std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;

inline double to_whole(double x, Round mode) {
    return mode == Round::ZERO   ? std::trunc(x)
           : mode == Round::UP   ? std::ceil(x)
           : mode == Round::DOWN ? std::floor(x)
                                 : std::nearbyint(x);
}

// WHOLE: a float stays a float, and becomes a whole number.
template <typename To, bool WHOLE, bool CLAMPS, typename From> To convert(From x, Round mode) {
    if constexpr (std::is_integral_v<To> && std::is_integral_v<From>) {
        if constexpr (!CLAMPS) return To(x);
        else return std::in_range<To>(x) ? To(x)
                    : std::cmp_less(x, 0) ? std::numeric_limits<To>::min()
                                          : std::numeric_limits<To>::max();
    } else if constexpr (std::is_integral_v<To>) {
        return saturated<To>(to_whole(double(x), mode));
    } else if constexpr (IS_NARROW<To>) {
        if constexpr (IS_NARROW<From>) return To::rounded(float(x), mode);
        else return To::rounded(x, mode);
    } else if constexpr (WHOLE) {
        return To(to_whole(double(x), mode));
    } else if constexpr (std::is_same_v<To, float> && !IS_NARROW<From> && !std::is_same_v<From, float>) {
        if (mode == Round::NEAREST) return float(x);
        const double wide = double(x);
        float near = float(wide);
        const bool is_above = double(near) > wide, is_below = double(near) < wide;
        const bool goes_down = mode == Round::DOWN || (mode == Round::ZERO && wide > 0);
        if (is_above && goes_down) near = std::nextafter(near, -INFINITY);
        if (is_below && !goes_down) near = std::nextafter(near, INFINITY);
        return near;
    } else return To(x);
}

// Two floats in one register: the first operand in the upper half.
template <typename H> std::uint32_t pack(float upper, float lower, Round mode, bool is_relu) {
    const auto one = [&](float x) -> std::uint32_t {
        const H out = H::rounded(x, mode);
        return (is_relu ? kw_not_negative(out) : out).bits;
    };
    return one(upper) << 16 | one(lower);
}
template <typename F> std::uint32_t pack_codes(float upper, float lower, bool is_relu) {
    const auto one = [&](float x) { return F::encode(is_relu && x < 0 ? 0.0f : x, __NV_SATFINITE); };
    return one(upper) << F::bits | one(lower);
}
template <typename F, typename P> std::uint32_t pack_codes(P pair, bool is_relu) {
    return pack_codes<F>(float(pair.y), float(pair.x), is_relu);
}
template <typename F> __half2 unpack_codes(std::uint32_t codes) {
    return {__half(decode_at<F>(codes, 0)), __half(decode_at<F>(codes, 1))};
}

}  // namespace kw::ptx
