#include <cstring>
#include <math.h>
#include <algorithm>
#include <vector>

namespace {
constexpr long KEYS = 128;  // of a block: short sums in float, those of blocks in double

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

extern "C" void attention(
    int M, int N, int L, int P, int R, const float* __restrict Q, const float* __restrict K,
    const float* __restrict V, float* __restrict y1) {
    const float scale = (float)(1 / sqrt((double)P));
#pragma omp parallel if ((long)M * N * L * R * P > 100000)
    {
        std::vector<float> scores(R), part(P);
        std::vector<double> mixed(P);
        float *weights = scores.data(), *some = part.data();
        double* all = mixed.data();
#pragma omp for
        for (long query = 0; query < (long)M * N * L; ++query) {
            const float *q = Q + query * P, *k = K + query / L * R * P, *v = V + query / L * R * P;
            float most = -INFINITY;
            for (long j = 0; j < R; ++j) {
                float dot = 0;
#pragma omp simd reduction(+ : dot)
                for (long d = 0; d < P; ++d) dot += q[d] * k[j * P + d];
                weights[j] = dot * scale;
                most = fmaxf(most, weights[j]);
            }
            double sum = 0;
            std::fill(all, all + P, 0.0);
            for (long first = 0; first < R; first += KEYS) {
                const long last = std::min<long>(first + KEYS, R);
                float short_sum = 0;
#pragma omp simd reduction(+ : short_sum)
                for (long j = first; j < last; ++j)
                    short_sum += weights[j] = exp_of(weights[j] - most);
                sum += short_sum;
                std::fill(some, some + P, 0.0f);
                for (long j = first; j < last; ++j) {
#pragma omp simd
                    for (long d = 0; d < P; ++d) some[d] += weights[j] * v[j * P + d];
                }
                for (long d = 0; d < P; ++d) all[d] += some[d];
            }
            for (long d = 0; d < P; ++d) y1[query * P + d] = (float)(all[d] / sum);
        }
    }
}
