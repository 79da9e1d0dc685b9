// SPDX-License-Identifier: Apache-2.0
// Measures what this machine can do at best: bytes per second by working set, and flops per second.
//
// Arguments: bytes of the three working sets (second-level cache, last-level cache, memory), then
// the CPUs to use. Prints one line `name value` per figure, in GB/s and GFLOP/s. Every figure is
// the best of several repetitions, since a peak is a bound and other load only lowers it.

#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#if defined(__AVX512F__)
constexpr int kBytes = 64;
#elif defined(__AVX__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
typedef float Vector __attribute__((vector_size(kBytes)));
constexpr int kLanes = kBytes / 4;

static double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

static std::vector<int> g_cpus;

static void pin() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(g_cpus[omp_get_thread_num() % g_cpus.size()], &one);
  sched_setaffinity(0, sizeof one, &one);
}

// Each thread works on arrays of its own, so that first touch and cache residency are its own.
struct Share {
  Vector *a, *b, *c;
  size_t count;
};

static double triad(const Share& s, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const float scalar = 1.0f + round;
    for (size_t i = 0; i < s.count; ++i) s.a[i] = s.b[i] + scalar * s.c[i];
    asm volatile("" ::: "memory");
  }
  return 3.0 * kBytes * s.count * rounds;
}

static double read(const Share& s, int rounds, Vector& sink) {
  Vector t[8] = {};
  const size_t whole = s.count / 8 * 8;
  for (int round = 0; round < rounds; ++round) {
    for (const Vector* x : {s.a, s.b, s.c})
      for (size_t i = 0; i < whole; i += 8)
        for (int k = 0; k < 8; ++k) t[k] += x[i + k];
    asm volatile("" ::: "memory");
  }
  for (const Vector& part : t) sink += part;
  return 3.0 * kBytes * whole * rounds;
}

// The best rate of triad and read over working sets of `bytes` in all, in GB/s.
static double bandwidth(size_t bytes, double seconds) {
  const int threads = (int)g_cpus.size();
  double best = 0, moved = 0, began = 0;
  bool more = true;  // decided by one thread for all: they meet at barriers
  const double stop = now() + seconds;
  std::vector<Vector> sinks(threads * 8);
#pragma omp parallel num_threads(threads)
  {
    pin();
    Share s;
    s.count = std::max<size_t>(64, bytes / threads / 3 / kBytes);
    const size_t room = (s.count * kBytes + 4095) / 4096 * 4096;
    Vector* memory = (Vector*)std::aligned_alloc(4096, 3 * room);
    s.a = memory;
    s.b = memory + room / kBytes;
    s.c = memory + 2 * room / kBytes;
    for (size_t i = 0; i < s.count; ++i) s.a[i] = s.b[i] = s.c[i] = Vector{} + 1.0f;
    const int rounds = (int)std::max<size_t>(1, (16u << 20) / (3 * kBytes * s.count));
    for (int turn = 0; more; ++turn) {
#pragma omp barrier
#pragma omp master
      { began = now(); moved = 0; }
#pragma omp barrier
      const double bytes_done =
          turn % 2 ? triad(s, rounds) : read(s, rounds, sinks[omp_get_thread_num() * 8]);
#pragma omp atomic
      moved += bytes_done;
#pragma omp barrier
#pragma omp master
      {
        best = std::max(best, moved / (now() - began) / 1e9);
        more = now() < stop || turn < 3;
      }
#pragma omp barrier
    }
    std::free(memory);
  }
  return best;
}

// Twelve independent chains of fused multiply-adds hide the latency of either port.
static double flops(double seconds) {
  constexpr int kChains = 12, kSteps = 200000;
  const int threads = (int)g_cpus.size();
  double best = 0, began = 0;
  bool more = true;
  const double stop = now() + seconds;
  std::vector<Vector> sinks(threads * 8);
#pragma omp parallel num_threads(threads)
  {
    pin();
    for (int turn = 0; more; ++turn) {
#pragma omp barrier
#pragma omp master
      began = now();
#pragma omp barrier
      Vector t[kChains];
      for (int k = 0; k < kChains; ++k) t[k] = Vector{} + (float)(k + turn);
      Vector x = Vector{} + 0.999f, y = Vector{} + 0.001f;
      // Opaque to the compiler, which could otherwise fold the chains.
      asm volatile("" : "+m"(x), "+m"(y));
      const Vector p = x, q = y;
      for (int i = 0; i < kSteps; ++i)
        for (int k = 0; k < kChains; ++k) t[k] = t[k] * p + q;
      for (int k = 0; k < kChains; ++k) sinks[omp_get_thread_num() * 8] += t[k];
#pragma omp barrier
#pragma omp master
      {
        const double done = 2.0 * kLanes * kChains * kSteps * threads;
        best = std::max(best, done / (now() - began) / 1e9);
        more = now() < stop || turn < 3;
      }
#pragma omp barrier
    }
    volatile float keep = sinks[omp_get_thread_num() * 8][0];
    (void)keep;
  }
  return best;
}

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  for (int i = 4; i < argc; ++i) g_cpus.push_back(std::atoi(argv[i]));
  std::printf("l2 %.4f\n", bandwidth(std::strtoull(argv[1], nullptr, 10), 0.4));
  std::printf("llc %.4f\n", bandwidth(std::strtoull(argv[2], nullptr, 10), 0.5));
  std::printf("memory %.4f\n", bandwidth(std::strtoull(argv[3], nullptr, 10), 1.0));
  std::printf("flops %.4f\n", flops(0.4));
  return 0;
}
