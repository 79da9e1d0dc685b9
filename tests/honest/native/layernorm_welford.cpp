// Welford's running mean and sum of squares in float32, one division per element, or a reciprocal
// from a table that was made when this was compiled.
#include <array>
#include <cmath>

static constexpr auto RECIPROCALS = [] {
    std::array<float, 1025> table{};
    for (int n = 1; n < 1025; ++n) table[n] = 1.0f / float(n);
    return table;
}();

extern "C" void layernorm(int M, int N, const float* x, const float* gamma, const float* beta,
                          float* y) {
    for (int i = 0; i < M; ++i) {
        const float* row = x + (long)i * N;
        float mean = 0, squares = 0;
        for (int j = 0; j < N; ++j) {
            const float distance = row[j] - mean;
            mean += distance * (j < 1024 ? RECIPROCALS[j + 1] : 1.0f / float(j + 1));
            squares += distance * (row[j] - mean);
        }
        const float scale = 1 / std::sqrt(squares / float(N) + 1e-5f);
        for (int j = 0; j < N; ++j)
            y[(long)i * N + j] = (row[j] - mean) * scale * gamma[j] + beta[j];
    }
}
