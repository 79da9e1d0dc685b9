// SPDX-License-Identifier: Apache-2.0
// Two of half or of bfloat16 in one word: each function does for both what it does for one.
#pragma once

struct __attribute__((aligned(4))) __half2_raw { unsigned short x, y; };
struct __attribute__((aligned(4))) __nv_bfloat162_raw { unsigned short x, y; };

namespace kw {

template <typename F> struct PairRaw;
template <> struct PairRaw<HalfFormat> { using type = __half2_raw; };
template <> struct PairRaw<BrainFormat> { using type = __nv_bfloat162_raw; };

#define KW_OF_ONE(NAME, ONE) friend P NAME(P a) { return {ONE(a.x), ONE(a.y)}; }
#define KW_OF_TWO(NAME, ONE) friend P NAME(P a, P b) { return {ONE(a.x, b.x), ONE(a.y, b.y)}; }
#define KW_OF_THREE(NAME, ONE) \
    friend P NAME(P a, P b, P c) { return {ONE(a.x, b.x, c.x), ONE(a.y, b.y, c.y)}; }
// As numbers, as masks, and whether it holds for both; the names with u hold for NaN, too.
#define KW_COMPARED(NAME)                                                                \
    friend P __h##NAME##2(P a, P b) {                                                    \
        return {H(float(__h##NAME(a.x, b.x))), H(float(__h##NAME(a.y, b.y)))};           \
    }                                                                                    \
    friend unsigned __h##NAME##2_mask(P a, P b) {                                        \
        return (__h##NAME(a.x, b.x) ? 0xffffu : 0) | (__h##NAME(a.y, b.y) ? 0xffff0000u : 0); \
    }                                                                                    \
    friend bool __hb##NAME##2(P a, P b) { return __h##NAME(a.x, b.x) && __h##NAME(a.y, b.y); }

template <typename P, typename H> struct PairFunctions {
    friend P operator+(P a, P b) { return {a.x + b.x, a.y + b.y}; }
    friend P operator-(P a, P b) { return {a.x - b.x, a.y - b.y}; }
    friend P operator*(P a, P b) { return {a.x * b.x, a.y * b.y}; }
    friend P operator/(P a, P b) { return {a.x / b.x, a.y / b.y}; }
    friend P operator-(P a) { return {-a.x, -a.y}; }
    friend P operator+(P a) { return a; }
    friend P& operator+=(P& a, P b) { return a = a + b; }
    friend P& operator-=(P& a, P b) { return a = a - b; }
    friend P& operator*=(P& a, P b) { return a = a * b; }
    friend P& operator/=(P& a, P b) { return a = a / b; }
    friend bool operator==(P a, P b) { return __hbeq2(a, b); }
    friend bool operator!=(P a, P b) { return __hbneu2(a, b); }
    friend bool operator<(P a, P b) { return __hblt2(a, b); }
    friend bool operator<=(P a, P b) { return __hble2(a, b); }
    friend bool operator>(P a, P b) { return __hbgt2(a, b); }
    friend bool operator>=(P a, P b) { return __hbge2(a, b); }

    KW_OF_TWO(__hadd2, __hadd) KW_OF_TWO(__hsub2, __hsub) KW_OF_TWO(__hmul2, __hmul)
    KW_OF_TWO(__h2div, __hdiv)
    KW_OF_TWO(__hadd2_rn, __hadd) KW_OF_TWO(__hsub2_rn, __hsub) KW_OF_TWO(__hmul2_rn, __hmul)
    KW_OF_TWO(__hadd2_sat, __hadd_sat) KW_OF_TWO(__hsub2_sat, __hsub_sat)
    KW_OF_TWO(__hmul2_sat, __hmul_sat)
    KW_OF_THREE(__hfma2, __hfma) KW_OF_THREE(__hfma2_sat, __hfma_sat)
    KW_OF_THREE(__hfma2_relu, __hfma_relu)
    KW_OF_ONE(__hneg2, __hneg) KW_OF_ONE(__habs2, __habs)
    KW_OF_TWO(__hmax2, __hmax) KW_OF_TWO(__hmin2, __hmin)
    KW_OF_TWO(__hmax2_nan, __hmax_nan) KW_OF_TWO(__hmin2_nan, __hmin_nan)
    KW_COMPARED(eq) KW_COMPARED(ne) KW_COMPARED(lt) KW_COMPARED(le) KW_COMPARED(gt) KW_COMPARED(ge)
    KW_COMPARED(equ) KW_COMPARED(neu) KW_COMPARED(ltu) KW_COMPARED(leu) KW_COMPARED(gtu)
    KW_COMPARED(geu)
    friend P __hisnan2(P a) { return {H(float(__hisnan(a.x))), H(float(__hisnan(a.y)))}; }
    // A product of complex numbers and a sum: real parts in x.
    friend P __hcmadd(P a, P b, P c) {
        return {__hfma(-a.y, b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y))};
    }
    KW_OF_ONE(h2exp, hexp) KW_OF_ONE(h2exp2, hexp2) KW_OF_ONE(h2exp10, hexp10)
    KW_OF_ONE(h2log, hlog) KW_OF_ONE(h2log2, hlog2) KW_OF_ONE(h2log10, hlog10)
    KW_OF_ONE(h2sqrt, hsqrt) KW_OF_ONE(h2rsqrt, hrsqrt) KW_OF_ONE(h2rcp, hrcp)
    KW_OF_ONE(h2sin, hsin) KW_OF_ONE(h2cos, hcos)
    KW_OF_ONE(h2tanh, htanh) KW_OF_ONE(h2tanh_approx, htanh_approx)
    KW_OF_ONE(h2floor, hfloor) KW_OF_ONE(h2ceil, hceil) KW_OF_ONE(h2trunc, htrunc)
    KW_OF_ONE(h2rint, hrint)
    friend P __lowhigh2highlow(P a) { return {a.y, a.x}; }
    friend float __low2float(P a) { return float(a.x); }
    friend float __high2float(P a) { return float(a.y); }
};
#undef KW_COMPARED
#undef KW_OF_ONE
#undef KW_OF_TWO
#undef KW_OF_THREE

template <typename F>
struct __attribute__((aligned(4))) Pair16 : PairFunctions<Pair16<F>, Float16<F>> {
    using H = Float16<F>;
    using Raw = typename PairRaw<F>::type;
    H x, y;

    Pair16() = default;
    Pair16(H x, H y) : x(x), y(y) {}
    Pair16(Raw raw) : x(H::of_bits(raw.x)), y(H::of_bits(raw.y)) {}
    operator Raw() const { return {x.bits, y.bits}; }
};

}  // namespace kw

using __half2 = kw::Pair16<kw::HalfFormat>;
using half2 = __half2;
using __nv_bfloat162 = kw::Pair16<kw::BrainFormat>;
using nv_bfloat162 = __nv_bfloat162;
