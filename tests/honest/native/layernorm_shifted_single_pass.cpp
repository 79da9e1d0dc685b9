// Mean and variance from one pass over the row. What is squared is the distance from the mean of a
// few elements spread over the row, so that little cancels in E d^2 - (E d)^2.
#include <algorithm>
#include <cmath>

extern "C" void layernorm(int M, int N, const float* x, const float* gamma, const float* beta,
                          float* y) {
    constexpr int lanes = 16, sampled = 64;
#pragma omp parallel for
    for (int i = 0; i < M; ++i) {
        const float* row = x + (long)i * N;
        const int step = std::max(1, N / sampled);
        float shift = 0;
        int count = 0;
        for (int j = step / 2; j < N; j += step, ++count) shift += row[j];
        shift /= float(count);
        float sums[lanes] = {}, squares[lanes] = {};
        for (int j = 0; j < N; ++j) {
            const float distance = row[j] - shift;
            sums[j % lanes] += distance;
            squares[j % lanes] += distance * distance;
        }
        float sum = 0, square = 0;
        for (int l = 0; l < lanes; ++l) sum += sums[l], square += squares[l];
        const float off = sum / float(N);
        const float scale = 1 / std::sqrt(square / float(N) - off * off + 1e-5f);
        for (int j = 0; j < N; ++j)
            y[(long)i * N + j] = (row[j] - shift - off) * scale * gamma[j] + beta[j];
    }
}
