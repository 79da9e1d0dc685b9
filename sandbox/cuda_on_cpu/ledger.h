// SPDX-License-Identifier: Apache-2.0
// Who wrote and who read each word of global memory within a launch, and which of them nothing
// orders. Blocks run one after the other while it is kept, so that one number tells the time.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "access.h"

namespace kw::watch {

// Where the running thread is, as far as the ledger asks.
struct Now {
    std::uint32_t block, epoch, clock;  // linear; barriers of this call; of its warp's order
    unsigned rank;
};

// An access to a word, as it is remembered.
struct Entry {
    std::uint64_t time = 0;  // 0: none
    std::uint32_t launch = 0, block = 0, site = 0, epoch = 0, clock = 0;
    std::uint16_t rank = 0;
    std::uint8_t bytes = 0;  // one bit for each byte of the word
    Kind kind = Kind::READ;
    bool is_volatile = false;
};

// The last thread that wrote a word of an output; sandbox/run/ledger.py reads it from the report.
struct Writer {
    std::uint64_t code;
    std::int32_t line;
    std::uint32_t launch, block, rank;  // the launch counts from 1: 0 where nobody wrote
};

// Two accesses that nothing orders.
struct Conflict {
    bool is_any = false, is_weak = false;
    bool is_unset = false;  // it reads a word that nothing has written
    unsigned buffer = 0;
    Entry first, second;
};

class Ledger {
    struct Cell {
        Entry write;
        // The last read, the last by another thread of its block, the last by another block.
        Entry reads[3];
    };
    static constexpr std::size_t PAGE = 1024;
    struct Buffer {
        std::uintptr_t from = 0, to = 0;
        Writer* writers = nullptr;
        std::vector<std::unique_ptr<Cell[]>> pages;
        Cell& at(std::size_t word);
    };
    // What a block has made known by an atomic behind a fence: when, and up to which time.
    struct Published {
        std::uint64_t when, covers;
    };
    struct Side {
        std::uint64_t fenced = 0, acquired = 0;
        std::vector<Published> published;
    };

public:
    void begin() { buffers_.clear(); }
    // Adds a buffer that kernels write. `writers` may be null.
    void add(unsigned number, std::uintptr_t from, std::uintptr_t to, Writer* writers);
    void launch_begins();
    void block_begins(unsigned threads) { acquired_.assign(threads, 0); }
    void fence(const Now& now);
    // An atomic anywhere, or a volatile access: the threads may meet there.
    void meet(const Now& now, bool may_publish, bool may_acquire);
    // An access to a buffer of this number; the first conflict that it has.
    Conflict access(unsigned buffer, std::uintptr_t at, const Place& place, std::uint32_t site,
                    const Now& now, const Order& order);

private:
    bool is_ordered(const Entry& before, const Now& now, const Order& order) const;
    bool is_known(const Entry& before, std::uint64_t acquired) const;
    void compare(Conflict& found, const Entry& before, const Entry& own, const Now& now,
                 const Order& order) const;
    static void remember(Cell& cell, const Entry& own);

    std::uint32_t launch_ = 0;
    std::uint64_t time_ = 0;
    std::unordered_map<unsigned, Buffer> buffers_;
    std::unordered_map<std::uint32_t, Side> sides_;  // by block
    std::vector<std::uint64_t> acquired_;            // by thread of the running block
};

}  // namespace kw::watch
