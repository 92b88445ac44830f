// The road of `randomized`: iterate, say what was reached, write.
#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "tilewise/mpi/repeat.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/algorithms.hpp"
#include "tilewise/svd/randomized_finder.hpp"
#include "tilewise/svd/signs.hpp"
#include "tilewise/svd/writer.hpp"

namespace tilewise::svd {
namespace {

/// What was found, and how exactly.
template <class T>
void describe(const Finder<T>& finder, const LowRankFactors<T>& factors, const io::Region& a, Outcome& outcome) {
    const Quality& quality = finder.quality();
    Diagnostics& diagnostics = outcome.diagnostics;
    diagnostics.components = std::ssize(factors.sigma);
    diagnostics.sigma_max = factors.sigma.front();
    diagnostics.sigma_min = factors.sigma.back();
    const double smallest = diagnostics.sigma_max * std::numeric_limits<T>::epsilon() *
                            static_cast<double>(std::max(a.logical_rows(), a.logical_columns()));
    diagnostics.rank =
        std::count_if(factors.sigma.begin(), factors.sigma.end(), [&](double s) { return s > smallest; });
    diagnostics.reads = finder.reads();
    diagnostics.start = "block Krylov iteration, " + std::to_string(diagnostics.reads) + " readings, TSQR";
    diagnostics.converged = quality.converged;
    diagnostics.norm = quality.norm;
    diagnostics.tolerance = quality.tolerance;
    diagnostics.residuals = quality.residuals;
    for (std::size_t j = 0; j < factors.sigma.size(); ++j) {
        diagnostics.within +=
            quality.residuals[j] <= std::max(quality.tolerance * factors.sigma[j], quality.rounding) ? 1 : 0;
    }
    // ‖A − UΣVᵀ‖² = ‖A‖² − Σσ², of which rounding of ‖A‖² and of the larger σ hides what is small.
    const double least = static_cast<double>(std::min(a.logical_rows(), a.logical_columns()));
    if (static_cast<double>(diagnostics.components) < least) {
        double left = 1, unsure = 16 * std::numeric_limits<double>::epsilon();
        for (const double sigma : factors.sigma) {
            const double part = quality.norm > 0 ? sigma / quality.norm : 0;
            left -= part * part;
            unsure += quality.norm > 0 ? 2 * part * quality.rounding / quality.norm : 0;
        }
        left = quality.norm > 0 ? left : 0;
        const double bound = std::sqrt(std::max(left, 0.0) + unsure);
        const bool hidden = left < 4 * unsure;
        diagnostics.error_estimate = quality.norm > 0 ? hidden ? bound : std::sqrt(left) : 0;
        diagnostics.error_rounding = quality.norm > 0 ? hidden ? bound : bound - std::sqrt(left) : 0;
    }
    double most = 0;
    for (std::int64_t j = 0; j < diagnostics.rank; ++j) {
        const auto index = static_cast<std::size_t>(j);
        most = std::max(most, quality.residuals[index] / factors.sigma[index]);
    }
    diagnostics.sigma_error = most;
    if (!diagnostics.converged) {
        std::ostringstream warning;
        warning.precision(2);
        warning << "after " << diagnostics.reads << " readings singular values may have a relative error of up to "
                << most << " (requested: " << diagnostics.tolerance << "); the vectors are less accurate";
        outcome.warnings.push_back(warning.str());
    }
    outcome.flops = finder.flops();
    outcome.working = finder.working();
}

/// Some rows of a matrix, row by row.
template <class T> struct Rows {
    T* data = nullptr;
    grid::Range range;
    std::int64_t columns = 0;

    Rows part(grid::Range some) const { return {data + (some.begin - range.begin) * columns, some, columns}; }
    void scale(const std::vector<double>& factors) const {
        for (std::int64_t i = 0; i < range.size(); ++i) {
            for (std::int64_t j = 0; j < columns; ++j) {
                data[i * columns + j] = static_cast<T>(data[i * columns + j] * factors[static_cast<std::size_t>(j)]);
            }
        }
    }
};

template <class T> Array<T> transposed(const Rows<T>& rows) {
    const std::int64_t count = rows.range.size();
    Array<T> to(count * rows.columns);
    for (std::int64_t i = 0; i < count; ++i) {
        for (std::int64_t j = 0; j < rows.columns; ++j) {
            to[j * count + i] = rows.data[i * rows.columns + j];
        }
    }
    return to;
}

/// Each rank writes the rows of U and the part of Vᵀ that it has, and an equal part of what all have. Memory beside
/// `factors`: the part of Vᵀ, transposed, and what Writer needs. @note Collective.
template <class T> void write(Context& context, LowRankFactors<T>& factors, Writer& writer, bool sync) {
    const Timed timed(context.ledger, Phase::output, "output");
    const std::int64_t count = std::ssize(factors.sigma);
    Part part;
    part.s = factors.sigma;
    Array<T> vt;
    if (factors.memory != nullptr) {  // also where this rank has no rows of it
        const Rows<T> tall{factors.tall, factors.high, count},
            across = Rows<T>{factors.across.data(), {0, factors.width}, count}.part(
                grid::Partition(factors.width, context.comm.size())[context.comm.rank()]);
        const Rows<T>&u = factors.transposed ? across : tall, &v = factors.transposed ? tall : across;
        const std::vector<double> flips =
            signs(context.comm, Elements<T>{u.data, u.range.size(), count, count, 1}, u.range.begin);
        u.scale(flips);
        v.scale(flips);
        mpi::together(context.comm, [&] { vt = transposed(v); });
        part.u = reinterpret_cast<std::byte*>(u.data);
        part.u_share = grid::Block{u.range, {0, u.range.size() > 0 ? count : 0}};
        part.vt = vt.raw();
        part.vt_share = grid::Block{{0, v.range.size() > 0 ? count : 0}, v.range};
    }
    writer.write(context, part);
    writer.finish(context, sync);
}

template <class T>
Outcome run(Context& context, const io::Region& a, const Files& files, const Options& options) {
    Ledger& ledger = context.ledger;
    Writer writer = [&] {
        const Timed timed(ledger, Phase::output, "reserve");
        return Writer(context, files, options);
    }();
    Finder<T> finder(context, a, options);
    Outcome outcome;
    LowRankFactors<T> factors;
    outcome.samples = mpi::repeat(context, options.warmup, options.repeat, [&](bool) {
        factors = LowRankFactors<T>{};
        factors = finder();
    });
    describe(finder, factors, a, outcome);
    refuse_overflow(context, a, outcome.diagnostics.sigma_max, files.s.dtype);
    if (!finder.quality().enough) {
        mpi::together(context.comm, [&] {
            std::ostringstream text;
            const double left = outcome.diagnostics.error_estimate.value_or(0);
            text << a.name << ": " << outcome.diagnostics.components << " components leave " << left * left
                 << " of the sum of squares, but --energy leaves " << 1 - options.energy
                 << " at most; use a smaller --energy or more --memory";
            throw UsageError(text.str());
        });
    }
    if (!outcome.diagnostics.converged && options.power < 0 && options.require_converged) {
        outcome.verification = Verification{.method = "convergence",
                                            .passed = false,
                                            .error = outcome.diagnostics.sigma_error.value_or(0),
                                            .tolerance = outcome.diagnostics.tolerance};
        return outcome;
    }
    write(context, factors, writer, options.sync);
    return outcome;
}

}  // namespace

Outcome randomized(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& wanted) {
    const std::int64_t most = std::min(a.logical_rows(), a.logical_columns());
    Options options = wanted;
    options.components = wanted.components > 0 ? wanted.components : most;
    mpi::together(context.comm, [&] {
        if (options.components < 1 || options.components > most) {
            throw UsageError(a.name + ": has " + std::to_string(most) + " singular values, not " +
                             std::to_string(options.components));
        }
        if (options.oversample < 0 || options.repeat < 1 || options.warmup < 0) {
            throw UsageError("oversampling must not be negative, and at least one repetition is needed");
        }
        if (dtype != Dtype::float32 && dtype != Dtype::float64) {
            throw UsageError("a decomposition is computed in float32 or float64, not in " +
                             std::string(name_of(dtype)));
        }
    });
    return dtype == Dtype::float32 ? run<float>(context, a, files, options) : run<double>(context, a, files, options);
}

}  // namespace tilewise::svd
