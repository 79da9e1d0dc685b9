// One pass finds maximum and sum together: whenever the maximum rises, the sum so far is scaled
// down. A second pass computes the exponentials anew and writes.
#include <cmath>

extern "C" void softmax(int M, int N, const float* x, float* y) {
    for (int i = 0; i < M; ++i) {
        const float* row = x + (long)i * N;
        float most = row[0], sum = 1;
        for (int j = 1; j < N; ++j) {
            if (row[j] <= most) {
                sum += std::exp(row[j] - most);
            } else {
                sum = sum * std::exp(most - row[j]) + 1;
                most = row[j];
            }
        }
        for (int j = 0; j < N; ++j) y[(long)i * N + j] = std::exp(row[j] - most) / sum;
    }
}
