// Judges what was measured: each check is scaled to what it may be, so that one number, at most 25·ε, stands for all.
// Small files are read as a whole, large ones panel by panel.
#include "tilewise/svd/proof.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::svd {
namespace {

constexpr double slate = 25, least_vectors = 16;

/// The largest of numbers, and infinite if one is not a number.
double worst(std::initializer_list<double> values) {
    double most = 0;
    for (const double value : values) {
        most = std::isnan(value) ? std::numeric_limits<double>::infinity() : std::max(most, value);
    }
    return most;
}

bool is_sorted_and_finite(const std::vector<double>& sigma) {
    return std::all_of(sigma.begin(), sigma.end(), [](double value) { return std::isfinite(value) && value >= 0; }) &&
           std::is_sorted(sigma.rbegin(), sigma.rend());
}

/// How far singular values are from LAPACK's, relative to the largest, and residuals and values beyond what each may be
/// off; Ritz values may only be too small.
double value_error(const Measures& found, const std::vector<double>& off, bool randomized) {
    double most = 0;
    const double scale = found.expected->empty() || !(found.expected->front() > 0) ? 1 : found.expected->front();
    for (std::size_t j = 0; j < found.sigma.size(); ++j) {
        const double gap = (found.sigma[j] - (*found.expected)[j]) / scale;
        const double less = j < off.size() ? -gap - off[j] / scale : 0;
        const double beyond = j < off.size() && j < found.residuals.size() ? (found.residuals[j] - off[j]) / scale : 0;
        most = worst({most, randomized ? std::max({gap, less, beyond}) : std::abs(gap)});
    }
    return most;
}

class Judge {
public:
    Judge(const io::Region& a, const Files& files, const Options& options)
        : randomized_(options.algorithm == AlgorithmKind::randomized),
          vectors_(files.u && files.vt),
          rows_(static_cast<double>(a.logical_rows())),
          least_(static_cast<double>(std::min(a.logical_rows(), a.logical_columns()))),
          count_(static_cast<double>(files.s.columns)),
          epsilon_(files.s.dtype == Dtype::float32 ? std::numeric_limits<float>::epsilon()
                                                   : std::numeric_limits<double>::epsilon()),
          step_(files.s.dtype == Dtype::float32 ? std::numeric_limits<float>::denorm_min()
                                                : std::numeric_limits<double>::denorm_min()) {}

    double tolerance() const { return slate * epsilon_; }
    bool is_whole() const { return count_ == least_ && !randomized_; }

    /// `off`: by how much each singular value may be too small.
    double error(const Measures& found, const std::vector<double>& off) const {
        if (!is_sorted_and_finite(found.sigma)) {
            return std::numeric_limits<double>::infinity();
        }
        const double quantum = found.sigma.empty() ? 0 : quantum_of(found.sigma.front());
        const auto beyond = [&](double error) { return std::isnan(error) ? error : std::max(0.0, error - quantum); };
        const double values = found.expected ? beyond(value_error(found, off, randomized_)) / std::sqrt(least_) : 0;
        if (!vectors_) {
            const double norms = count_ == least_ ? std::abs(found.norms) : found.norms;
            return worst({values, beyond(norms) / std::sqrt(least_)});
        }
        const double many = std::max(count_, least_vectors);
        return worst({values, beyond(found.scaled), found.orthogonality_u / many, found.orthogonality_v / many,
                      beyond(found.pairs) / (randomized_ ? 1 : std::sqrt(least_)),
                      is_whole() ? beyond(found.residual) / least_ : 0});
    }

    void show(const Measures& found, Diagnostics& diagnostics) const {
        if (!vectors_) {
            return;
        }
        diagnostics.orthogonality_u = found.orthogonality_u;
        diagnostics.orthogonality_v = found.orthogonality_v;
        if (is_whole()) {
            diagnostics.residual = found.residual;
        } else if (!diagnostics.error_estimate || diagnostics.error_rounding >= *diagnostics.error_estimate) {
            // All that is known is a bound: random vectors know more, to a half where they meet one direction only.
            const double known = diagnostics.norm > 0 ? found.norm / diagnostics.norm : 1,
                         left = found.residual * known;
            diagnostics.error_estimate = std::min(left, diagnostics.error_estimate.value_or(left));
            diagnostics.error_rounding = *diagnostics.error_estimate / 2;
        }
    }

private:
    /// What rounding to steps of the type's smallest number does to the files of s and U·diag(s), relative to the
    /// largest singular value.
    double quantum_of(double largest) const { return largest > 0 ? step_ * std::sqrt(rows_ * count_) / largest : 0; }

    bool randomized_, vectors_;
    double rows_, least_, count_, epsilon_, step_;
};

using Numbers = std::vector<double>;

const double* numbers(const kernel::Operand& panel) { return reinterpret_cast<const double*>(panel.data); }

double total(Context& context, const Numbers& of_lanes) {
    double sum = std::accumulate(of_lanes.begin(), of_lanes.end(), 0.0);
    mpi::sum_over_ranks(context.comm, &sum, 1);
    return sum;
}

double norm_of(const Numbers& sigma, double factor) {
    double sum = 0;
    for (const double value : sigma) {
        const double scaled = value * factor;  // first: squares of tiny numbers have few digits
        sum += scaled * scaled;
    }
    return std::sqrt(sum);
}

}  // namespace

PanelOptions reading(const Options& options, std::int64_t vectors) {
    return {.read = options.read, .hints = options.hints, .bytes = options.panel_bytes, .vectors = vectors};
}

