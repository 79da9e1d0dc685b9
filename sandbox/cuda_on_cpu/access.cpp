// SPDX-License-Identifier: Apache-2.0
// What the access build makes of the accesses that it is told: races, requests, and the report.
#include <algorithm>
#include <cstdlib>

#include "access.h"
#include "report.h"
#include "runtime.h"
#include "watch.h"

extern "C" const char __ehdr_start[] __attribute__((visibility("hidden")));

namespace kw::watch {

namespace {

struct Shared {
    Range range;
    std::vector<Word> words;
};

// A write that races with another one, unless both write the same.
struct Pending {
    bool is_any = false;
    std::uintptr_t at = 0;
    unsigned bytes = 0;
    unsigned char before[16];
    RaceKey key;
    Race race;
};

class Watch {
public:
    void block_begins(unsigned threads);
    void block_ends();
    void shared_begins(std::uintptr_t at, std::size_t bytes);
    void barrier();
    void met(unsigned warp, unsigned lanes, bool is_whole, bool is_ordering);
    void access(std::uintptr_t at, const Place& place);
    void copy(std::uintptr_t at, unsigned bytes, int line, bool has_arrived);
    void fence();
    void atomic();

private:
    struct Site {
        Place place;
        SiteSums sums;
        std::vector<std::uint32_t> turns;           // how often each thread has been here
        std::vector<std::vector<Request>> global, shared;  // by warp, then by turn
    };
    std::uint32_t site_of(const Place& place);
    void record(std::vector<Request>& requests, std::uint32_t turn, std::uintptr_t at);
    void check(Shared& shared, std::uintptr_t at, std::uint32_t site);
    void check_word(Word& word, std::uintptr_t at, unsigned bytes, std::uint32_t site);
    void conflict(const Stamp& before, std::uint32_t site, std::uintptr_t at, unsigned bytes,
                  bool is_flight = false);
    void check_global(unsigned buffer, std::uintptr_t at, std::uint32_t site);
    Now now() const;
    void hold(const RaceKey& key, const Race& race, std::uintptr_t at, unsigned bytes);
    void settle_pending();
    void flush(unsigned warp);
    void add_warps();

