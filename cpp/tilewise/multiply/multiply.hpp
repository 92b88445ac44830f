// The product of two matrices in files, over any number of ranks: the operation that the worker and other programs
// call.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tilewise/io/journal.hpp"
#include "tilewise/io/strategy/strategy.hpp"
#include "tilewise/mpi/context.hpp"
#include "tilewise/multiply/algorithms.hpp"
#include "tilewise/multiply/operands.hpp"
#include "tilewise/multiply/proof.hpp"

namespace tilewise::multiply {

struct Options {
    AlgorithmKind algorithm = AlgorithmKind::summa;
    ExchangeKind exchange = ExchangeKind::overlap;
    io::StrategyKind read = io::StrategyKind::positioned, write = io::StrategyKind::positioned;
    io::Hints hints;
    grid::Grid grid;
    int copies = 1;
    grid::Remainder remainder = grid::Remainder::spread;
    kernel::Kernel kernel = kernel::Kernel::fast;
    double tolerance = 0;  ///< error beside the longest row and column that Strassen's product may have; 0: none said
    Verify verify = Verify::fast;
    Overflow overflow = Overflow::refuse;
    bool symmetric = false;  ///< B is the transpose of A, as the caller knows: half of C is computed, the rest mirrored
    grid::Shape stage = {};  ///< of what ranks have in memory of a product at a time; 0×0×0: all of it
    int repeat = 1, warmup = 0;
    bool sync = false;
    bool read_back = false;           ///< compare the file with what was written, by checksum
    io::JournalOptions journal = {};  ///< of a product larger than memory
};

struct Outcome : tilewise::Outcome {
    double plain_flops = 0;              ///< those that three loops would do; `flops` are those that are done
    Halving halving;                     ///< by Strassen's product, where that was used
    std::optional<io::Resumed> resumed;  ///< where it went on from a journal
    NotFinite not_finite;                ///< numbers of A, B and C over all ranks; 0 where these are integers
    std::int64_t ideal_exchanged = 0;    ///< bytes that this rank must receive by the algorithm's own count
};

/// C = A·B. `a` and `b` may be in any order of storage and wanted transposed; they are converted to `dtype`, which is
/// C's type too. `c` is a part file that exists with its full size, or nothing to compute only. When the verification
/// fails, nothing is written.
///
/// With `symmetric`, which takes one copy of the grid, C is its own transpose bit by bit.
///
/// Memory per rank: its blocks of A, B and C, and what the exchange keeps (see `algorithms.hpp`). Time is booked in
/// `context.ledger`, which must be started. Throws UsageError, MemoryError, IoError on every rank alike; past the
/// reading of the input a failure of one rank aborts the job. @note Collective over `context.comm`, whose ranks must
/// match the grid and copies.
Outcome multiply(Context& context, const io::Region& a, const io::Region& b, const io::Region* c, Dtype dtype,
                 const Options& options);

}  // namespace tilewise::multiply
