// The ways in which margins are filled: what goes where is said once, in halo.hpp, and each family of ways has a file of its own.
#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "tilewise/stencil/fields.hpp"
#include "tilewise/stencil/halo.hpp"

namespace tilewise::stencil {

enum class ExchangeKind {
    none,
    synchronous,
    blocking,
    nonblocking,
    overlap,
    persistent,
    collective,
    one_sided_fence,
    one_sided_pscw,
    one_sided_lock,
    shared
};
inline constexpr std::array<std::string_view, 11> exchange_names{
    "none",       "synchronous",     "blocking",       "nonblocking",    "overlap", "persistent",
    "collective", "one_sided_fence", "one_sided_pscw", "one_sided_lock", "shared"};
/// Throws UsageError for an unknown name.
ExchangeKind exchange_named(std::string_view name);

/// How cells leave the field: copied into a dense buffer and sent as one message a piece; described by a datatype and taken straight from the
/// field; or each as a message of its own (the third report's mistake, there to be seen).
enum class HaloForm { packed, datatype, elementwise };
inline constexpr std::array<std::string_view, 3> halo_names{"packed", "datatype", "elementwise"};
HaloForm halo_named(std::string_view name);

struct Setting {
    Context& context;
    const Halo& halo;
    const Fields& fields;
    HaloForm form = HaloForm::packed;

    std::int64_t item() const { return fields.item(); }
    /// The shape of another rank's field: that of its block, and so known to all.
    kernel::FieldShape shape_of(int rank) const {
        const grid::Block block = halo.layout().block(rank);
        return kernel::field_shape(block.rows.size(), block.columns.size(), halo.margin(), fields.dtype());
    }
};

/// Fills the margins of one of both fields, as often as is wanted. A failure of one rank leaves others waiting: call it where that aborts the job.
class Exchange {
public:
    explicit Exchange(const Setting& setting);
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;
    virtual ~Exchange() = default;

    /// Whether anything is to be done at all, between ranks or within this one.
    bool is_needed() const { return !wrapped_.empty() || setting_.context.comm.size() > 1; }
    /// Begins to fill the margins of field `which`, whose own cells must stay as they are until finish().
    void begin(int which);
    /// Lets messages move that fly while this rank computes.
    virtual void progress() {}
    /// The margins are filled when it returns. Others may still read this field's own cells if it is `shared`: they are to be left alone until the
    /// next exchange, or a barrier. @note Collective.
    void finish(int which);

protected:
    virtual void send(int) {}
    virtual void receive(int) {}

    const std::vector<Piece>& outgoing() const { return outgoing_; }
    const std::vector<Piece>& incoming() const { return incoming_; }
    MPI_Comm comm() const { return setting_.context.comm.get(); }

    Setting setting_;

private:
    std::vector<Piece> outgoing_, incoming_, wrapped_;
};

/// Throws UsageError for what does not go together.
void check_exchange(ExchangeKind kind, HaloForm form, int ranks);

/// Gets its memory; `kind` and form must go together. @note Collective; throws the same Error on every rank.
std::unique_ptr<Exchange> make_exchange(ExchangeKind kind, const Setting& setting);

std::unique_ptr<Exchange> make_two_sided(ExchangeKind kind, const Setting& setting);
std::unique_ptr<Exchange> make_elementwise(ExchangeKind kind, const Setting& setting);
std::unique_ptr<Exchange> make_persistent(const Setting& setting);
std::unique_ptr<Exchange> make_collective(const Setting& setting);
std::unique_ptr<Exchange> make_one_sided(ExchangeKind kind, const Setting& setting);
std::unique_ptr<Exchange> make_shared(const Setting& setting);

/// Copies a rectangle of `row_bytes` wide rows between memories whose rows lie `from_stride` and `to_stride` bytes apart.
void copy_rows(const std::byte* from, std::int64_t from_stride, std::byte* to, std::int64_t to_stride,
               std::int64_t rows, std::int64_t row_bytes);

}  // namespace tilewise::stencil
