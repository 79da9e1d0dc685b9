#include <math.h>
#include <vector>

extern "C" void causal_attention(
    int M, int N, const float* __restrict x, const float* __restrict c_attn_weight,
    const float* __restrict c_attn_bias, const float* __restrict bias, float* __restrict y1) {
    constexpr int width = 8, deep = 4;  // two heads
    (void)bias;                         // ones on and below the diagonal
    float across[width][3 * width];     // the weights, an input a row
    for (int o = 0; o < 3 * width; ++o)
        for (int c = 0; c < width; ++c) across[c][o] = c_attn_weight[o * width + c];
#pragma omp parallel if ((long)M * N > 256)
    {
        std::vector<float> qkv((size_t)N * 3 * width), scores(N);
#pragma omp for
        for (long i = 0; i < M; ++i) {
            for (long t = 0; t < N; ++t) {
                float sums[3 * width];
                for (int o = 0; o < 3 * width; ++o) sums[o] = c_attn_bias[o];
                for (int c = 0; c < width; ++c) {
                    const float by = x[(i * N + t) * width + c];
#pragma omp simd
                    for (int o = 0; o < 3 * width; ++o) sums[o] += by * across[c][o];
                }
                for (int o = 0; o < 3 * width; ++o) qkv[t * 3 * width + o] = sums[o];
            }
            for (int first = 0; first < width; first += deep)
                for (long t = 0; t < N; ++t) {
                    float most = -INFINITY, sum = 0, mixed[deep] = {};
                    for (long j = 0; j <= t; ++j) {
                        float dot = 0;
                        for (int d = first; d < first + deep; ++d)
                            dot += qkv[t * 3 * width + d] * qkv[j * 3 * width + width + d];
                        scores[j] = dot * 0.5f;
                        most = fmaxf(most, scores[j]);
                    }
                    for (long j = 0; j <= t; ++j) {
                        const float weight = expf(scores[j] - most);
                        sum += weight;
                        for (int d = 0; d < deep; ++d)
                            mixed[d] += weight * qkv[j * 3 * width + 2 * width + first + d];
                    }
                    for (int d = 0; d < deep; ++d)
                        y1[(i * N + t) * width + first + d] = mixed[d] / sum;
                }
        }
    }
}
