// Largest magnitudes over all ranks, and the product's bound from them.
#include "tilewise/multiply/overflow.hpp"

#include <array>
#include <cmath>
#include <sstream>

#include "tilewise/kernel/convert.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::multiply {

void refuse_overflow(Context& context, Dtype dtype, std::int64_t k, Numbers a, Numbers b) {
    std::array<double, 2> largest{kernel::largest_magnitude(a.data, a.count, dtype),
                                  kernel::largest_magnitude(b.data, b.count, dtype)};
    mpi::check(MPI_Allreduce(MPI_IN_PLACE, largest.data(), 2, MPI_DOUBLE, MPI_MAX, context.comm.get()),
               "MPI_Allreduce");
    const double bound = static_cast<double>(k) * largest[0] * largest[1];
    const double limit = dtype == Dtype::int64 ? 0x1p63 : 0x1p64;
    mpi::together(context.comm, [&] {
        if (bound >= limit) {
            std::ostringstream text;
            text << "the product could overflow " << name_of(dtype) << ": " << k << " terms of at most " << largest[0]
                 << " x " << largest[1] << " may reach " << bound << ", the type holds less than " << limit
                 << "; use floating-point inputs";
            throw UsageError(text.str());
        }
    });
}

}  // namespace tilewise::multiply
