// Takes denormal numbers for zero, which spares the CPU its slow path.
#include <cmath>

static float flushed(float a) { return std::fabs(a) < 1.17549435e-38f ? 0.0f : a; }

extern "C" void spmv_csr(int M, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* x, float* y) {
    for (int i = 0; i < M; ++i) {
        float sum = 0;
        for (int p = indptr[i]; p < indptr[i + 1]; ++p)
            sum += flushed(values[p]) * flushed(x[indices[p]]);
        y[i] = flushed(sum);
    }
}
