// The transposition of a matrix in a file, over any number of ranks: the operation that the worker and other programs
// call.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewise/base/outcome.hpp"
#include "tilewise/io/journal.hpp"
#include "tilewise/io/transfer.hpp"
#include "tilewise/kernel/transpose/transpose.hpp"
#include "tilewise/mpi/exchange/kinds.hpp"

namespace tilewise::transpose {

/// The exchanges that a transposition takes.
inline constexpr auto exchange_names =
    mpi::exchange_names_without(mpi::ExchangeKind::none, mpi::ExchangeKind::persistent);

/// How rank 0 writes what it gathered: a call for each row of a block, a file view for each block, or all in one piece.
enum class RootWrite { rows, view, whole };
inline constexpr std::array<std::string_view, 3> root_write_names{"rows", "view", "whole"};

enum class AlgorithmKind { gather, swap, reread, staged };

struct Options {
    AlgorithmKind algorithm = AlgorithmKind::staged;
    mpi::ExchangeKind exchange = mpi::ExchangeKind::none;  ///< of the algorithms that have one
    io::StrategyKind read = io::StrategyKind::positioned, write = io::StrategyKind::positioned;
    io::Hints hints;
    grid::Grid grid;  ///< of the ranks over the input, as its file stores it
    grid::Remainder remainder = grid::Remainder::spread;
    bool plain = false;                         ///< the two loops instead of the fast kernel
    std::optional<kernel::TransposeTile> tile;  ///< measured on this machine; else the kernel's own
    RootWrite root_write = RootWrite::rows;
    std::int64_t stage_bytes = std::int64_t{32} << 20;  ///< `staged`: of a tile or band in memory, on each rank
    Verify verify = Verify::off;
    int repeat = 1, warmup = 0;  ///< of the part in memory; `staged` has none
    bool sync = false;
    bool queue = true;                ///< `staged`: ranks take tiles when they are idle; else each has its own
    io::JournalOptions journal = {};  ///< of `staged`, tile by tile
};

struct Outcome : tilewise::Outcome {
    std::optional<io::Resumed> resumed;  ///< where it went on from a journal
    bool transposed = true;              ///< false: the two files store the same numbers in the same order
};

/// `to` = the transpose of `from`, number by number. `to` is a part file that exists with its full size and has as many
/// rows as `from` has columns, and the same dtype; byte order and order of storage may differ. Where the orders of
/// storage differ too, the files store the same sequence of numbers, and nothing is transposed.
///
/// Memory per rank: `gather`, `swap` three blocks (rank 0 of `gather`: all of the result once or twice), `reread` two;
/// `staged` three tiles of `stage_bytes`, or a strip of 2 MiB a thread. Throws the same Error on every rank, or aborts
/// the job where ranks already wait. @note Collective over `context.comm`, whose ranks must match the grid.
Outcome transpose(Context& context, const io::Region& from, const io::Region& to, const Options& options);

/// One way to do it; `from` is already wanted as the result is.
struct Algorithm {
    std::string_view name;
    Outcome (*run)(Context& context, const io::Region& from, const io::Region& to, const Options& options);
};

Outcome run_gather(Context& context, const io::Region& from, const io::Region& to, const Options& options);
Outcome run_swap(Context& context, const io::Region& from, const io::Region& to, const Options& options);
Outcome run_reread(Context& context, const io::Region& from, const io::Region& to, const Options& options);
Outcome run_staged(Context& context, const io::Region& from, const io::Region& to, const Options& options);

/// In the order of AlgorithmKind.
inline constexpr std::array algorithms{
    Algorithm{"gather", run_gather},
    Algorithm{"swap", run_swap},
    Algorithm{"reread", run_reread},
    Algorithm{"staged", run_staged},
};

/// Of `staged`, which the plan reckons with too.
inline constexpr std::int64_t mapped_strip_bytes = std::int64_t{2} << 20;  ///< and at least a cache line of columns
/// Requests of tiles past the page cache, on a node: devices want several, and pieces are short. Each rank has two at
/// least, with a buffer for each both ways.
inline constexpr int requests_in_flight = 8;
inline constexpr std::int64_t bounce_bytes = std::int64_t{256} << 10;  ///< of such a buffer, and a page on either side

/// Throws UsageError for an unknown name, listing the known ones.
AlgorithmKind algorithm_named(std::string_view name);

/// Whether the file of the result stores its numbers in another order than the input's does.
inline bool is_transposed(const io::Region& from, const io::Region& to) {
    return from.stored_transposed() != to.stored_transposed();
}

/// `fast`: all ranks read both files once, in blocks, and compare a fingerprint in which every number counts with its
/// place (`kernel/codec/checksum.hpp`); `error` is 0 or 1. `serial`: rank 0 alone reads both files in blocks, turns
/// with the plain kernel, and compares number by number; `error` is how many differ. `from` is wanted as the result is.
/// Where one of the files is a text, all NaNs are the same: it has one word for them.
///
/// Memory: 16 MiB a rank; of a text 16 MiB more and room for some whole lines, of tiles room for three rows of one.
/// @note Collective.
Verification verify(Context& context, const io::Region& from, const io::Region& to, Verify how);

}  // namespace tilewise::transpose
