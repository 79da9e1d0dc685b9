// SPDX-License-Identifier: Apache-2.0
// What a tensor core does with numbers: exact products of the operands' types, added to float32 one
// after the other in the order of k, each sum to the nearest; whole numbers wrap, or are clamped at the
// end where that is asked. PTX leaves order and rounding open; hardware adds several products at
// once and cuts bits off.
#pragma once

namespace kw::tensor {

struct f16 {}; struct bf16 {}; struct tf32 {}; struct e4m3 {}; struct e5m2 {};
struct s8 {}; struct u8 {}; struct s4 {}; struct u4 {};

// How wide an element is, what it counts as, and the number of its code.
template <typename T> struct Element;
template <> struct Element<f16> {
    using Number = float;
    static constexpr int bits = 16;
    static float number(unsigned code) { return HalfFormat::widen(std::uint16_t(code)); }
};
template <> struct Element<bf16> {
    using Number = float;
    static constexpr int bits = 16;
    static float number(unsigned code) { return BrainFormat::widen(std::uint16_t(code)); }
};
// Of a float that is not rounded yet the last bits are not seen.
template <> struct Element<tf32> {
    using Number = float;
    static constexpr int bits = 32;
    static float number(unsigned code) { return cut_tf32(bits_as<float>(code)); }
};
template <> struct Element<e4m3> {
    using Number = float;
    static constexpr int bits = 8;
    static float number(unsigned code) { return E4M3::decode(code); }
};
template <> struct Element<e5m2> {
    using Number = float;
    static constexpr int bits = 8;
    static float number(unsigned code) { return E5M2::decode(code); }
};
template <int BITS, bool IS_SIGNED> struct Whole {
    using Number = int;
    static constexpr int bits = BITS;
    static int number(unsigned code) {
        return IS_SIGNED ? int(code << (32 - BITS)) >> (32 - BITS) : int(code);
    }
};
template <> struct Element<s8> : Whole<8, true> {};
template <> struct Element<u8> : Whole<8, false> {};
template <> struct Element<s4> : Whole<4, true> {};
template <> struct Element<u4> : Whole<4, false> {};

// One row of products: sums[n] += sum over k of a[k] b[k][n].
template <int N, int K, typename T> void add_products(T (&sums)[N], const T* a, const T (*b)[N]) {
    for (int k = 0; k < K; ++k)
        for (int n = 0; n < N; ++n) sums[n] += a[k] * b[k][n];
}
template <int N, int K>
void add_products(std::int64_t (&sums)[N], const int* a, const int (*b)[N]) {
    for (int k = 0; k < K; ++k)
        for (int n = 0; n < N; ++n) sums[n] += std::int64_t(a[k]) * b[k][n];
}
inline int whole_sum(std::int64_t sum, bool is_clamped) {
    return is_clamped ? saturated<int>(double(sum)) : int(std::uint32_t(sum));
}

}  // namespace kw::tensor
