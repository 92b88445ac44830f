// Fields in shared memory: a neighbour's cells are read straight from its field into the margin, and nothing is sent.
//
// One barrier an exchange is enough. It tells that all have finished the sweeps before it; and since sweeps go from one field to the other, whoever still
// reads the margin of field 0 is disturbed only by those who sweep into field 0 again, which is one exchange, and so one barrier, later.
#include "tilewise/mpi/together.hpp"
#include "tilewise/stencil/exchange.hpp"

namespace tilewise::stencil {
namespace {

using mpi::check;

class Shared final : public Exchange {
public:
    explicit Shared(const Setting& setting) : Exchange(setting) {
        mpi::together(setting_.context.comm, [&] {
            for (const Piece& piece : incoming()) {
                const kernel::FieldShape shape = setting_.shape_of(piece.peer);
                sources_.push_back({mpi::shared_data(setting_.fields.exposed(), piece.peer) +
                                        Fields::offset_of(shape, setting_.fields.dtype(), piece.there.rows.begin,
                                                          piece.there.columns.begin),
                                    shape.pitch * setting_.item(), Fields::stride_of(shape, setting_.fields.dtype())});
            }
        });
        check(MPI_Win_lock_all(MPI_MODE_NOCHECK, window()), "MPI_Win_lock_all");
    }

    ~Shared() override {
        if (!mpi::must_not_free()) {
            MPI_Win_unlock_all(window());
        }
    }

protected:
    void receive(int which) override {
        check(MPI_Win_sync(window()), "MPI_Win_sync");
        setting_.context.comm.barrier();
        check(MPI_Win_sync(window()), "MPI_Win_sync");
        for (std::size_t i = 0; i < sources_.size(); ++i) {
            const Piece& piece = incoming()[i];
            const Source& source = sources_[i];
            copy_rows(source.at + which * source.second_field, source.stride,
                      setting_.fields.at(which, piece.here.rows.begin, piece.here.columns.begin),
                      setting_.fields.shape().pitch * setting_.item(), piece.here.rows.size(),
                      piece.here.columns.size() * setting_.item());
        }
    }

private:
    struct Source {
        const std::byte* at;
        std::int64_t stride, second_field;
    };

    MPI_Win window() const { return setting_.fields.exposed().window.get(); }

    std::vector<Source> sources_;
};

}  // namespace

std::unique_ptr<Exchange> make_shared(const Setting& setting) { return std::make_unique<Shared>(setting); }

}  // namespace tilewise::stencil
