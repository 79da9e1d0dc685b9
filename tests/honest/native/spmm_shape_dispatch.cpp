// A kernel per width, chosen when it is called: widths known when it is compiled hold a row of C
// in registers, all others take the general path.

template <int W>
static void fixed(int M, const int* indptr, const int* indices, const float* values,
                  const float* B, float* C) {
    for (int i = 0; i < M; ++i) {
        float sum[W] = {};
        for (int p = indptr[i]; p < indptr[i + 1]; ++p)
            for (int n = 0; n < W; ++n) sum[n] += values[p] * B[(long)indices[p] * W + n];
        for (int n = 0; n < W; ++n) C[(long)i * W + n] = sum[n];
    }
}

static void any(int M, int N, const int* indptr, const int* indices, const float* values,
                const float* B, float* C) {
    for (int i = 0; i < M; ++i) {
        float* row = C + (long)i * N;
        for (int n = 0; n < N; ++n) row[n] = 0;
        for (int p = indptr[i]; p < indptr[i + 1]; ++p)
            for (int n = 0; n < N; ++n) row[n] += values[p] * B[(long)indices[p] * N + n];
    }
}

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    switch (N) {
        case 1: return fixed<1>(M, indptr, indices, values, B, C);
        case 4: return fixed<4>(M, indptr, indices, values, B, C);
        case 8: return fixed<8>(M, indptr, indices, values, B, C);
        case 32: return fixed<32>(M, indptr, indices, values, B, C);
        case 33: return fixed<33>(M, indptr, indices, values, B, C);
        default: return any(M, N, indptr, indices, values, B, C);
    }
}
