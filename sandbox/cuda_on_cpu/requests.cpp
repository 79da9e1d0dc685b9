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

void add_global(Sums& sums, const Request& request, unsigned bytes) {
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
    sums.sectors += std::uint64_t(std::unique(sectors, sectors + count) - sectors);
    sums.ideal_sectors += (touched + SECTOR - 1) / SECTOR;
}

void add_shared(Sums& sums, const Request& request, unsigned bytes) {
    // A wavefront carries 128 bytes: wider accesses go by halves or quarters of the warp.
    const unsigned group = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
    ++sums.requests;
    sums.lanes += unsigned(__builtin_popcount(request.lanes));
    for (unsigned first = 0; first < 32; first += group) {
        std::uintptr_t words[128];
        unsigned count = 0, depth[BANKS] = {};
        for (unsigned i = first; i < first + group; ++i) {
            if (!(request.lanes >> i & 1)) continue;
            for (std::uintptr_t one = request.at[i] / 4;
                 one <= (request.at[i] + bytes - 1) / 4 && count < 128; ++one)
                words[count++] = one;
        }
        if (count == 0) continue;
        std::sort(words, words + count);
        count = unsigned(std::unique(words, words + count) - words);
        for (unsigned i = 0; i < count; ++i) ++depth[words[i] % BANKS];
        sums.wavefronts += *std::max_element(depth, depth + BANKS);
        sums.ideal_wavefronts += (count + BANKS - 1) / BANKS;
    }
}

}  // namespace kw::watch
