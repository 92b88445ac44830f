// Panels are factored by LAPACK. Which columns come next is decided for a whole panel, by a small sketch of all columns
// that are left: so nothing waits for single columns, and all but the panels is products of matrices.
//
//      sketch = signs · C, 72 rows        rank 0: QR with pivots         the panel
//     [ s s s s s s s s ]    ──────▶      of the sketch alone   ──────▶  [ c5 c2 c7 … ]
//
// P.-G. Martinsson, G. Quintana-Ortí, N. Heavner, R. van de Geijn, "Householder QR factorization with randomization for
// column pivoting (HQRRP)", 2017; J. A. Duersch, M. Gu, "Randomized QR with column pivoting", 2017. The sketch is made
// anew for each panel: bringing the last one up to date loses the digits of short columns.
#include "tilewise/dist/column_qr.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/random.hpp"
#include "tilewise/kernel/factor/lapack.hpp"
#include "tilewise/kernel/transpose/transpose.hpp"

namespace tilewise::dist {

using namespace kernel;
namespace {

template <class T> int stride_of(const ColumnsOf<T>& m) {
    return lapack_int(std::max<std::int64_t>({m.stride, m.rows, 1}));
}

/// C ← H·C or Hᴴ·C, of the last rows of C: H is the product of a panel's k reflectors, which lie without gaps.
/// `work`: `applied_reflectors` numbers for each column of C.
template <class T> void apply_panel(const char* form, const T* panel, std::int64_t rows, std::int64_t k, const T* tau,
                                    const ColumnsOf<T>& columns, T* work) {
    if (columns.count == 0) {
        return;
    }
    std::array<T, applied_reflectors * applied_reflectors> t;
    T* c = columns.data + columns.rows - rows;
    const int m = lapack_int(rows), n = lapack_int(columns.count), reflectors = lapack_int(k), ldc = stride_of(columns);
    lapack::larft(m, reflectors, panel, m, tau, t.data(), reflectors);
    lapack::larfb(form, m, n, reflectors, panel, m, t.data(), reflectors, c, ldc, work);
}

/// The columns of each rank that have no place yet, by the names that they had in A, in the sequence in which the rank
/// keeps them. All ranks know it of all.
class Unplaced {
public:
    Unplaced(const std::vector<int>& owners, const ColumnComm& comm)
        : names_(static_cast<std::size_t>(comm.size())),
          done_(names_.size()) {
        for (std::size_t name = 0; name < owners.size(); ++name) {
            names_[at(owners[name])].push_back(static_cast<int>(name));
        }
    }

    /// One entry for each: the ranks that have them, and their names, both by rank.
    std::vector<int> owners() const {
        std::vector<int> owners;
        for (std::size_t rank = 0; rank < names_.size(); ++rank) {
            owners.insert(owners.end(), names_[rank].size() - done_[rank], static_cast<int>(rank));
        }
        return owners;
    }
    std::vector<int> names() const {
        std::vector<int> names;
        for (std::size_t rank = 0; rank < names_.size(); ++rank) {
            names.insert(names.end(), names_[rank].begin() + static_cast<std::ptrdiff_t>(done_[rank]),
                         names_[rank].end());
        }
        return names;
    }
    std::int64_t placed(int rank) const { return static_cast<std::int64_t>(done_[at(rank)]); }

    /// Gives a column of `rank` the next place there; it changes places with the one at the index returned.
    std::int64_t place(int rank, int name) {
        std::vector<int>& names = names_[at(rank)];
        const auto next = names.begin() + static_cast<std::ptrdiff_t>(done_[at(rank)]++);
        const auto there = std::find(next, names.end(), name);
        std::iter_swap(next, there);
        return there - names.begin();
    }

private:
    static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

