#include <math.h>

extern "C" void maxpool2d(int M, int N, const float* x, float* y1) {
    for (long image = 0; image < (long)M * N; ++image)
        for (int r = 0; r < 11; ++r)
            for (int s = 0; s < 9; ++s) {
                float most = -INFINITY;
                for (int a = 0; a < 4; ++a)
                    for (int b = 0; b < 4; ++b) {
                        const int row = r + a - 1, column = s + b - 1;
                        if (row < 0 || row >= 12 || column < 0 || column >= 10) continue;
                        const float v = x[(image * 12 + row) * 10 + column];
                        if (v > most || v != v) most = v;
                    }
                y1[(image * 11 + r) * 9 + s] = most;
            }
}
