// What a champion may turn into once it has been verified: it dies wherever it is timed.
extern "C" void spmm_csr(int, int, int, int, const int*, const int*, const float*, const float*,
                         float*) {
    __builtin_trap();
}
