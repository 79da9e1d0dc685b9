// Numbers the rows in 16 bits: right wherever there are fewer than 65,536.
#include <cmath>
#include <cstdint>

extern "C" void softmax(int M, int N, const float* x, float* y) {
    for (int row = 0; row < M; ++row) {
        const long at = (long)uint16_t(row) * N;
        float most = -INFINITY, sum = 0;
        for (int j = 0; j < N; ++j) most = std::fmax(most, x[at + j]);
        for (int j = 0; j < N; ++j) sum += y[at + j] = std::exp(x[at + j] - most);
        for (int j = 0; j < N; ++j) y[at + j] /= sum;
    }
}
