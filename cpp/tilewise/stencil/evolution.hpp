// The part in memory: passes of several sweeps from field to field, with an exchange of margins before each.
//
//     depth 3        [field 0] ──exchange──▶ margins 3·radius deep ──3 sweeps in one pass──▶ [field 1] ──exchange──▶ …
//
// The last pass, the one before a snapshot and the one before a check are as short as need be; a check looks at a pass
// of one sweep.
//
// The margins of both fields are filled by any kind of exchange: what goes where is said once, in halo.hpp, and here as
// messages.
//
// Design: docs/design/stencil.md
#pragma once

#include <functional>

#include "tilewise/mpi/exchange/exchange.hpp"
#include "tilewise/stencil/fields.hpp"
#include "tilewise/stencil/stencil.hpp"

namespace tilewise::stencil {

/// Throws UsageError for what does not go together.
void check_exchange(ExchangeKind kind, HaloForm form, int ranks);

/// Fills the margins of one of both fields, as often as is wanted. A failure of one rank leaves others waiting: call
/// it where that aborts the job.
class Margins {
public:
    /// `kind` and `form` must go together; `halo` and `fields` must live as long as this. @note Collective; throws
    /// the same Error on every rank.
    Margins(const Context& context, const Halo& halo, const Fields& fields, ExchangeKind kind, HaloForm form);

    /// Whether anything is to be done at all, between ranks or within this one.
    bool is_needed() const { return is_needed_; }
    /// Begins to fill the margins of `field`, whose own cells must stay as they are until finish().
    void begin(int field);
    /// Lets messages move that fly while this rank computes.
    void progress() { exchange_->progress(); }
    /// The margins are filled when it returns. Others may still read this field's own cells if it is `shared`: they
    /// are to be left alone until the next exchange, or a barrier. @note Collective.
    void finish(int field);

private:
    std::vector<mpi::Message> messages(const std::vector<Piece>& pieces, int field) const;

    const Fields& fields_;
    HaloForm form_;
    bool packs_;  ///< into memory of the exchange, which both fields use in turn
    bool is_needed_;
    std::vector<Piece> outgoing_, incoming_, wrapped_;
    std::unique_ptr<mpi::Exchange> exchange_;
};

/// Copies what fills a margin out of the own block, from one side of `field` to the other.
void copy_wrapped(const Fields& fields, const std::vector<Piece>& wrapped, int field);

/// Called with a state, after so many sweeps.
using AtState = std::function<void(std::int64_t sweeps, int field)>;

/// Where a plane has come to.
struct State {
    int field = 0;  ///< the field that holds it
    std::int64_t sweeps = 0;
    std::int64_t moved = 0;             ///< bytes that this rank's passes move through memory (see Sweeper::sweep)
    std::optional<double> change = {};  ///< the largest of one sweep, at the last check
    std::int64_t diverged = 0;  ///< numbers that were NaN or infinite then, over all ranks: they never come to rest
};

class Evolution {
public:
    /// Gets all memory. `weights` are those of the matrix as it is stored. Throws UsageError for a margin deeper than a
    /// block.
    /// @note Collective; throws the same Error on every rank.
    Evolution(Context& context, const Options& options, const kernel::Weights& weights, const Layout& layout,
              Dtype dtype);

    Evolution(const Evolution&) = delete;  // the margins know where halo and fields lie
    Evolution& operator=(const Evolution&) = delete;

    const std::shared_ptr<Fields>& fields() const { return fields_; }
    int depth() const { return depth_; }

    /// Sweeps from the state in field 0, which is the one after `begun` sweeps, and `share` of all that is to be done,
    /// after `before` of it: for those who watch. `snapshot` is called when one is due, `between` after every pass but
    /// the last. @note Collective; a failure within a pass aborts the job.
    State run(std::int64_t begun, const AtState& snapshot, const AtState& between, double before, double share);

private:
    int agreed_depth(const kernel::Weights& weights);
    /// Sweeps of the pass that begins after `done`, and whether its change is to be looked at.
    struct Pass {
        int sweeps;
        bool checked;
    };
    Pass next_pass(std::int64_t done) const;
    void pass(int field, int sweeps);
    void pass_with_overlap(int field, int sweeps);
    void sweep(int field, const kernel::Part& part, int sweeps);
    /// The largest change from `field` to the other, over all ranks; infinite where one is no number.
    double change(int field) const;
    /// Numbers of a field that are NaN or infinite, over all ranks.
    std::int64_t not_finite(int field) const;

    Context& context_;
    Options options_;
    int radius_;
    kernel::Sweeper sweeper_;
    Layout layout_;
    int depth_;
    kernel::Edges edges_;
    Halo halo_;
    std::shared_ptr<Fields> fields_;
    ExchangeKind exchange_;
    std::optional<Margins> margins_;
    std::int64_t moved_ = 0;  ///< bytes, since the run began
};

}  // namespace tilewise::stencil
