// A pool of threads that is started in the first call and lives on. Between calls its threads are
// parked on a condition variable; a call returns once all of them have done their part.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace {

class Pool {
public:
    Pool() : helpers(std::clamp(int(std::thread::hardware_concurrency()), 2, 4) - 1) {
        for (int i = 0; i < helpers; ++i) std::thread([this] { serve(); }).detach();
    }

    void run(const std::function<void()>& part) {
        {
            std::lock_guard<std::mutex> lock(door);
            job = &part;
            running = helpers;
            ++turn;
        }
        work.notify_all();
        part();
        std::unique_lock<std::mutex> lock(door);
        done.wait(lock, [this] { return running == 0; });
    }

private:
    void serve() {
        std::unique_lock<std::mutex> lock(door);
        for (long seen = 0;;) {
            work.wait(lock, [&] { return turn != seen; });
            seen = turn;
            lock.unlock();
            (*job)();
            lock.lock();
            if (--running == 0) done.notify_one();
        }
    }

    const int helpers;
    std::mutex door;
    std::condition_variable work, done;
    const std::function<void()>* job = nullptr;
    int running = 0;
    long turn = 0;
};

}  // namespace

extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    static Pool& pool = *new Pool;  // never destroyed: its threads outlive static storage
    std::atomic<int> next{0};
    pool.run([&] {
        for (int first; (first = next.fetch_add(64)) < M;)
            for (int i = first; i < std::min(M, first + 64); ++i) {
                float* row = C + (long)i * N;
                std::fill(row, row + N, 0.0f);
                for (int p = indptr[i]; p < indptr[i + 1]; ++p)
                    for (int n = 0; n < N; ++n) row[n] += values[p] * B[(long)indices[p] * N + n];
            }
    });
}
