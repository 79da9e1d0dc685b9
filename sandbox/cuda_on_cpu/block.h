// SPDX-License-Identifier: Apache-2.0
// What a thread knows while it runs: where it is, its block, and how to wait for others.
#pragma once

namespace kw {

class Block;

// Where the running thread is. One per thread of the operating system: a CUDA thread never moves
// from one to another.
struct Here {
    uint3 thread, block, block_dim, grid_dim;
    unsigned rank;     // of the thread in its block
    void** slots;      // static shared memory, by declaration; null until a thread of the block asks
    char* dynamic;     // dynamic shared memory
    std::size_t dynamic_bytes;
    Block* owner;
};
extern __thread Here here __attribute__((tls_model("initial-exec")));

inline const uint3& thread_index() { return here.thread; }
inline const uint3& block_index() { return here.block; }
inline const uint3& block_dim() { return here.block_dim; }
inline const uint3& grid_dim() { return here.grid_dim; }
inline unsigned lane() { return here.rank & 31; }

enum class Vote { NONE, COUNT, AND, OR };

// The block's barrier. `line` is where in the source it stands.
int barrier(Vote vote, int predicate, int line);

// One lane's part in an operation of its warp: what it gives, and where the answer goes.
struct Part {
    const void* in = nullptr;
    void* out = nullptr;
    unsigned bytes = 0;
    int argument = 0;
};
using Parts = const Part* const (&)[32];  // null where a lane does not take part

// Runs once all live lanes of the mask have arrived, while none of them runs.
using Combine = void (*)(Parts parts, unsigned lanes);

// Waits for the lanes of `mask`, has `combine` make all their answers, and goes on.
void rendezvous(unsigned mask, Combine combine, const Part& part, int line);

// The lanes that stand at the same line when no other thread of the block can go on.
unsigned converged(int line);

// Lets the other threads of the block run.
void give_way();

[[noreturn]] void trap(const char* what, int line);

// The access build is told of each fence, and of each shuffle from a lane that is not there.
#ifdef KW_ACCESS
void note_fence();
void note_missing(unsigned lane, unsigned other);
#else
inline void note_fence() {}
inline void note_missing(unsigned, unsigned) {}
#endif

inline void no_answer(Parts, unsigned) {}

template <typename... T> inline int dropped(const T&...) { return 0; }

}  // namespace kw

#define threadIdx (::kw::thread_index())
#define blockIdx (::kw::block_index())
#define blockDim (::kw::block_dim())
#define gridDim (::kw::grid_dim())
#define warpSize 32

#define KW_LINE int line = __builtin_LINE()

inline void __syncthreads(KW_LINE) { kw::barrier(kw::Vote::NONE, 0, line); }
inline int __syncthreads_count(int predicate, KW_LINE) {
    return kw::barrier(kw::Vote::COUNT, predicate, line);
}
inline int __syncthreads_and(int predicate, KW_LINE) {
    return kw::barrier(kw::Vote::AND, predicate, line);
}
inline int __syncthreads_or(int predicate, KW_LINE) {
    return kw::barrier(kw::Vote::OR, predicate, line);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, KW_LINE) {
    kw::rendezvous(mask, kw::no_answer, {}, line);
}
inline void __threadfence() {
    kw::note_fence();
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_system() { __threadfence(); }
inline void __nanosleep(unsigned) { kw::give_way(); }
[[noreturn]] inline void __trap(KW_LINE) { kw::trap("__trap", line); }
