// Decomposes, and says what it was done with.
#include "tilewise/worker/run_svd.hpp"

#include <cmath>

#include "tilewise/mpi/together.hpp"

namespace tilewise::worker {
namespace {

using nlohmann::json;

json or_null(const std::optional<double>& value) {
    return value && std::isfinite(*value) ? json(*value) : json(nullptr);
}

json result_of(const svd::Shown& shown) {
    const svd::Shown::Solves& solves = shown.inner_solves;
    json off = json::array();
    for (const double value : shown.off_norm) {
        off.push_back(or_null(value));
    }
    json residuals = json::array();
    for (const double value : shown.residuals) {
        residuals.push_back(or_null(value));
    }
    return {{"algorithm", shown.algorithm.empty() ? json(nullptr) : json(shown.algorithm)},
            {"sweeps", shown.sweeps},
            {"off_norm", off},
            {"converged", shown.converged},
            {"components", shown.components},
            {"sigma_max", shown.sigma_max},
            {"sigma_min", shown.sigma_min},
            {"rank", shown.rank},
            {"residual", or_null(shown.residual)},
            {"orthogonality_u", or_null(shown.orthogonality_u)},
            {"orthogonality_v", or_null(shown.orthogonality_v)},
            {"start", shown.start},
            {"start_used", shown.start_used},
            {"fallback", shown.fallback},
            {"inner_solves",
             {{"small_angles", solves.small_angles},
              {"eigen", solves.eigen},
              {"cholesky", solves.cholesky},
              {"rotations", solves.rotations},
              {"skipped", solves.skipped}}},
            {"block_columns", {shown.narrowest, shown.widest}},
            {"sweep_messages", shown.sweep_messages},
            {"sweep_bytes", shown.sweep_bytes},
            {"reads", shown.reads},
            {"error_estimate", or_null(shown.error_estimate)},
            {"error_rounding", shown.error_estimate ? json(shown.error_rounding) : json(nullptr)},
            {"tolerance", shown.tolerance > 0 ? json(shown.tolerance) : json(nullptr)},
            {"residuals", residuals},
            {"sigma_error", or_null(shown.sigma_error)}};
}

}  // namespace

Outcome run_svd(Context& context, const Job& job) {
    io::Region a;
    svd::Files files;
    svd::Options options;
    Dtype dtype{};
    mpi::together(context.comm, [&] {
        if (job.inputs.size() != 1) {
            throw UsageError("svd takes one input");
        }
        a = region_of(job.inputs[0]);
        files = svd_files_of(job);
        options = svd_options_of(job);
        dtype = dtype_of(job.dtype);
    });
    const auto done = svd::decompose(context, a, files, dtype, options);
    Outcome outcome;
    outcome.flops = done.flops;
    outcome.working = done.working;
    outcome.verification = done.verification;
    outcome.samples = done.samples;
    outcome.warnings = done.warnings;
    outcome.result = result_of(done.shown);
    return outcome;
}

}  // namespace tilewise::worker
