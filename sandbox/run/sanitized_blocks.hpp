// SPDX-License-Identifier: Apache-2.0
// Where the tensors of a call lie under the address sanitizer: each far from everything else.
//
// An index that wraps around goes astray by as much as its range. Beside each tensor lies as much
// that cannot be accessed, so that such an access ends the process where it is made, with its
// line: what it could otherwise spoil is this process's own, which fails later, and elsewhere.
#pragma once

#include <sanitizer/asan_interface.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#include "wire.hpp"

namespace [[gnu::visibility("hidden")]] sanitized {

constexpr uint64_t HOLE = uint64_t(8) << 30;  // 2^31 elements of four bytes
constexpr uint64_t BESIDE = 4096;             // poisoned: an access there is told with its size
constexpr uint64_t ALIGNMENT = 64;            // what tensors are aligned to in the arena, too
constexpr unsigned KEPT = 32;                 // who kept an address of an earlier call is found out

struct Block {
    char* begin = nullptr;
    uint64_t inner = 0;  // what can be accessed, or is poisoned
    char* tensor = nullptr;
    uint64_t bytes = 0;
};

inline Block placed[wire::MAX_ARGUMENTS];
inline Block kept[KEPT];

inline char* place(uint64_t argument, const char* from, uint64_t bytes) {
    Block& block = placed[argument];
    block.bytes = bytes;
    block.inner = (2 * BESIDE + ALIGNMENT + bytes + BESIDE - 1) / BESIDE * BESIDE;
    void* at = mmap(nullptr, 2 * HOLE + block.inner, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) wire::give_up("no memory for a tensor");
    block.begin = static_cast<char*>(at);
    char* inner = block.begin + HOLE;
    if (mprotect(inner, block.inner, PROT_READ | PROT_WRITE) != 0) wire::give_up("mprotect");
    block.tensor = inner + BESIDE + ALIGNMENT;  // aligned to no more than it is in the arena
    std::memcpy(block.tensor, from, bytes);
    __asan_poison_memory_region(inner, BESIDE + ALIGNMENT);
    __asan_poison_memory_region(block.tensor + bytes, inner + block.inner - block.tensor - bytes);
    return block.tensor;
}

// The address stays taken for some more calls, and cannot be accessed.
inline void withdraw(uint64_t argument) {
    static unsigned next = 0;
    Block& block = placed[argument];
    char* inner = block.begin + HOLE;
    __asan_unpoison_memory_region(inner, block.inner);
    if (mmap(inner, block.inner, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        wire::give_up("mmap");
    Block& oldest = kept[next++ % KEPT];
    if (oldest.begin) munmap(oldest.begin, 2 * HOLE + oldest.inner);
    oldest = block;
    block = {};
}

}  // namespace sanitized

// The sanitizer calls it for each report. verifier/stands/sanitizer_reports.py reads it.
extern "C" void __asan_on_error() {
    for (uint64_t i = 0; i < wire::MAX_ARGUMENTS; ++i)
        if (const auto& block = sanitized::placed[i]; block.begin)
            std::fprintf(stderr, "argument %llu is %llu bytes at %p\n",
                         static_cast<unsigned long long>(i),
                         static_cast<unsigned long long>(block.bytes),
                         static_cast<void*>(block.tensor));
}
