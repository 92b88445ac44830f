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

class Prefetch;
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
    Prefetch* prefetch = nullptr;     ///< who may have read it by now
    bool counts = true;               ///< whether what MPI says of how much it moved is looked at

    std::int64_t item() const { return static_cast<std::int64_t>(size_of(region.dtype)); }
    std::int64_t rows() const { return region.stored_rows(); }
    std::int64_t columns() const { return region.stored_columns(); }
    /// Byte in the file of an element, counted row by row through the stored matrix.
    std::int64_t at(std::int64_t element) const { return region.offset + element * item(); }
};

using Hints = std::map<std::string, std::string>;

enum class Direction { read, write };

/// A transfer in the way of one strategy, with its file open wherever a rank needs it. Errors are thrown alike on every
/// rank (or abort the job where ranks already wait), all that is done counts into the ledger, and its phase stays.
class OpenFile {
public:
    /// Context and transfer must live longer.
    OpenFile(Context& context, const Transfer& transfer, Direction direction)
        : context_(context),
          transfer_(transfer),
          direction_(direction) {}
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;
    virtual ~OpenFile() = default;

    /// Moves every rank's share. @note Collective.
    virtual void move() = 0;
    /// Moves elements [begin, end) of this rank's share, as they lie in its memory: one of the calls that `move` makes,
    /// for measurements. What fails is thrown on this rank alone, and nothing is counted. Collective where those calls
    /// of MPI are. Only strategies whose ranks call for themselves have such calls.
    virtual void move_part(std::int64_t begin, std::int64_t end);
    /// After all is moved: throws what is known only now, such as a disk that has lost what was written. @note
    /// Collective.
    virtual void close() {}

protected:
    bool reads() const { return direction_ == Direction::read; }
    int me() const { return context_.comm.rank(); }
    Counters& count() const { return context_.ledger.count(); }
    /// Books what is done while it lives, for a trace under `name` and the matrix's.
    Timed timed(Step step, const std::string& name) const {
        return {context_.ledger, context_.ledger.phase(), step, name + " " + transfer_.region.name};
    }
    void report(std::int64_t done, std::int64_t all) const {
        context_.report(context_.ledger.phase(), static_cast<double>(done) / static_cast<double>(all));
    }

    Context& context_;
    const Transfer& transfer_;
    const Direction direction_;
};

/// How shares get to their ranks, or from there into a file.
struct Strategy {
    /// Opens the transfer's file. @note Collective.
    std::function<std::unique_ptr<OpenFile>(Context& context, const Transfer& transfer, Direction direction)> open;

    /// Opens, moves and closes. @note Collective.
    void move(Context& context, const Transfer& transfer, Direction direction) const;
};

/// A strategy that opens files as an `Opened`, made with these settings.
template <class Opened, class... Settings> Strategy strategy_of(Settings... settings) {
    return {[settings...](Context& context, const Transfer& transfer, Direction direction) {
        return std::make_unique<Opened>(context, transfer, direction, settings...);
    }};
}

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

Strategy make_root(const Hints& hints);
Strategy make_root_collective(const Hints& hints);
Strategy make_per_rank(const Hints& hints);
Strategy make_collective(const Hints& hints);
Strategy make_split_collective(const Hints& hints);
Strategy make_independent(const Hints& hints);
Strategy make_shared_pointer(const Hints& hints);
Strategy make_ordered(const Hints& hints);
Strategy make_positioned(const Hints& hints);
Strategy make_sieve(const Hints& hints);
Strategy make_mapped(const Hints& hints);
Strategy make_two_phase(const Hints& hints);
Strategy make_uncached(const Hints& hints);

struct StrategyEntry {
    std::string_view name;
    Strategy (*make)(const Hints& hints);
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
Strategy make_strategy(StrategyKind kind, const Hints& hints);

/// Reads what `share` has of all tiles into `transfer.data`. Not collective.
void read_tiles(Counters& count, const Transfer& transfer, const grid::Share& share);

/// A buffer's size out of a hint such as `cb_buffer_size`, or `standard`. Throws UsageError for what is no size.
std::int64_t buffer_size(const Hints& hints, const std::string& key, std::int64_t standard);

}  // namespace tilewise::io
