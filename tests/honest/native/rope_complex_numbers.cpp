// A pair is a complex number and is multiplied with another one: no formula of the definition occurs.
// (That of std::complex makes an infinity of two NaN, C23 annex G: it is another function.)
struct Complex {
    double real, imaginary;

    Complex operator*(const Complex& other) const {
        return {real * other.real - imaginary * other.imaginary,
                real * other.imaginary + imaginary * other.real};
    }
};

extern "C" void rope(int M, int H, int P, const float* x, const float* cos, const float* sin,
                     float* y) {
#pragma omp parallel for schedule(guided)
    for (long head = 0; head < (long)M * H; ++head) {
        const float *in = x + head * 2 * P, *c = cos + head / H * P, *s = sin + head / H * P;
        float* out = y + head * 2 * P;
        for (int p = 0; p < P; ++p) {
            const Complex turned = Complex{in[p], in[P + p]} * Complex{c[p], s[p]};
            out[p] = float(turned.real);
            out[P + p] = float(turned.imaginary);
        }
    }
}
