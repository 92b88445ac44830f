// The ways to move shares between ranks and a file: one file each, one table that lists them.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "tilewise/io/region.hpp"
#include "tilewise/mpi/context.hpp"

namespace tilewise::io {

class Ahead;
class TextIndex;

/// The share of each rank, in the stored coordinates of the region; shares may be empty.
using ShareOf = std::function<grid::Share(int rank)>;

/// One matrix between its file and the ranks: `data` is this rank's share in the file's own type, row after row,
/// without gaps.
struct Transfer {
    const Region& region;
    ShareOf share_of;
    std::byte* data = nullptr;
    const TextIndex* text = nullptr;  ///< where lines begin, when a text is read
    Ahead* ahead = nullptr;           ///< who may have read it by now

    std::int64_t item() const { return static_cast<std::int64_t>(size_of(region.dtype)); }
    std::int64_t rows() const { return region.stored_rows(); }
    std::int64_t columns() const { return region.stored_columns(); }
    /// Byte in the file of an element, counted row by row through the stored matrix.
    std::int64_t at(std::int64_t element) const { return region.offset + element * item(); }
};

using Hints = std::map<std::string, std::string>;

/// Both calls are collective over `context.comm`, throw the same Error on every rank (or abort the job where ranks
/// already wait), count into the ledger, and leave the ledger's phase as they find it.
class Strategy {
public:
    Strategy() = default;
    Strategy(const Strategy&) = delete;
    Strategy& operator=(const Strategy&) = delete;
    virtual ~Strategy() = default;

    virtual void read(Context& context, const Transfer& transfer) const = 0;
    virtual void write(Context& context, const Transfer& transfer) const = 0;
};

std::unique_ptr<Strategy> make_root(const Hints& hints);
std::unique_ptr<Strategy> make_root_collective(const Hints& hints);
std::unique_ptr<Strategy> make_per_rank(const Hints& hints);
std::unique_ptr<Strategy> make_collective(const Hints& hints);
std::unique_ptr<Strategy> make_split_collective(const Hints& hints);
std::unique_ptr<Strategy> make_independent(const Hints& hints);
std::unique_ptr<Strategy> make_shared_pointer(const Hints& hints);
std::unique_ptr<Strategy> make_ordered(const Hints& hints);
std::unique_ptr<Strategy> make_positioned(const Hints& hints);
std::unique_ptr<Strategy> make_sieve(const Hints& hints);
std::unique_ptr<Strategy> make_mapped(const Hints& hints);
std::unique_ptr<Strategy> make_two_phase(const Hints& hints);
std::unique_ptr<Strategy> make_uncached(const Hints& hints);

enum class StrategyKind {
    root,
    root_collective,
    per_rank,
    collective,
    split_collective,
    independent,
    shared_pointer,
    ordered,
    positioned,
    sieve,
    mapped,
    two_phase,
    uncached
};

struct StrategyEntry {
    std::string_view name;
    std::unique_ptr<Strategy> (*make)(const Hints& hints);
    bool only_reads = false;
};

/// In the order of StrategyKind.
inline constexpr std::array strategies{
    StrategyEntry{"root", make_root},
    StrategyEntry{"root_collective", make_root_collective},
    StrategyEntry{"per_rank", make_per_rank},
    StrategyEntry{"collective", make_collective},
    StrategyEntry{"split_collective", make_split_collective},
    StrategyEntry{"independent", make_independent},
    StrategyEntry{"shared_pointer", make_shared_pointer, true},
    StrategyEntry{"ordered", make_ordered, true},
    StrategyEntry{"positioned", make_positioned},
    StrategyEntry{"sieve", make_sieve},
    StrategyEntry{"mapped", make_mapped},
    StrategyEntry{"two_phase", make_two_phase},
    StrategyEntry{"uncached", make_uncached},
};

/// Throws UsageError for an unknown name, listing the known ones.
StrategyKind strategy_named(std::string_view name);
/// Throws UsageError for a hint that makes no sense.
std::unique_ptr<Strategy> make_strategy(StrategyKind kind, const Hints& hints);

/// Reads what `share` has of all tiles into `transfer.data`. Not collective.
void read_tiles(Counters& count, const Transfer& transfer, const grid::Share& share);

/// A buffer's size out of a hint such as `cb_buffer_size`, or `standard`. Throws UsageError for what is no size.
std::int64_t buffer_size(const Hints& hints, const std::string& key, std::int64_t standard);

}  // namespace tilewise::io
