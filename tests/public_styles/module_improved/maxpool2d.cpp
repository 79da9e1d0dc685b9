#include <math.h>
#include <algorithm>

namespace {
inline float greater(float most, float v) { return (v > most) | (v != v) ? v : most; }
}  // namespace

// Maxima of four along the rows first, then of four rows.
extern "C" void maxpool2d(int M, int N, const float* __restrict x, float* __restrict y1) {
    const long images = (long)M * N;
#pragma omp parallel for if (images > 64)
    for (long image = 0; image < images; ++image) {
        float along[14][9];
        std::fill(along[0], along[0] + 9, -INFINITY);
        std::fill(along[13], along[13] + 9, -INFINITY);
        for (int row = 0; row < 12; ++row) {
            float padded[12] = {-INFINITY};
            padded[11] = -INFINITY;
            std::copy_n(x + (image * 12 + row) * 10, 10, padded + 1);
#pragma omp simd
            for (int s = 0; s < 9; ++s)
                along[row + 1][s] = greater(
                    greater(padded[s], padded[s + 1]), greater(padded[s + 2], padded[s + 3]));
        }
        for (int r = 0; r < 11; ++r)
#pragma omp simd
            for (int s = 0; s < 9; ++s)
                y1[(image * 11 + r) * 9 + s] = greater(
                    greater(along[r][s], along[r + 1][s]),
                    greater(along[r + 2][s], along[r + 3][s]));
    }
}
