// Sweeps, and sets their speed beside that of a copy over the same two fields.
#include "tilewise/worker/run_stencil.hpp"

#include <algorithm>

#include "tilewise/measure/copy_rate.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::worker {
namespace {

constexpr std::int64_t copied_at_most = std::int64_t{256} << 20;  // bytes a rank: no cache holds that

/// Of a repetition in the middle: seconds that sweeping took, with all that belongs to it.
double median_seconds(const std::vector<Sample>& samples) {
    std::vector<double> seconds;
    for (const auto& sample : samples) {
        seconds.push_back(sample.both);
    }
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
}

/// `flops_per_point`: a multiplication for each weight of the star or square that is swept with, and an addition between two; however the kernel computes it.
nlohmann::json result_of(const stencil::Outcome& done, double flops_per_point) {
    const double seconds = median_seconds(done.samples);
    const double rate = seconds > 0 ? done.point_sweeps / seconds : 0;
    return {{"sweeps", *std::max_element(done.sweeps.begin(), done.sweeps.end())},
            {"last_change", done.last_change ? nlohmann::json(*done.last_change) : nlohmann::json(nullptr)},
            {"non_finite", done.non_finite},
            {"points_per_second", rate},
            {"gflops", rate * flops_per_point * 1e-9},
            {"flops_per_point", flops_per_point},
            {"model_bytes", done.model_bytes},
            {"copy_bytes_per_second", 0.0},
            {"fraction_of_copy", 0.0},
            {"snapshots", done.snapshots}};
}

/// What one sweep a pass could do at most, had it nothing to wait for but memory: a point is read and written.
void add_roofline(Context& context, stencil::Fields& fields, Outcome& outcome) {
    const double copied = measure::copy_rate(context, fields[0], fields[1], std::min(fields.stride(), copied_at_most));
    const double touched = outcome.result["points_per_second"].get<double>() * 2 * static_cast<double>(fields.item());
    outcome.result["copy_bytes_per_second"] = copied;
    outcome.result["fraction_of_copy"] = copied > 0 ? touched / copied : 0;
}

}  // namespace

Outcome run_stencil(Context& context, const Job& job) {
    io::Region from, to;
    std::vector<io::Region> snapshots;
    stencil::Options options;
    mpi::together(context.comm, [&] {
        const OneToOne files = one_to_one(job);
        options = stencil_options_of(job);
        from = files.from;
        to = files.to;
        for (const RegionFields& fields : job.stencil->snapshots) {
            snapshots.push_back(region_of(fields));
        }
    });
    const auto done = stencil::stencil(context, from, to, snapshots, dtype_of(job.dtype), options);
    const double flops_per_point = stencil::plain_flops_per_point(options.weights);
    Outcome outcome;
    outcome.flops = done.point_sweeps * flops_per_point;
    outcome.working = done.working;
    outcome.verification = done.verification;
    outcome.samples = done.samples;
    outcome.result = result_of(done, flops_per_point);
    if (done.non_finite > 0) {
        outcome.warnings.push_back(std::to_string(done.non_finite) + (done.non_finite == 1 ? " number" : " numbers") +
                                   " of the input are NaN or infinite, and spread with every sweep");
    }
    outcome.afterwards = [&context, fields = done.fields](Outcome& finished) {
        if (finished.flops > 0) {
            add_roofline(context, *fields, finished);
        }
    };
    return outcome;
}

}  // namespace tilewise::worker
