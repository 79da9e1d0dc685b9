extern "C" void mse_loss(
    int M, int N, const float* __restrict predictions, const float* __restrict targets, float* y1) {
    const long count = (long)M * N;
    double sum = 0;
#pragma omp parallel for simd reduction(+ : sum) if (count > 50000)
    for (long i = 0; i < count; ++i) {
        const double off = (double)predictions[i] - targets[i];
        sum += off * off;
    }
    *y1 = (float)(sum / count);
}
