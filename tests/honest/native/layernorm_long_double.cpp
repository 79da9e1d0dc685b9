// Adds in long double: far more precise than the problem asks for.
#include <cmath>

extern "C" void layernorm(int M, int N, const float* x, const float* gamma, const float* beta,
                          float* y) {
    for (int i = 0; i < M; ++i) {
        const float* row = x + (long)i * N;
        long double sum = 0, squares = 0;
        for (int j = 0; j < N; ++j) sum += row[j];
        const long double mean = sum / N;
        for (int j = 0; j < N; ++j) squares += (row[j] - mean) * (row[j] - mean);
        const long double scale = 1 / std::sqrt(squares / N + 1e-5L);
        for (int j = 0; j < N; ++j)
            y[(long)i * N + j] = float((row[j] - mean) * scale * gamma[j] + beta[j]);
    }
}