    unsigned threads_ = 0;
    std::vector<std::uint64_t> requests_;  // to global memory, of each warp of the block
    std::uint64_t block_ = 0, epoch_ = 0;
    bool is_running_ = false;
    Order order_;
    Cache cache_;
    std::vector<Site> sites_;
    std::map<Place, std::uint32_t> known_;
    std::vector<Shared> shared_;
    std::size_t used_ = 0;
    Pending pending_;
    std::map<std::uint32_t, std::uint64_t> unwritten_;
};

Watch& own() {
    static thread_local Watch watch;
    return watch;
}

void Watch::block_begins(unsigned threads) {
    is_running_ = !report.is_paused;
    if (!is_running_) return;
    threads_ = threads;
    requests_.assign((threads + 31) / 32, 0);
    ++block_;
    ++epoch_;
    used_ = 0;
    order_.begin(threads);
    if (is_thorough()) report.ledger.block_begins(threads);
    for (Site& site : sites_) {
        site.turns.assign(threads, 0);
        site.global.resize((threads + 31) / 32);
        site.shared.resize((threads + 31) / 32);
    }
    if (here.dynamic && here.dynamic_bytes)
        shared_begins(reinterpret_cast<std::uintptr_t>(here.dynamic), here.dynamic_bytes);
}

void Watch::shared_begins(std::uintptr_t at, std::size_t bytes) {
    if (!is_running_) return;
    if (shared_.size() == used_) shared_.emplace_back();
    Shared& shared = shared_[used_++];
    shared.range = {at, at + bytes};
    if (shared.words.size() < bytes / 4 + 1) shared.words.resize(bytes / 4 + 1);
}

void Watch::barrier() {
    if (!is_running_) return;
    settle_pending();
    ++epoch_;
    for (unsigned warp = 0; warp < (threads_ + 31) / 32; ++warp) flush(warp);
}

void Watch::met(unsigned warp, unsigned lanes, bool is_whole, bool is_ordering) {
    if (!is_running_) return;
    settle_pending();
    if (is_whole) flush(warp);
    if (is_ordering) order_.join(warp, lanes);
}

void Watch::add_warps() {
    LaunchSums& launch = report.launches.back();
    ++launch.counted;
    launch.warps += requests_.size();
    for (const std::uint64_t requests : requests_) {
        launch.requests += requests;
        launch.longest = std::max(launch.longest, requests);
    }
}

void Watch::block_ends() {
    if (!is_running_) return;
    barrier();
    is_running_ = false;
    std::lock_guard guard(report.mutex);
    add_warps();
    const std::size_t launch = report.launches.size() - 1;
    const auto add = [](Sums& to, Sums& from) {
        report.watched += from.lanes;
        to.requests += from.requests, to.lanes += from.lanes;
        to.sectors += from.sectors, to.ideal_sectors += from.ideal_sectors;
        to.wavefronts += from.wavefronts, to.ideal_wavefronts += from.ideal_wavefronts;
        to.from_l2 += from.from_l2, to.buffers |= from.buffers;
        from = {};
    };
    for (Site& site : sites_) {
        if (site.sums.global.requests + site.sums.shared.requests == 0) continue;
        SiteSums& all = report.sums[{launch, site.place}];
        add(all.global, site.sums.global);
        add(all.shared, site.sums.shared);
    }
    for (const auto& [site, count] : unwritten_) report.unwritten[sites_[site].place] += count;
    unwritten_.clear();
}

std::uint32_t Watch::site_of(const Place& place) {
    const auto [found, is_new] = known_.try_emplace(place, std::uint32_t(sites_.size()));
    if (is_new) {
        const unsigned warps = (threads_ + 31) / 32;
        sites_.push_back({place, {}, std::vector<std::uint32_t>(threads_, 0), {}, {}});
        sites_.back().global.resize(warps);
        sites_.back().shared.resize(warps);
    }
    return found->second;
}

void Watch::access(std::uintptr_t at, const Place& place) {
    if (!is_running_) return;
    settle_pending();
    for (std::size_t i = 0; i < used_; ++i) {
        if (!shared_[i].range.has(at)) continue;
        const std::uint32_t number = site_of(place);
        Site& site = sites_[number];
        record(site.shared[here.rank / 32], site.turns[here.rank]++, at);
        if (is_thorough()) check(shared_[i], at, number);
        return;
    }
    for (std::size_t i = 0; i < report.buffers.size(); ++i) {
        if (!report.buffers[i].has(at)) continue;
        const std::uint32_t number = site_of(place);
        Site& site = sites_[number];
        site.sums.global.buffers |= std::uint64_t(1) << (i & 63);
        record(site.global[here.rank / 32], site.turns[here.rank]++, at);
        // Nobody can write an input.
        if (is_thorough() && std::int64_t(i) >= report.inputs) check_global(unsigned(i), at, number);
        return;
    }
}

void Watch::record(std::vector<Request>& requests, std::uint32_t turn, std::uintptr_t at) {
    if (requests.size() <= turn) requests.resize(turn + 1);
    requests[turn].lanes |= 1u << lane();
    requests[turn].at[lane()] = at;
}

void Watch::flush(unsigned warp) {
    for (Site& site : sites_) {
        for (const Request& request : site.global[warp])
            if (request.lanes) {
                add_global(site.sums.global, request, site.place.bytes, site.place.kind, cache_,
                           block_);
                ++requests_[warp];
            }
        for (const Request& request : site.shared[warp])
            if (request.lanes) add_shared(site.sums.shared, request, site.place.bytes, site.place.kind);
        site.global[warp].clear();
        site.shared[warp].clear();
        const unsigned after = std::min(threads_, warp * 32 + 32);
        std::fill(site.turns.begin() + warp * 32, site.turns.begin() + after, 0);
    }
}

void Watch::check(Shared& shared, std::uintptr_t at, std::uint32_t site) {
    const std::uintptr_t end = std::min(at + sites_[site].place.bytes, shared.range.to);
    while (at < end) {
        const std::uintptr_t next = std::min(end, (at / 4 + 1) * 4);
        Word& word = shared.words[(at - shared.range.from) / 4];
        if (word.block != block_) {
            word.block = block_;
            word.written = 0;
            word.flight = {};
        }
        if (word.epoch != epoch_) {
            word.epoch = epoch_;
            word.stamps.clear();
        }
        check_word(word, at, unsigned(next - at), site);
        at = next;
    }
}

void Watch::check_word(Word& word, std::uintptr_t at, unsigned bytes, std::uint32_t site) {
    const Kind kind = sites_[site].place.kind;
    const auto own = std::uint8_t(((1u << bytes) - 1) << (at & 3));
    const unsigned rank = here.rank;
    // Not even the thread that copies may touch it: only its wait orders the two.
    if (word.flight.bytes & own) conflict(word.flight, site, at, bytes, true);
    if (kind != Kind::WRITE && own & ~word.written) ++unwritten_[site];
    if (kind != Kind::READ) word.written |= own;
    std::size_t kept = 0;
    bool has_two_warps = false;
    for (const Stamp& stamp : word.stamps) {
        const bool is_ordered = order_.has_heard(rank, stamp.rank, stamp.clock);
        const bool is_harmless = kind == stamp.kind && kind != Kind::WRITE;
        if (stamp.bytes & own && !is_ordered && !is_harmless) conflict(stamp, site, at, bytes);
        // What this access is ordered after need not be kept: who is ordered after this one is
        // ordered after that one too, or both are in another warp.
        const bool is_covered = is_ordered && (stamp.bytes & ~own) == 0 &&
                                (kind == Kind::WRITE || kind == stamp.kind);
        if (is_covered) continue;
        has_two_warps |= stamp.rank / 32 != rank / 32 && stamp.kind == kind &&
                         (own & ~stamp.bytes) == 0 && kept > 40;
        word.stamps[kept++] = stamp;
    }
    word.stamps.resize(kept);
    // With readers of many warps kept, any write races with one of them already.
    if (!has_two_warps)
        word.stamps.push_back({site, order_.now(rank), std::uint16_t(rank), own, kind});
}

// The place of an asynchronous copy may be written at any time from its start until its wait: both
// are writes, and what lies between them is no other thread's.
void Watch::copy(std::uintptr_t at, unsigned bytes, int line, bool has_arrived) {
    if (!is_running_) return;
    const Place place{0, line, Kind::WRITE, bytes};
    if (has_arrived) settle_pending();
    else access(at, place);
    if (!is_thorough()) return;
    for (std::size_t i = 0; i < used_; ++i) {
        if (!shared_[i].range.has(at)) continue;
        const std::uint32_t site = site_of(place);
        const std::uintptr_t end = std::min(at + bytes, shared_[i].range.to);
        for (std::uintptr_t one = at; one < end; one += 4) {
            Stamp& flight = shared_[i].words[(one - shared_[i].range.from) / 4].flight;
            flight = {};
            if (!has_arrived)
                flight = {site, order_.now(here.rank), std::uint16_t(here.rank), 0xF, Kind::WRITE};
        }
        if (has_arrived) check(shared_[i], at, site);
        return;
    }
}

void Watch::conflict(const Stamp& before, std::uint32_t site, std::uintptr_t at, unsigned bytes,
                     bool is_flight) {
    const Place &first = sites_[before.place].place, &second = sites_[site].place;
    const Kind one = first.kind, other = second.kind;
    const bool is_weak = (one == Kind::READ && other == Kind::ATOMIC) ||
                         (one == Kind::ATOMIC && other == Kind::READ);
    const std::uint32_t block = now().block;
    const Race race{1, {before.rank, here.rank}, {block, block}, report.launches.size() - 1};
    hold({first, second, -1, is_weak, is_flight}, race, at, bytes);
}

Now Watch::now() const {
    const uint3 &at = here.block, &of = here.grid_dim;
    return {at.x + of.x * (at.y + of.y * at.z), std::uint32_t(epoch_), order_.now(here.rank),
            here.rank};
}

void Watch::check_global(unsigned buffer, std::uintptr_t at, std::uint32_t site) {
    const Place& place = sites_[site].place;
    // Who meets at a word is ordered by that, as to all other words.
    if (place.is_volatile) report.ledger.meet(now(), place.kind == Kind::WRITE, place.kind == Kind::READ);
    const Conflict found = report.ledger.access(buffer, at, place, site, now(), order_);
    if (found.is_unset) ++report.unset[{place, buffer}];
    if (!found.is_any) return;
    const Entry &one = found.first, &other = found.second;
    const Race race{1, {one.rank, other.rank}, {one.block, other.block}, report.launches.size() - 1};
    hold({sites_[one.site].place, place, int(buffer), found.is_weak}, race, at,
         std::min(place.bytes, unsigned(report.buffers[buffer].to - at)));
}

void Watch::fence() {
    if (is_running_ && is_thorough()) report.ledger.fence(now());
}

void Watch::atomic() {
    if (is_running_ && is_thorough()) report.ledger.meet(now(), true, true);
}

// A race, unless the second access is a write that changes nothing.
void Watch::hold(const RaceKey& key, const Race& race, std::uintptr_t at, unsigned bytes) {
    pending_ = {true, at, std::min(bytes, unsigned(sizeof pending_.before)), {}, key, race};
    std::memcpy(pending_.before, reinterpret_cast<const void*>(at), pending_.bytes);
    if (key.second.kind != Kind::WRITE) pending_.bytes = 0;
}

void Watch::settle_pending() {
    if (!pending_.is_any) return;
    pending_.is_any = false;
    if (pending_.bytes && !std::memcmp(pending_.before, reinterpret_cast<const void*>(pending_.at),
                                       pending_.bytes))
        return;
    Race& known = report.races[pending_.key];
    const std::uint64_t count = known.count + 1;
    if (known.count == 0) known = pending_.race;
    known.count = count;
}

}  // namespace

void block_begins(unsigned threads) { own().block_begins(threads); }
void block_ends() { own().block_ends(); }
void shared_begins(const void* at, std::size_t bytes) {
    own().shared_begins(reinterpret_cast<std::uintptr_t>(at), bytes);
}
void barrier_opens() { own().barrier(); }
void lanes_met(unsigned warp, unsigned lanes, bool is_whole, bool is_ordering) {
    own().met(warp, lanes, is_whole, is_ordering);
}
void lane_missing(unsigned rank, unsigned other, int line) {
    std::lock_guard guard(report.mutex);
    Missing& one = report.missing[line];
    if (one.count++ == 0) one.rank = rank, one.other = other;
}

void told(const void* at, Kind kind, unsigned bytes, const void* from, bool is_volatile) {
    // One byte before the place that the call returns to belongs to the call itself.
    const auto code = reinterpret_cast<std::uintptr_t>(from) - 1 -
                      reinterpret_cast<std::uintptr_t>(__ehdr_start);
    own().access(reinterpret_cast<std::uintptr_t>(at), {code, 0, kind, bytes, is_volatile});
}

}  // namespace kw::watch

