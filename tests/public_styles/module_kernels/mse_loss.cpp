extern "C" void mse_loss(int M, int N, const float* predictions, const float* targets, float* y1) {
    double sum = 0;
    for (long i = 0; i < (long)M * N; ++i) {
        const double off = (double)predictions[i] - targets[i];
        sum += off * off;
    }
    *y1 = (float)(sum / ((double)M * N));
}
