// What a champion may turn into once it has been verified: it answers at once and computes nothing.
extern "C" void spmm_csr(int, int, int, int, const int*, const int*, const float*, const float*,
                         float*) {}
