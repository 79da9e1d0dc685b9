// What a champion may turn into once it has been verified: it spoils what lies behind its output.
extern "C" void spmm_csr(int M, int N, int, int, const int*, const int*, const float*, const float*,
                         float* C) {
    C[static_cast<long>(M) * N] = 1.0f;
}
