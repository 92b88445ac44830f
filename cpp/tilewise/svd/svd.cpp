// Checks what is asked, lets the algorithm do it, and has the files proved.
#include "tilewise/svd/svd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tilewise/base/names.hpp"
#include "tilewise/io/corrupt_for_test.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/jacobi.hpp"
#include "tilewise/svd/proof.hpp"
#include "tilewise/svd/result.hpp"

namespace tilewise::svd {
namespace {

void check_file(const io::Region& file, std::int64_t rows, std::int64_t columns, Dtype dtype) {
    if (file.rows != rows || file.columns != columns || file.dtype != dtype || file.column_major || file.transposed) {
        throw UsageError(file.name + ": this part of the decomposition is " + std::to_string(rows) + "×" +
                         std::to_string(columns) + ", of type " + std::string(name_of(dtype)) + ", row by row");
    }
}

void check_shapes(const io::Region& a, const Files& files, Dtype dtype, const Options& options) {
    const std::int64_t m = a.logical_rows(), n = a.logical_columns(), most = std::min(m, n);
    if (most < 1) {
        throw UsageError(a.name + ": has no numbers, and so no singular values");
    }
    if (is_integer(dtype) || dtype == Dtype::float16 || is_complex(dtype) != is_complex(a.dtype)) {
        throw UsageError(a.name + ": a decomposition of " + std::string(name_of(a.dtype)) + " is " +
                         (is_complex(a.dtype) ? "complex64 or complex128" : "float32 or float64") + ", not " +
                         std::string(name_of(dtype)));
    }
    if (const Algorithm& algorithm = algorithm_of(options); is_complex(dtype) && !algorithm.takes_complex) {
        throw UsageError(a.name + ": " + std::string(algorithm.name) +
                         " takes real numbers; local and jacobi take complex ones");
    }
    if (options.components < 0 || options.components > most) {
        throw UsageError(a.name + ": has " + std::to_string(most) + " singular values, not " +
                         std::to_string(options.components));
    }
    const std::int64_t k = options.components > 0 ? options.components : most;
    check_file(files.s, 1, k, real_type(dtype));
    if (options.values_only && (files.u || files.vt || files.us)) {
        throw UsageError("with values only there are no vectors to write");
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
    mpi::require_taken(options.exchange, exchange_names);
    const int ranks = context.comm.size();
    const Algorithm& algorithm = algorithm_of(options);
    const bool moves = algorithm.moves && ranks > 1;
    if ((options.exchange == ExchangeKind::none) == moves) {
        throw UsageError(
            moves ? "blocks have to travel between " + std::to_string(ranks) + " ranks: exchange none is for one"
                  : "exchange " + std::string(mpi::name_of(options.exchange)) + " is for jacobi on several ranks");
    }
    if (algorithm.is_alone && ranks > 1) {
        throw UsageError(std::string(algorithm.name) + " works on one rank, not on " + std::to_string(ranks));
    }
    if (algorithm.most_blocks > 0 && options.blocks > algorithm.most_blocks) {
        throw UsageError(std::string(algorithm.name) + " takes all columns as one pair of blocks");
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
    if (options.max_sweeps < 1 || !(options.tolerance >= 0) || !(options.off_squares >= 0)) {
        throw UsageError("at least one sweep is needed, and the tolerance and --off-squares must not be negative");
    }
    if (!(options.energy >= 0 && options.energy <= 1)) {
        throw UsageError("--energy must be between 0 and 1");
    }
    if (options.repeat < 1 || options.warmup < 0) {
        throw UsageError("a decomposition needs at least one repetition and no negative warm-up");
    }
    if (!options.checkpoints.folder.empty() && (!algorithm.moves || options.repeat > 1 || options.warmup > 0)) {
        throw UsageError("checkpoints are of jacobi, done once");
    }
}

Outcome run(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options) {
    Outcome outcome = algorithm_of(options).run(context, a, files, dtype, options);
    if (outcome.verification) {  // that the sweeps ran out is known without a look at the files
        return outcome;
    }
    Files written = cut_to(files, outcome.diagnostics.components);
    written.s.proving = true;
    for (std::optional<io::Region>* factor : {&written.u, &written.vt, &written.us}) {
        if (*factor) {
            (*factor)->proving = true;
        }
    }
    io::corrupt_for_test(context, written.u ? *written.u : written.s);
    if (options.verify != Verify::off) {
        outcome.verification = verify(context, a, written, options, outcome.diagnostics);
    }
    return outcome;
}

}  // namespace

static_assert(algorithms[static_cast<std::size_t>(AlgorithmKind::tall)].name == "tall");

AlgorithmKind algorithm_named(std::string_view name) {
    return enum_named<AlgorithmKind>(algorithms, name, "algorithm");
}

Outcome decompose(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& options) {
    mpi::together(context.comm, [&] {
        check_shapes(a, files, dtype, options);
        check_options(context, std::min(a.logical_rows(), a.logical_columns()), options);
    });
    return mpi::no_return(context.comm, [&] { return run(context, a, files, dtype, options); });
}

}  // namespace tilewise::svd
