// SPDX-License-Identifier: Apache-2.0
// What all threads of the operating system have found out together.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "access.h"
#include "ledger.h"

namespace kw::watch {

struct Range {
    std::uintptr_t from = 0, to = 0;
    bool has(std::uintptr_t at) const { return at >= from && at < to; }
};

struct SiteSums {
    Sums global, shared;
};

// Lanes that take what a lane gives that is not there, and an example.
struct Missing {
    std::uint64_t count = 0;
    unsigned rank = 0, other = 0;
};

struct Report {
    std::mutex mutex;
    std::int64_t* out = nullptr;
    std::vector<Range> buffers;
    std::int64_t inputs = 0;  // of the buffers, which come first
    std::uint64_t budget = 0, watched = 0;  // accesses of threads, in this launch
    bool is_paused = false, finishes = false;
    std::vector<LaunchSums> launches;
    std::map<std::pair<std::size_t, Place>, SiteSums> sums;  // the first number is the launch's
    std::map<RaceKey, Race> races;
    std::map<Place, std::uint64_t> unwritten;
    std::map<int, Missing> missing;  // by line
    std::map<std::pair<Place, unsigned>, std::uint64_t> unset;  // with the buffer's number
    Ledger ledger;
};
inline Report report;

}  // namespace kw::watch
