// SPDX-License-Identifier: Apache-2.0
// Atomic operations, real ones: blocks run on several threads of the operating system.
#pragma once

namespace kw {

template <std::size_t> struct Word;
template <> struct Word<2> { using type = std::uint16_t; };
template <> struct Word<4> { using type = std::uint32_t; };
template <> struct Word<8> { using type = std::uint64_t; };

// Replaces *at by f(*at) and returns what was there.
template <typename T, typename F> KW_UNSEEN T update(T* at, const F& f, int line) {
    using W = typename Word<sizeof(T)>::type;
    note_atomic(at, sizeof(T), line);
    auto* word = reinterpret_cast<W*>(at);
    W seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    for (;;) {
        T old;
        std::memcpy(&old, &seen, sizeof old);
        const T next = f(old);
        W wanted;
        std::memcpy(&wanted, &next, sizeof wanted);
        if (__atomic_compare_exchange_n(word, &seen, wanted, true, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED))
            return old;
    }
}

template <typename T> using Same = std::type_identity_t<T>;

// Sums wrap, as they do in CUDA; for the compiler a signed overflow would be undefined.
template <typename T> T wrapped_sum(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        using U = std::make_unsigned_t<T>;
        return T(U(a) + U(b));
    } else {
        return a + b;
    }
}

inline bool is_denormal(float x) { return std::fpclassify(x) == FP_SUBNORMAL; }
inline float flushed(float x) { return is_denormal(x) ? std::copysign(0.0f, x) : x; }

// On global memory a device's atomic sum of float32 takes denormals for zeros and gives none; on
// shared memory it keeps them, as sums of double and half do (PTX ISA, atom).
inline float atomic_sum(const float* at, float old, float v) {
    const float sum = old + v;
    const bool is_touched = is_denormal(old) || is_denormal(v) || is_denormal(sum);
    return !is_touched || is_shared(at) ? sum : flushed(flushed(old) + flushed(v));
}

}  // namespace kw

template <typename T> T atomicAdd(T* at, kw::Same<T> v, KW_LINE) {
    if constexpr (std::is_same_v<T, float>)
        return kw::update(at, [=](T old) { return kw::atomic_sum(at, old, v); }, line);
    else
        return kw::update(at, [v](T old) { return kw::wrapped_sum(old, v); }, line);
}
template <typename T> T atomicSub(T* at, kw::Same<T> v, KW_LINE) {
    using U = std::make_unsigned_t<T>;
    return kw::update(at, [v](T old) { return T(U(old) - U(v)); }, line);
}
template <typename T> T atomicMin(T* at, kw::Same<T> v, KW_LINE) {
    return kw::update(at, [v](T old) { return v < old ? v : old; }, line);
}
template <typename T> T atomicMax(T* at, kw::Same<T> v, KW_LINE) {
    return kw::update(at, [v](T old) { return old < v ? v : old; }, line);
}
template <typename T> T atomicAnd(T* at, kw::Same<T> v, KW_LINE) {
    return kw::update(at, [v](T old) { return T(old & v); }, line);
}
template <typename T> T atomicOr(T* at, kw::Same<T> v, KW_LINE) {
    return kw::update(at, [v](T old) { return T(old | v); }, line);
}
template <typename T> T atomicXor(T* at, kw::Same<T> v, KW_LINE) {
    return kw::update(at, [v](T old) { return T(old ^ v); }, line);
}
template <typename T> T atomicExch(T* at, kw::Same<T> v, KW_LINE) {
    return kw::update(at, [v](T) { return v; }, line);
}
template <typename T> T atomicCAS(T* at, kw::Same<T> compare, kw::Same<T> v, KW_LINE) {
    return kw::update(at, [=](T old) { return old == compare ? v : old; }, line);
}
inline unsigned atomicInc(unsigned* at, unsigned limit, KW_LINE) {
    return kw::update(at, [=](unsigned old) { return old >= limit ? 0u : old + 1; }, line);
}
inline unsigned atomicDec(unsigned* at, unsigned limit, KW_LINE) {
    return kw::update(
        at, [=](unsigned old) { return old == 0 || old > limit ? limit : old - 1; }, line);
}
inline float2 atomicAdd(float2* at, float2 v, KW_LINE) {
    return {atomicAdd(&at->x, v.x, line), atomicAdd(&at->y, v.y, line)};
}
inline float4 atomicAdd(float4* at, float4 v, KW_LINE) {
    return {atomicAdd(&at->x, v.x, line), atomicAdd(&at->y, v.y, line),
            atomicAdd(&at->z, v.z, line), atomicAdd(&at->w, v.w, line)};
}

// The scopes differ in speed only.
#define atomicAdd_block atomicAdd
#define atomicSub_block atomicSub
#define atomicMin_block atomicMin
#define atomicMax_block atomicMax
#define atomicInc_block atomicInc
#define atomicDec_block atomicDec
#define atomicAnd_block atomicAnd
#define atomicOr_block atomicOr
#define atomicXor_block atomicXor
#define atomicExch_block atomicExch
#define atomicCAS_block atomicCAS
#define atomicAdd_system atomicAdd
#define atomicSub_system atomicSub
#define atomicMin_system atomicMin
#define atomicMax_system atomicMax
#define atomicInc_system atomicInc
#define atomicDec_system atomicDec
#define atomicAnd_system atomicAnd
#define atomicOr_system atomicOr
#define atomicXor_system atomicXor
#define atomicExch_system atomicExch
#define atomicCAS_system atomicCAS
