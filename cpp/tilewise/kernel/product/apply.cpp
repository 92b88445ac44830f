// Which loop does a block: by how it lies, and complex numbers as pairs of reals; threads take rows, or columns.
#include "tilewise/kernel/product/apply.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tilewise/base/threads.hpp"
#include "tilewise/base/work.hpp"
#include "tilewise/kernel/isa/backend.hpp"

namespace tilewise::kernel {
namespace {

/// The real type that a number's parts are stored in, how many they are, and the type that they are summed in.
template <class T> struct Parts {
    using real = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;
    using sum = SummedIn<real>;
    static constexpr int count = 1;
};
template <class R> struct Parts<std::complex<R>> {
    using real = R;
    using sum = double;
    static constexpr int count = 2;
};

/// Those of `n` columns, of so many reals each, that have a weight; all of whole numbers.
template <bool all> std::vector<CheckRun> runs_of(const double* weights, std::int64_t n, int parts) {
    std::vector<CheckRun> runs;
    for (std::int64_t j = 0; j < n; ++j) {
        if (!all && weights[j] == 0) {
            continue;
        }
        if (runs.empty() || runs.back().end != j * parts) {
            runs.push_back({j * parts, j * parts});
        }
        runs.back().end += parts;
    }
    return runs;
}

/// Rows [begin, end) of the matrix.
template <class T> void multiply(const Operand& matrix, std::int64_t n, std::int64_t begin, std::int64_t end,
                                 const Probe<Check<T>>& x, std::int64_t x_at, Image<Check<T>>& y, std::int64_t y_at) {
    using P = Parts<T>;
    using R = typename P::real;
    using Number = typename P::sum;
    constexpr int parts = P::count;
    const CheckLoops<R>& loops = backend().check.loops<R>();
    const auto reals = [](const auto& numbers, std::int64_t at) {
        return reinterpret_cast<const Number*>(numbers.data() + at);
    };
    const auto* data = reinterpret_cast<const R*>(matrix.data);
    if (!matrix.transposed) {
        const std::vector<CheckRun> runs = runs_of<std::is_integral_v<R>>(x.weights.data() + x_at, n, parts);
        CheckRows<R> rows{{data, matrix.stride * parts, n * parts},
                          begin,
                          end,
                          {reals(x.first, x_at), reals(x.second, x_at)},
                          x.weights.data() + x_at,
                          {},
                          parts,
                          y.sums.data() + y_at,
                          y.squares.data() + y_at,
                          runs.data(),
                          std::ssize(runs)};
        std::vector<Number> probes;
        std::vector<double> weights;
        for (std::size_t p = 0; p < 2; ++p) {
            rows.image[parts * p] = reinterpret_cast<Number*>((p == 0 ? y.first : y.second).data() + y_at);
            rows.image[parts * p + parts - 1] = rows.image[parts * p] + parts - 1;
        }
        if constexpr (parts == 2) {
            const std::int64_t count = 2 * n;
            probes.resize(static_cast<std::size_t>(4 * count));
            weights.resize(static_cast<std::size_t>(count));
            for (std::size_t p = 0; p < 2; ++p) {
                const Number* from = reals(p == 0 ? x.first : x.second, x_at);
                Number *real = probes.data() + static_cast<std::int64_t>(2 * p) * count, *imaginary = real + count;
                for (std::int64_t k = 0; k < count; k += 2) {
                    real[k] = from[k];
                    real[k + 1] = -from[k + 1];
                    imaginary[k] = from[k + 1];
                    imaginary[k + 1] = from[k];
                }
                rows.probe[2 * p] = real;
                rows.probe[2 * p + 1] = imaginary;
            }
            for (std::int64_t k = 0; k < count; ++k) {
                weights[static_cast<std::size_t>(k)] = x.weights[static_cast<std::size_t>(x_at + k / 2)];
            }
            rows.weights = weights.data();
        }
        (parts == 2 ? loops.complex_rows : loops.rows)(rows);
        return;
    }
    const auto part = [&](std::vector<Check<T>>& numbers) { return reinterpret_cast<Number*>(numbers.data() + y_at); };
    CheckColumns<R> columns{{data, matrix.stride * parts, n},
                            begin * parts,
                            end * parts,
                            {reals(x.first, x_at), reals(x.second, x_at)},
                            x.weights.data() + x_at,
                            {part(y.first), part(y.second)},
                            y.sums.data() + y_at,
                            y.squares.data() + y_at};
    std::vector<double> sums;
    if constexpr (parts == 2) {  // of each part, so that registers need not be folded
        sums.resize(static_cast<std::size_t>(4 * (end - begin)));
        columns.sums = sums.data() - 2 * begin;
        columns.squares = columns.sums + 2 * (end - begin);
    }
    (parts == 2 ? loops.complex_columns : loops.columns)(columns);
    if constexpr (parts == 2) {
        for (std::int64_t i = begin; i < end; ++i) {
            const auto at = static_cast<std::size_t>(y_at + i);
            y.sums[at] += columns.sums[2 * i] + columns.sums[2 * i + 1];
            y.squares[at] += columns.squares[2 * i] + columns.squares[2 * i + 1];
        }
    }
}

int workers(std::int64_t m, std::int64_t n, int threads) { return m * n < (1 << 16) ? 1 : threads; }

}  // namespace

template <class T>
void apply(const Operand& matrix, std::int64_t m, std::int64_t n, const Probe<Check<T>>& x, std::int64_t x_at,
           Image<Check<T>>& y, std::int64_t y_at, int threads) {
    // Two sums of products, of sizes, and of their squares.
    const auto numbers = static_cast<double>(m * n);
    if (stood_in_for(8 * numbers, static_cast<double>(sizeof(T)) * numbers)) {
        return;
    }
    parallel_ranges(workers(m, n, threads), m, [&](std::int64_t begin, std::int64_t end, int) {
        multiply<T>(matrix, n, begin, end, x, x_at, y, y_at);
    });
}

template <class T>
void measure_columns(const Operand& matrix, std::int64_t m, std::int64_t n, ColumnSizes& sizes, std::int64_t at,
                     int threads) {
    const auto numbers = static_cast<double>(m * n);
    if (stood_in_for(3 * numbers, static_cast<double>(sizeof(T)) * numbers)) {
        return;
    }
    using R = typename Parts<T>::real;
    constexpr int parts = Parts<T>::count;
    const CheckLoops<R>& loops = backend().check.loops<R>();
    const auto* data = reinterpret_cast<const R*>(matrix.data);
    parallel_ranges(workers(m, n, threads), n, [&](std::int64_t begin, std::int64_t end, int) {
        const auto add = [&](std::int64_t column, double largest, double squares) {
            double& size = sizes.largest[static_cast<std::size_t>(at + column)];
            size = std::max(size, largest);
            sizes.squares[static_cast<std::size_t>(at + column)] += squares;
        };
        if (matrix.transposed) {
            std::vector<double> found(static_cast<std::size_t>(2 * (end - begin)));
            const CheckSizes<R> lines{{data, matrix.stride * parts, m * parts},
                                      begin,
                                      end,
                                      found.data() - begin,
                                      found.data() + (end - 2 * begin)};
            loops.sizes_of_lines(lines);
            for (std::int64_t j = begin; j < end; ++j) {
                add(j, lines.largest[j], lines.squares[j]);
            }
            return;
        }
        const std::int64_t first = begin * parts, count = (end - begin) * parts;
        std::vector<double> found(static_cast<std::size_t>(2 * count));
        const CheckSizes<R> reals{{data, matrix.stride * parts, m},
                                  first,
                                  first + count,
                                  found.data() - first,
                                  found.data() + (count - first)};
        loops.sizes_across(reals);
        for (std::int64_t k = first; k < first + count; ++k) {
            add(k / parts, reals.largest[k], reals.squares[k]);
        }
    });
}

#define TILEWISE_APPLY(T)                                                                                    \
    template void apply<T>(const Operand&, std::int64_t, std::int64_t, const Probe<Check<T>>&, std::int64_t, \
                           Image<Check<T>>&, std::int64_t, int);
#define TILEWISE_MEASURE(T) \
    template void measure_columns<T>(const Operand&, std::int64_t, std::int64_t, ColumnSizes&, std::int64_t, int);
TILEWISE_APPLY(float)
TILEWISE_APPLY(double)
TILEWISE_APPLY(std::int64_t)
TILEWISE_APPLY(std::uint64_t)
TILEWISE_APPLY(std::complex<float>)
TILEWISE_APPLY(std::complex<double>)
TILEWISE_MEASURE(float)
TILEWISE_MEASURE(double)
TILEWISE_MEASURE(std::complex<float>)
TILEWISE_MEASURE(std::complex<double>)
#undef TILEWISE_APPLY
#undef TILEWISE_MEASURE

}  // namespace tilewise::kernel
