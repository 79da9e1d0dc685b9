#include <math.h>
#include <vector>

extern "C" void causal_attention(
    int M, int N, const float* x, const float* c_attn_weight, const float* c_attn_bias,
    const float* bias, float* y1) {
    const int width = 8, deep = 4;  // two heads
    (void)bias;                     // ones on and below the diagonal
    std::vector<double> qkv((size_t)N * 3 * width), scores(N);
    for (long i = 0; i < M; ++i) {
        for (long t = 0; t < N; ++t)
            for (int o = 0; o < 3 * width; ++o) {
                double sum = c_attn_bias[o];
                for (int c = 0; c < width; ++c)
                    sum += (double)x[(i * N + t) * width + c] * c_attn_weight[o * width + c];
                qkv[t * 3 * width + o] = sum;
            }
        for (int first = 0; first < width; first += deep)
            for (long t = 0; t < N; ++t) {
                double most = -INFINITY, sum = 0;
                for (long j = 0; j <= t; ++j) {
                    double dot = 0;
                    for (int d = first; d < first + deep; ++d)
                        dot += qkv[t * 3 * width + d] * qkv[j * 3 * width + width + d];
                    scores[j] = dot / sqrt((double)deep);
                    most = fmax(most, scores[j]);
                }
                for (long j = 0; j <= t; ++j) sum += scores[j] = exp(scores[j] - most);
                for (int d = first; d < first + deep; ++d) {
                    double mixed = 0;
                    for (long j = 0; j <= t; ++j)
                        mixed += scores[j] * qkv[j * 3 * width + 2 * width + d];
                    y1[(i * N + t) * width + d] = (float)(mixed / sum);
                }
            }
    }
}
