// Starts from the CPU's estimate of a reciprocal root, good to 12 bits, and refines it twice by
// Newton's rule, which makes it as good as a division.
#include <cmath>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

static float reciprocal_root(float v) {
#if defined(__x86_64__)
    float guess = _mm_cvtss_f32(_mm_rsqrt_ss(_mm_set_ss(v)));
    for (int i = 0; i < 2; ++i) guess *= 1.5f - 0.5f * v * guess * guess;
    return guess;
#else
    return 1 / std::sqrt(v);
#endif
}

extern "C" void rmsnorm(int M, int N, const float* x, const float* gamma, float* y) {
    for (int i = 0; i < M; ++i) {
        const float* row = x + (long)i * N;
        float sum = 0;
        for (int j = 0; j < N; ++j) sum += row[j] * row[j];
        const float factor = reciprocal_root(sum / float(N) + 1e-6f);
        for (int j = 0; j < N; ++j) y[(long)i * N + j] = row[j] * factor * gamma[j];
    }
}
