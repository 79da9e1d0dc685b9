// SPDX-License-Identifier: Apache-2.0
// How the access build sees the accesses of one block: where they are in the code, which of them
// a warp makes together, and which are ordered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace kw::watch {

enum class Kind : std::uint8_t { READ, WRITE, ATOMIC };

// A place in the code that accesses memory: an address in the library, or a line where there is
// none (atomics).
struct Place {
    std::uintptr_t code = 0;
    int line = 0;
    Kind kind = Kind::READ;
    unsigned bytes = 0;
    bool is_volatile = false;
    bool operator<(const Place& other) const {
        return std::tie(code, line, kind, bytes, is_volatile) <
               std::tie(other.code, other.line, other.kind, other.bytes, other.is_volatile);
    }
};

// What one place did in one kind of memory, summed over the requests of all warps.
struct Sums {
    std::uint64_t requests = 0, lanes = 0, sectors = 0, ideal_sectors = 0;
    std::uint64_t wavefronts = 0, ideal_wavefronts = 0;
    std::uint64_t from_l2 = 0;  // sectors that L1 does not hold, and all that are written
    std::uint64_t buffers = 0;  // one bit for each
};

// The accesses that the lanes of a warp make at one place in one go.
struct Request {
    unsigned lanes = 0;
    std::uintptr_t at[32];
};

// An access of the candidate, told by the call that returns to `from`.
void told(const void* at, Kind kind, unsigned bytes, const void* from, bool is_volatile = false);

// What a block finds again of global memory that it has read before: its share of an SM's L1. What
// other blocks on the SM have read is not found.
class Cache {
    static constexpr unsigned BITS = 11;  // 64 KiB of sectors
    struct Line {
        std::uint64_t block = 0;
        std::uintptr_t sector = 0;
    };
    std::vector<Line> lines_ = std::vector<Line>(1u << BITS);

public:
    // Whether it holds the sector, which it does from now on.
    bool take(std::uint64_t block, std::uintptr_t sector) {
        Line& line = lines_[std::uint64_t(sector) * 0x9e3779b97f4a7c15u >> (64 - BITS)];
        const bool is_held = line.block == block && line.sector == sector;
        line = {block, sector};
        return is_held;
    }
};

// Adds what the request of a block costs: 32-byte sectors of global memory.
void add_global(Sums& sums, const Request& request, unsigned bytes, Kind kind, Cache& cache,
                std::uint64_t block);
// Adds what the request costs: wavefronts of shared memory, 32 banks of 4 bytes.
void add_shared(Sums& sums, const Request& request, unsigned bytes, Kind kind);

// What is known of a launch beside its accesses. A warp's share of the work is told by its requests
// to global memory.
struct LaunchSums {
    std::int64_t kernel = 0;
    std::uint64_t blocks = 0, counted = 0;  // in the grid; those that were watched
    std::uint64_t warps = 0, requests = 0, longest = 0;  // of the watched: in all, and of one warp
};

// Two accesses of one word that nothing orders: what is told of them, and an example. A plain read
// of what others change by atomics is weak: it may be meant.
struct RaceKey {
    Place first, second;
    int buffer = -1;  // shared memory
    bool is_weak = false;
    bool is_flight = false;  // the first is an asynchronous copy that has not arrived
    bool operator<(const RaceKey& other) const {
        return std::tie(first, second, buffer, is_weak, is_flight) <
               std::tie(other.first, other.second, other.buffer, other.is_weak, other.is_flight);
    }
};
struct Race {
    std::uint64_t count = 0;
    unsigned threads[2] = {};
    std::uint32_t blocks[2] = {};  // linear
    std::size_t launch = 0;
};

// Which accesses to shared memory are ordered. All threads of a block are ordered by a barrier,
// lanes of a warp by __syncwarp: each lane knows how far it has heard of each other.
class Order {
    struct Clocks {
        std::uint32_t own = 1;
        std::uint32_t heard[32] = {};
    };
    std::vector<Clocks> clocks_;

public:
    void begin(unsigned threads) { clocks_.assign((threads + 31) / 32 * 32, {}); }
    void join(unsigned warp, unsigned lanes);
    std::uint32_t now(unsigned rank) const { return clocks_[rank].own; }
    bool has_heard(unsigned rank, unsigned other, std::uint32_t when) const {
        return rank == other ||
               (rank / 32 == other / 32 && clocks_[rank].heard[other & 31] >= when);
    }
};

// One access to a word of shared memory since the last barrier.
struct Stamp {
    std::uint32_t place, clock;
    std::uint16_t rank;
    std::uint8_t bytes;  // one bit for each byte of the word
    Kind kind;
};

struct Word {
    std::uint64_t block = 0, epoch = 0;
    std::uint8_t written = 0;
    Stamp flight{};  // of an asynchronous copy to it that has not arrived, as far as it has bytes
    std::vector<Stamp> stamps;
};

}  // namespace kw::watch
