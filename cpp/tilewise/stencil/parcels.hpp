// Pieces as messages: dense in a buffer that they are packed into, or as datatypes over the field that they lie in.
//
//     field, datatype      [ . . . . . . ]        packed
//                          [ . a b . . . ]          [ a b c d e f ]
//                          [ . c d . . . ]
//                          [ . e f . . . ]
#pragma once

#include "tilewise/mpi/datatype.hpp"
#include "tilewise/stencil/exchange.hpp"

namespace tilewise::stencil {

struct Message {
    std::byte* address;
    int count;
    MPI_Datatype type;
};

class Parcels {
public:
    /// `memory`: of bytes_of(pieces), used where the form is `packed`. What may fail is committing datatypes.
    Parcels(const Setting& setting, const std::vector<Piece>& pieces, std::byte* memory);

    static std::size_t bytes_of(const Setting& setting, const std::vector<Piece>& pieces);

    std::size_t size() const { return pieces_.size(); }
    const Piece& piece(std::size_t index) const { return pieces_[index]; }
    /// Piece `index` of field `which`.
    Message message(std::size_t index, int which) const;
    /// From the field to the buffer, and the other way; nothing where datatypes do it.
    void pack(int which) const;
    void unpack(int which) const;

private:
    std::byte* in_field(const Piece& piece, int which) const {
        return fields_.at(which, piece.here.rows.begin, piece.here.columns.begin);
    }

    const Fields& fields_;
    bool packed_;
    std::vector<Piece> pieces_;
    std::vector<std::byte*> places_;
    std::vector<mpi::Span> spans_;
    std::vector<mpi::Datatype> types_;
};

}  // namespace tilewise::stencil
