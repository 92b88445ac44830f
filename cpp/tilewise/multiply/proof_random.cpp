// Freivalds' check, distributed: two reductions of vectors, and one pass of each rank over its own blocks.
//
//     x (random)  ─▶  z = B·x  ─▶  r = A·z − C·x         each rank adds its blocks' share to vectors of full length,
//                  sum over ranks        sum over ranks  which are then summed over the ranks
//
// The signs of x do not depend on the data, so rounding errors e_i of a row add up to more than 8·‖e_i‖ with a probability below 10⁻¹³.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "tilewise/base/random.hpp"
#include "tilewise/kernel/apply.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/multiply/proof.hpp"

namespace tilewise::multiply {
namespace {

using kernel::Check;
using kernel::Pair;
using mpi::check;

/// Of magnitude 1/2 … 1 and random sign: no element of C is hidden behind a small factor, and two wrong ones do not cancel.
template <class V> V random_factor(std::uint64_t bits) {
    if constexpr (std::is_same_v<V, std::uint64_t>) {
        return bits | 1U;  // odd: no wrong element is multiplied away modulo 2⁶⁴
    } else {
        const double magnitude = 0.5 + 0.5 * uniform(bits);
        return V((bits & 1U) != 0 ? magnitude : -magnitude);
    }
}

template <class V> void sum_over_ranks(const mpi::Communicator& comm, std::vector<V>& values) {
    if (comm.size() > 1) {
        const auto type = std::is_same_v<V, double>          ? MPI_DOUBLE
                          : std::is_same_v<V, std::uint64_t> ? MPI_UINT64_T
                                                             : MPI_C_DOUBLE_COMPLEX;
        constexpr std::size_t most = std::size_t{1} << 24;
        for (std::size_t begin = 0; begin < values.size(); begin += most) {
            check(MPI_Allreduce(MPI_IN_PLACE, values.data() + begin,
                                static_cast<int>(std::min(most, values.size() - begin)), type, MPI_SUM, comm.get()),
                  "MPI_Allreduce");
        }
    }
}

double epsilon_of(Dtype dtype) {
    return dtype == Dtype::float32 || dtype == Dtype::complex64 ? std::numeric_limits<float>::epsilon() / 2
                                                                : std::numeric_limits<double>::epsilon() / 2;
}

double largest_of(Dtype dtype) {
    return dtype == Dtype::float32 || dtype == Dtype::complex64 ? std::numeric_limits<float>::max()
                                                                : std::numeric_limits<double>::max();
}

/// Squares of numbers this small vanish, so nothing can be said of them.
constexpr double smallest_norm = 1e-140;

template <class T> Verification run(Context& context, const Exhibit& e) {
    using V = Check<T>;
    const auto seed =
        mix(static_cast<std::uint64_t>(e.shape.m) ^ mix(static_cast<std::uint64_t>(e.shape.n)) ^ 0x7469'6C65U);
    Pair<V> x(e.shape.n), z(e.shape.k), r(e.shape.m), cx(e.shape.m);
    for (std::int64_t j = 0; j < e.shape.n; ++j) {
        const auto index = static_cast<std::size_t>(j);
        x.first[index] = random_factor<V>(random_bits(seed, 2 * index));
        x.second[index] = random_factor<V>(random_bits(seed, 2 * index + 1));
    }
    std::vector<double> b_squares(static_cast<std::size_t>(e.shape.k)), a_squares(static_cast<std::size_t>(e.shape.m));
    std::vector<double> c_squares(static_cast<std::size_t>(e.shape.m));

    kernel::apply<T>(e.b, e.b_block.rows.size(), e.b_block.columns.size(), x, e.b_block.columns.begin, z,
                     e.b_block.rows.begin, b_squares, context.threads);
    sum_over_ranks(context.comm, z.first);
    sum_over_ranks(context.comm, z.second);
    sum_over_ranks(context.comm, b_squares);
    context.report(Phase::verify, 0.4);
    kernel::apply<T>(e.a, e.a_block.rows.size(), e.a_block.columns.size(), z, e.a_block.columns.begin, r,
                     e.a_block.rows.begin, a_squares, context.threads);
    kernel::apply<T>(e.c, e.c_block.rows.size(), e.c_block.columns.size(), x, e.c_block.columns.begin, cx,
                     e.c_block.rows.begin, c_squares, context.threads);
    for (std::size_t i = 0; i < r.first.size(); ++i) {
        r.first[i] -= cx.first[i];
        r.second[i] -= cx.second[i];
    }
    sum_over_ranks(context.comm, r.first);
    sum_over_ranks(context.comm, r.second);
    sum_over_ranks(context.comm, a_squares);

    Verification verification{.method = "freivalds", .passed = true};
    if constexpr (std::is_same_v<V, std::uint64_t>) {
        const auto wrong = std::count_if(r.first.begin(), r.first.end(), [](std::uint64_t v) { return v != 0; }) +
                           std::count_if(r.second.begin(), r.second.end(), [](std::uint64_t v) { return v != 0; });
        verification.passed = wrong == 0;
        verification.error = static_cast<double>(wrong);
    } else {
        double b_square = 0;
        for (const double square : b_squares) {
            b_square += square;
        }
        const double b_norm = std::sqrt(b_square);
        verification.tolerance = error_growth(e.shape, e.kernel, e.dtype) * epsilon_of(e.dtype);
        for (std::size_t i = 0; i < r.first.size(); ++i) {
            const double a_norm = std::sqrt(a_squares[i]);
            const double scale = a_norm * b_norm;
            const double residual = std::max(std::abs(r.first[i]), std::abs(r.second[i]));
            const bool exact_zero = scale == 0 && residual == 0;
            const bool tiny = a_norm < smallest_norm || b_norm < smallest_norm || scale < smallest_norm;
            // A finite row can leave the type's range in the product; what is then infinite is right.
            const bool may_overflow = !std::isfinite(residual) && scale > 0.01 * largest_of(e.dtype);
            if (exact_zero) {
                continue;
            }
            if (!std::isfinite(scale) || tiny || may_overflow) {
                ++verification.unchecked_rows;
                continue;
            }
            const double error = std::isfinite(residual) ? residual / scale : std::numeric_limits<double>::infinity();
            verification.error = std::max(verification.error, error);
        }
        verification.passed = verification.error <= verification.tolerance;
    }
    return verification;
}

}  // namespace

double error_growth(const grid::Shape& shape, kernel::Kernel kernel, Dtype dtype) {
    const auto k = static_cast<double>(shape.k), n = static_cast<double>(shape.n);
    const double in_product = kernel == kernel::Kernel::plain ? k : std::min(k, 512 + k / 256);
    const double depth = in_product + (n + k) / 64 + 1;  // the second part is the check's own sums
    return (is_complex(dtype) ? 2 : 1) * std::max(8 * std::sqrt(depth), depth / 2);
}

Verification check_randomly(Context& context, const Exhibit& exhibit) {
    return with_compute_type(exhibit.dtype,
                             [&](auto tag) { return run<typename decltype(tag)::type>(context, exhibit); });
}

}  // namespace tilewise::multiply
