// SPDX-License-Identifier: Apache-2.0
// Integers packed into one word: four of 8 bits, or two of 16.
#pragma once

namespace kw {

// Applies f to the parts of both words, each widened to int, and packs the low bits of the answers.
template <typename T, typename F> unsigned packed(unsigned a, unsigned b, F f) {
    constexpr int BITS = int(sizeof(T)) * 8;
    constexpr unsigned MASK = (1u << BITS) - 1;
    unsigned out = 0;
    for (int i = 0; i < 32; i += BITS) out |= (unsigned(f(int(T(a >> i)), int(T(b >> i)))) & MASK) << i;
    return out;
}
template <typename T> int clamped(int x) {
    const int low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
    return x < low ? low : x > high ? high : x;
}
template <typename T, typename F> unsigned summed(unsigned a, unsigned b, F f) {
    unsigned sum = 0;
    for (int i = 0; i < 32; i += int(sizeof(T)) * 8) sum += unsigned(f(int(T(a >> i)), int(T(b >> i))));
    return sum;
}

}  // namespace kw

#define KW_PACKED(NAME, T, ANSWER)                                           \
    inline unsigned NAME(unsigned one, unsigned other) {                     \
        return kw::packed<T>(one, other, [](int a, int b) { return ANSWER; }); \
    }
#define KW_PACKED_ONE(NAME, T, ANSWER)                                     \
    inline unsigned NAME(unsigned one) {                                   \
        return kw::packed<T>(one, one, [](int a, int) { return ANSWER; }); \
    }
#define KW_COMPARED(N, T, SIGN, NAME, OP)            \
    KW_PACKED(__vcmp##NAME##SIGN##N, T, a OP b ? -1 : 0) \
    KW_PACKED(__vset##NAME##SIGN##N, T, a OP b ? 1 : 0)
#define KW_WIDTH(N, S, U)                                                          \
    KW_PACKED(__vadd##N, U, a + b)                                                 \
    KW_PACKED(__vsub##N, U, a - b)                                                 \
    KW_PACKED(__vaddss##N, S, kw::clamped<S>(a + b))                               \
    KW_PACKED(__vaddus##N, U, kw::clamped<U>(a + b))                               \
    KW_PACKED(__vsubss##N, S, kw::clamped<S>(a - b))                               \
    KW_PACKED(__vsubus##N, U, kw::clamped<U>(a - b))                               \
    KW_PACKED(__vmaxs##N, S, a < b ? b : a)                                        \
    KW_PACKED(__vmaxu##N, U, a < b ? b : a)                                        \
    KW_PACKED(__vmins##N, S, b < a ? b : a)                                        \
    KW_PACKED(__vminu##N, U, b < a ? b : a)                                        \
    KW_PACKED(__vavgu##N, U, (a + b + 1) >> 1)                                     \
    KW_PACKED(__vhaddu##N, U, (a + b) >> 1)                                        \
    KW_PACKED(__vabsdiffu##N, U, a < b ? b - a : a - b)                            \
    KW_PACKED(__vabsdiffs##N, S, a < b ? b - a : a - b)                            \
    KW_PACKED_ONE(__vneg##N, S, -a)                                                \
    KW_PACKED_ONE(__vnegss##N, S, kw::clamped<S>(-a))                              \
    KW_PACKED_ONE(__vabs##N, S, a < 0 ? -a : a)                                    \
    KW_PACKED_ONE(__vabsss##N, S, kw::clamped<S>(a < 0 ? -a : a))                  \
    KW_COMPARED(N, U, , eq, ==) KW_COMPARED(N, U, , ne, !=)                        \
    KW_COMPARED(N, S, s, gt, >) KW_COMPARED(N, U, u, gt, >)                        \
    KW_COMPARED(N, S, s, ge, >=) KW_COMPARED(N, U, u, ge, >=)                      \
    KW_COMPARED(N, S, s, lt, <) KW_COMPARED(N, U, u, lt, <)                        \
    KW_COMPARED(N, S, s, le, <=) KW_COMPARED(N, U, u, le, <=)                      \
    inline unsigned __vsads##N(unsigned one, unsigned other) {                     \
        return kw::summed<S>(one, other, [](int a, int b) { return a < b ? b - a : a - b; }); \
    }                                                                              \
    inline unsigned __vsadu##N(unsigned one, unsigned other) {                     \
        return kw::summed<U>(one, other, [](int a, int b) { return a < b ? b - a : a - b; }); \
    }
KW_WIDTH(2, std::int16_t, std::uint16_t)
KW_WIDTH(4, std::int8_t, std::uint8_t)
#undef KW_WIDTH
#undef KW_COMPARED
#undef KW_PACKED
#undef KW_PACKED_ONE
