// Margins fetched by those who need them: a rank exposes what others want of its block, and they get it.
//
//     packed     exposed: a buffer with the outgoing pieces one after the other; got into a buffer, then unpacked
//     datatype   exposed: both fields; got straight from the owner's field into the own margin
//
// What separates the owner's sweeps from others' gets: a fence; post-start-complete-wait between neighbours; or a lock held all along, and barriers.
#include <optional>

#include "tilewise/mpi/group.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/stencil/parcels.hpp"

namespace tilewise::stencil {
namespace {

using mpi::check;

class OneSided final : public Exchange {
public:
    OneSided(ExchangeKind kind, const Setting& setting)
        : Exchange(setting),
          kind_(kind),
          to_(comm(), mpi::peers_of(outgoing())),
          from_(comm(), mpi::peers_of(incoming())) {
        const bool packed = setting_.form == HaloForm::packed;
        if (packed) {
            exposed_ = mpi::allocate_window(setting_.context.comm, Parcels::bytes_of(setting_, outgoing()));
        } else {
            mpi::check_one_sided(MPI_Win_create(setting_.fields.memory(), 2 * setting_.fields.stride(), 1,
                                                MPI_INFO_NULL, comm(), exposed_.window.out()),
                                 "MPI_Win_create");
            check(MPI_Win_set_errhandler(window(), MPI_ERRORS_RETURN), "MPI_Win_set_errhandler");
        }
        mpi::together(setting_.context.comm, [&] {
            received_ = Buffer(Parcels::bytes_of(setting_, incoming()));
            out_.emplace(setting_, outgoing(), exposed_.data);
            in_.emplace(setting_, incoming(), received_.data());
            find_sources(packed);
        });
        if (kind_ == ExchangeKind::one_sided_lock) {
            check(MPI_Win_lock_all(0, window()), "MPI_Win_lock_all");
        }
    }

    ~OneSided() override {
        if (kind_ == ExchangeKind::one_sided_lock && !mpi::must_not_free()) {
            MPI_Win_unlock_all(window());
        }
    }

protected:
    void receive(int which) override {
        out_->pack(which);
        switch (kind_) {
            case ExchangeKind::one_sided_fence:
                check(MPI_Win_fence(MPI_MODE_NOPRECEDE, window()), "MPI_Win_fence");
                get_all(which);
                check(MPI_Win_fence(MPI_MODE_NOSUCCEED, window()), "MPI_Win_fence");
                break;
            case ExchangeKind::one_sided_pscw:
                check(MPI_Win_post(to_.get(), 0, window()), "MPI_Win_post");
                check(MPI_Win_start(from_.get(), 0, window()), "MPI_Win_start");
                get_all(which);
                check(MPI_Win_complete(window()), "MPI_Win_complete");
                check(MPI_Win_wait(window()), "MPI_Win_wait");
                break;
            default:
                check(MPI_Win_sync(window()), "MPI_Win_sync");
                setting_.context.comm.barrier();  // from here on all pieces are there to be fetched
                get_all(which);
                check(MPI_Win_flush_all(window()), "MPI_Win_flush_all");
                setting_.context.comm.barrier();  // nobody sweeps over cells that others still read
        }
        in_->unpack(which);
    }

private:
    /// Where a piece lies in its owner's window.
    struct Source {
        MPI_Aint at = 0;
        std::optional<mpi::Datatype> type;
        std::int64_t stride = 0;  ///< from its first field to its second
    };

    MPI_Win window() const { return exposed_.window.get(); }

    void find_sources(bool packed) {
        const int me = setting_.context.comm.rank();
        const MPI_Datatype item = mpi::type_of(setting_.fields.dtype());
        for (const Piece& piece : incoming()) {
            Source& source = sources_.emplace_back();
            if (!packed) {
                const kernel::FieldShape shape = setting_.shape_of(piece.peer);
                source.at = Fields::offset_of(shape, setting_.fields.dtype(), piece.there.rows.begin,
                                              piece.there.columns.begin);
                source.stride = Fields::stride_of(shape, setting_.fields.dtype());
                source.type = mpi::strided(piece.there.rows.size(), piece.there.columns.size(), shape.pitch, item);
                continue;
            }
            for (const Piece& other : setting_.halo.outgoing(piece.peer)) {
                if (other.peer == me && other.side == piece.side && other.there == piece.here) {
                    break;
                }
                source.at += other.size() * setting_.item();
            }
        }
    }

    void get_all(int which) const {
        for (std::size_t i = 0; i < in_->size(); ++i) {
            const Message m = in_->message(i, which);
            const Source& source = sources_[i];
            check(MPI_Get(m.address, m.count, m.type, in_->piece(i).peer, source.at + which * source.stride,
                          source.type ? 1 : m.count, source.type ? source.type->get() : m.type, window()),
                  "MPI_Get");
        }
    }

    ExchangeKind kind_;
    mpi::Group to_, from_;
    mpi::Exposed exposed_;
    Buffer received_;
    std::optional<Parcels> out_, in_;
    std::vector<Source> sources_;
};

}  // namespace

std::unique_ptr<Exchange> make_one_sided(ExchangeKind kind, const Setting& setting) {
    return std::make_unique<OneSided>(kind, setting);
}

}  // namespace tilewise::stencil
