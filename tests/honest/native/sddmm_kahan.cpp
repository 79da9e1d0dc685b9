// Compensated summation: what an addition loses is carried into the next one, but for infinity.
#include <cmath>
extern "C" void sddmm_csr(int M, int K, int D, int nnz, const int* indptr, const int* indices,
                          const float* U, const float* V, float* E) {
#pragma omp parallel for schedule(dynamic, 32)
    for (int i = 0; i < M; ++i)
        for (int p = indptr[i]; p < indptr[i + 1]; ++p) {
            const float* u = U + (long)i * D;
            const float* v = V + (long)indices[p] * D;
            float sum = 0, lost = 0;
            for (int d = 0; d < D; ++d) {
                const float term = u[d] * v[d] - lost;
                const float raised = sum + term;
                lost = std::isfinite(raised) ? (raised - sum) - term : 0;
                sum = raised;
            }
            E[p] = sum;
        }
}
