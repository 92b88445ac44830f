// The numbers of a product that are NaN or infinite, found at no cost where there are none.
//
//     A  [ . . N . ]      C  [ N N N N ]      a number of A that is not finite makes all of its row of C so, also
//        [ . . . . ]         [ . . N . ]      where it meets zeros, and one of B makes its column so: where all of C
//                                             is finite, A and B are, without a look at them
#pragma once

#include <array>
#include <cstdint>

#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/mpi/context.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/multiply/part.hpp"

namespace tilewise::multiply {

/// How many there are in C, and where it has some, in A and B. A C without rows or columns tells nothing of these.
struct NotFinite {
    std::int64_t a = 0, b = 0, c = 0;

    static std::int64_t of(const Context& context, Dtype dtype, const Part& part) {
        return kernel::count_not_finite(part.operand.data, part.block.size(), dtype, context.threads);
    }

    /// Adds up what all ranks have found in their parts of C; `look` counts what each has of A and B. @note Collective.
    template <class Look> void add_up(const Context& context, const Look& look) {
        mpi::sum_over_ranks(context.comm, &c, 1);
        if (c > 0) {
            look();
            std::array<std::int64_t, 2> inputs{a, b};
            mpi::sum_over_ranks(context.comm, inputs.data(), std::ssize(inputs));
            a = inputs[0];
            b = inputs[1];
        }
    }
};

}  // namespace tilewise::multiply
