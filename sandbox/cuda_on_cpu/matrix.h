// SPDX-License-Identifier: Apache-2.0
// wmma: matrix fragments over a warp, with a mapping of elements to lanes of our own.
#pragma once

namespace nvcuda::wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision { struct tf32 {}; }

template <typename T> struct storage { using type = T; };
template <> struct storage<precision::tf32> { using type = float; };

template <typename Use, int M, int N, int K> struct extent;
template <int M, int N, int K> struct extent<matrix_a, M, N, K> {
    static constexpr int rows = M, columns = K;
};
template <int M, int N, int K> struct extent<matrix_b, M, N, K> {
    static constexpr int rows = K, columns = N;
};
template <int M, int N, int K> struct extent<accumulator, M, N, K> {
    static constexpr int rows = M, columns = N;
};

template <typename Use, int M, int N, int K, typename T, typename Layout = void> struct fragment {
    using element_type = typename storage<T>::type;
    using Extent = extent<Use, M, N, K>;
    static constexpr int rows = Extent::rows, columns = Extent::columns;
    static constexpr int num_elements = rows * columns / 32;
    static constexpr int num_storage_elements = num_elements;
    element_type x[num_elements];
};

// Element i of a lane is number 32·i + lane of the matrix, row by row.
template <typename F> std::size_t place_of(int i, unsigned leading, bool by_rows) {
    const unsigned at = unsigned(i) * 32 + kw::lane();
    const unsigned row = at / F::columns, column = at % F::columns;
    return by_rows ? row * std::size_t(leading) + column : column * std::size_t(leading) + row;
}
// Accesses are told with the line of the call: these functions are the library's.
template <typename F, typename V, typename T>
KW_UNSEEN void copy_in(F& to, const T* from, unsigned leading, bool by_rows, int line) {
    for (int i = 0; i < F::num_elements; ++i) {
        const T* const at = from + place_of<F>(i, leading, by_rows);
        kw::note_read(at, sizeof(T), line);
        to.x[i] = V(*at);
    }
}
template <typename F, typename T>
KW_UNSEEN void copy_out(T* to, const F& from, unsigned leading, bool by_rows, int line) {
    for (int i = 0; i < F::num_elements; ++i) {
        T* const at = to + place_of<F>(i, leading, by_rows);
        kw::note_write(at, sizeof(T), line);
        *at = from.x[i];
    }
}

template <typename Use, int M, int N, int K, typename T, typename Layout, typename E>
void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& to, const E* from, unsigned leading,
                      KW_LINE) {
    __ballot_sync(0xffffffffu, 1, line);  // all lanes meet, which orders no memory
    copy_in<fragment<Use, M, N, K, T, Layout>, typename storage<T>::type>(
        to, from, leading, std::is_same_v<Layout, row_major>, line);
}
template <int M, int N, int K, typename T, typename E>
void load_matrix_sync(fragment<accumulator, M, N, K, T>& to, const E* from, unsigned leading,
                      layout_t layout, KW_LINE) {
    __ballot_sync(0xffffffffu, 1, line);  // all lanes meet, which orders no memory
    copy_in<fragment<accumulator, M, N, K, T>, T>(to, from, leading, layout == mem_row_major, line);
}
template <typename E, int M, int N, int K, typename T>
void store_matrix_sync(E* to, const fragment<accumulator, M, N, K, T>& from, unsigned leading,
                       layout_t layout, KW_LINE) {
    copy_out(to, from, leading, layout == mem_row_major, line);
    __ballot_sync(0xffffffffu, 1, line);  // all lanes meet, which orders no memory
}
template <typename Use, int M, int N, int K, typename T, typename Layout, typename V>
void fill_fragment(fragment<Use, M, N, K, T, Layout>& to, const V& value) {
    for (auto& element : to.x) element = typename storage<T>::type(value);
}

inline float __float_to_tf32(float value) { return kw::rounded_tf32(value, kw::Round::AWAY); }

// What a tensor core sees of an element: tf32 fragments hold floats that may not be rounded yet.
template <typename T> auto seen(const typename storage<T>::type& value) {
    if constexpr (std::is_same_v<T, precision::tf32>) return kw::cut_tf32(value);
    else if constexpr (std::is_same_v<T, double>) return value;
    else if constexpr (std::is_integral_v<T>) return int(value);
    else return float(value);
}
template <typename D, typename S> D narrowed(S sum, bool is_clamped) {
    if constexpr (std::is_integral_v<D>) return kw::tensor::whole_sum(sum, is_clamped);
    else return D(sum);
}

template <int M, int N, int K, typename T, typename LA, typename LB, typename C, typename D>
struct product {
    const fragment<matrix_a, M, N, K, T, LA>* a;
    const fragment<matrix_b, M, N, K, T, LB>* b;
    const fragment<accumulator, M, N, K, C>* c;
    fragment<accumulator, M, N, K, D>* d;
    bool is_clamped;

    static KW_UNSEEN void run(kw::Parts parts, unsigned) {
        const auto of = [&](unsigned lane) {
            return static_cast<const product*>(parts[parts[lane] ? lane : 0]->in);
        };
        const auto element = [](const auto& fragments, unsigned at) {
            return fragments(at % 32).x[at / 32];
        };
        const auto as = [&](unsigned lane) -> const auto& { return *of(lane)->a; };
        const auto bs = [&](unsigned lane) -> const auto& { return *of(lane)->b; };
        using Number = decltype(seen<T>({}));
        using Sum = std::conditional_t<std::is_integral_v<Number>, std::int64_t, Number>;
        Number a[K], b[K][N];
        for (unsigned k = 0; k < K; ++k)
            for (unsigned n = 0; n < N; ++n) b[k][n] = seen<T>(element(bs, k * N + n));
        for (unsigned row = 0; row < M; ++row) {
            Sum sums[N];
            for (unsigned n = 0; n < N; ++n) {
                const unsigned at = row * N + n;
                sums[n] = Sum(of(at % 32)->c->x[at / 32]);
            }
            for (unsigned k = 0; k < K; ++k) a[k] = seen<T>(element(as, row * K + k));
            kw::tensor::add_products<N, K>(sums, a, b);
            for (unsigned n = 0; n < N; ++n) {
                const unsigned at = row * N + n;
                of(at % 32)->d->x[at / 32] = narrowed<D>(sums[n], of(at % 32)->is_clamped);
            }
        }
    }
};

template <int M, int N, int K, typename T, typename LA, typename LB, typename C, typename D>
void mma_sync(fragment<accumulator, M, N, K, D>& d, const fragment<matrix_a, M, N, K, T, LA>& a,
              const fragment<matrix_b, M, N, K, T, LB>& b,
              const fragment<accumulator, M, N, K, C>& c, bool is_clamped = false, KW_LINE) {
    using P = product<M, N, K, T, LA, LB, C, D>;
    const P own{&a, &b, &c, &d, is_clamped};
    kw::rendezvous(0xffffffffu, P::run, {&own, nullptr, sizeof own, 0}, line);
}

}  // namespace nvcuda::wmma
