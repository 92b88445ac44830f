// The margins of both fields, filled by any kind of exchange: what goes where is said once, in halo.hpp, and here as
// messages.
#pragma once

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

}  // namespace tilewise::stencil
