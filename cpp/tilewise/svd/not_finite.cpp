// Names the place and the number; over ranks, the least of their places.
#include "tilewise/svd/not_finite.hpp"

#include <array>
#include <string>

#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::svd {

void FirstNotFinite::refuse(const io::Region& a) const {
    if (first_ != none_) {
        constexpr std::array names{"nan", "inf", "-inf"};
        const std::int64_t place = first_ / 4, columns = a.logical_columns();
        throw UsageError(a.name + ": row " + std::to_string(place / columns) + ", column " +
                         std::to_string(place % columns) + " (from 0) is " +
                         names[static_cast<std::size_t>(first_ % 4)] + "; a decomposition needs finite numbers");
    }
}

void FirstNotFinite::refuse(const Context& context, const io::Region& a) {
    first_ = mpi::least_of(context.comm, first_);
    if (first_ != none_) {
        mpi::together(context.comm, [&] { refuse(a); });
    }
}

}  // namespace tilewise::svd
