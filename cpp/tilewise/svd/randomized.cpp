// The road of `randomized`: iterate, say what was reached, write.
#include "tilewise/svd/randomized.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "tilewise/mpi/rounds.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/randomized_finder.hpp"

namespace tilewise::svd {
namespace {

/// What was found, and how exactly.
template <class T>
void describe(const Finder<T>& finder, const Found<T>& found, const io::Region& a, Outcome& outcome) {
    const Quality& quality = finder.quality();
    Shown& shown = outcome.shown;
    shown.components = std::ssize(found.sigma);
    shown.sigma_max = found.sigma.front();
    shown.sigma_min = found.sigma.back();
    const double smallest = shown.sigma_max * std::numeric_limits<T>::epsilon() *
                            static_cast<double>(std::max(a.wanted_rows(), a.wanted_columns()));
    shown.rank = std::count_if(found.sigma.begin(), found.sigma.end(), [&](double s) { return s > smallest; });
    shown.reads = finder.reads();
    shown.start = "block Krylov iteration, " + std::to_string(shown.reads) + " readings, TSQR";
    shown.converged = quality.converged;
    shown.norm = quality.norm;
    shown.tolerance = quality.tolerance;
    shown.residuals = quality.residuals;
    for (std::size_t j = 0; j < found.sigma.size(); ++j) {
        shown.within += quality.residuals[j] <= std::max(quality.tolerance * found.sigma[j], quality.rounding) ? 1 : 0;
    }
    // ‖A − UΣVᵀ‖² = ‖A‖² − Σσ², of which rounding of ‖A‖² and of the larger σ hides what is small.
    const double least = static_cast<double>(std::min(a.wanted_rows(), a.wanted_columns()));
    if (static_cast<double>(shown.components) < least) {
        double left = 1, unsure = 16 * std::numeric_limits<double>::epsilon();
        for (const double sigma : found.sigma) {
            const double part = quality.norm > 0 ? sigma / quality.norm : 0;
            left -= part * part;
            unsure += quality.norm > 0 ? 2 * part * quality.rounding / quality.norm : 0;
        }
        left = quality.norm > 0 ? left : 0;
        const double bound = std::sqrt(std::max(left, 0.0) + unsure);
        const bool hidden = left < 4 * unsure;
        shown.error_estimate = quality.norm > 0 ? hidden ? bound : std::sqrt(left) : 0;
        shown.error_rounding = quality.norm > 0 ? hidden ? bound : bound - std::sqrt(left) : 0;
    }
    double most = 0;
    for (std::int64_t j = 0; j < shown.rank; ++j) {
        const auto index = static_cast<std::size_t>(j);
        most = std::max(most, quality.residuals[index] / found.sigma[index]);
    }
    shown.sigma_error = most;
    if (!shown.converged) {
        std::ostringstream warning;
        warning.precision(2);
        warning << "after " << shown.reads << " readings each singular value may be off by up to " << most
                << " of itself (" << shown.tolerance << " was asked for); its vectors are less accurate";
        outcome.warnings.push_back(warning.str());
    }
    outcome.flops = finder.flops();
    outcome.working = finder.working();
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
    Found<T> found;
    outcome.samples = mpi::run_rounds(context, options.warmup, options.repeat, [&](bool) {
        found = Found<T>{};
        found = finder();
    });
    describe(finder, found, a, outcome);
    refuse_overflow(context, a, outcome.shown.sigma_max, files.s.dtype);
    if (!finder.quality().enough) {
        mpi::together(context.comm, [&] {
            std::ostringstream text;
            const double left = outcome.shown.error_estimate.value_or(0);
            text << a.name << ": " << outcome.shown.components << " components leave " << left * left
                 << " of the sum of squares, and the energy that is asked for leaves " << 1 - options.energy
                 << " at most; ask for less, or allow more memory";
            throw UsageError(text.str());
        });
    }
    if (!outcome.shown.converged && options.power < 0 && options.require_converged) {
        outcome.verification = Verification{.method = "convergence",
                                            .passed = false,
                                            .error = outcome.shown.sigma_error.value_or(0),
                                            .tolerance = outcome.shown.tolerance};
        return outcome;
    }
    write(context, found, writer, options.sync);
    return outcome;
}

}  // namespace

Outcome randomized(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& wanted) {
    const std::int64_t most = std::min(a.wanted_rows(), a.wanted_columns());
    Options options = wanted;
    options.components = wanted.components > 0 ? wanted.components : most;
    mpi::together(context.comm, [&] {
        if (options.components < 1 || options.components > most) {
            throw UsageError(a.name + ": has " + std::to_string(most) + " singular values, not " +
                             std::to_string(options.components));
        }
        if (options.oversample < 0 || options.repeat < 1 || options.warmup < 0) {
            throw UsageError("oversampling counts from 0, repetitions from 1");
        }
        if (dtype != Dtype::float32 && dtype != Dtype::float64) {
            throw UsageError("a decomposition is computed in float32 or float64, not in " +
                             std::string(name_of(dtype)));
        }
    });
    return dtype == Dtype::float32 ? run<float>(context, a, files, options) : run<double>(context, a, files, options);
}

}  // namespace tilewise::svd
