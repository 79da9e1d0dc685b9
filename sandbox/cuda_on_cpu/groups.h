// SPDX-License-Identifier: Apache-2.0
// Cooperative groups within a block. Grids and clusters are not here: their blocks run one after
// the other.
#pragma once

namespace cooperative_groups {

struct thread_block {
    void sync(KW_LINE) const { kw::barrier(kw::Vote::NONE, 0, line); }
    unsigned thread_rank() const { return kw::here.rank; }
    unsigned size() const {
        const uint3& d = kw::here.block_dim;
        return d.x * d.y * d.z;
    }
    unsigned num_threads() const { return size(); }
    dim3 group_index() const { return kw::here.block; }
    dim3 thread_index() const { return kw::here.thread; }
    dim3 dim_threads() const { return kw::here.block_dim; }
    dim3 group_dim() const { return kw::here.block_dim; }
};
inline thread_block this_thread_block() { return {}; }

// Lanes of one warp; `mask` names them and thread_rank counts among them.
class warp_lanes {
protected:
    unsigned mask_;
    int source(unsigned rank) const { return __fns(mask_, 0, int(rank) + 1); }

public:
    explicit warp_lanes(unsigned mask) : mask_(mask) {}
    unsigned mask() const { return mask_; }
    unsigned size() const { return unsigned(__popc(mask_)); }
    unsigned num_threads() const { return size(); }
    unsigned thread_rank() const {
        return unsigned(__popc(mask_ & ((1u << kw::lane()) - 1)));
    }
    void sync(KW_LINE) const { __syncwarp(mask_, line); }
    int any(int predicate, KW_LINE) const { return __any_sync(mask_, predicate, line); }
    int all(int predicate, KW_LINE) const { return __all_sync(mask_, predicate, line); }
    // Bit i stands for the thread of rank i.
    unsigned ballot(int predicate, KW_LINE) const {
        return ranks(__ballot_sync(mask_, predicate, line));
    }
    template <typename T> unsigned match_any(T value, KW_LINE) const {
        return ranks(__match_any_sync(mask_, value, line));
    }
    template <typename T> unsigned match_all(T value, int& is_all, KW_LINE) const {
        return ranks(__match_all_sync(mask_, value, &is_all, line));
    }
    template <typename T> T shfl(T value, unsigned rank, KW_LINE) const {
        return kw::take_from(mask_, value, source(rank % size()), line);
    }
    template <typename T> T shfl_up(T value, unsigned delta, KW_LINE) const {
        const unsigned own = thread_rank();
        return kw::take_from(mask_, value, own < delta ? -1 : source(own - delta), line);
    }
    template <typename T> T shfl_down(T value, unsigned delta, KW_LINE) const {
        const unsigned from = thread_rank() + delta;
        return kw::take_from(mask_, value, from >= size() ? -1 : source(from), line);
    }
    template <typename T> T shfl_xor(T value, unsigned ranks, KW_LINE) const {
        const unsigned from = thread_rank() ^ ranks;
        return kw::take_from(mask_, value, from >= size() ? -1 : source(from), line);
    }

private:
    unsigned ranks(unsigned lanes) const {
        unsigned out = 0, rank = 0;
        for (int i = 0; i < 32; ++i)
            if (mask_ >> i & 1) out |= (lanes >> i & 1) << rank++;
        return out;
    }
};

template <unsigned N, typename Parent = void> class thread_block_tile : public warp_lanes {
    static_assert(N <= 32 && (N & (N - 1)) == 0, "tiles of more than a warp are not emulated");

public:
    thread_block_tile()
        : warp_lanes((N == 32 ? ~0u : (1u << (N & 31)) - 1) << (kw::lane() & ~(N - 1))) {}
    template <typename Other> thread_block_tile(const thread_block_tile<N, Other>&)
        : thread_block_tile() {}
    unsigned meta_group_rank() const { return kw::here.rank / N; }
    unsigned meta_group_size() const { return (thread_block{}.size() + N - 1) / N; }
    static constexpr unsigned size() { return N; }
    static constexpr unsigned num_threads() { return N; }
    unsigned thread_rank() const { return kw::here.rank % N; }
};
template <unsigned N, typename Parent>
thread_block_tile<N, Parent> tiled_partition(const Parent&) { return {}; }

class coalesced_group : public warp_lanes {
public:
    using warp_lanes::warp_lanes;
};
inline coalesced_group coalesced_threads(KW_LINE) { return coalesced_group(__activemask(line)); }
inline coalesced_group binary_partition(const warp_lanes& group, bool side, KW_LINE) {
    const unsigned with = __ballot_sync(group.mask(), side, line);
    return coalesced_group(side ? with : group.mask() & ~with);
}

// A group whose kind is known as it runs: the block, or equal parts of its warps.
class thread_group : public warp_lanes {
    bool is_block_;

public:
    thread_group(thread_block) : warp_lanes(~0u), is_block_(true) {}
    thread_group(const warp_lanes& lanes) : warp_lanes(lanes), is_block_(false) {}
    unsigned size() const { return is_block_ ? thread_block{}.size() : warp_lanes::size(); }
    unsigned num_threads() const { return size(); }
    unsigned thread_rank() const {
        return is_block_ ? kw::here.rank : warp_lanes::thread_rank();
    }
    void sync(KW_LINE) const {
        if (is_block_) thread_block{}.sync(line);
        else warp_lanes::sync(line);
    }
};
inline thread_group tiled_partition(const thread_group&, unsigned lanes) {
    const unsigned all = lanes >= 32 ? ~0u : (1u << lanes) - 1;
    return thread_group(warp_lanes(all << (kw::lane() & ~(lanes - 1))));
}
template <typename T>
coalesced_group labeled_partition(const warp_lanes& group, T label, KW_LINE) {
    return coalesced_group(__match_any_sync(group.mask(), label, line));
}

template <typename T> struct plus { T operator()(T a, T b) const { return a + b; } };
template <typename T> struct less { T operator()(T a, T b) const { return b < a ? b : a; } };
template <typename T> struct greater { T operator()(T a, T b) const { return a < b ? b : a; } };
template <typename T> struct bit_and { T operator()(T a, T b) const { return a & b; } };
template <typename T> struct bit_or { T operator()(T a, T b) const { return a | b; } };
template <typename T> struct bit_xor { T operator()(T a, T b) const { return a ^ b; } };

template <typename G, typename T, typename F>
T reduce(const G& group, T value, F combine, KW_LINE) {
    // Every lane has the same function object, so each folds all values for itself.
    kw::Gathered<T> all;
    kw::rendezvous(group.mask(), kw::gather<T>, {&value, &all, sizeof(T), 0}, line);
    unsigned left = all.lanes;
    T sum = all.of(unsigned(__builtin_ctz(left)));
    while (left &= left - 1) sum = T(combine(sum, all.of(unsigned(__builtin_ctz(left)))));
    return sum;
}
template <typename G, typename T, typename F>
T inclusive_scan(const G& group, T value, F combine, KW_LINE) {
    for (unsigned step = 1; step < group.size(); step *= 2) {
        const T other = group.shfl_up(value, step, line);
        if (group.thread_rank() >= step) value = combine(other, value);
    }
    return value;
}
template <typename G, typename T> T inclusive_scan(const G& group, T value, KW_LINE) {
    return inclusive_scan(group, value, plus<T>{}, line);
}
template <typename G, typename T, typename F>
T exclusive_scan(const G& group, T value, F combine, KW_LINE) {
    const T out = group.shfl_up(inclusive_scan(group, value, combine, line), 1, line);
    return group.thread_rank() ? out : T{};
}
template <typename G, typename T> T exclusive_scan(const G& group, T value, KW_LINE) {
    return exclusive_scan(group, value, plus<T>{}, line);
}
template <typename G> void sync(const G& group, KW_LINE) { group.sync(line); }
template <typename G, typename F> void invoke_one(const G& group, F&& work) {
    if (group.thread_rank() == 0) work();
}

// Copies of the whole group, done at once.
template <typename G, typename T, typename Bytes>
void memcpy_async(const G& group, T* to, const T* from, const Bytes& bytes) {
    for (std::size_t i = group.thread_rank(); i < std::size_t(bytes) / sizeof(T); i += group.size())
        to[i] = from[i];
}
template <typename G> void wait(const G& group, KW_LINE) { group.sync(line); }
template <unsigned N, typename G> void wait_prior(const G& group, KW_LINE) { group.sync(line); }

}  // namespace cooperative_groups
