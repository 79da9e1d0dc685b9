// SPDX-License-Identifier: Apache-2.0
// mma.sync: the fragments of PTX ISA, "Matrix Fragments for mma.m16n8k8" and its kin.
//
// With e elements in a register, group = lane / 4 and place = lane % 4, element j of register r is
//   of A: row group + 8 (r mod 2), column place e + j + 4 e (r / 2);
//   of B: row place e + j + 4 e r, column group;
//   of C and D: row group + 8 (i / 2), column 2 place + i mod 2, for value i.
#pragma once

namespace kw::tensor {

// M is 16 or 8; N is always 8.
template <typename A, typename B, int M, int K> struct Shape {
    using Number = typename Element<A>::Number;
    static constexpr int bits = Element<A>::bits, of_word = 32 / bits;
    static constexpr int halves = M / 8, depth = K / (4 * of_word);  // of A by rows; registers by k
    static constexpr int registers_a = halves * depth, registers_b = depth, values = 2 * halves;
    static_assert(Element<B>::bits == bits && depth >= 1);
};

// What one lane gives, and gets.
template <int REGISTERS_A, int REGISTERS_B, int VALUES> struct Operands {
    std::uint32_t a[REGISTERS_A], b[REGISTERS_B], c[VALUES];
};

template <typename T, int BITS> typename Element<T>::Number part(std::uint32_t word, int place) {
    return Element<T>::number(BITS == 32 ? word : word >> place * BITS & ((1ull << BITS) - 1));
}

// The instructions that a whole warp executes are undefined without all of its lanes.
inline void require_whole(Parts parts, unsigned lanes) {
    if (lanes == 0xffffffffu) return;
    trap("a matrix instruction in a warp of which lanes are missing",
         parts[__builtin_ctz(lanes)]->argument);
}

// C and D hold float32 or int32 in a word for each value. HALVES: they are rounded to half when
// the product is done. CLAMPS: sums of whole numbers saturate.
template <typename A, typename B, int M, int K, bool HALVES, bool CLAMPS> struct Product {
    using S = Shape<A, B, M, K>;
    using Number = typename S::Number;
    using Given = Operands<S::registers_a, S::registers_b, S::values>;
    static constexpr bool IS_WHOLE = std::is_same_v<Number, int>;
    using Sum = std::conditional_t<IS_WHOLE, std::int64_t, float>;

    static Sum number(std::uint32_t word) {
        if constexpr (IS_WHOLE) return int(word);
        else return HALVES ? HalfFormat::widen(std::uint16_t(word)) : bits_as<float>(word);
    }
    static std::uint32_t word(Sum sum) {
        if constexpr (IS_WHOLE) return std::uint32_t(whole_sum(sum, CLAMPS));
        else return HALVES ? HalfFormat::narrow(sum) : bits_as<std::uint32_t>(sum);
    }
    static KW_UNSEEN void run(Parts parts, unsigned lanes) {
        require_whole(parts, lanes);
        Number a[M][K], b[K][8];
        for (int lane = 0; lane < 32; ++lane) {
            const auto* given = static_cast<const Given*>(parts[lane]->in);
            const int group = lane / 4, first = lane % 4 * S::of_word;
            for (int r = 0; r < S::registers_a; ++r)
                for (int j = 0; j < S::of_word; ++j)
                    a[group + 8 * (r % S::halves)][first + j + 4 * S::of_word * (r / S::halves)] =
                        part<A, S::bits>(given->a[r], j);
            for (int r = 0; r < S::registers_b; ++r)
                for (int j = 0; j < S::of_word; ++j)
                    b[first + j + 4 * S::of_word * r][group] = part<B, S::bits>(given->b[r], j);
        }
        for (int row = 0; row < M; ++row) {
            Sum sums[8];
            const auto lane_of = [row](int n) { return row % 8 * 4 + n / 2; };
            const auto value_of = [row](int n) { return row / 8 * 2 + n % 2; };
            for (int n = 0; n < 8; ++n)
                sums[n] = number(static_cast<const Given*>(parts[lane_of(n)]->in)->c[value_of(n)]);
            add_products<8, K>(sums, a[row], b);
            for (int n = 0; n < 8; ++n)
                static_cast<std::uint32_t*>(parts[lane_of(n)]->out)[value_of(n)] = word(sums[n]);
        }
    }
};

template <typename A, typename B, int M, int K, bool HALVES = false, bool CLAMPS = false>
void multiply(std::uint32_t (&d)[Shape<A, B, M, K>::values],
              const std::uint32_t (&a)[Shape<A, B, M, K>::registers_a],
              const std::uint32_t (&b)[Shape<A, B, M, K>::registers_b],
              const std::uint32_t (&c)[Shape<A, B, M, K>::values], KW_LINE) {
    using P = Product<A, B, M, K, HALVES, CLAMPS>;
    typename P::Given given;
    std::memcpy(given.a, a, sizeof a);
    std::memcpy(given.b, b, sizeof b);
    std::memcpy(given.c, c, sizeof c);
    rendezvous(0xffffffffu, P::run, {&given, d, sizeof given, line}, line);
}

// Accumulators in half: two of them in a register.
template <typename A, typename B, int M, int K>
void multiply_halves(std::uint32_t (&d)[Shape<A, B, M, K>::values / 2],
                     const std::uint32_t (&a)[Shape<A, B, M, K>::registers_a],
                     const std::uint32_t (&b)[Shape<A, B, M, K>::registers_b],
                     const std::uint32_t (&c)[Shape<A, B, M, K>::values / 2], KW_LINE) {
    std::uint32_t wide[Shape<A, B, M, K>::values], sums[Shape<A, B, M, K>::values];
    for (unsigned i = 0; i < std::size(wide); ++i) wide[i] = c[i / 2] >> i % 2 * 16 & 0xffff;
    multiply<A, B, M, K, true>(sums, a, b, wide, line);
    for (unsigned i = 0; i < std::size(d); ++i) d[i] = sums[2 * i] | sums[2 * i + 1] << 16;
}

}  // namespace kw::tensor
