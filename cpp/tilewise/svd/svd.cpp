// Checks what is asked, lets the algorithm do it, and has the files proved.
#include "tilewise/svd/svd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tilewise/base/names.hpp"
#include "tilewise/io/spoil.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/exchange.hpp"
#include "tilewise/svd/jacobi.hpp"
#include "tilewise/svd/proof.hpp"
#include "tilewise/svd/randomized.hpp"
#include "tilewise/svd/writer.hpp"

namespace tilewise::svd {
namespace {

void check_file(const io::Region& file, std::int64_t rows, std::int64_t columns, Dtype dtype) {
    if (file.rows != rows || file.columns != columns || file.dtype != dtype || file.column_major || file.transposed) {
        throw UsageError(file.name + ": this part of the decomposition is " + std::to_string(rows) + "×" +
                         std::to_string(columns) + ", of type " + std::string(name_of(dtype)) + ", row by row");
    }
}

void check_shapes(const io::Region& a, const Files& files, Dtype dtype, const Options& options) {
    const std::int64_t m = a.wanted_rows(), n = a.wanted_columns(), most = std::min(m, n);
    if (most < 1) {
        throw UsageError(a.name + ": has no numbers, and so no singular values");
    }
    if (is_complex(a.dtype)) {
        throw UsageError(a.name + ": the decomposition is for real numbers, not for " + std::string(name_of(a.dtype)));
    }
    if (dtype != Dtype::float32 && dtype != Dtype::float64) {
        throw UsageError("a decomposition is float32 or float64, not " + std::string(name_of(dtype)));
    }
    if (options.components < 0 || options.components > most) {
        throw UsageError(a.name + ": has " + std::to_string(most) + " singular values, not " +
                         std::to_string(options.components));
    }
    const std::int64_t k = options.components > 0 ? options.components : most;
    check_file(files.s, 1, k, dtype);
    if (options.values_only && (files.u || files.vt || files.us)) {
        throw UsageError("where values are all that is wanted, there are no vectors to write");
    }
    for (const auto* file : {&files.u, &files.us}) {
        if (*file) {
            check_file(**file, m, k, dtype);
        }
    }
    if (files.vt) {
        check_file(*files.vt, k, n, dtype);
    }
}

void check_options(const Context& context, std::int64_t columns, const Options& options) {
    const ExchangeKind exchange = exchange_named(options.exchange);
    const int ranks = context.comm.size();
    const bool moves = options.algorithm == "jacobi" && ranks > 1;
    if ((exchange == ExchangeKind::none) == moves) {
        throw UsageError(moves ? "blocks have to travel between " + std::to_string(ranks) +
                                     " ranks: exchange none is for one"
                               : "exchange " + options.exchange + " is for jacobi on several ranks");
    }
    if (options.algorithm == "local" && ranks > 1) {
        throw UsageError("local is for one rank, not for " + std::to_string(ranks));
    }
    for (const int blocks : {options.blocks, options.qr_blocks}) {
        if (blocks < 0 || blocks % 2 != 0) {
            throw UsageError("columns are cut into an even number of blocks, not into " + std::to_string(blocks));
        }
        if (blocks > std::max<std::int64_t>(columns + 1, std::int64_t{6} * ranks * context.threads)) {
            throw UsageError(std::to_string(blocks) + " blocks are too many for " + std::to_string(columns) +
                             " columns");
        }
    }
    if (options.max_sweeps < 1 || !(options.tolerance >= 0)) {
        throw UsageError("there is one sweep at least, and a tolerance is not below 0");
    }
    if (!(options.energy >= 0 && options.energy <= 1)) {
        throw UsageError("components may have a share of the matrix from 0 to 1");
    }
    if (options.repeat < 1 || options.warmup < 0) {
        throw UsageError("a decomposition is repeated once or more, after no or more rounds to warm up");
    }
}

Outcome run(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options) {
    if (options.algorithm == "randomized") {
        return randomized(context, a, files, dtype, options);
    }
    return options.algorithm == "local" ? local(context, a, files, dtype, options)
                                        : jacobi(context, a, files, dtype, options);
}

}  // namespace

void refuse_number(const io::Region& a, std::int64_t row, std::int64_t column, double value) {
    throw UsageError(a.name + ": row " + std::to_string(row) + ", column " + std::to_string(column) + " (from 0) is " +
                     (std::isnan(value) ? "nan"
                      : value > 0       ? "inf"
                                        : "-inf") +
                     "; a decomposition needs finite numbers");
}

void say_left(Shown& shown, double left, std::int64_t all) {
    if (shown.components < all) {
        const double rounding = 4 * std::numeric_limits<double>::epsilon() * std::sqrt(static_cast<double>(all));
        shown.error_estimate = std::max(left, rounding);
        shown.error_rounding = rounding;
    }
}

void refuse_overflow(const Context& context, const io::Region& a, double largest, Dtype dtype) {
    mpi::together(context.comm, [&] {
        const double most = dtype == Dtype::float32 ? static_cast<double>(std::numeric_limits<float>::max())
                                                    : std::numeric_limits<double>::max();
        if (!(largest <= most)) {
            throw UsageError(a.name + ": its largest singular value is beyond what " + std::string(name_of(dtype)) +
                             " holds; scale its numbers down, by a power of two to keep all digits");
        }
    });
}

Outcome decompose(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options) {
    mpi::together(context.comm, [&] {
        index_of(algorithm_names, options.algorithm, "algorithm");
        check_shapes(a, files, dtype, options);
        check_options(context, std::min(a.wanted_rows(), a.wanted_columns()), options);
    });
    Outcome outcome = run(context, a, files, dtype, options);
    if (outcome.verification) {  // that the sweeps ran out is known without a look at the files
        return outcome;
    }
    Files written = cut_to(files, outcome.shown.components);
    written.s.proving = true;
    for (std::optional<io::Region>* factor : {&written.u, &written.vt, &written.us}) {
        if (*factor) {
            (*factor)->proving = true;
        }
    }
    if (options.tamper) {
        io::spoil_last_number(context, written.u ? *written.u : written.s);
    }
    if (options.verify != Verify::off) {
        outcome.verification = verify(context, a, written, options, outcome.shown);
    }
    return outcome;
}

}  // namespace tilewise::svd
