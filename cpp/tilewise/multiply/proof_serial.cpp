// The plain product on one rank, against what was written: report 0's test mode.
#include <algorithm>
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
    const grid::Block all{{0, region.wanted_rows()}, {0, region.wanted_columns()}};
    Whole whole{Buffer(static_cast<std::size_t>(all.size()) * size_of(dtype)), {}};
    io::Input(alone, region, "positioned", {}).load(alone, dtype, [&](int) { return all; }, whole.memory.data());
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

/// Larger than the tolerance only where the difference is not explained by rounding. Two numbers that are not finite agree: where a sum
/// leaves the type's range, infinity or NaN depends on the order of adding.
template <class T> double scaled_difference(T mine, T written, long double scale) {
    if (mine == written) {
        return 0;
    }
    if constexpr (std::is_integral_v<T>) {
        return 1;
    } else {
        const std::complex<double> first(mine), second(written);
        if (!std::isfinite(std::abs(first)) && !std::isfinite(std::abs(second))) {
            return 0;
        }
        const long double difference = std::abs(std::complex<long double>(first) - std::complex<long double>(second));
        return std::isfinite(difference) && scale > 0 ? static_cast<double>(difference / scale)
                                                      : std::numeric_limits<double>::infinity();
    }
}

template <class T>
double compare(Context& alone, Dtype dtype, const Whole& a, const Whole& b, const Whole& c, const grid::Shape& shape) {
    std::vector<long double> a_norms(static_cast<std::size_t>(shape.m)), b_norms(static_cast<std::size_t>(shape.n));
    for (std::int64_t l = 0; l < shape.k; ++l) {
        for (std::int64_t i = 0; i < shape.m; ++i) {
            a_norms[static_cast<std::size_t>(i)] += magnitude_squared(element<T>(a.operand, i, l));
        }
        for (std::int64_t j = 0; j < shape.n; ++j) {
            b_norms[static_cast<std::size_t>(j)] += magnitude_squared(element<T>(b.operand, l, j));
        }
    }
    double worst = 0;
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
            worst = std::max(worst, scaled_difference(row[column], element<T>(c.operand, i, j), scale));
        }
        alone.report(Phase::verify, static_cast<double>(i + 1) / static_cast<double>(shape.m));
    }
    return worst;
}

}  // namespace

Verification check_serially(Context& context, Dtype dtype, const io::Region& a, const io::Region& b,
                            const io::Region& c) {
    const grid::Shape shape{a.wanted_rows(), b.wanted_columns(), a.wanted_columns()};
    Verification verification{.method = "serial"};
    const mpi::Communicator self(MPI_COMM_SELF);
    mpi::together(context.comm, [&] {
        if (context.comm.rank() == 0) {
            Context alone{self, context.ledger, context.threads, context.progress};
            const Whole a_whole = read_whole(alone, a, dtype), b_whole = read_whole(alone, b, dtype),
                        c_whole = read_whole(alone, c, dtype);
            verification.error = with_compute_type(dtype, [&](auto tag) {
                return compare<typename decltype(tag)::type>(alone, dtype, a_whole, b_whole, c_whole, shape);
            });
        }
    });
    mpi::check(MPI_Bcast(&verification.error, 1, MPI_DOUBLE, 0, context.comm.get()), "MPI_Bcast");
    if (!is_integer(dtype)) {
        const bool single = dtype == Dtype::float32 || dtype == Dtype::complex64;
        const double epsilon =
            single ? std::numeric_limits<float>::epsilon() / 2 : std::numeric_limits<double>::epsilon() / 2;
        verification.tolerance = error_growth(shape, kernel::Kernel::plain, dtype) * epsilon;
    }
    verification.passed = verification.error <= verification.tolerance;
    return verification;
}

}  // namespace tilewise::multiply
