// Packs row by row, and makes one datatype a piece, which serves both fields: they have the same shape.
#include "tilewise/stencil/parcels.hpp"

namespace tilewise::stencil {

Parcels::Parcels(const Setting& setting, const std::vector<Piece>& pieces, std::byte* memory)
    : fields_(setting.fields),
      packed_(setting.form == HaloForm::packed),
      pieces_(pieces) {
    const MPI_Datatype item = mpi::type_of(fields_.dtype());
    for (const Piece& piece : pieces_) {
        if (packed_) {
            places_.push_back(memory);
            spans_.emplace_back(piece.size(), item);
            memory += piece.size() * fields_.item();
        } else {
            types_.push_back(
                mpi::strided(piece.here.rows.size(), piece.here.columns.size(), fields_.shape().pitch, item));
        }
    }
}

std::size_t Parcels::bytes_of(const Setting& setting, const std::vector<Piece>& pieces) {
    std::int64_t sum = 0;
    if (setting.form == HaloForm::packed) {
        for (const Piece& piece : pieces) {
            sum += piece.size() * setting.item();
        }
    }
    return static_cast<std::size_t>(sum);
}

Message Parcels::message(std::size_t index, int which) const {
    if (packed_) {
        return {places_[index], spans_[index].count(), spans_[index].type()};
    }
    return {in_field(pieces_[index], which), 1, types_[index].get()};
}

void Parcels::pack(int which) const {
    for (std::size_t i = 0; i < places_.size(); ++i) {
        const Piece& piece = pieces_[i];
        const std::int64_t row_bytes = piece.here.columns.size() * fields_.item();
        copy_rows(in_field(piece, which), fields_.shape().pitch * fields_.item(), places_[i], row_bytes,
                  piece.here.rows.size(), row_bytes);
    }
}

void Parcels::unpack(int which) const {
    for (std::size_t i = 0; i < places_.size(); ++i) {
        const Piece& piece = pieces_[i];
        const std::int64_t row_bytes = piece.here.columns.size() * fields_.item();
        copy_rows(places_[i], row_bytes, in_field(piece, which), fields_.shape().pitch * fields_.item(),
                  piece.here.rows.size(), row_bytes);
    }
}

}  // namespace tilewise::stencil
