// Takes rows and entries from the last to the first and adds each dot product in sixteen
// interleaved sums, so neither order is that of the definition.
extern "C" void sddmm_csr(int M, int K, int D, int nnz, const int* indptr, const int* indices,
                          const float* U, const float* V, float* E) {
    constexpr int lanes = 16;
    for (int i = M - 1; i >= 0; --i)
        for (int p = indptr[i + 1] - 1; p >= indptr[i]; --p) {
            const float* u = U + (long)i * D;
            const float* v = V + (long)indices[p] * D;
            float sum[lanes] = {};
            int d = 0;
            for (; d + lanes <= D; d += lanes)
                for (int l = 0; l < lanes; ++l) sum[l] += u[d + l] * v[d + l];
            for (int l = 0; d < D; ++d, ++l) sum[l] += u[d] * v[d];
            for (int half = lanes / 2; half > 0; half /= 2)
                for (int l = 0; l < half; ++l) sum[l] += sum[l + half];
            E[p] = sum[0];
        }
}
