// Small files as a whole, large ones panel by panel.
#include "tilewise/svd/proof_files.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tilewise/mpi/sum.hpp"

namespace tilewise::svd {
namespace {

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

}  // namespace tilewise::svd
