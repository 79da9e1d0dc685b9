// SPDX-License-Identifier: Apache-2.0
// Inline PTX: what the instructions do that the builder translates (builders/ptx_instructions.py). A
// register is a word of 16, 32 or 64 bits, or a bool; its type is the instruction's.
#pragma once

namespace kw::ptx {

template <typename...> inline constexpr bool NEVER = false;

// Three bytes have no word, and a number as it is written needs none.
template <typename T, typename W> T get(W word) {
    if constexpr (std::is_same_v<W, double> || std::is_integral_v<T>) return T(word);
    else {
        T out;
        const auto bits = typename Word<sizeof(T)>::type(word);
        std::memcpy(&out, &bits, sizeof out);
        return out;
    }
}
template <typename W, typename T> void put(W& word, T value) {
    if constexpr (std::is_integral_v<T>) word = W(value);
    else {
        typename Word<sizeof(T)>::type bits;
        std::memcpy(&bits, &value, sizeof bits);
        word = W(bits);
    }
}

// An operand of the source as a register, and a register back into the source's variable.
template <typename W, typename T> W given(const T& value) {
    if constexpr (std::is_pointer_v<T>) return W(reinterpret_cast<std::uintptr_t>(value));
    else if constexpr (std::is_array_v<T>) return W(reinterpret_cast<std::uintptr_t>(&value[0]));
    else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) return W(value);
    else {
        static_assert(sizeof(T) == sizeof(W), "inline PTX: an operand is not as wide as its register");
        return bits_as<W>(value);
    }
}
template <typename T, typename W> void give(T& to, W word) {
    if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) to = T(word);
    else {
        static_assert(sizeof(T) == sizeof(W), "inline PTX: an operand is not as wide as its register");
        std::memcpy(static_cast<void*>(&to), &word, sizeof word);
    }
}

template <typename T> T add(T a, T b) { return wrapped_sum(a, b); }
template <typename T> T sub(T a, T b) {
    if constexpr (std::is_integral_v<T>) return T(std::uint64_t(a) - std::uint64_t(b));
    else return a - b;
}
template <typename T> T mul(T a, T b) {
    if constexpr (std::is_integral_v<T>) return T(std::uint64_t(a) * std::uint64_t(b));
    else return a * b;
}
template <typename T> auto mul_wide(T a, T b) {
    using S = std::conditional_t<sizeof(T) == 2, std::int32_t, std::int64_t>;
    using U = std::conditional_t<sizeof(T) == 2, std::uint32_t, std::uint64_t>;
    using Wide = std::conditional_t<std::is_signed_v<T>, S, U>;
    return Wide(Wide(a) * Wide(b));
}
template <typename T> T mul_hi(T a, T b) {
    using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return T(Wide(a) * Wide(b) >> (8 * sizeof(T)));
}
template <typename T> T fma(T a, T b, T c) {
    if constexpr (std::is_floating_point_v<T>) return std::fma(a, b, c);
    else if constexpr (std::is_integral_v<T>) return add(mul(a, b), c);
    else if constexpr (sizeof(T) == 4) return __hfma2(a, b, c);
    else return __hfma(a, b, c);
}
template <typename T> T fma_relu(T a, T b, T c) {
    if constexpr (sizeof(T) == 4) return __hfma2_relu(a, b, c);
    else return __hfma_relu(a, b, c);
}
template <typename T> T min(T a, T b) {
    if constexpr (std::is_arithmetic_v<T>) return ::min(a, b);
    else if constexpr (sizeof(T) == 4) return __hmin2(a, b);
    else return __hmin(a, b);
}
template <typename T> T max(T a, T b) {
    if constexpr (std::is_arithmetic_v<T>) return ::max(a, b);
    else if constexpr (sizeof(T) == 4) return __hmax2(a, b);
    else return __hmax(a, b);
}
template <typename T> T neg(T a) {
    if constexpr (std::is_integral_v<T>) return T(0 - std::uint64_t(a));
    else return -a;
}
template <typename T> T abs(T a) {
    if constexpr (std::is_integral_v<T>) return a < 0 ? neg(a) : a;
    else if constexpr (std::is_floating_point_v<T>) return std::fabs(a);
    else if constexpr (sizeof(T) == 4) return __habs2(a);
    else return __habs(a);
}
template <typename T> T flush(T a) {
    if constexpr (std::is_same_v<T, float>) return flushed(a);
    else return a;
}
inline float saturate(float a) { return __saturatef(a); }

