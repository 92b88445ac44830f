// The plain product on one rank, against what was written: report 0's test mode.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/io/transfer.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/multiply/proof.hpp"

namespace tilewise::multiply {
namespace {

struct Whole {
    Buffer memory;
    kernel::Operand operand;
};

Whole read_whole(Context& alone, const io::Region& region, Dtype dtype) {
    const grid::Block all{{0, region.logical_rows()}, {0, region.logical_columns()}};
    Whole whole{Buffer(static_cast<std::size_t>(all.size()) * size_of(dtype)), {}};
    io::Input(alone, region, io::StrategyKind::positioned, {})
        .load(alone, dtype, [&](int) { return all; }, whole.memory.data());
    whole.operand = {whole.memory.data(), region.stored_columns(), region.stored_transposed()};
    return whole;
}

/// In long double, whose exponents are wide enough for squares of any double.
template <class T> long double magnitude_squared(T value) {
    if constexpr (std::is_integral_v<T>) {
        return 0;
    } else {
        const std::complex<long double> wide(value);
        return wide.real() * wide.real() + wide.imag() * wide.imag();
    }
}

template <class T> const T& element(const kernel::Operand& operand, std::int64_t row, std::int64_t column) {
    const auto* data = reinterpret_cast<const T*>(operand.data);
    return operand.transposed ? data[column * operand.stride + row] : data[row * operand.stride + column];
}

/// What was found so far: the largest error, and how many elements cannot be judged.
struct Comparison {
    double error = 0, unchecked = 0;
};

/// `scale` is ‖A_i‖·‖B_j‖, `lost` what both products may have lost to underflow. Two numbers that are not finite agree,
/// and one may be where the other is not, if the sum comes near the type's range: that depends on the order of adding.
template <class T>
void judge(Comparison& comparison, T mine, T written, long double scale, long double lost, long double largest) {
    if (mine == written) {
        return;
    }
    if constexpr (std::is_integral_v<T>) {
        ++comparison.error;
    } else {
        const std::complex<long double> first(mine), second(written);
        const bool is_mine = std::isfinite(std::abs(first)), is_written = std::isfinite(std::abs(second));
        if (is_mine != is_written && scale > largest / 4 && std::isfinite(scale)) {
            ++comparison.unchecked;
        } else if (is_mine || is_written) {
            const long double difference = std::abs(first - second);
            const double error = difference <= lost ? 0
                                 : std::isfinite(difference) && scale > 0
                                     ? static_cast<double>((difference - lost) / scale)
                                     : std::numeric_limits<double>::infinity();
            comparison.error = std::max(comparison.error, error);
        }
    }
}

template <class T>
Comparison compare(Context& alone, Dtype dtype, const Whole& a, const Whole& b, const Whole& c,
                   const grid::Shape& shape, bool of_longest) {
    std::vector<long double> a_norms(static_cast<std::size_t>(shape.m)), b_norms(static_cast<std::size_t>(shape.n));
    for (std::int64_t l = 0; l < shape.k; ++l) {
        for (std::int64_t i = 0; i < shape.m; ++i) {
            a_norms[static_cast<std::size_t>(i)] += magnitude_squared(element<T>(a.operand, i, l));
        }
        for (std::int64_t j = 0; j < shape.n; ++j) {
            b_norms[static_cast<std::size_t>(j)] += magnitude_squared(element<T>(b.operand, l, j));
        }
    }
    if (of_longest) {
        std::fill(a_norms.begin(), a_norms.end(), *std::max_element(a_norms.begin(), a_norms.end()));
        std::fill(b_norms.begin(), b_norms.end(), *std::max_element(b_norms.begin(), b_norms.end()));
    }
    Comparison comparison;
    const long double lost = 2 * static_cast<long double>(underflow(shape.k, dtype)), largest = largest_number(dtype);
    std::vector<T> row(static_cast<std::size_t>(shape.n));
    for (std::int64_t i = 0; i < shape.m; ++i) {
        kernel::Operand a_row = a.operand;
        a_row.data += (a_row.transposed ? i : i * a_row.stride) * static_cast<std::int64_t>(sizeof(T));
        kernel::gemm({.dtype = dtype,
                      .m = 1,
                      .n = shape.n,
                      .k = shape.k,
                      .a = a_row,
                      .b = b.operand,
                      .c = reinterpret_cast<std::byte*>(row.data()),
                      .c_stride = shape.n},
                     1, kernel::Kernel::plain);
        for (std::int64_t j = 0; j < shape.n; ++j) {
            const auto column = static_cast<std::size_t>(j);
            const long double scale = std::sqrt(a_norms[static_cast<std::size_t>(i)]) * std::sqrt(b_norms[column]);
            judge(comparison, row[column], element<T>(c.operand, i, j), scale, lost, largest);
        }
        alone.report(Phase::verify, static_cast<double>(i + 1) / static_cast<double>(shape.m));
    }
    return comparison;
}

}  // namespace

Verification check_serially(Context& context, Dtype dtype, const io::Region& a, const io::Region& b,
                            const io::Region& c, double of_longest) {
    const grid::Shape shape{a.logical_rows(), b.logical_columns(), a.logical_columns()};
    Verification verification{.method = "serial"};
    const mpi::Communicator self(MPI_COMM_SELF);
    mpi::together(context.comm, [&] {
        if (context.comm.rank() == 0) {
            Context alone{self, context.ledger, context.threads, context.progress};
            const Whole a_whole = read_whole(alone, a, dtype), b_whole = read_whole(alone, b, dtype),
                        c_whole = read_whole(alone, c, dtype);
            const Comparison comparison = with_compute_type(dtype, [&](auto tag) {
                return compare<typename decltype(tag)::type>(alone, dtype, a_whole, b_whole, c_whole, shape,
                                                             of_longest > 0);
            });
            const double all = static_cast<double>(shape.m) * static_cast<double>(shape.n);
            verification.error = comparison.error;
            verification.share = all > 0 ? 1 - comparison.unchecked / all : 1;
        }
    });
    std::array<double, 2> said{verification.error, verification.share};
    mpi::check(MPI_Bcast(said.data(), 2, MPI_DOUBLE, 0, context.comm.get()), "MPI_Bcast");
    verification.error = said[0];
    verification.share = said[1];
    if (!is_integer(dtype)) {
        verification.tolerance = (error_growth(shape, kernel::Kernel::plain, dtype) + of_longest) * roundoff(dtype);
    }
    verification.passed = verification.error <= verification.tolerance;
    return verification;
}

}  // namespace tilewise::multiply
