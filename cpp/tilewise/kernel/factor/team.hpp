// What ranks that work on one matrix together say to each other, for kernels that know no MPI. The class
// itself is a rank alone.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/grid/grid.hpp"
#include "tilewise/kernel/factor/jacobi.hpp"

namespace tilewise::kernel {

/// Columns of one matrix, each of them on one rank.
template <class T> struct SpreadColumnsOf {
    ColumnsOf<T> mine;        ///< this rank's, in the sequence of their places
    std::vector<int> owners;  ///< which rank has each place

    std::int64_t count() const { return static_cast<std::int64_t>(owners.size()); }
    /// How many of the places [begin, end) a rank has.
    std::int64_t of_rank(int rank, std::int64_t begin, std::int64_t end) const {
        return std::count(owners.begin() + begin, owners.begin() + end, rank);
    }
};
using SpreadColumns = SpreadColumnsOf<double>;

/// Which part of a matrix a rank is to get.
using WantedBlock = std::function<grid::Block(int rank)>;

/// The same part of columns of `parts` times as many rows.
inline WantedBlock with_rows(WantedBlock wanted, std::int64_t parts) {
    if (parts == 1) {
        return wanted;
    }
    return [wanted = std::move(wanted), parts](int rank) {
        const grid::Block block = wanted(rank);
        return grid::Block{{parts * block.rows.begin, parts * block.rows.end}, block.columns};
    };
}

/// Every function but the first two is to be called by all ranks. Complex numbers travel as the reals that they are
/// made of.
class Team {
public:
    Team() = default;
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;
    virtual ~Team() = default;

    virtual int rank() const { return 0; }
    virtual int size() const { return 1; }
    /// Element by element the largest of all ranks.
    virtual void largest(std::vector<double>& /*values*/) const {}
    template <class T> void broadcast(T* values, std::int64_t count, int root) const {
        broadcast_reals(reals_of(values), parts_of<T> * count, root);
    }
    /// Columns [begin, end) from row `top` on, on every rank: column by column without gaps.
    template <class T> void gather(const SpreadColumnsOf<T>& a, std::int64_t begin, std::int64_t end, std::int64_t top,
                                   T* to) const {
        gather_reals({as_reals(a.mine), a.owners}, begin, end, parts_of<T> * top, reals_of(to));
    }
    /// This rank's wanted block, column by column without gaps.
    template <class T> Buffer redistribute(const SpreadColumnsOf<T>& a, const WantedBlock& wanted) const {
        return redistribute_reals({as_reals(a.mine), a.owners}, with_rows(wanted, parts_of<T>));
    }
    /// Runs `work` on rank 0, with all cores that there are for it; elsewhere nothing.
    virtual void on_root(const std::function<void(int threads)>& work, int threads) const { work(threads); }

protected:
    virtual void broadcast_reals(double* /*values*/, std::int64_t /*count*/, int /*root*/) const {}
    virtual void gather_reals(const SpreadColumns& a, std::int64_t begin, std::int64_t end, std::int64_t top,
                              double* to) const {
        for (std::int64_t c = begin; c < end; ++c) {
            to = std::copy_n(a.mine.column(c) + top, a.mine.rows - top, to);
        }
    }
    virtual Buffer redistribute_reals(const SpreadColumns& a, const WantedBlock& wanted) const {
        const grid::Block block = wanted(0);
        Buffer got(static_cast<std::size_t>(std::max<std::int64_t>(1, block.size())) * sizeof(double));
        auto* to = reinterpret_cast<double*>(got.data());
        for (std::int64_t c = block.columns.begin; c < block.columns.end; ++c) {
            to = std::copy_n(a.mine.column(c) + block.rows.begin, block.rows.size(), to);
        }
        return got;
    }
};

}  // namespace tilewise::kernel
