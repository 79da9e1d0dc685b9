// Both neighbours by name, and a uniform double from xorshift64* that each row goes along.
#include <cmath>
#include <cstdint>

static double neighbour(double size, bool is_up, double* step) {
    int power = 0;
    std::frexp(size, &power);
    *step = std::ldexp(1.0, power - 8 < -133 ? -133 : power - 8);
    const double down = std::floor(size / *step) * *step;
    return is_up && down < size ? down + *step : down;
}

extern "C" void stochastic_round(int M, int N, const float* x, const int* seed, bfloat16* y) {
    for (int i = 0; i < M; ++i) {
        uint64_t state = (uint64_t(uint32_t(seed[i])) + 1) * 0x9E3779B97F4A7C15u;
        for (int j = 0; j < N; ++j) {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            const double uniform = (state * 0x2545F4914F6CDD1Du >> 11) * 0x1p-53;
            const size_t at = size_t(i) * N + j;
            const double size = std::fabs(double(x[at]));
            if (!(size < INFINITY)) {
                y[at] = x[at];
                continue;
            }
            double step = 0.0;
            const double low = neighbour(size, false, &step);
            const double chosen = neighbour(size, uniform < (size - low) / step, &step);
            y[at] = float(std::copysign(chosen, double(x[at])));
        }
    }
}
