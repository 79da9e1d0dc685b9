#include <cstring>

namespace {
inline float exp_of(float v) {
    v = v < -87.3f ? -87.3f : v > 88.9f ? 88.9f : v;
    const float n = (v * 1.44269504f + 12582912.f) - 12582912.f;
    const float r = (v - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1;
    const int bits = ((int)n + 127) << 23;
    float power;
    memcpy(&power, &bits, 4);
    return p * power;
}
}  // namespace

extern "C" void swish(
    int M, int N, int K, int L, const float* __restrict x, float* __restrict y1) {
    const long count = (long)M * N * K * L;
#pragma omp parallel for simd if (count > 20000)
    for (long i = 0; i < count; ++i) y1[i] = x[i] / (1 + exp_of(-x[i]));
}
