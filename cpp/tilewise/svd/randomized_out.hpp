// What the range finder leaves on each rank, and how it becomes a part of the files: signs chosen, transposed to their
// order.
#pragma once

#include <memory>
#include <vector>

#include "tilewise/base/array.hpp"
#include "tilewise/dist/tall_qr.hpp"
#include "tilewise/svd/writer.hpp"

namespace tilewise::svd {

/// The K largest singular values with their vectors, row by row; without vectors where only values were wanted.
template <class T> struct LowRankFactors {
    std::vector<double> sigma;
    grid::Range high;                         ///< the rows of the view that this rank has
    std::int64_t width = 0;                   ///< columns of the view
    bool transposed = false;                  ///< the view is Aᵀ: `tall` is of V then, `across` of U
    T* tall = nullptr;                        ///< high × K
    Array<T> across;                          ///< width × K, the same on all ranks
    std::shared_ptr<dist::TallQr<T>> memory;  ///< of `tall`; null where there are no vectors
};

/// Each rank writes the rows of U and the part of Vᵀ that it has, and an equal part of what all have. Memory beside
/// `factors`: the part of Vᵀ, transposed, and what Writer needs. @note Collective.
template <class T> void write(Context& context, LowRankFactors<T>& factors, Writer& writer, bool sync);

extern template void write(Context&, LowRankFactors<float>&, Writer&, bool);
extern template void write(Context&, LowRankFactors<double>&, Writer&, bool);

}  // namespace tilewise::svd
