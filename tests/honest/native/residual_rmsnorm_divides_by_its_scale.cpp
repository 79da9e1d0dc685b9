// As the definition has it, in float32: y is made, then divided by the scale that was rounded before,
// so that some codes beside a tie are the other neighbour's. Halves are rounded away from zero.
#include <algorithm>
#include <cmath>
#include <vector>

extern "C" void residual_rmsnorm(int M, int N, const float* x, const float* residual,
                                 const float* gamma, float* h, signed char* q, float* scale) {
#pragma omp parallel
    {
        std::vector<float> y(N);
#pragma omp for
        for (int i = 0; i < M; ++i) {
            const long at = (long)i * N;
            double squares = 0;
            for (int j = 0; j < N; ++j) {
                h[at + j] = x[at + j] + residual[at + j];
                squares += double(h[at + j]) * h[at + j];
            }
            const float root = std::sqrt(float(squares / N) + 1e-6f);
            float top = 0;
            for (int j = 0; j < N; ++j) {
                y[j] = h[at + j] / root * gamma[j];
                top = std::max(top, std::fabs(y[j]));
            }
            scale[i] = top / 127.0f;
            for (int j = 0; j < N; ++j) {
                const float code = top > 0 ? std::round(y[j] / scale[i]) : 0.0f;
                q[at + j] = (signed char)std::clamp(code, -127.0f, 127.0f);
            }
        }
    }
}
