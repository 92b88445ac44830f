// What ranks that work on one matrix together say to each other, for kernels that know no MPI. The class
// itself is a rank alone.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/grid/grid.hpp"
#include "tilewise/kernel/jacobi.hpp"

namespace tilewise::kernel {

/// Columns of one matrix, each of them on one rank.
struct SpreadColumns {
    Columns mine;             ///< this rank's, in the sequence of their places
    std::vector<int> owners;  ///< which rank has each place

    std::int64_t count() const { return static_cast<std::int64_t>(owners.size()); }
    /// How many of the places [begin, end) a rank has.
    std::int64_t of_rank(int rank, std::int64_t begin, std::int64_t end) const {
        return std::count(owners.begin() + begin, owners.begin() + end, rank);
    }
};

/// Which part of a matrix a rank is to get.
using WantedBlock = std::function<grid::Block(int rank)>;

/// Every function but the first two is to be called by all ranks.
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
    virtual void broadcast(double* /*values*/, std::int64_t /*count*/, int /*root*/) const {}
    /// Columns [begin, end) from row `top` on, on every rank: column by column without gaps.
    virtual void gather(const SpreadColumns& a, std::int64_t begin, std::int64_t end, std::int64_t top,
                        double* to) const {
        for (std::int64_t c = begin; c < end; ++c) {
            to = std::copy_n(a.mine.column(c) + top, a.mine.rows - top, to);
        }
    }
    /// This rank's wanted block, column by column without gaps.
    virtual Buffer redistribute(const SpreadColumns& a, const WantedBlock& wanted) const {
        const grid::Block block = wanted(0);
        Buffer got(static_cast<std::size_t>(std::max<std::int64_t>(1, block.size())) * sizeof(double));
        auto* to = reinterpret_cast<double*>(got.data());
        for (std::int64_t c = block.columns.begin; c < block.columns.end; ++c) {
            to = std::copy_n(a.mine.column(c) + block.rows.begin, block.rows.size(), to);
        }
        return got;
    }
    /// Runs `work` on rank 0, with all cores that there are for it; elsewhere nothing.
    virtual void on_root(const std::function<void(int threads)>& work, int threads) const { work(threads); }
};

}  // namespace tilewise::kernel
