// Two kernels in one: whole numbers of 8 bits are multiplied as they are, those of 4 bits by a table
// of a row's sixteen products for each step.
#include <cstddef>
#include <vector>

static float bytes(const unsigned char* q, const float* x, int zero) {
    float sum = 0.0f;
    for (int k = 0; k < 64; ++k) sum += (float)(q[k] - zero) * x[k];
    return sum;
}

static float nibbles(const unsigned char* q, const float* products, int zero, float activations) {
    float sum = 0.0f;
    for (int k = 0; k < 64; ++k) sum += products[16 * k + (q[k / 2] >> 4 * (k % 2) & 15)];
    return sum - zero * activations;
}

extern "C" void wxa16_gemm(int M, int N, int G, int W, const _Float16* x, const unsigned char* q,
                           const _Float16* scales, const unsigned char* zeros, _Float16* C) {
    std::vector<float> total(N), products(64 * 16);
    for (int i = 0; i < M; ++i) {
        total.assign(N, 0.0f);
        for (int g = 0; g < G; ++g) {
            float part[64], activations = 0.0f;
            for (int k = 0; k < 64; ++k) {
                part[k] = x[((size_t)i * G + g) * 64 + k];
                activations += part[k];
                for (int code = 0; code < 16; ++code) products[16 * k + code] = code * part[k];
            }
            for (int j = 0; j < N; ++j) {
                const size_t group = (size_t)j * G + g;
                const unsigned char* from = q + group * W;
                const float sum = W == 64 ? bytes(from, part, zeros[group])
                                          : nibbles(from, products.data(), zeros[group], activations);
                total[j] += scales[group] * sum;
            }
        }
        for (int j = 0; j < N; ++j) C[(size_t)i * N + j] = total[j];
    }
}
