// Sweeps, and sets their speed beside that of a copy over the same two fields.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "tilewise/measure/ceilings.hpp"
#include "tilewise/mpi/communicator.hpp"
#include "tilewise/mpi/repeat.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/stencil/fields.hpp"
#include "tilewise/worker/events.hpp"
#include "tilewise/worker/run.hpp"

namespace tilewise::worker {
namespace {

constexpr std::int64_t copied_at_most = std::int64_t{256} << 20;  // bytes a rank: no cache holds that
constexpr double share_of_job = 0.03;                             // of its time, that measuring copies may take

double points_per_second(const stencil::Outcome& done) {
    const double seconds = done.samples[mpi::median(done.samples)].both;
    return seconds > 0 ? done.point_sweeps / seconds : 0;
}

/// `flops_per_point`: a multiplication for each weight of the star or square that is swept with, and an addition
/// between two; however the kernel computes it.
Json result_of(const stencil::Outcome& done, double flops_per_point) {
    const double rate = points_per_second(done);
    return {{"sweeps", *std::max_element(done.sweeps.begin(), done.sweeps.end())},
            {"last_change", done.last_change ? Json(*done.last_change) : Json()},
            {"non_finite", done.result.non_finite},
            {"held", done.result.held},
            {"input_non_finite", done.input_non_finite},
            {"points_per_second", rate},
            {"gflops", rate * flops_per_point * 1e-9},
            {"flops_per_point", flops_per_point},
            {"model_bytes", done.model_bytes},
            {"passes", done.passes},
            {"snapshots", done.snapshots}};
}

std::string numbers(std::int64_t count, const std::string& of, const std::string& one, const std::string& several) {
    return std::to_string(count) + (count == 1 ? " number of " : " numbers of ") + of + (count == 1 ? one : several);
}

std::string rounded(const char* form, double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), form, value);
    return text.data();
}

/// Where numbers of the result do not say what was computed, or where not all of them were proved.
std::vector<std::string> warnings_of(const stencil::Outcome& done, Dtype dtype, const stencil::Options& options) {
    std::vector<std::string> warnings;
    if (done.input_non_finite > 0) {
        warnings.push_back(numbers(done.input_non_finite, "the input", " is", " are") + " NaN or infinite, " +
                           (done.input_non_finite == 1 ? "and spreads" : "and spread") +
                           " with every sweep: " + numbers(done.result.non_finite, "the result", " is", " are"));
    }
    if (done.result.non_finite > 0 && done.input_non_finite == 0 && std::isfinite(options.boundary.value)) {
        const double growth = std::accumulate(options.weights.values.begin(), options.weights.values.end(), 0.0,
                                              [](double sum, double value) { return sum + std::abs(value); });
        warnings.push_back(
            numbers(done.result.non_finite, "the result", " is", " are") +
            " NaN or infinite, and none of the input is: the sweeps diverge; " +
            (growth > 1 ? "divide the weights by " + rounded("%.6g", growth) + ", to which their magnitudes add up"
                        : "scale the input down"));
    }
    if (is_integer(dtype) && done.result.non_finite > 0) {
        warnings.push_back(std::string(name_of(dtype)) +
                           " has neither NaN nor infinity: they become 0 and the ends of its range");
    }
    if (done.result.held > 0) {
        warnings.push_back(numbers(done.result.held, "the result", " is", " are") + " beyond " +
                           std::string(name_of(dtype)) + " and clamped to its range");
    }
    const auto& proof = done.verification;
    if (proof && proof->passed && proof->share < 1) {
        const double percent = 100 * proof->share;  // which is not all, however near
        warnings.push_back("verified " +
                           (percent < 1 ? rounded("%.2g", percent) : rounded("%.1f", std::floor(10 * percent) / 10)) +
                           " % of the result, in patches; --verify serial checks all of it");
    }
    return warnings;
}

/// How many ranks have another place in the grid than the one of their number.
std::int64_t moved(const std::vector<int>& order) {
    std::int64_t count = 0;
    for (std::size_t rank = 0; rank < order.size(); ++rank) {
        count += order[rank] == static_cast<int>(rank) ? 0 : 1;
    }
    return count;
}

/// What one sweep a pass could do at most, had it nothing to wait for but memory: a point is read and written.
void add_roofline(Context& context, stencil::Fields& fields, double rate, Outcome& outcome) {
    const std::int64_t bytes = std::min(fields.stride(), copied_at_most);
    const double allowed = share_of_job * context.ledger.total();
    const double copied = outcome.flops > 0 ? measure::copy_rate(context, fields[0], fields[1], bytes, allowed) : 0;
    outcome.result.add("copy_bytes_per_second", copied);
    outcome.result.add("fraction_of_copy", copied > 0 ? rate * 2 * static_cast<double>(fields.item()) / copied : 0.0);
}

}  // namespace

Outcome run_stencil(Context& context, const Job& job) {
    OneToOne files;
    StencilOptions options;
    mpi::together(context.comm, [&] {
        files = one_to_one(job);
        options = options_of<StencilOptions>(job);
        options.snapshot_done = [](std::int64_t index) { emit({{"event", "snapshot"}, {"index", index}}); };
    });
    if (options.reorder) {
        const bool periodic = options.boundary == kernel::Boundary::periodic;
        options.order = mpi::cartesian_order(context.comm, options.grid, periodic);
    }
    const auto done = stencil::stencil(context, files.from, files.to, options.snapshots, job.dtype, options);
    const double flops_per_point = stencil::plain_flops_per_point(options.weights);
    Outcome outcome{done};
    outcome.flops = done.point_sweeps * flops_per_point;
    outcome.result = result_of(done, flops_per_point);
    if (options.reorder) {
        outcome.result.add("order", options.order);
        outcome.result.add("moved_ranks", moved(options.order));
    }
    outcome.warnings = warnings_of(done, files.to.dtype, options);
    add_resumed(outcome, done.restored);
    outcome.afterwards = [&context, fields = done.fields, rate = points_per_second(done)](Outcome& finished) {
        add_roofline(context, *fields, rate, finished);
    };
    return outcome;
}

}  // namespace tilewise::worker
