// SPDX-License-Identifier: Apache-2.0
// What half and bfloat16 have in common: arithmetic, comparisons, mathematics (CUDA Math API, "Half
// Precision Intrinsics" and "Bfloat16 Precision Intrinsics"). Each answer is rounded once, to the
// nearest with ties to even; denormals are kept.
#pragma once

namespace kw {

// Functions are friends of a base, so that a call with one such argument converts the others.
template <typename H> struct HalfArithmetic {
    friend H operator+(H a, H b) { return H::nearest(float(a) + float(b)); }
    friend H operator-(H a, H b) { return H::nearest(float(a) - float(b)); }
    friend H operator*(H a, H b) { return H::nearest(double(float(a)) * double(float(b))); }
    friend H operator/(H a, H b) { return H::nearest(float(a) / float(b)); }
    friend H operator-(H a) { return H::of_bits(a.bits ^ 0x8000); }
    friend H operator+(H a) { return a; }
    friend H& operator+=(H& a, H b) { return a = a + b; }
    friend H& operator-=(H& a, H b) { return a = a - b; }
    friend H& operator*=(H& a, H b) { return a = a * b; }
    friend H& operator/=(H& a, H b) { return a = a / b; }
    friend H& operator++(H& a) { return a = a + H(1); }
    friend H& operator--(H& a) { return a = a - H(1); }
    friend H operator++(H& a, int) { const H was = a; ++a; return was; }
    friend H operator--(H& a, int) { const H was = a; --a; return was; }

    friend H __hadd(H a, H b) { return a + b; }
    friend H __hsub(H a, H b) { return a - b; }
    friend H __hmul(H a, H b) { return a * b; }
    friend H __hdiv(H a, H b) { return a / b; }
    friend H __hadd_rn(H a, H b) { return a + b; }
    friend H __hsub_rn(H a, H b) { return a - b; }
    friend H __hmul_rn(H a, H b) { return a * b; }
    friend H __hfma(H a, H b, H c) {
        return H::nearest(odd_sum(double(float(a)) * double(float(b)), double(float(c))));
    }
    // To [0, 1], and NaN to zero. Both ends are numbers of the type: to cut rounded numbers is to
    // round cut ones.
    friend H kw_saturated(H a) { return H::nearest(__saturatef(float(a))); }
    friend H kw_not_negative(H a) {
        return a != a ? H::of_bits(0x7fff) : float(a) > 0 ? a : H::of_bits(0);
    }
    friend H __hadd_sat(H a, H b) { return kw_saturated(a + b); }
    friend H __hsub_sat(H a, H b) { return kw_saturated(a - b); }
    friend H __hmul_sat(H a, H b) { return kw_saturated(a * b); }
    friend H __hfma_sat(H a, H b, H c) { return kw_saturated(__hfma(a, b, c)); }
    friend H __hfma_relu(H a, H b, H c) { return kw_not_negative(__hfma(a, b, c)); }
    friend H __hneg(H a) { return -a; }
    friend H __habs(H a) { return H::of_bits(a.bits & 0x7fff); }
};

#define KW_COMPARED(NAME, OP)                                                              \
    friend bool operator OP(H a, H b) { return float(a) OP float(b); }                     \
    friend bool __h##NAME##u(H a, H b) {                                                   \
        return __hisnan(a) || __hisnan(b) || float(a) OP float(b);                         \
    }
template <typename H> struct HalfComparisons {
    KW_COMPARED(eq, ==) KW_COMPARED(ne, !=) KW_COMPARED(lt, <)
    KW_COMPARED(le, <=) KW_COMPARED(gt, >) KW_COMPARED(ge, >=)
    friend bool __heq(H a, H b) { return a == b; }
    friend bool __hne(H a, H b) { return a < b || a > b; }
    friend bool __hlt(H a, H b) { return a < b; }
    friend bool __hle(H a, H b) { return a <= b; }
    friend bool __hgt(H a, H b) { return a > b; }
    friend bool __hge(H a, H b) { return a >= b; }
    friend bool __hisnan(H a) { return float(a) != float(a); }
    friend int __hisinf(H a) { return std::isinf(float(a)) ? (float(a) > 0 ? 1 : -1) : 0; }
    // The other one where one is NaN; +0 is above -0.
    friend H __hmax(H a, H b) {
        if (__hisnan(a)) return __hisnan(b) ? H::of_bits(0x7fff) : b;
        if (__hisnan(b)) return a;
        return a == b ? H::of_bits(a.bits & b.bits) : a > b ? a : b;
    }
    friend H __hmin(H a, H b) {
        if (__hisnan(a)) return __hisnan(b) ? H::of_bits(0x7fff) : b;
        if (__hisnan(b)) return a;
        return a == b ? H::of_bits(a.bits | b.bits) : a < b ? a : b;
    }
    friend H __hmax_nan(H a, H b) {
        return __hisnan(a) || __hisnan(b) ? H::of_bits(0x7fff) : __hmax(a, b);
    }
    friend H __hmin_nan(H a, H b) {
        return __hisnan(a) || __hisnan(b) ? H::of_bits(0x7fff) : __hmin(a, b);
    }
};
#undef KW_COMPARED

#define KW_MATHEMATICS(NAME, ANSWER) \
    friend H NAME(H a) { const float x = float(a); return H::nearest(ANSWER); }
template <typename H> struct HalfMathematics {
    KW_MATHEMATICS(hexp, std::exp(x)) KW_MATHEMATICS(hexp2, std::exp2(x))
    KW_MATHEMATICS(hexp10, std::pow(10.0, double(x)))
    KW_MATHEMATICS(hlog, std::log(x)) KW_MATHEMATICS(hlog2, std::log2(x))
    KW_MATHEMATICS(hlog10, std::log10(x))
    KW_MATHEMATICS(hsqrt, std::sqrt(x)) KW_MATHEMATICS(hrsqrt, 1.0 / std::sqrt(double(x)))
    KW_MATHEMATICS(hrcp, 1.0f / x)
    KW_MATHEMATICS(hsin, std::sin(x)) KW_MATHEMATICS(hcos, std::cos(x))
    KW_MATHEMATICS(htanh, std::tanh(x)) KW_MATHEMATICS(htanh_approx, __tanhf(x))
    KW_MATHEMATICS(hfloor, std::floor(x)) KW_MATHEMATICS(hceil, std::ceil(x))
    KW_MATHEMATICS(htrunc, std::trunc(x)) KW_MATHEMATICS(hrint, std::nearbyint(x))
};
#undef KW_MATHEMATICS

}  // namespace kw
