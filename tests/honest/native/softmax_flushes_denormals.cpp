// Has the CPU take denormal numbers for zero while it works, and puts the mode back afterwards.
#include <algorithm>
#include <cmath>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

static void rows(int M, int N, const float* x, float* y) {
    for (int i = 0; i < M; ++i) {
        const float* row = x + (long)i * N;
        const float most = *std::max_element(row, row + N);
        float sum = 0;
        for (int j = 0; j < N; ++j) sum += y[(long)i * N + j] = std::exp(row[j] - most);
        for (int j = 0; j < N; ++j) y[(long)i * N + j] /= sum;
    }
}

extern "C" void softmax(int M, int N, const float* x, float* y) {
#if defined(__x86_64__)
    constexpr unsigned flush_results = 0x8000, flush_operands = 0x0040;
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | flush_results | flush_operands);
    rows(M, N, x, y);
    _mm_setcsr(before);
#else
    rows(M, N, x, y);
#endif
}
