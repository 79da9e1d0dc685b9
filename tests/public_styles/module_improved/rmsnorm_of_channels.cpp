#include <math.h>
#include <algorithm>

namespace {
constexpr int WIDE = 64;  // pixels whose squares are summed at once
}

extern "C" void rmsnorm_of_channels(
    int M, int N, int K, int L, const float* __restrict x, float* __restrict y1) {
    const long pixels = (long)K * L;
#pragma omp parallel for collapse(2) if (M * N * pixels > 50000)
    for (long i = 0; i < M; ++i)
        for (long first = 0; first < pixels; first += WIDE) {
            const long wide = std::min<long>(WIDE, pixels - first), at = i * N * pixels + first;
            double squares[WIDE] = {};
            for (long c = 0; c < N; ++c) {
                const float* in = x + at + c * pixels;
#pragma omp simd
                for (long p = 0; p < wide; ++p) squares[p] += (double)in[p] * in[p];
            }
#pragma omp simd
            for (long p = 0; p < wide; ++p) squares[p] = 1 / sqrt(squares[p] / N + 1e-5);
            for (long c = 0; c < N; ++c) {
                const float* in = x + at + c * pixels;
                float* out = y1 + at + c * pixels;
#pragma omp simd
                for (long p = 0; p < wide; ++p) out[p] = (float)(in[p] * squares[p]);
            }
        }
}
