// Levels from shapes and tolerance, and lengths of rows and columns from a pass over the operands.
//
// Strassen adds rows of A that have nothing to do with each other, and columns of B: what rounding leaves in an element
// is in proportion to the longest of them, whatever that element's own row and column are. An element of rows and
// columns as long as the longest loses nothing by that; one of shorter ones loses as many times as they are shorter.
#include "tilewise/multiply/halving.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <vector>

#include "tilewise/base/error.hpp"
#include "tilewise/kernel/product/apply.hpp"
#include "tilewise/kernel/product/strassen.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/multiply/proof.hpp"

namespace tilewise::multiply {
namespace {

/// How many times the product of two lengths may differ: three digits of what the bound promises.
constexpr double most_unlike = 1024;
/// Lengths whose squares, and those of sums of eight, are far from the limits of float64.
constexpr double shortest = 1e-140, longest = 1e140;

struct Lengths {
    double least = std::numeric_limits<double>::infinity(), most = 0;
    bool finite = true;

    double ratio() const { return most > 0 ? most / least : 1; }
};

/// Of the columns of all parts together.
Lengths lengths_of(Context& context, Dtype dtype, std::int64_t columns, const Part& part) {
    kernel::ColumnSizes sizes(columns);
    const grid::Range rows = part.block.rows, mine = part.block.columns;
    const auto measure = [&](auto zero) {
        kernel::measure_columns<decltype(zero)>(part.operand, rows.size(), mine.size(), sizes, mine.begin,
                                                context.threads);
    };
    dtype == Dtype::float32 ? measure(float{}) : measure(double{});
    mpi::join_over_ranks(context.comm, sizes.largest.data(), std::ssize(sizes.largest), MPI_MAX);
    mpi::sum_over_ranks(context.comm, sizes.squares.data(), std::ssize(sizes.squares));
    Lengths lengths;
    for (std::size_t j = 0; j < sizes.squares.size(); ++j) {
        lengths.finite = lengths.finite && !std::isnan(sizes.squares[j]) && !std::isinf(sizes.largest[j]);
        // Squares of the smallest numbers are lost, and those of the largest infinite.
        const double length = std::max(std::sqrt(sizes.squares[j]), sizes.largest[j]);
        lengths.least = std::min(lengths.least, length);
        lengths.most = std::max(lengths.most, length);
    }
    return lengths;
}

/// "1e-12", "1.5"
std::string said(double number) {
    std::ostringstream text;
    text.precision(2);
    text << number;
    return text.str();
}

}  // namespace

double Halving::bound(Dtype dtype) const { return growth * roundoff(dtype); }

bool may_halve(kernel::Kernel kernel, double tolerance) {
    return kernel == kernel::Kernel::strassen || (kernel == kernel::Kernel::fast && tolerance > 0);
}

Halving halving_of(const grid::Layout& layout, Dtype dtype, kernel::Kernel kernel, double tolerance) {
    const bool asked = kernel == kernel::Kernel::strassen;
    if (!may_halve(kernel, tolerance)) {
        return {};
    }
    if (dtype != Dtype::float32 && dtype != Dtype::float64) {
        if (asked) {
            throw UsageError("--kernel strassen multiplies float32 and float64, not " + std::string(name_of(dtype)), -1,
                             0, "--kernel fast");
        }
        return {};
    }
    std::int64_t m = 0, n = 0, k = 0, steps = 0;
    for (int rank = 0; rank < layout.size(); ++rank) {
        m = std::max(m, layout.c(rank).rows.size());
        n = std::max(n, layout.c(rank).columns.size());
    }
    for (const int rank : {0, layout.size() - 1}) {
        const auto all = layout.steps(rank);
        for (const grid::Step& step : all) {
            k = std::max(k, step.k.size());
        }
        steps = std::max(steps, std::ssize(all));
    }
    Halving halving{.levels = kernel::strassen_levels(dtype, m, n, k)};
    const auto bounded = [&] {
        halving.growth = kernel::strassen_growth(halving.levels, layout.shape().k, (steps + 1) * layout.copies());
        return tolerance <= 0 || halving.bound(dtype) <= tolerance;
    };
    while (halving.levels > 0 && !bounded()) {
        if (halving.levels == 1 && asked) {
            throw UsageError("the error of one level of Strassen's product is bounded by " +
                                 said(halving.bound(dtype)) + ", which is above --tolerance " + said(tolerance),
                             -1, 0, "--tolerance " + said(halving.bound(dtype) * 1.1) + ", or --kernel fast");
        }
        --halving.levels;
    }
    return halving.levels > 0 ? halving : Halving{};
}

void refuse_unlike(Context& context, Dtype dtype, const grid::Shape& shape, const Part& a, const Part& b,
                   const Halving& halving, double tolerance) {
    const Lengths of_a = lengths_of(context, dtype, shape.m, a.transposed()),
                  of_b = lengths_of(context, dtype, shape.n, b);
    mpi::together(context.comm, [&] {
        const auto extreme = [](double length) { return length > longest || (length > 0 && length < shortest); };
        if (!of_a.finite || !of_b.finite || extreme(of_a.most) || extreme(of_b.most)) {
            throw UsageError(
                "Strassen's product takes finite numbers that are neither huge nor tiny: it adds rows and "
                "columns, and " +
                    std::string(!of_a.finite || extreme(of_a.most) ? "A" : "B") + " has others",
                -1, 0, "--kernel fast without --tolerance");
        }
        if (tolerance <= 0 && of_a.ratio() * of_b.ratio() > most_unlike) {
            throw UsageError("rows of A differ by a factor of " + said(of_a.ratio()) +
                                 " in length and columns of B by one of " + said(of_b.ratio()) +
                                 ": next to the shortest, the errors of Strassen's product would be large",
                             -1, 0,
                             "--kernel fast, or --tolerance " + said(halving.bound(dtype) * 1.1) +
                                 " if an error of that times the longest is small enough");
        }
    });
}

}  // namespace tilewise::multiply
