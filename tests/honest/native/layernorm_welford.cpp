// Welford's running mean and sum of squares in float32, in 32 lanes that are merged by pairs.
// Reciprocals of counts come from a table that was made when this was compiled, or are divided.
#include <array>
#include <cmath>

static constexpr int LANES = 32;
static constexpr auto RECIPROCALS = [] {
    std::array<float, 65> table{};
    for (int n = 1; n < 65; ++n) table[n] = 1.0f / float(n);
    return table;
}();

struct Moments {
    float count = 0, mean = 0, squares = 0;
};

static Moments merged(const Moments& a, const Moments& b) {
    if (b.count == 0) return a;
    const float count = a.count + b.count, distance = b.mean - a.mean;
    return {count, a.mean + distance * (b.count / count),
            a.squares + b.squares + distance * distance * (a.count * b.count / count)};
}

extern "C" void layernorm(int M, int N, const float* x, const float* gamma, const float* beta,
                          float* y) {
    for (int i = 0; i < M; ++i) {
        const float* row = x + (long)i * N;
        Moments lane[LANES];
        for (int j = 0; j < N; ++j) {
            Moments& own = lane[j % LANES];
            const int count = j / LANES + 1;
            const float distance = row[j] - own.mean;
            own.mean += distance * (count < 65 ? RECIPROCALS[count] : 1.0f / float(count));
            own.squares += distance * (row[j] - own.mean);
            own.count = float(count);
        }
        for (int half = LANES / 2; half > 0; half /= 2)
            for (int l = 0; l < half; ++l) lane[l] = merged(lane[l], lane[l + half]);
        const float scale = 1 / std::sqrt(lane[0].squares / float(N) + 1e-5f);
        for (int j = 0; j < N; ++j)
            y[(long)i * N + j] = (row[j] - lane[0].mean) * scale * gamma[j] + beta[j];
    }
}
