// Powers of two from a table of 64 steps, which is filled while the library is loaded, times a
// short polynomial: exp(-2z) = 2^whole * 2^(step/64) * 2^rest.
#include <algorithm>
#include <cmath>

static float steps[64];

__attribute__((constructor)) static void fill() {
    for (int i = 0; i < 64; ++i) steps[i] = float(std::exp2(i / 64.0));
}

static float power_of_two(float t) {
    t = std::clamp(t, -126.0f, 126.0f);
    const float nearest = std::nearbyint(t * 64.0f);
    const int k = int(nearest);
    const float rest = (t - nearest / 64.0f) * 0.6931471806f;
    const float series = 1.0f + rest * (1.0f + rest * (0.5f + rest * (1.0f / 6)));
    return std::ldexp(steps[k & 63] * series, k >> 6);
}

extern "C" void bias_gelu(int M, int N, const float* x, const float* bias, float* y) {
    for (int i = 0; i < M; ++i)
        for (int j = 0; j < N; ++j) {
            const float s = x[(long)i * N + j] + bias[j];
            const float z = 0.7978845608f * s * (1.0f + 0.044715f * s * s);
            y[(long)i * N + j] = s / (1.0f + power_of_two(z * -2.885390082f));
        }
}
