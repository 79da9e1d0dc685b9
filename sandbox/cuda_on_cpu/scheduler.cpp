// SPDX-License-Identifier: Apache-2.0
// Which thread of a block runs next, and what the threads wait for.
#include <cstdlib>

#include "runtime.h"

namespace kw {

__thread Here here __attribute__((tls_model("initial-exec")));

Block::~Block() {
    for (Stack* stack : stacks_) {
        release(*stack);
        delete stack;
    }
    for (void* memory : memory_) std::free(memory);
    std::free(dynamic_);
}

void Block::begin(const Call& call) {
    call_ = &call;
    const unsigned count = call.block.x * call.block.y * call.block.z;
    threads_.assign(count, {});
    unsigned rank = 0;
    for (unsigned z = 0; z < call.block.z; ++z)
        for (unsigned y = 0; y < call.block.y; ++y)
            for (unsigned x = 0; x < call.block.x; ++x, ++rank) {
                threads_[rank].index = {x, y, z};
                threads_[rank].rank = rank;
            }
    order_.resize(count);
    for (unsigned i = 0; i < count; ++i)
        order_[i] = schedule().kind == Schedule::REVERSE ? count - 1 - i : i;
    warps_.resize((count + 31) / 32);
    std::size_t ring = 1;
    while (ring <= count) ring *= 2;
    ready_.resize(ring);
    begin_shared(call.shared_bytes);
    here.block_dim = call.block;
    here.grid_dim = call.grid;
    here.owner = this;
}

void Block::run(std::uint64_t number) {
    const dim3& grid = call_->grid;
    here.block = {unsigned(number % grid.x), unsigned(number / grid.x % grid.y),
                  unsigned(number / grid.x / grid.y)};
    random_ = Random(schedule().seed ^ number * 0xd1342543de82ef95u);
    shuffle();
    live_ = unsigned(threads_.size());
    arrived_ = votes_ = 0;
    other_line_ = 0;
    for (unsigned w = 0; w < warps_.size(); ++w) {
        const unsigned left = live_ - 32 * w;
        warps_[w] = {left >= 32 ? ~0u : (1u << left) - 1, 0, 0};
    }
    fill_dynamic();
    watch::block_begins(live_);
    first_ = after_ = 0;
    for (unsigned rank : order_) {
        threads_[rank].state = State::FRESH;
        threads_[rank].copies.clear();
        threads_[rank].groups = 0;
        queue(threads_[rank]);
    }
    Thread& next = *take();
    next.stack = &stack();
    enter(next);
    change(main_, *next.stack);
    watch::block_ends();
    forget_slots();
}

void Block::live_here() {
    arrived_first(main_);
    for (;;) {
        Thread& mine = me();
        call_->kernel->call(call_->kernel->code, call_->words);
        leave_block(mine);
        if (live_ == 0) {
            free_.push_back(mine.stack);
            change(*mine.stack, main_);
            continue;  // as the first thread of some later block
        }
        Thread& next = *take();
        if (next.state == State::FRESH) {
            next.stack = mine.stack;
            enter(next);
            continue;
        }
        free_.push_back(mine.stack);
        enter(next);
        change(*mine.stack, *next.stack);
    }
}

void Block::shuffle() {
    if (schedule().kind != Schedule::RANDOM) return;
    for (unsigned left = unsigned(order_.size()); left > 1; --left)
        std::swap(order_[left - 1], order_[random_.below(left)]);
}

void Block::queue(Thread& thread) {
    ready_[after_++ & (ready_.size() - 1)] = &thread;
}

Thread* Block::take() {
    while (first_ == after_)
        if (!settle_converged()) report_deadlock();
    return ready_[first_++ & (ready_.size() - 1)];
}

void Block::enter(Thread& thread) {
    thread.state = State::READY;
    here.thread = thread.index;
    here.rank = thread.rank;
}

void Block::wait() {
    Thread& mine = me();
    Thread& next = *take();
    if (next.state == State::FRESH) next.stack = &stack();
    enter(next);
    if (&next != &mine) change(*mine.stack, *next.stack);
}

Stack& Block::stack() {
    if (free_.empty()) {
        stacks_.push_back(new Stack);
        prepare(*stacks_.back(), unsigned(stacks_.size()), [] { own_block().live_here(); });
        return *stacks_.back();
    }
    Stack* found = free_.back();
    free_.pop_back();
    return *found;
}

void Block::give_way() {
    queue(me());
    wait();
}

int Block::arrive(Vote vote, int predicate, int line) {
    if (arrived_ == 0) barrier_line_ = line, other_line_ = 0;
    else if (line != barrier_line_) other_line_ = line;
    Thread& mine = me();
    mine.state = State::AT_BARRIER;
    mine.line = line;
    votes_ += predicate != 0;
    if (++arrived_ == live_) open_barrier();
    wait();
    switch (vote) {
        case Vote::COUNT: return result_;
        case Vote::OR: return result_ != 0;
        case Vote::AND: return result_ == all_;
        default: return 0;
    }
}

void Block::open_barrier() {
    if (other_line_)
        leave(DIVERGENCE,
              "some threads of block (%u, %u, %u) wait at the __syncthreads of line %d, others at "
              "that of line %d",
              here.block.x, here.block.y, here.block.z, barrier_line_, other_line_);
    result_ = int(votes_);
    all_ = int(arrived_);
    arrived_ = votes_ = 0;
    watch::barrier_opens();
    shuffle();
    for (unsigned rank : order_) {
        Thread& thread = threads_[rank];
        if (thread.state != State::AT_BARRIER) continue;
        thread.state = State::READY;
        queue(thread);
    }
}

void Block::leave_block(Thread& thread) {
    thread.state = State::DONE;
    --live_;
    Warp& warp = my_warp();
    warp.live &= ~(1u << lane());
    if (live_ && arrived_ == live_) open_barrier();
    // Whoever waited for this lane need not any longer.
    for (unsigned left = warp.waiting; left;) {
        const unsigned one = unsigned(__builtin_ctz(left));
        const unsigned mask = threads_[here.rank / 32 * 32 + one].mask;
        settle(here.rank / 32, mask);
        left &= ~mask & ~(1u << one);
    }
}

void Block::meet(unsigned mask, Combine combine, const Part& part, int line) {
    if (!(mask >> lane() & 1))
        leave(DIVERGENCE,
              "thread (%u, %u, %u) calls an operation of its warp at line %d with the mask 0x%08x, "
              "in which its own lane %u is missing",
              here.thread.x, here.thread.y, here.thread.z, line, mask, lane());
    Thread& mine = me();
    mine.state = State::IN_WARP;
    mine.line = line;
    mine.mask = mask;
    mine.combine = combine;
    mine.part = part;
    my_warp().waiting |= 1u << lane();
    if (!settle(here.rank / 32, mask)) wait();
}

bool Block::settle(unsigned number, unsigned mask) {
    Warp& warp = warps_[number];
    const unsigned needed = mask & warp.live;
    if (needed == 0 || needed & ~warp.waiting) return false;
    Thread* const lanes = &threads_[number * 32];
    const Part* parts[32] = {};
    const Thread* one = nullptr;
    for (unsigned i = 0; i < 32; ++i) {
        if (!(needed >> i & 1)) continue;
        if (lanes[i].mask != mask) return false;
        if (one) check_same(*one, lanes[i]);
        one = &lanes[i];
        parts[i] = &one->part;
    }
    watch::lanes_met(number, needed, needed == warp.live, one->combine == no_answer);
    one->combine(parts, needed);
    warp.waiting &= ~needed;
    const unsigned turn = schedule().kind == Schedule::RANDOM ? random_.below(32) : 0;
    for (unsigned i = 0; i < 32; ++i) {
        const unsigned at = schedule().kind == Schedule::REVERSE ? 31 - i : (i + turn) & 31;
        if (!(needed >> at & 1)) continue;
        lanes[at].state = State::READY;
        if (&lanes[at] != &me()) queue(lanes[at]);
    }
    return true;
}

void Block::check_same(const Thread& first, const Thread& other) const {
    // The lanes of a mask may call __syncwarp from different places.
    if (first.combine == other.combine && (first.line == other.line || first.combine == no_answer))
        return;
    leave(DIVERGENCE,
          "lanes %u and %u of one warp of block (%u, %u, %u) meet in different operations, at "
          "lines %d and %d",
          first.rank & 31, other.rank & 31, here.block.x, here.block.y, here.block.z, first.line,
          other.line);
}

unsigned Block::converge(int line) {
    Thread& mine = me();
    mine.state = State::CONVERGING;
    mine.line = line;
    my_warp().converging |= 1u << lane();
    wait();
    return me().mask;
}

bool Block::settle_converged() {
    bool is_any = false;
    for (unsigned number = 0; number < warps_.size(); ++number) {
        Warp& warp = warps_[number];
        if (!warp.converging) continue;
        Thread* const lanes = &threads_[number * 32];
        const int line = lanes[__builtin_ctz(warp.converging)].line;
        unsigned together = 0;
        for (unsigned i = 0; i < 32; ++i)
            if (warp.converging >> i & 1 && lanes[i].line == line) together |= 1u << i;
        for (unsigned i = 0; i < 32; ++i) {
            if (!(together >> i & 1)) continue;
            lanes[i].mask = together;
            lanes[i].state = State::READY;
            queue(lanes[i]);
        }
        warp.converging &= ~together;
        is_any = true;
    }
    return is_any;
}

void Block::report_deadlock() {
    const Thread *barrier = nullptr, *warp = nullptr;
    for (const Thread& thread : threads_) {
        if (thread.state == State::AT_BARRIER && !barrier) barrier = &thread;
        if (thread.state == State::IN_WARP && !warp) warp = &thread;
    }
    char first[128] = "", second[128] = "";
    if (barrier)
        std::snprintf(first, sizeof first, "thread (%u, %u, %u) at the __syncthreads of line %d",
                      barrier->index.x, barrier->index.y, barrier->index.z, barrier->line);
    if (warp) {
        const Warp& its = warps_[warp->rank / 32];
        std::snprintf(second, sizeof second,
                      "thread (%u, %u, %u) for the lanes 0x%08x of its warp at line %d",
                      warp->index.x, warp->index.y, warp->index.z,
                      warp->mask & its.live & ~its.waiting, warp->line);
    }
    leave(DEADLOCK, "%u of %u threads of block (%u, %u, %u) wait for ever: %s%s%s", live_,
          unsigned(threads_.size()), here.block.x, here.block.y, here.block.z, first,
          barrier && warp ? ", " : "", second);
}

int barrier(Vote vote, int predicate, int line) {
    return here.owner->arrive(vote, predicate, line);
}
void rendezvous(unsigned mask, Combine combine, const Part& part, int line) {
    here.owner->meet(mask, combine, part, line);
}
unsigned converged(int line) { return here.owner->converge(line); }
void give_way() { here.owner->give_way(); }

}  // namespace kw