namespace kw {
void note_atomic(const void* at, unsigned bytes, int line) {
    watch::own().access(reinterpret_cast<std::uintptr_t>(at),
                        {0, line, watch::Kind::ATOMIC, bytes});
    watch::own().atomic();
}
void note_read(const void* at, unsigned bytes, int line) {
    watch::own().access(reinterpret_cast<std::uintptr_t>(at), {0, line, watch::Kind::READ, bytes});
}
void note_write(const void* at, unsigned bytes, int line) {
    watch::own().access(reinterpret_cast<std::uintptr_t>(at), {0, line, watch::Kind::WRITE, bytes});
}
void note_volatile(const void* at, unsigned bytes, bool is_write, int line) {
    watch::own().access(
        reinterpret_cast<std::uintptr_t>(at),
        {0, line, is_write ? watch::Kind::WRITE : watch::Kind::READ, bytes, true});
}
void note_copy(const void* to, unsigned bytes, int line) {
    watch::own().copy(reinterpret_cast<std::uintptr_t>(to), bytes, line, false);
}
void note_arrival(const void* to, unsigned bytes, int line) {
    watch::own().copy(reinterpret_cast<std::uintptr_t>(to), bytes, line, true);
}
void note_fence() { watch::own().fence(); }
void note_missing(unsigned lane, unsigned other) {
    const unsigned rank = here.rank / 32 * 32 + lane;
    watch::lane_missing(rank, other, here.owner->line(rank));
}
}  // namespace kw
