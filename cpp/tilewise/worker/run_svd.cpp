// Decomposes, and says what it was done with.
#include <array>
#include <cmath>

#include "tilewise/mpi/together.hpp"
#include "tilewise/worker/run.hpp"

namespace tilewise::worker {
namespace {

Json or_null(const std::optional<double>& value) {
    return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

Json list_of(const std::vector<double>& values) {
    std::vector<Json> list;
    for (const double value : values) {
        list.push_back(or_null(value));
    }
    return list;
}

Json result_of(const svd::Diagnostics& diagnostics) {
    const svd::Diagnostics::Solves& solves = diagnostics.inner_solves;
    return {{"algorithm", diagnostics.algorithm.empty() ? Json(nullptr) : Json(diagnostics.algorithm)},
            {"sweeps", diagnostics.sweeps},
            {"off_norm", list_of(diagnostics.off_norm)},
            {"off_squares", list_of(diagnostics.off_squares)},
            {"converged", diagnostics.converged},
            {"components", diagnostics.components},
            {"sigma_max", diagnostics.sigma_max},
            {"sigma_min", diagnostics.sigma_min},
            {"rank", diagnostics.rank},
            {"residual", or_null(diagnostics.residual)},
            {"orthogonality_u", or_null(diagnostics.orthogonality_u)},
            {"orthogonality_v", or_null(diagnostics.orthogonality_v)},
            {"start", diagnostics.start},
            {"start_used", diagnostics.start_used},
            {"fallback", diagnostics.fallback},
            {"inner_solves",
             {{"small_angles", solves.small_angles},
              {"eigen", solves.eigen},
              {"cholesky", solves.cholesky},
              {"rotations", solves.rotations},
              {"skipped", solves.skipped}}},
            {"block_columns", std::array{diagnostics.narrowest, diagnostics.widest}},
            {"sweep_messages", diagnostics.sweep_messages},
            {"sweep_bytes", diagnostics.sweep_bytes},
            {"reads", diagnostics.reads},
            {"error_estimate", or_null(diagnostics.error_estimate)},
            {"error_rounding", diagnostics.error_estimate ? Json(diagnostics.error_rounding) : Json(nullptr)},
            {"tolerance", diagnostics.tolerance > 0 ? Json(diagnostics.tolerance) : Json(nullptr)},
            {"residuals", list_of(diagnostics.residuals)},
            {"sigma_error", or_null(diagnostics.sigma_error)}};
}

}  // namespace

Outcome run_svd(Context& context, const Job& job) {
    svd::Options options;
    mpi::together(context.comm, [&] {
        if (job.inputs.size() != 1) {
            throw UsageError("svd takes one input");
        }
        options = options_of<svd::Options>(job);
        if (!job.parts) {
            throw UsageError("an svd job needs the output of the singular values");
        }
    });
    const auto done = svd::decompose(context, job.inputs[0], *job.parts, job.dtype, options);
    Outcome outcome{done};
    outcome.result = result_of(done.diagnostics);
    add_resumed(outcome, done.restored);
    return outcome;
}

}  // namespace tilewise::worker