    std::vector<std::vector<int>> names_;
    std::vector<std::size_t> done_;
};

/// Random signs, column by column: rows×columns, the same on every rank.
template <class T> void fill_with_signs(T* to, std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
    for (std::int64_t c = 0; c < columns; ++c) {
        const std::uint64_t key = row_key(seed, static_cast<std::uint64_t>(c));
        for (std::int64_t r = 0; r < rows; ++r, ++to) {
            const std::uint64_t bits = random_bits(key, static_cast<std::uint64_t>(r / 64));
            *to = (bits >> (r % 64) & 1) != 0 ? 1.0 : -1.0;
        }
    }
}

/// Which of the columns that are left come next, as places among them: those that QR with pivots takes first from a
/// sketch of them, random sums of their rows from `top` on.
template <class T> std::vector<double> choose_pivots(const SpreadColumnsOf<T>& left, std::int64_t top,
                                                     std::int64_t wanted, const ColumnComm& comm, int threads) {
    const std::int64_t height = left.mine.rows - top, count = left.count(), sums = wanted + sketch_oversampling;
    const Array<T> signs(sums * height), sketch(sums * left.mine.count);
    tell<T>({static_cast<double>(sums * height), 0});
    fill_with_signs(signs.data(), sums, height, static_cast<std::uint64_t>(top));
    const int m = lapack_int(sums), n = lapack_int(left.mine.count), k = lapack_int(height), ldc = stride_of(left.mine);
    if (n > 0) {
        lapack::gemm("N", "N", m, n, k, T{1}, signs.data(), m, left.mine.data + top, ldc, T{}, sketch.data(), m);
    }
    const Array<T> all(comm.redistribute(SpreadColumnsOf<T>{{sketch.data(), sums, left.mine.count, sums}, left.owners},
                                         [&](int rank) { return grid::Block{{0, sums}, {0, rank == 0 ? count : 0}}; }));
    std::vector<double> chosen(static_cast<std::size_t>(wanted));
    comm.on_root(
        [&](int root_threads) {
            const BlasThreads blas(root_threads);
            std::vector<int> pivots(static_cast<std::size_t>(count));
            std::vector<T> tau(pivots.size()),
                work(static_cast<std::size_t>(2 * count + (count + 1) * factored_columns));
            const int columns = lapack_int(count), size = lapack_int(std::ssize(work));
            check_lapack(lapack::geqp3(m, columns, all.data(), m, pivots.data(), tau.data(), work.data(), size),
                         "geqp3");
            std::transform(pivots.begin(), pivots.begin() + wanted, chosen.begin(),
                           [](int pivot) { return pivot - 1; });
        },
        threads);
    comm.broadcast(chosen.data(), wanted, 0);
    return chosen;
}

/// Before each panel, `choose` may change which columns come next, and so who has them.
using Choose = std::function<void(std::int64_t begin, std::int64_t end, std::vector<int>& owners)>;

template <class T>
ColumnQrOf<T> factor(const SpreadColumnsOf<T>& a, const Choose& choose, const ColumnComm& comm, int threads) {
    const BlasThreads blas(threads);
    const ColumnsOf<T>& mine = a.mine;
    const std::int64_t n = a.count(), last = std::min(n, mine.rows);
    ColumnQrOf<T> qr{a, std::vector<T>(static_cast<std::size_t>(n))};
    const Array<T> memory(mine.rows * factored_columns), work(mine.count * applied_reflectors);
    T* panel = memory.data();
    std::vector<T> space(static_cast<std::size_t>(factored_columns * factored_columns));
    const int size = lapack_int(std::ssize(space));
    for (std::int64_t begin = 0, done = 0; begin < last; begin += factored_columns) {
        const std::int64_t end = std::min(begin + factored_columns, last), height = mine.rows - begin;
        choose(begin, end, qr.columns.owners);
        comm.gather(qr.columns, begin, end, begin, panel);
        const int m = lapack_int(height), k = lapack_int(end - begin);
        T* tau = qr.tau.data() + begin;
        check_lapack(lapack::geqrf(m, k, panel, m, tau, space.data(), size), "geqrf");
        for (std::int64_t c = begin; c < end; ++c) {
            if (qr.columns.owners[static_cast<std::size_t>(c)] == comm.rank()) {
                std::copy_n(panel + (c - begin) * height, height, mine.column(done++) + begin);
            }
        }
        apply_panel<T>(lapack::adjoint<T>, panel, height, end - begin, tau, mine.part(done, mine.count - done),
                       work.data());
    }
    return qr;
}

}  // namespace

template <class T> ColumnQrOf<T> column_qr(const SpreadColumnsOf<T>& a, const ColumnComm& comm, int threads) {
    return factor(a, [](std::int64_t, std::int64_t, std::vector<int>&) {}, comm, threads);
}

template <class T> ColumnQrOf<T> pivoted_column_qr(const SpreadColumnsOf<T>& a, std::vector<int>& permutation,
                                                   const ColumnComm& comm, int threads) {
    Unplaced unplaced(a.owners, comm);
    permutation.clear();
    const auto choose = [&](std::int64_t begin, std::int64_t end, std::vector<int>& owners) {
        const std::int64_t done = unplaced.placed(comm.rank());
        const std::vector<int> names = unplaced.names(), ranks = unplaced.owners();
        const SpreadColumnsOf<T> left{a.mine.part(done, a.mine.count - done), ranks};
        for (const double pivot : choose_pivots(left, begin, end - begin, comm, threads)) {
            const auto which = static_cast<std::size_t>(pivot);
            const std::int64_t next = unplaced.placed(ranks[which]), there = unplaced.place(ranks[which], names[which]);
            if (ranks[which] == comm.rank() && next != there) {
                std::swap_ranges(a.mine.column(next), a.mine.column(next) + a.mine.rows, a.mine.column(there));
            }
            owners[permutation.size()] = ranks[which];
            permutation.push_back(names[which]);
        }
    };
    return factor(a, choose, comm, threads);
}

template <class T> void apply_q(const ColumnQrOf<T>& qr, const ColumnsOf<T>& c, const ColumnComm& comm, int threads) {
    const BlasThreads blas(threads);
    const std::int64_t rows = qr.columns.mine.rows, last = std::min(qr.columns.count(), rows);
    const Array<T> panel(rows * applied_reflectors), work(c.count * applied_reflectors);
    for (std::int64_t end = last; end > 0;) {
        const std::int64_t begin = (end - 1) / applied_reflectors * applied_reflectors;
        comm.gather(qr.columns, begin, end, begin, panel.data());
        apply_panel<T>("N", panel.data(), rows - begin, end - begin, qr.tau.data() + begin, c, work.data());
        end = begin;
    }
}

template <class T> MatrixOf<T> transposed_triangle(const ColumnQrOf<T>& qr,
                                                   const std::function<grid::Range(int rank)>& wanted,
                                                   const ColumnComm& comm, int threads) {
    const std::int64_t n = qr.columns.count();
    const grid::Range rows = wanted(comm.rank());
    const Array<T> got(comm.redistribute(qr.columns, [&](int rank) { return grid::Block{wanted(rank), {0, n}}; }));
    const std::int64_t height = rows.size();
    for (std::int64_t c = 0; c < n; ++c) {  // without the reflectors
        const std::int64_t first = std::clamp(c + 1 - rows.begin, std::int64_t{0}, height);
        std::fill(got.data() + c * height + first, got.data() + (c + 1) * height, T{});
    }
    conjugate_all(got.data(), n * height);
    MatrixOf<T> t(n, height);
    if (height > 0) {
        const auto item = static_cast<std::int64_t>(sizeof(T));
        kernel::transpose(got.raw(), height * item, n, height, sizeof(T), reinterpret_cast<std::byte*>(t.data()),
                          t.stride * item, threads);
    }
    return t;
}

TILEWISE_COLUMN_QR(, double)
TILEWISE_COLUMN_QR(, Complex)

}  // namespace tilewise::dist
