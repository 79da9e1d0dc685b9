#include <cstring>
#include <math.h>
#include <algorithm>

namespace {
constexpr int WIDE = 256;

// Of a normal, positive number: m in [sqrt(1/2), sqrt(2)) by a polynomial, and its exponent.
inline float log_of(float v) {
    int bits;
    memcpy(&bits, &v, 4);
    const int power = (bits - 0x3f3504f3) >> 23;
    bits -= power << 23;
    float m;
    memcpy(&m, &bits, 4);
    m -= 1;
    float p = 7.0376836292e-2f;
    p = p * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    const float square = m * m, e = (float)power;
    return (m + (p * m * square - 0.5f * square + e * -2.12194440e-4f)) + e * 0.693359375f;
}

inline bool is_usual(float v) { return (v >= 1.2e-38f) & (v < 3e38f); }
}  // namespace

extern "C" void kl_div_loss(
    int M, int N, const float* __restrict predictions, const float* __restrict targets, float* y1) {
    const long count = (long)M * N;
    double sum = 0;
#pragma omp parallel for reduction(+ : sum) if (count > 20000)
    for (long first = 0; first < count; first += WIDE) {
        const long wide = std::min<long>(WIDE, count - first);
        const float *p = predictions + first, *t = targets + first;
        int usual = 1;
#pragma omp simd reduction(& : usual)
        for (long i = 0; i < wide; ++i) usual &= is_usual(p[i]) & is_usual(t[i]);
        double part = 0;
        if (usual) {
#pragma omp simd reduction(+ : part)
            for (long i = 0; i < wide; ++i) part += (double)t[i] * (log_of(t[i]) - log_of(p[i]));
        } else {
            for (long i = 0; i < wide; ++i) {
                if (t[i] > 0) part += t[i] * log((double)t[i]);
                part -= t[i] * log((double)p[i]);
            }
        }
        sum += part;
    }
    *y1 = (float)(sum / M);
}