PanelOptions reading(const Options& options, PanelAxis axis, std::int64_t vectors, int lanes) {
    PanelOptions chosen = reading(options, vectors);
    const bool mapped = options.read == io::StrategyKind::mapped;
    chosen.read = mapped ? io::StrategyKind::mapped : io::StrategyKind::positioned;
    chosen.axis = axis;
    chosen.lanes = lanes;
    return chosen;
}

double safe_factor(const Numbers& sigma, Dtype dtype) {
    const double most = sigma.empty() ? 0 : *std::max_element(sigma.begin(), sigma.end());
    if (!(most > 0) || !std::isfinite(most)) {
        return 1;
    }
    const int exponent = std::ilogb(most), enough = dtype == Dtype::float32 ? 50 : 400;
    return std::abs(exponent) < enough ? 1 : std::ldexp(1.0, -std::clamp(exponent, -1000, 1000));
}

Numbers read_sigma(Context& context, const io::Region& s) {
    const io::Input input(context, s, io::StrategyKind::positioned, {});
    Numbers sigma(static_cast<std::size_t>(s.rows * s.columns));
    input.load(
        context, Dtype::float64, [&](int) -> grid::Share { return grid::Block{{0, s.rows}, {0, s.columns}}; },
        reinterpret_cast<std::byte*>(sigma.data()));
    return sigma;
}

double difference_of_norms(Context& context, const io::Region& a, const Options& options, const Numbers& sigma) {
    const std::int64_t parts = is_complex(a.dtype) ? 2 : 1;  // complex numbers count as two
    Panels panels(context, a, parts == 2 ? Dtype::complex128 : Dtype::float64, reading(options, 1));
    const double factor = safe_factor(sigma, Dtype::float64);
    panels.scale_by(factor);
    Numbers sums(static_cast<std::size_t>(panels.lanes()));
    panels.walk(context, panels.panel_rows(), [&](int lane, grid::Range rows, const kernel::Operand& panel) {
        const std::int64_t runs = panel.transposed ? panels.width() : rows.size(),
                           length = panel.transposed ? rows.size() : panels.width();
        for (std::int64_t run = 0; run < runs; ++run) {
            const double* data = numbers(panel) + parts * run * panel.stride;
            sums[static_cast<std::size_t>(lane)] += std::inner_product(data, data + parts * length, data, 0.0);
        }
    });
    const double norm = std::sqrt(total(context, sums));
    return (norm_of(sigma, factor) - norm) / (norm > 0 ? norm : 1);
}

double error_of_scaled(Context& context, const Files& files, const Options& options, const Numbers& sigma) {
    const double factor = safe_factor(sigma, Dtype::float64), norm = norm_of(sigma, factor);
    const std::int64_t parts = is_complex(files.us->dtype) ? 2 : 1;
    const Dtype dtype = parts == 2 ? Dtype::complex128 : Dtype::float64;
    Panels scaled(context, *files.us, dtype, reading(options, PanelAxis::rows, 1, 0));
    const Panels u(context, *files.u, dtype, reading(options, PanelAxis::rows, 1, scaled.lanes()));
    Numbers sums(static_cast<std::size_t>(scaled.lanes()));
    scaled.walk(context, scaled.panel_rows(), [&](int lane, grid::Range rows, const kernel::Operand& panel) {
        const kernel::Operand plain = u.take(context, lane, rows);
        for (std::int64_t i = 0; i < rows.size(); ++i) {
            for (std::int64_t j = 0; j < parts * scaled.width(); ++j) {
                const double gap =
                    (numbers(panel)[parts * i * panel.stride + j] -
                     numbers(plain)[parts * i * plain.stride + j] * sigma[static_cast<std::size_t>(j / parts)]) *
                    factor;
                sums[static_cast<std::size_t>(lane)] += gap * gap;
            }
        }
    });
    return std::sqrt(total(context, sums)) / (norm > 0 ? norm : 1);
}

Verification verify(Context& context, const io::Region& a, const Files& files, const Options& options,
                    Diagnostics& diagnostics) {
    const Timed timed(context.ledger, Phase::verify, "verify");
    context.comm.barrier();
    const bool serial = options.verify == Verify::serial;
    Measures found =
        serial ? measure_exactly(context, a, files, options) : measure_by_probes(context, a, files, options);
    if (files.us && files.u) {
        found.scaled = error_of_scaled(context, files, options, read_sigma(context, files.s));
    }
    const Judge judge(a, files, options);
    // With `serial` rank 0 alone has measured; else all have the same sums, but one judgement is safer.
    std::array<double, 5> said{judge.error(found, diagnostics.residuals), found.residual, found.orthogonality_u,
                               found.orthogonality_v, found.norm};
    mpi::check(MPI_Bcast(said.data(), 5, MPI_DOUBLE, 0, context.comm.get()), "MPI_Bcast");
    Measures agreed;
    agreed.residual = said[1];
    agreed.norm = said[4];
    agreed.orthogonality_u = said[2];
    agreed.orthogonality_v = said[3];
    judge.show(agreed, diagnostics);
    diagnostics.reads += 1;
    return {.method = serial ? "serial" : "probes",
            .passed = said[0] <= judge.tolerance(),
            .error = said[0],
            .tolerance = judge.tolerance(),
            .share = diagnostics.residuals.empty()
                         ? 1
                         : static_cast<double>(diagnostics.within) / static_cast<double>(diagnostics.residuals.size())};
}

}  // namespace tilewise::svd
