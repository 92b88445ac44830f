// The ways in which pieces travel: the algorithms say what goes where, and none of them is written twice for another kind of message.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string_view>

#include "tilewise/base/dtype.hpp"
#include "tilewise/mpi/context.hpp"
#include "tilewise/transpose/pieces.hpp"

namespace tilewise::transpose {

enum class ExchangeKind {
    synchronous,
    blocking,
    nonblocking,
    overlap,
    collective,
    one_sided_fence,
    one_sided_pscw,
    one_sided_lock,
    shared
};
inline constexpr std::array<std::string_view, 9> exchange_names{"synchronous",    "blocking",       "nonblocking",
                                                                "overlap",        "collective",     "one_sided_fence",
                                                                "one_sided_pscw", "one_sided_lock", "shared"};

/// Throws UsageError for an unknown name.
ExchangeKind exchange_named(std::string_view name);

/// Called when a piece is there; `data` holds it, dense, until the call returns.
using Landed = std::function<void(const Piece& piece, const std::byte* data)>;

struct Setting {
    Context& context;
    const Pieces& pieces;
    Dtype dtype;

    std::int64_t item() const { return static_cast<std::int64_t>(size_of(dtype)); }
};

/// One round, or several: begin(), then each outgoing piece is put in place and said to be ready, then finish().
class Exchange {
public:
    explicit Exchange(Setting setting);
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;
    virtual ~Exchange() = default;

    const std::vector<Piece>& outgoing() const { return outgoing_; }
    /// Where an outgoing piece is to be put, dense.
    std::byte* place_of(const Piece& piece) { return memory() + piece.at * setting_.item(); }

    virtual void begin() {}
    /// The piece with this index is in its place; `overlap` sends it at once.
    virtual void ready(std::size_t) {}
    /// Exchanges, and calls `landed` for every piece from another rank: as it arrives, where the kind of exchange knows. @note Collective; a
    /// failure of one rank leaves others waiting, so call it where that aborts the job.
    virtual void finish(const Landed& landed) = 0;

protected:
    virtual std::byte* memory() = 0;

    static std::int64_t elements(const std::vector<Piece>& pieces);
    std::size_t bytes(const std::vector<Piece>& pieces) const {
        return static_cast<std::size_t>(elements(pieces) * setting_.item());
    }
    std::int64_t size(const Piece& piece) const { return piece.block.size() * setting_.item(); }
    /// Books a piece that arrived, and hands it over.
    void land(const Piece& piece, const std::byte* data, const Landed& landed);
    /// All incoming pieces, which lie one after the other from `received` on.
    void land_all(const std::byte* received, const Landed& landed);
    /// The same as soon as each is there: `requests` has one for every incoming piece.
    void land_as_they_come(const std::byte* received, std::vector<MPI_Request>& requests, const Landed& landed);

    Setting setting_;
    std::vector<Piece> outgoing_, incoming_;
};

/// Gets its memory. @note Collective; throws the same Error on every rank.
std::unique_ptr<Exchange> make_exchange(ExchangeKind kind, const Setting& setting);

std::unique_ptr<Exchange> make_two_sided(ExchangeKind kind, const Setting& setting);
std::unique_ptr<Exchange> make_one_sided(ExchangeKind kind, const Setting& setting);
std::unique_ptr<Exchange> make_shared(const Setting& setting);

}  // namespace tilewise::transpose
