// SPDX-License-Identifier: Apache-2.0
// Mathematics that few kernels use: inverse error functions, norms, functions of pi x, conversions
// of long long. Exact as far as double goes.
#pragma once

inline double erfcinv(double y) {
    if (!(y > 0.0 && y < 2.0)) {
        return y == 0.0 ? INFINITY : y == 2.0 ? -INFINITY : std::numeric_limits<double>::quiet_NaN();
    }
    if (y > 1.0) return -erfcinv(2.0 - y);
    // A rough start, then Newton's steps.
    const double log_term = std::log(y * (2.0 - y)), half = 2.0 / (M_PI * 0.147) + log_term / 2;
    double x = std::sqrt(std::sqrt(half * half - log_term / 0.147) - half);
    for (int i = 0; i < 6; ++i) x += (std::erfc(x) - y) / (M_2_SQRTPI * std::exp(-x * x));
    return x;
}
inline double erfinv(double y) {
    if (y != y || std::fabs(y) > 0.5) return y < 0 ? -erfcinv(1.0 + y) : erfcinv(1.0 - y);
    double x = y / M_2_SQRTPI;
    for (int i = 0; i < 6; ++i) x -= (std::erf(x) - y) / (M_2_SQRTPI * std::exp(-x * x));
    return x;
}
inline double erfcx(double x) {
    if (x < 20.0) return std::exp(x * x) * std::erfc(x);
    const double r = 1.0 / (x * x);
    return M_2_SQRTPI / 2 / x * (1.0 - r / 2 * (1.0 - r * 3 / 2 * (1.0 - r * 5 / 2)));
}
inline double normcdf(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }
inline double normcdfinv(double p) { return -M_SQRT2 * erfcinv(2.0 * p); }
inline double sinpi(double x) { return std::sin(M_PI * std::remainder(x, 2.0)); }
inline double cospi(double x) { return std::cos(M_PI * std::remainder(x, 2.0)); }
inline void sincospi(double x, double* s, double* c) { *s = sinpi(x), *c = cospi(x); }
inline void sincospif(float x, float* s, float* c) { *s = float(sinpi(x)), *c = float(cospi(x)); }
inline double rcbrt(double x) { return 1.0 / std::cbrt(x); }
inline double norm(int n, const double* v) {
    double sum = 0.0;
    for (int i = 0; i < n; ++i) sum += v[i] * v[i];
    return std::sqrt(sum);
}
inline double norm3d(double a, double b, double c) { return std::hypot(a, b, c); }
inline double norm4d(double a, double b, double c, double d) {
    return std::hypot(std::hypot(a, b), std::hypot(c, d));
}
inline double rhypot(double a, double b) { return 1.0 / std::hypot(a, b); }
inline double rnorm(int n, const double* v) { return 1.0 / norm(n, v); }
inline double rnorm3d(double a, double b, double c) { return 1.0 / norm3d(a, b, c); }
inline double rnorm4d(double a, double b, double c, double d) { return 1.0 / norm4d(a, b, c, d); }
inline float normf(int n, const float* v) {
    double sum = 0.0;
    for (int i = 0; i < n; ++i) sum += double(v[i]) * v[i];
    return float(std::sqrt(sum));
}
inline float rnormf(int n, const float* v) { return 1.0f / normf(n, v); }
inline float norm4df(float a, float b, float c, float d) { return float(norm4d(a, b, c, d)); }
inline float rnorm4df(float a, float b, float c, float d) { return 1.0f / norm4df(a, b, c, d); }
inline float erfinvf(float x) { return float(erfinv(x)); }
inline float erfcinvf(float x) { return float(erfcinv(x)); }
inline float erfcxf(float x) { return float(erfcx(x)); }
inline float normcdfinvf(float x) { return float(normcdfinv(x)); }

inline long long llmax(long long a, long long b) { return a < b ? b : a; }
inline long long llmin(long long a, long long b) { return b < a ? b : a; }
inline unsigned long long ullmax(unsigned long long a, unsigned long long b) { return a < b ? b : a; }
inline unsigned long long ullmin(unsigned long long a, unsigned long long b) { return b < a ? b : a; }
inline unsigned __urhadd(unsigned a, unsigned b) { return unsigned((std::uint64_t(a) + b + 1) >> 1); }

#define KW_LONG(MODE, ROUND)                                                        \
    inline double __ll2double_##MODE(long long x) { return double(x); }             \
    inline double __ull2double_##MODE(unsigned long long x) { return double(x); }   \
    inline double __drcp_##MODE(double x) { return 1.0 / x; }                       \
    inline unsigned long long __double2ull_##MODE(double x) {                       \
        return kw::saturated<unsigned long long>(ROUND(x));                         \
    }
KW_LONG(rn, std::nearbyint)
KW_LONG(rz, std::trunc)
KW_LONG(ru, std::ceil)
KW_LONG(rd, std::floor)
#undef KW_LONG
