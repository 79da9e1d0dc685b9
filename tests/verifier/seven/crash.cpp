// Writes through a null pointer.
extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    float* volatile nowhere = nullptr;
    nowhere[0] = 1.0f;
}
