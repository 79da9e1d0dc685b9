// SPDX-License-Identifier: Apache-2.0
// Plays a launch table, and ends the process where that cannot be done.
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "runtime.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace {

// Says which thread a sanitizer's report is about.
[[maybe_unused]] void tell_thread() {
    kw::say("thread (%u, %u, %u) of block (%u, %u, %u) ran", kw::here.thread.x, kw::here.thread.y,
            kw::here.thread.z, kw::here.block.x, kw::here.block.y, kw::here.block.z);
}

constexpr std::int64_t ZERO_FILL = -1;  // sandbox/plan/model.py has the same numbers
enum Kind : std::int64_t { INTEGER, FLOAT32, FLOAT64, TENSOR, SCRATCH };

struct Entry {
    std::int64_t kernel, grid[3], block[3], shared_bytes, cluster[3], arguments;
};
struct Argument {
    std::int64_t kind, value, offset;
};

kw::Schedule parsed(const char* words) {
    using S = kw::Schedule;
    if (!words || std::strcmp(words, "order") == 0) return {S::ORDER, 0};
    if (std::strcmp(words, "reverse") == 0) return {S::REVERSE, 0};
    if (std::strncmp(words, "random:", 7) == 0)
        return {S::RANDOM, std::strtoull(words + 7, nullptr, 10)};
    kw::leave(kw::BROKEN_TABLE, "the schedule '%.40s' is not known", words);
}

// Each number below `count` once, in an order that the schedule gives.
class Blocks {
    std::uint64_t count_, step_ = 1, shift_ = 0;
    bool is_reverse_;

public:
    explicit Blocks(std::uint64_t count)
        : count_(count), is_reverse_(kw::schedule().kind == kw::Schedule::REVERSE) {
        if (kw::watch::is_sampling()) {
            // Steps of the golden section spread the first blocks over the whole grid.
            is_reverse_ = false;
            step_ = std::max<std::uint64_t>(1, std::uint64_t(double(count) * 0.6180339887));
            while (std::gcd(step_, count) != 1) ++step_;
            return;
        }
        if (kw::schedule().kind != kw::Schedule::RANDOM) return;
        kw::Random random(kw::schedule().seed);
        shift_ = random.next() % count;
        do step_ = 1 + random.next() % count;
        while (std::gcd(step_, count) != 1);
    }
    std::uint64_t operator[](std::uint64_t i) const {
        if (is_reverse_) return count_ - 1 - i;
        return std::uint64_t((static_cast<unsigned __int128>(i) * step_ + shift_) % count_);
    }
};

void say_words(const char* format, va_list words) {
    char line[512];
    int length = std::vsnprintf(line, sizeof line - 1, format, words);
    if (length > int(sizeof line) - 2) length = int(sizeof line) - 2;
    line[length++] = '\n';
    [[maybe_unused]] const auto written = write(2, line, std::size_t(length));
}

void launch(const kw::Call& call, std::int64_t kernel, bool is_last) {
    const auto count = std::uint64_t(call.grid.x) * call.grid.y * call.grid.z;
    const Blocks blocks(count);
    kw::watch::launch_begins(kernel, count);
    std::uint64_t from = 0;
    while (const std::uint64_t more = kw::watch::next_blocks(count - from, is_last)) {
        const std::uint64_t to = from + more;
#pragma omp parallel if (more > 1 && !kw::watch::is_thorough())
        {
            kw::Block& own = kw::own_block();
            own.begin(call);
#pragma omp for schedule(dynamic, 1)
            for (std::uint64_t i = from; i < to; ++i) own.run(blocks[i]);
        }
        from = to;
    }
}

}  // namespace

namespace kw {

const Schedule& schedule() {
    static const Schedule chosen = parsed(std::getenv("KW_SCHEDULE"));
    return chosen;
}

Block& own_block() {
    static thread_local Block block;
    return block;
}

void say(const char* format, ...) {
    va_list words;
    va_start(words, format);
    say_words(format, words);
    va_end(words);
}

void leave(Exit status, const char* format, ...) {
    va_list words;
    va_start(words, format);
    say_words(format, words);
    va_end(words);
    _exit(status);
}

void trap(const char* what, int line) {
    leave(TRAP, "thread (%u, %u, %u) of block (%u, %u, %u) stopped at line %d: %s", here.thread.x,
          here.thread.y, here.thread.z, here.block.x, here.block.y, here.block.z, line, what);
}

void play(void** arguments, const Kernel* kernels, unsigned axes, unsigned tensors) {
    const auto* at = static_cast<const std::int64_t*>(arguments[axes + tensors]);
    const auto address = [&](const Argument& argument) {
        const unsigned first = argument.kind == TENSOR ? axes : axes + tensors + 1 + watch::REPORTS;
        return static_cast<char*>(arguments[first + std::uint64_t(argument.value)]) +
               argument.offset;
    };
    void** const after = arguments + axes + tensors + 1;
    if constexpr (watch::REPORTS > 0)
        watch::call_begins(static_cast<std::int64_t*>(*after), arguments + axes, tensors, after + 1);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_set_death_callback(tell_thread);
#endif
    for (std::int64_t left = *at++; left > 0; --left) {
        Entry entry;
        std::memcpy(&entry, at, sizeof entry);
        at += sizeof entry / sizeof *at;
        std::vector<std::uint64_t> words;
        for (std::int64_t i = 0; i < entry.arguments; ++i, at += 3) {
            const Argument argument{at[0], at[1], at[2]};
            words.push_back(argument.kind >= TENSOR
                                ? reinterpret_cast<std::uint64_t>(address(argument))
                                : std::uint64_t(argument.value));
        }
        if (entry.kernel == ZERO_FILL) {
            std::memset(reinterpret_cast<void*>(words[0]), 0, words[1]);
            continue;
        }
        const Kernel& kernel = kernels[entry.kernel];
        if (kernel.parameters != words.size())
            leave(BROKEN_TABLE, "kernel %d takes %u arguments and is given %zu", int(entry.kernel),
                  kernel.parameters, words.size());
        const auto extent = [](const std::int64_t* of) {
            return dim3(unsigned(of[0]), unsigned(of[1]), unsigned(of[2]));
        };
        launch({&kernel, words.data(), extent(entry.grid), extent(entry.block),
                std::size_t(entry.shared_bytes)},
               entry.kernel, left == 1);
    }
    watch::call_ends();
}

}  // namespace kw
