// What follows the sweeps: the columns sorted, made vectors, pointed the right way, and dealt out as they are
// to be written.
#pragma once

#include "tilewise/svd/blocks.hpp"
#include "tilewise/svd/start.hpp"
#include "tilewise/svd/writer.hpp"

namespace tilewise::svd {

template <class T> struct SvdFactors {
    std::vector<double> s;  ///< the K largest, descending, the same on all ranks
    std::int64_t rank = 0;  ///< how many of all σ > σ₁·max(M,N)·ε
    double left = 0;        ///< what the others are, in the Frobenius norm, relative to all
    Array<T> u, vt;         ///< this rank's parts, row by row, in float64; of complex numbers Vᴴ
    grid::Share u_share, vt_share;
};

/// K largest of what the swept blocks hold, or the fewest with `energy` of the squares where that is above 0;
/// `values_only`: no vectors. `start` has served when it returns. Memory, in numbers per rank: twice its
/// columns of X and V, and its parts of U and V. @note Collective; throws the same Error on every rank, or
/// aborts the job where ranks already wait.
template <class T> SvdFactors<T> finish(Context& context, const dist::RankTeam& team, const Work& work,
                                        Blocks<T>& blocks, Start<T>& start,
                                        const std::function<grid::Range(int rank)>& columns_of, std::int64_t components,
                                        double energy, bool values_only, double scale);

#define TILEWISE_FINISH(form, T)                                                                                \
    form template SvdFactors<T> finish(Context&, const dist::RankTeam&, const Work&, Blocks<T>&, Start<T>&,     \
                                       const std::function<grid::Range(int rank)>&, std::int64_t, double, bool, \
                                       double);
TILEWISE_FINISH(extern, double)
TILEWISE_FINISH(extern, kernel::Complex)

}  // namespace tilewise::svd