// Shifts by more than the width leave nothing, or the sign.
template <typename T> T shl(T a, unsigned by) {
    return by >= 8 * sizeof(T) ? T(0) : T(std::uint64_t(a) << by);
}
template <typename T> T shr(T a, unsigned by) {
    const unsigned most = 8 * sizeof(T) - 1;
    if (by > most) return std::is_signed_v<T> ? T(a >> most) : T(0);
    return T(a >> by);
}
inline unsigned lop3(unsigned a, unsigned b, unsigned c, unsigned table) {
    unsigned out = 0;
    for (unsigned i = 0; i < 8; ++i)
        if (table >> i & 1) out |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return out;
}
template <typename T> T bfe(T a, unsigned from, unsigned count) {
    constexpr unsigned WIDTH = 8 * sizeof(T);
    from &= 255, count &= 255;
    using U = std::make_unsigned_t<T>;
    const unsigned last = ::min(from + count - 1, WIDTH - 1);
    const bool is_negative = std::is_signed_v<T> && count && U(a) >> last & 1;
    U out = is_negative ? U(-1) : 0;
    for (unsigned i = 0; i < ::min(count, WIDTH); ++i) {
        const U bit = from + i < WIDTH ? U(a) >> (from + i) & 1 : U(is_negative);
        out = U((out & ~(U(1) << i)) | bit << i);
    }
    return T(out);
}
template <typename T> T bfi(T field, T into, unsigned to, unsigned count) {
    constexpr unsigned WIDTH = 8 * sizeof(T);
    to &= 255, count &= 255;
    for (unsigned i = 0; i < count && to + i < WIDTH; ++i)
        into = T((into & ~(T(1) << (to + i))) | (field >> i & 1) << (to + i));
    return into;
}
template <typename T> unsigned popc(T a) { return unsigned(__builtin_popcountll(std::uint64_t(a))); }
template <typename T> unsigned clz(T a) {
    return a ? unsigned(__builtin_clzll(a)) - (64 - 8 * sizeof(T)) : unsigned(8 * sizeof(T));
}
inline float rcp(float a) { return 1.0f / a; }
inline float ex2(float a) { return ex2_approx(a); }
inline __half ex2(__half a) { return hexp2(a); }
inline __half2 ex2(__half2 a) { return h2exp2(a); }
inline __nv_bfloat16 ex2(__nv_bfloat16 a) { return hexp2(a); }
inline __nv_bfloat162 ex2(__nv_bfloat162 a) { return h2exp2(a); }
inline float tanh(float a) { return __tanhf(a); }
inline __half tanh(__half a) { return htanh_approx(a); }
inline __half2 tanh(__half2 a) { return h2tanh_approx(a); }
inline __nv_bfloat16 tanh(__nv_bfloat16 a) { return htanh_approx(a); }
inline __nv_bfloat162 tanh(__nv_bfloat162 a) { return h2tanh_approx(a); }
inline float2 fma(float2 a, float2 b, float2 c) {
    return {std::fma(a.x, b.x, c.x), std::fma(a.y, b.y, c.y)};
}
inline float2 add(float2 a, float2 b) { return {a.x + b.x, a.y + b.y}; }
inline float2 mul(float2 a, float2 b) { return {a.x * b.x, a.y * b.y}; }

// shfl.sync: the bound of c in its low bits, the mask that cuts the warp in those from bit 8.
template <int MODE> unsigned shuffle(unsigned value, unsigned by, unsigned c, unsigned mask, bool& is_in,
                                     int line) {
    const unsigned own = lane(), bound = c & 31, segments = c >> 8 & 31;
    const unsigned most = (own & segments) | (bound & ~segments), least = own & segments;
    int from = 0;
    by &= 31;
    if constexpr (MODE == 0) from = int(least | (by & ~segments)), is_in = from <= int(most);
    if constexpr (MODE == 1) from = int(own) - int(by), is_in = from >= int(most);
    if constexpr (MODE == 2) from = int(own + by), is_in = from <= int(most);
    if constexpr (MODE == 3) from = int(own ^ by), is_in = from <= int(most);
    return take_from(mask, value, is_in ? from : -1, line);
}

}  // namespace kw::ptx
