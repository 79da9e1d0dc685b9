// SPDX-License-Identifier: Apache-2.0
// The report: what is asked in its head, and the lines that are written into it.
#include "report.h"

#include <algorithm>

#include "runtime.h"
#include "watch.h"

namespace kw::watch {

namespace {

// Of the report's head, beside the sizes of the buffers.
constexpr std::int64_t HEAD_WORDS = 6;
// Blocks of a launch between two looks at how many accesses were watched.
constexpr std::uint64_t ROUND = 16;

// Appends lines to the report for as long as there is room.
class Lines {
    char* at_;
    std::size_t left_, used_ = 0;

public:
    Lines(char* at, std::size_t room) : at_(at), left_(room) {}
    template <typename... T> void add(const char* format, T... values) {
        char line[512];
        const int length = std::snprintf(line, sizeof line, format, values...);
        if (length <= 0 || std::size_t(length) >= sizeof line || std::size_t(length) > left_) return;
        std::memcpy(at_ + used_, line, std::size_t(length));
        used_ += std::size_t(length), left_ -= std::size_t(length);
    }
    std::size_t used() const { return used_; }
};

const char* name(Kind kind) {
    return kind == Kind::READ ? "read" : kind == Kind::WRITE ? "write" : "atomic";
}

#define PLACE "\"code\": %llu, \"line\": %d, \"kind\": \"%s\", \"bytes\": %u"
#define PLACE_OF(place) (unsigned long long)(place).code, (place).line, name((place).kind), (place).bytes

void add_sums(Lines& lines, const char* space, std::size_t launch, const Place& place,
              const Sums& sums) {
    using U = unsigned long long;
    if (sums.requests == 0) return;
    lines.add("{\"what\": \"%s\", \"launch\": %llu, " PLACE ", \"requests\": %llu, \"lanes\": %llu, "
              "\"sectors\": %llu, \"ideal_sectors\": %llu, \"wavefronts\": %llu, "
              "\"ideal_wavefronts\": %llu, \"from_l2\": %llu, \"buffers\": %llu}\n",
              space, U(launch), PLACE_OF(place), U(sums.requests), U(sums.lanes), U(sums.sectors),
              U(sums.ideal_sectors), U(sums.wavefronts), U(sums.ideal_wavefronts), U(sums.from_l2),
              U(sums.buffers));
}

}  // namespace

void call_begins(std::int64_t* out, void** tensors, unsigned count, void** scratch) {
    report.out = out;
    report.buffers.clear();
    report.launches.clear();
    report.sums.clear();
    report.races.clear();
    report.unwritten.clear();
    report.missing.clear();
    report.unset.clear();
    report.ledger.begin();
    const std::int64_t* const after = out + 2 + out[1];
    report.budget = std::uint64_t(after[0]);
    report.finishes = after[1] != 0;
    report.inputs = after[2];
    auto* writers = after[3] ? reinterpret_cast<Writer*>(reinterpret_cast<char*>(out) + after[3]) : nullptr;
    for (std::int64_t i = 0; i < out[1]; ++i) {
        void* const start = i < count ? tensors[i] : scratch[i - count];
        const auto from = reinterpret_cast<std::uintptr_t>(start);
        report.buffers.push_back({from, from + std::uintptr_t(out[2 + i])});
        if (i < report.inputs || !is_thorough()) continue;
        // Of scratch buffers nobody asks who wrote a word last.
        report.ledger.add(unsigned(i), from, report.buffers.back().to, i < count ? writers : nullptr);
        if (writers) writers += (out[2 + i] + 3) / 4;
    }
}

bool is_thorough() { return report.budget == 0; }

bool is_sampling() { return report.budget > 0; }

void launch_begins(std::int64_t kernel, std::uint64_t blocks) {
    report.launches.push_back({kernel, blocks});
    if (is_thorough()) report.ledger.launch_begins();
    report.watched = 0;
    report.is_paused = false;
}

std::uint64_t next_blocks(std::uint64_t left, bool is_last) {
    if (!report.budget) return left;
    if (report.watched < report.budget) return std::min(left, ROUND);
    report.is_paused = true;
    return report.finishes && !is_last ? left : 0;
}

void call_ends() {
    const auto head = std::size_t(8 * (HEAD_WORDS + report.out[1]));
    Lines lines(reinterpret_cast<char*>(report.out) + head, std::size_t(report.out[0]) - head);
    for (const auto& [key, race] : report.races)
        lines.add("{\"what\": \"race\", \"first\": {" PLACE "}, \"second\": {" PLACE
                  "}, \"buffer\": %d, \"is_weak\": %d, \"is_flight\": %d, \"launch\": %llu, \"threads\": [%u, %u], "
                  "\"blocks\": [%u, %u], \"count\": %llu}\n",
                  PLACE_OF(key.first), PLACE_OF(key.second), key.buffer + 1, int(key.is_weak),
                  int(key.is_flight),
                  (unsigned long long)(race.launch), race.threads[0], race.threads[1],
                  race.blocks[0], race.blocks[1], (unsigned long long)(race.count));
    for (const auto& [line, one] : report.missing)
        lines.add("{\"what\": \"missing\", \"line\": %d, \"thread\": %u, \"lane\": %u, "
                  "\"count\": %llu}\n",
                  line, one.rank, one.other, (unsigned long long)(one.count));
    for (const auto& [place, count] : report.unwritten)
        lines.add("{\"what\": \"unwritten\", " PLACE ", \"count\": %llu}\n", PLACE_OF(place),
                  (unsigned long long)(count));
    using U = unsigned long long;
    for (const auto& [place, count] : report.unset)
        lines.add("{\"what\": \"unset\", " PLACE ", \"buffer\": %u, \"count\": %llu}\n",
                  PLACE_OF(place.first), place.second + 1, U(count));
    for (std::size_t i = 0; i < report.launches.size(); ++i) {
        const LaunchSums& one = report.launches[i];
        lines.add("{\"what\": \"launch\", \"launch\": %llu, \"kernel\": %lld, \"blocks\": %llu, "
                  "\"counted\": %llu, \"warps\": %llu, \"requests\": %llu, \"longest\": %llu}\n",
                  U(i), (long long)(one.kernel), U(one.blocks), U(one.counted), U(one.warps),
                  U(one.requests), U(one.longest));
    }
    for (const auto& [place, sums] : report.sums) {
        add_sums(lines, "global", place.first, place.second, sums.global);
        add_sums(lines, "shared", place.first, place.second, sums.shared);
    }
    report.out[0] = std::int64_t(lines.used());
}

}  // namespace kw::watch
