// Sums codes and activations by themselves: a zero point is taken off once for each group, times the
// sum of its activations.
#include <cstddef>

extern "C" void gemv_w4a16(int M, int H, const _Float16* x, const unsigned char* q,
                           const _Float16* scales, const unsigned char* zeros, _Float16* y) {
    for (int i = 0; i < M; ++i) {
        float total = 0.0f;
        for (int g = 0; g < 2 * H; ++g) {
            float products = 0.0f, activations = 0.0f;
            for (int k = 0; k < 16; ++k) {
                const int both = q[((size_t)i * 2 * H + g) * 16 + k];
                const float even = x[g * 32 + 2 * k], odd = x[g * 32 + 2 * k + 1];
                products += (both & 15) * even + (both >> 4) * odd;
                activations += even + odd;
            }
            const int zero = zeros[(size_t)i * H + g / 2] >> 4 * (g % 2) & 15;
            total += scales[(size_t)i * 2 * H + g] * (products - zero * activations);
        }
        y[i] = total;
    }
}
