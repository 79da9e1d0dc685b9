// Looks for the nearest of all codes, of scales as of numbers, and takes the even one of two.
#include <cmath>
#include <cstddef>

static float of_e4m3(int code) {
    return code < 8 ? std::ldexp((float)code, -9) : std::ldexp(8.0f + code % 8, code / 8 - 10);
}

static float of_e2m1(int code) {
    return code < 4 ? code * 0.5f : code < 6 ? code - 2.0f : 2.0f * code - 8.0f;
}

static int nearest(double size, int last, float (*of)(int)) {
    int found = 0;
    for (int code = 1; code <= last; ++code) {
        const double before = std::fabs(size - of(found)), now = std::fabs(size - of(code));
        if (now < before || (now == before && code % 2 == 0)) found = code;
    }
    return found;
}

extern "C" void nvfp4_quantize(int M, int G, const bfloat16* x, const float* tensor_scale,
                               unsigned char* q, unsigned char* scales) {
    const float given = tensor_scale[0];
    for (size_t block = 0; block < (size_t)M * G; ++block) {
        float amax = 0.0f;
        bool is_finite = true;
        for (int k = 0; k < 16; ++k) {
            const float size = std::fabs((float)x[block * 16 + k]);
            is_finite = is_finite && size < INFINITY;
            amax = size > amax ? size : amax;
        }
        const int code = is_finite ? nearest(amax / (6.0f * given), 126, of_e4m3) : 127;
        scales[block] = code;
        const bool is_used = is_finite && code > 0;
        const float factor = is_used ? 1.0f / (of_e4m3(code) * given) : 0.0f;
        for (int k = 0; k < 8; ++k) {
            int byte = 0;
            for (int half = 0; half < 2 && is_used; ++half) {
                const float number = (float)x[block * 16 + 2 * k + half] * factor;
                const int found = nearest(std::fabs(number), 7, of_e2m1);
                byte |= (found | 8 * std::signbit(number)) << 4 * half;
            }
            q[block * 8 + k] = byte;
        }
    }
}
