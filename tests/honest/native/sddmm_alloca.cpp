// Copies a row of U to the stack, into as much room as the row needs, and uses it for all entries.
#include <alloca.h>
#include <cstring>

static void row(int D, int first, int last, const int* indices, const float* u, const float* V,
                float* E) {
    float* near = static_cast<float*>(alloca(sizeof(float) * D));
    std::memcpy(near, u, sizeof(float) * D);
    for (int p = first; p < last; ++p) {
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int d = 0; d < D; ++d) sum += near[d] * V[(long)indices[p] * D + d];
        E[p] = sum;
    }
}

extern "C" void sddmm_csr(int M, int K, int D, int nnz, const int* indptr, const int* indices,
                          const float* U, const float* V, float* E) {
    for (int i = 0; i < M; ++i)
        row(D, indptr[i], indptr[i + 1], indices, U + (long)i * D, V, E);
}
