// The part in memory of the algorithms that exchange: each rank turns its block piece by piece, and pieces go to
// whoever wants them.
#pragma once

#include "tilewise/mpi/exchange/kinds.hpp"
#include "tilewise/transpose/local.hpp"
#include "tilewise/transpose/pieces.hpp"

namespace tilewise::transpose {

/// The exchanges that a transposition takes.
inline constexpr auto exchange_names =
    mpi::exchange_names_without(mpi::ExchangeKind::none, mpi::ExchangeKind::persistent);

/// What becomes of pieces where they are wanted.
class Sink {
public:
    Sink() = default;
    Sink(const Sink&) = delete;
    Sink& operator=(const Sink&) = delete;
    virtual ~Sink() = default;

    /// The part of this rank's own block that it wants itself; `last`: of the repetition that counts.
    virtual void keep(const Loaded& loaded, const grid::Block& part, bool last) = 0;
    /// A piece of another rank's.
    virtual void land(const Piece& piece, const std::byte* data, bool last) = 0;
};

/// Gathers the pieces of a block in memory, in the order of the result's file.
class Assembled final : public Sink {
public:
    /// @note Collective.
    Assembled(const Context& context, const io::Region& to, const grid::Block& block);

    void keep(const Loaded& loaded, const grid::Block& part, bool last) override;
    void land(const Piece& piece, const std::byte* data, bool last) override;
    std::byte* data() { return memory_.data(); }

private:
    std::byte* place_of(const grid::Block& part) {
        return memory_.data() + (part.rows.begin - block_.rows.begin) * stride_ +
               (part.columns.begin - block_.columns.begin) * item_;
    }

    Context context_;
    grid::Block block_;
    std::int64_t item_, stride_;
    Buffer memory_;
};

/// What ranks hold of the result when each has read its block of the input, which `grid` lies over.
std::vector<grid::Block> held_blocks(const io::Region& from, const io::Region& to, const Options& options);

/// Turns and exchanges, as often as `options` says; the seconds of each repetition. @note Collective; a failure on the
/// way aborts the job.
std::vector<Sample> redistribute(Context& context, const io::Region& to, const Options& options, const Pieces& pieces,
                                 const Loaded& loaded, Sink& sink);

}  // namespace tilewise::transpose
