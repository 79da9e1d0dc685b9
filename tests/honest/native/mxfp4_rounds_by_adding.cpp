// Rounds by adding a power of two that has no room for what is to go, and taking it off again.
#include <cmath>
#include <cstddef>

static int code_of(double number) {
    const double size = std::fabs(number);
    if (size > 5.0) return 7;
    // Steps are of a half below 2, of 1 below 4, and of 2 above.
    const double step = size < 2.0 ? 0.5 : size < 4.0 ? 1.0 : 2.0;
    const volatile double risen = size + step * 0x1p52;
    const double rounded = risen - step * 0x1p52;
    if (rounded < 2.0) return (int)(2.0 * rounded);
    return rounded < 4.0 ? (int)rounded + 2 : rounded < 6.0 ? 6 : 7;
}

extern "C" void mxfp4_quantize(int M, int G, const bfloat16* x, unsigned char* q,
                               unsigned char* scales) {
    for (size_t block = 0; block < (size_t)M * G; ++block) {
        double amax = 0.0;
        bool is_finite = true;
        for (int k = 0; k < 32; ++k) {
            const double size = std::fabs((float)x[block * 32 + k]);
            is_finite = is_finite && size < INFINITY;
            amax = size > amax ? size : amax;
        }
        int above = 0;
        std::frexp(is_finite ? amax : 1.0, &above);
        const int e = amax == 0.0 || above - 3 < -127 ? -127 : above - 3;
        scales[block] = is_finite ? e + 127 : 255;
        for (int k = 0; k < 16; ++k) {
            int byte = 0;
            for (int half = 0; half < 2 && is_finite; ++half) {
                const double number = (float)x[block * 32 + 2 * k + half] * std::exp2(-e);
                byte |= (code_of(number) | 8 * std::signbit(number)) << 4 * half;
            }
            q[block * 16 + k] = byte;
        }
    }
}
