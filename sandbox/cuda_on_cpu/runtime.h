// SPDX-License-Identifier: Apache-2.0
// The runtime's own view: stacks, threads and blocks. Candidates never see this file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "vectors.h"
#include "block.h"
#include "shared.h"
#include "unseen.h"
#include "spaces.h"
#include "copies.h"
#include "launch.h"
#include "watch.h"

// Elsewhere, and where it is asked for, the C library changes stacks: slower by a system call.
#if defined(__x86_64__) && !defined(KW_UCONTEXT)
#define KW_X86_64
#else
#include <ucontext.h>
#endif

namespace kw {

enum Exit { DEADLOCK = 71, DIVERGENCE = 72, TRAP = 73, BROKEN_TABLE = 74 };
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
// Says one line and ends the process. build/emulated.py has the same numbers.
[[noreturn]] void leave(Exit status, const char* format, ...)
    __attribute__((format(printf, 2, 3)));

// A stack, and where it was left. A CUDA thread that never waits needs none of its own: it runs on
// the stack of the one before it.
struct Stack {
    void* resume_at = nullptr;
    char* bottom = nullptr;
    std::size_t bytes = 0;
    void* sanitizer = nullptr;
#ifndef KW_X86_64
    ucontext_t context;
#endif
};
void prepare(Stack& stack, unsigned number, void (*run)());
void release(Stack& stack);
void change(Stack& from, Stack& to);
// To be called first of all by what runs on a new stack; `caller` is the stack that changed to it.
void arrived_first(Stack& caller);

enum class State : std::uint8_t { FRESH, READY, AT_BARRIER, IN_WARP, CONVERGING, DONE };

struct Thread {
    uint3 index{};
    unsigned rank = 0;
    State state = State::FRESH;
    int line = 0;
    Stack* stack = nullptr;
    unsigned mask = 0;  // of the operation it waits in; the answer of `converged`
    Combine combine = nullptr;
    Part part;
    std::vector<Copy> copies;  // on their way
    unsigned groups = 0;       // of copies, committed
};

struct Warp {
    unsigned live = 0, waiting = 0, converging = 0;
};

// Which thread and which block goes first.
struct Schedule {
    enum { ORDER, REVERSE, RANDOM } kind = ORDER;
    std::uint64_t seed = 0;
};
const Schedule& schedule();

class Random {
    std::uint64_t state_;

public:
    explicit Random(std::uint64_t seed) : state_(seed * 2 + 0x9e3779b97f4a7c15u) {}
    std::uint64_t next() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
    }
    unsigned below(unsigned limit) { return unsigned((next() >> 32) * limit >> 32); }
};

struct Call {
    const Kernel* kernel;
    const std::uint64_t* words;
    dim3 grid, block;
    std::size_t shared_bytes;
};

// Runs blocks on one thread of the operating system, one after the other.
class Block {
public:
    Block() = default;
    ~Block();
    Block(const Block&) = delete;
    void begin(const Call& call);
    void run(std::uint64_t number);

    // What the running thread asks for.
    int arrive(Vote vote, int predicate, int line);
    void meet(unsigned mask, Combine combine, const Part& part, int line);
    unsigned converge(int line);
    void give_way();
    void* fill_slot(unsigned id);
    void hold_copy(const Copy& copy);
    void commit_copies();
    void await_copies(std::size_t left);
    void live_here();  // what runs on each stack
    int line(unsigned rank) const { return threads_[rank].line; }  // where it last waited

private:
    Thread& me() { return threads_[here.rank]; }
    Warp& my_warp() { return warps_[here.rank / 32]; }
    void shuffle();
    void queue(Thread& thread);
    Thread* take();
    void enter(Thread& thread);
    void wait();
    void leave_block(Thread& thread);
    void open_barrier();
    bool settle(unsigned warp, unsigned mask);
    void check_same(const Thread& first, const Thread& other) const;
    bool settle_converged();
    Stack& stack();
    void begin_shared(std::size_t bytes);
    void fill_dynamic();
    void forget_slots();
    [[noreturn]] void report_deadlock();

    const Call* call_ = nullptr;
    std::vector<Thread> threads_;
    std::vector<Warp> warps_;
    std::vector<unsigned> order_;
    std::vector<Thread*> ready_;  // a ring; its size is a power of two
    std::size_t first_ = 0, after_ = 0;
    unsigned live_ = 0, arrived_ = 0;
    unsigned votes_ = 0;
    int result_ = 0, all_ = 0;  // votes and voters of the last barrier, until the next one opens
    int barrier_line_ = 0, other_line_ = 0;
    Stack main_;
    std::vector<Stack*> stacks_, free_;
    Random random_{0};
    std::vector<void*> slots_, memory_;
    std::vector<unsigned> used_;
    void* dynamic_ = nullptr;
};

Block& own_block();

}  // namespace kw
