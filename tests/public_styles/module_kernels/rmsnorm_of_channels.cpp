#include <math.h>

extern "C" void rmsnorm_of_channels(int M, int N, int K, int L, const float* x, float* y1) {
    const long pixels = (long)K * L;
    for (long i = 0; i < M; ++i)
        for (long p = 0; p < pixels; ++p) {
            const long at = i * N * pixels + p;
            double squares = 0;
            for (long c = 0; c < N; ++c) squares += (double)x[at + c * pixels] * x[at + c * pixels];
            const double scale = 1 / sqrt(squares / N + 1e-5);
            for (long c = 0; c < N; ++c) y1[at + c * pixels] = (float)(x[at + c * pixels] * scale);
        }
}
