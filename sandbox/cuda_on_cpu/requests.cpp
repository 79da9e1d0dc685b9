// SPDX-License-Identifier: Apache-2.0
// What a request of a warp costs, and which of its lanes have heard of each other.
#include <algorithm>

#include "access.h"

namespace kw::watch {

namespace {

constexpr std::size_t SECTOR = 32;
constexpr unsigned BANKS = 32;

}  // namespace

void Order::join(unsigned warp, unsigned lanes) {
    std::uint32_t heard[32] = {};
    for (unsigned i = 0; i < 32; ++i) {
        if (!(lanes >> i & 1)) continue;
        const Clocks& one = clocks_[warp * 32 + i];
        for (unsigned k = 0; k < 32; ++k) heard[k] = std::max(heard[k], one.heard[k]);
        heard[i] = std::max(heard[i], one.own);
    }
    for (unsigned i = 0; i < 32; ++i) {
        if (!(lanes >> i & 1)) continue;
        Clocks& one = clocks_[warp * 32 + i];
        std::copy(heard, heard + 32, one.heard);
        ++one.own;
    }
}

void add_global(Sums& sums, const Request& request, unsigned bytes, Kind kind, Cache& cache,
                std::uint64_t block) {
    std::uintptr_t sectors[96], starts[32];
    unsigned count = 0, lanes = 0;
    for (unsigned i = 0; i < 32; ++i) {
        if (!(request.lanes >> i & 1)) continue;
        starts[lanes++] = request.at[i];
        const std::uintptr_t last = (request.at[i] + bytes - 1) / SECTOR;
        for (std::uintptr_t one = request.at[i] / SECTOR; one <= last && count < 96; ++one)
            sectors[count++] = one;
    }
    std::sort(sectors, sectors + count);
    std::sort(starts, starts + lanes);
    std::size_t touched = 0;
    for (unsigned i = 0; i < lanes; ++i)
        touched += i + 1 == lanes ? bytes : std::min<std::size_t>(bytes, starts[i + 1] - starts[i]);
    ++sums.requests;
    sums.lanes += lanes;
    count = unsigned(std::unique(sectors, sectors + count) - sectors);
    sums.sectors += count;
    for (unsigned i = 0; i < count; ++i)
        sums.from_l2 += kind != Kind::READ || !cache.take(block, sectors[i]);
    sums.ideal_sectors += (touched + SECTOR - 1) / SECTOR;
}

namespace {

// Whether each active lane reads what its neighbour at this distance reads, if that one is active.
bool is_paired(const Request& request, unsigned first, unsigned lanes, unsigned distance) {
    for (unsigned i = first; i < first + lanes; ++i) {
        const unsigned other = i ^ distance;
        const bool are_both = request.lanes >> i & 1 && request.lanes >> other & 1;
        if (are_both && request.at[i] != request.at[other]) return false;
    }
    return true;
}

// Adds the lanes of one phase, which goes over all banks at once.
void add_phase(Sums& sums, const Request& request, unsigned bytes, unsigned first, unsigned lanes) {
    std::uintptr_t words[128];
    unsigned count = 0, depth[BANKS] = {};
    for (unsigned i = first; i < first + lanes; ++i) {
        if (!(request.lanes >> i & 1)) continue;
        for (std::uintptr_t one = request.at[i] / 4;
             one <= (request.at[i] + bytes - 1) / 4 && count < 128; ++one)
            words[count++] = one;
    }
    if (count == 0) return;
    std::sort(words, words + count);
    count = unsigned(std::unique(words, words + count) - words);
    for (unsigned i = 0; i < count; ++i) ++depth[words[i] % BANKS];
    sums.wavefronts += *std::max_element(depth, depth + BANKS);
    sums.ideal_wavefronts += (count + BANKS - 1) / BANKS;
}

}  // namespace

void add_shared(Sums& sums, const Request& request, unsigned bytes, Kind kind) {
    // 128 bytes are returned in a cycle: wider accesses go by halves or quarters of the warp. Loads
    // of which all lanes are paired with one beside them, or the next but one, return two lanes'
    // words at once (NVIDIA of compute capability 7 and later).
    const unsigned group = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
    const bool may_pair = kind == Kind::READ && group < 32;
    ++sums.requests;
    sums.lanes += unsigned(__builtin_popcount(request.lanes));
    for (unsigned first = 0; first < 32; first += 2 * group) {
        const unsigned pair = std::min(2 * group, 32 - first);
        if (group == 32 || (may_pair && (is_paired(request, first, pair, 1) ||
                                         is_paired(request, first, pair, 2)))) {
            add_phase(sums, request, bytes, first, pair);
            continue;
        }
        add_phase(sums, request, bytes, first, group);
        add_phase(sums, request, bytes, first + group, group);
    }
}

}  // namespace kw::watch
