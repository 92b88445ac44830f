// One-sided exchange: blocks stay where they were read, and each rank gets the panel of its step from the owner's window.
//
//     owner  [ block | k0 | k1 | k2 ]      nobody sends and nobody forwards. With `one_sided_fence` all ranks of the layer open and
//                       └── Get ──▶ me     close each step's access together, with `one_sided_lock` a rank waits for nobody
//
// The same code serves the torus and the panels: only the schedule differs.
#include <algorithm>

#include "tilewise/base/buffer.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/mpi/window.hpp"
#include "tilewise/multiply/exchange.hpp"

namespace tilewise::multiply {
namespace {

using mpi::check;

struct Source {
    Side side;
    mpi::Exposed exposed;
    Buffer panel;
};

class Pull final : public Exchange {
public:
    Pull(ExchangeKind kind, Setting setting)
        : Exchange(std::move(setting)),
          fence_(kind == ExchangeKind::one_sided_fence) {
        for (auto [source, side] : {std::pair{&a_, &setting_.a}, std::pair{&b_, &setting_.b}}) {
            source->side = *side;
            const auto mine = static_cast<std::size_t>(side->bytes(side->inner[static_cast<std::size_t>(me())]));
            source->exposed = mpi::allocate_window(setting_.context.comm, mine);
        }
        first_ = setting_.context.comm.rank() - setting_.layer.rank();
        auto steps = static_cast<int>(setting_.steps.size());
        check(MPI_Allreduce(&steps, &most_steps_, 1, MPI_INT, MPI_MAX, setting_.context.comm.get()), "MPI_Allreduce");
        mpi::together(setting_.context.comm, [&] {
            std::int64_t widest = 0;
            for (const auto& step : setting_.steps) {
                widest = std::max(widest, step.k.size());
            }
            for (Source* source : {&a_, &b_}) {
                source->panel = Buffer(static_cast<std::size_t>(source->side.bytes(widest)));
            }
        });
    }

    ~Pull() override {
        if (open_ && !mpi::must_not_free()) {
            for (const Source* source : {&a_, &b_}) {
                fence_ ? MPI_Win_fence(MPI_MODE_NOSUCCEED, source->exposed.window.get())
                       : MPI_Win_unlock_all(source->exposed.window.get());
            }
        }
    }
    Pull(const Pull&) = delete;
    Pull& operator=(const Pull&) = delete;

    std::byte* a_block() override { return a_.exposed.data; }
    std::byte* b_block() override { return b_.exposed.data; }

    void open() override {
        for (const Source* source : {&a_, &b_}) {
            if (fence_) {
                check(MPI_Win_fence(MPI_MODE_NOPRECEDE, source->exposed.window.get()), "MPI_Win_fence");
            } else {
                check(MPI_Win_lock_all(0, source->exposed.window.get()), "MPI_Win_lock_all");
                check(MPI_Win_sync(source->exposed.window.get()), "MPI_Win_sync");
            }
        }
        setting_.context.comm.barrier();  // from here on all blocks are there to be read
        open_ = true;
    }

    Panels fetch(std::size_t step) override {
        const grid::Step& now = setting_.steps[step];
        get(a_, now.a_owner, now.a_local);
        get(b_, now.b_owner, now.b_local);
        complete(a_, now.a_owner);
        complete(b_, now.b_owner);
        return {panel(a_, now.a_owner, now.a_local), panel(b_, now.b_owner, now.b_local)};
    }

    /// A fence is collective over all layers, of which some may have fewer steps.
    void finish() override {
        for (auto step = static_cast<int>(setting_.steps.size()); fence_ && step < most_steps_; ++step) {
            complete(a_, me());
            complete(b_, me());
        }
    }

private:
    void get(Source& source, int owner, grid::Range local) {
        const std::int64_t elements = source.side.outer * local.size();
        if (owner == me() || elements == 0) {
            return;
        }
        const Side::Piece piece = source.side.piece(owner, local);
        const MPI_Datatype item = mpi::type_of(source.side.dtype);
        const mpi::Span here(elements, item);
        const mpi::Datatype there = mpi::strided(piece.rows, piece.columns, piece.stride, item);
        const auto place = static_cast<MPI_Aint>(piece.offset * static_cast<std::int64_t>(size_of(source.side.dtype)));
        check(MPI_Get(source.panel.data(), here.count(), here.type(), first_ + owner, place, 1, there.get(),
                      source.exposed.window.get()),
              "MPI_Get");
        received(source.side, elements);
    }

    void complete(const Source& source, int owner) const {
        if (fence_) {
            check(MPI_Win_fence(0, source.exposed.window.get()), "MPI_Win_fence");
        } else if (owner != me()) {
            check(MPI_Win_flush(first_ + owner, source.exposed.window.get()), "MPI_Win_flush");
        }
    }

    kernel::Operand panel(const Source& source, int owner, grid::Range local) const {
        return owner == me() ? source.side.in_block(source.exposed.data, owner, local)
                             : source.side.packed(source.panel.data(), local.size());
    }

    bool fence_;
    int first_ = 0;       // rank of the layer's rank 0 in the whole communicator, which has the windows
    int most_steps_ = 0;  // of any layer
    bool open_ = false;
    Source a_, b_;
};

}  // namespace

std::unique_ptr<Exchange> make_pull(ExchangeKind kind, Setting setting) {
    return std::make_unique<Pull>(kind, std::move(setting));
}

}  // namespace tilewise::multiply
