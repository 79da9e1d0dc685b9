// An exponential of our own, good to about two units in the last place, for AVX-512, for AVX2 and
// for any machine; which one runs is decided by asking the CPU.
#include <bit>
#include <cmath>
#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

constexpr float LOG2E = 1.44269504f, LN2_HIGH = 0.693359375f, LN2_LOW = -2.12194440e-4f;
constexpr float LOWEST = -87.0f;
constexpr float TAYLOR[] = {1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1, 1};

float fast_exp(float x) {
    x = x < LOWEST ? LOWEST : x;
    const float n = std::nearbyint(x * LOG2E);
    const float r = std::fma(n, -LN2_LOW, std::fma(n, -LN2_HIGH, x));
    float sum = TAYLOR[0];
    for (int i = 1; i < 8; ++i) sum = std::fma(sum, r, TAYLOR[i]);
    return sum * std::bit_cast<float>(uint32_t(int(n) + 127) << 23);
}

float risen(int N, float most, const float* x, float* y) {
    float sum = 0;
    for (int j = 0; j < N; ++j) sum += y[j] = fast_exp(x[j] - most);
    return sum;
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) float risen_avx2(int N, float most, const float* x, float* y) {
    __m256 sums = _mm256_setzero_ps();
    int j = 0;
    for (; j + 8 <= N; j += 8) {
        __m256 v = _mm256_sub_ps(_mm256_loadu_ps(x + j), _mm256_set1_ps(most));
        v = _mm256_max_ps(_mm256_set1_ps(LOWEST), v);  // NaN in v stays
        const __m256i n = _mm256_cvtps_epi32(_mm256_mul_ps(v, _mm256_set1_ps(LOG2E)));
        const __m256 whole = _mm256_cvtepi32_ps(n);
        v = _mm256_fnmadd_ps(whole, _mm256_set1_ps(LN2_HIGH), v);
        v = _mm256_fnmadd_ps(whole, _mm256_set1_ps(LN2_LOW), v);
        __m256 sum = _mm256_set1_ps(TAYLOR[0]);
        for (int i = 1; i < 8; ++i) sum = _mm256_fmadd_ps(sum, v, _mm256_set1_ps(TAYLOR[i]));
        const __m256i power = _mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23);
        sum = _mm256_mul_ps(sum, _mm256_castsi256_ps(power));
        _mm256_storeu_ps(y + j, sum);
        sums = _mm256_add_ps(sums, sum);
    }
    float lanes[8], total = 0;
    _mm256_storeu_ps(lanes, sums);
    for (float lane : lanes) total += lane;
    return total + risen(N - j, most, x + j, y + j);
}

__attribute__((target("avx512f"))) float risen_avx512(int N, float most, const float* x,
                                                      float* y) {
    __m512 sums = _mm512_setzero_ps();
    for (int j = 0; j < N; j += 16) {
        const __mmask16 used = N - j >= 16 ? 0xffff : __mmask16((1u << (N - j)) - 1);
        __m512 v = _mm512_maskz_loadu_ps(used, x + j);
        v = _mm512_sub_ps(v, _mm512_set1_ps(most));
        v = _mm512_max_ps(_mm512_set1_ps(LOWEST), v);
        const __m512i n = _mm512_cvtps_epi32(_mm512_mul_ps(v, _mm512_set1_ps(LOG2E)));
        const __m512 whole = _mm512_cvtepi32_ps(n);
        v = _mm512_fnmadd_ps(whole, _mm512_set1_ps(LN2_HIGH), v);
        v = _mm512_fnmadd_ps(whole, _mm512_set1_ps(LN2_LOW), v);
        __m512 sum = _mm512_set1_ps(TAYLOR[0]);
        for (int i = 1; i < 8; ++i) sum = _mm512_fmadd_ps(sum, v, _mm512_set1_ps(TAYLOR[i]));
        const __m512i power = _mm512_slli_epi32(_mm512_add_epi32(n, _mm512_set1_epi32(127)), 23);
        sum = _mm512_mul_ps(sum, _mm512_castsi512_ps(power));
        _mm512_mask_storeu_ps(y + j, used, sum);
        sums = _mm512_mask_add_ps(sums, used, sums, sum);
    }
    float lanes[16], total = 0;
    _mm512_storeu_ps(lanes, sums);
    for (float lane : lanes) total += lane;
    return total;
}
#endif

using Risen = float (*)(int, float, const float*, float*);

Risen choose() {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) return risen_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return risen_avx2;
#endif
    return risen;
}

}  // namespace

extern "C" void softmax(int M, int N, const float* x, float* y) {
    static const Risen best = choose();
    for (int i = 0; i < M; ++i) {
        const float* from = x + (long)i * N;
        float *to = y + (long)i * N, most = from[0];
        for (int j = 1; j < N; ++j) most = from[j] > most ? from[j] : most;
        const float factor = 1 / best(N, most, from, to);
        for (int j = 0; j < N; ++j) to[j] *= factor;
    }
}
