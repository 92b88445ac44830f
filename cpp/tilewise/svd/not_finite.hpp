// The search for the first number of a matrix, read row by row, that is not finite.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tilewise/io/region.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::svd {

/// Numbers may be noted in any order, by several ranks.
class FirstNotFinite {
public:
    /// `place`: counted row by row from 0. Nothing happens where `value` is finite.
    void note(std::int64_t place, double value) {
        if (!std::isfinite(value)) {
            first_ = std::min(first_, 4 * place + (std::isnan(value) ? 0 : value > 0 ? 1 : 2));
        }
    }
    void note(const FirstNotFinite& other) { first_ = std::min(first_, other.first_); }
    /// Throws UsageError where there is one: "A.npy: row 3, column 7 (from 0) is nan; a decomposition needs finite
    /// numbers".
    void refuse(const io::Region& a) const;
    /// The same of the first over all ranks, on every rank. @note Collective.
    void refuse(const Context& context, const io::Region& a);

private:
    static constexpr std::int64_t none_ = std::numeric_limits<std::int64_t>::max();
    std::int64_t first_ = none_;  ///< its place, times 4, and what it is
};

}  // namespace tilewise::svd
