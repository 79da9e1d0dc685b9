// Philox4x32-10 of the row's seed and the column, four columns at a time, as PyTorch and CUDA have it.
#include <cmath>
#include <cstdint>
#include <cstring>

struct Four { uint32_t of[4]; };

static Four philox(uint32_t seed, uint32_t counter) {
    uint32_t c[4] = {counter, 0, 0, 0}, key[2] = {seed, 0x5eed5eedu};
    for (int round = 0; round < 10; ++round) {
        const uint64_t a = uint64_t(c[0]) * 0xD2511F53u, b = uint64_t(c[2]) * 0xCD9E8D57u;
        const uint32_t next[4] = {uint32_t(b >> 32) ^ c[1] ^ key[0], uint32_t(b),
                                  uint32_t(a >> 32) ^ c[3] ^ key[1], uint32_t(a)};
        std::memcpy(c, next, sizeof c);
        key[0] += 0x9E3779B9u;
        key[1] += 0xBB67AE85u;
    }
    Four found;
    std::memcpy(found.of, c, sizeof c);
    return found;
}

extern "C" void stochastic_round(int M, int N, const float* x, const int* seed, bfloat16* y) {
    #pragma omp parallel for
    for (int i = 0; i < M; ++i)
        for (int j = 0; j < N; j += 4) {
            const Four random = philox(uint32_t(seed[i]), uint32_t(j / 4));
            for (int k = 0; k < 4 && j + k < N; ++k) {
                const size_t at = size_t(i) * N + j + k;
                uint32_t bits;
                std::memcpy(&bits, x + at, 4);
                if (std::isfinite(x[at])) bits += random.of[k] >> 16;
                bits &= 0xffff0000u;
                float rounded;
                std::memcpy(&rounded, &bits, 4);
                y[at] = rounded;
            }
        }
}
