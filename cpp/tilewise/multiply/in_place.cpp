// Exchanges by which blocks stay where they were read, and each rank takes the panels of its step from their owners.
//
//     owner  [ A: k0 | k1 | k2 ][ B ]      one_sided_fence, one_sided_lock   Get, into a panel of this rank's
//                     └───────▶ me         shared                            gemm reads the owner's memory, in the node
//
// Nobody sends and nobody forwards. The same code serves the torus and the panels: only the schedule differs.
#include <algorithm>
#include <array>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/memory.hpp"
#include "tilewise/mpi/exchange/exchange.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/multiply/algorithms.hpp"

namespace tilewise::multiply {
namespace {

class InPlace final : public Exchange {
public:
    InPlace(ExchangeKind kind, Setting setting)
        : Exchange(std::move(setting)),
          kind_(kind),
          comm_(whose_memory()),
          first_(comm_.rank() - me()) {
        // Blocks of A differ in size: B begins where even the largest ends, on a page of its own.
        BlockMemory& spare = setting_.spare;
        const std::int64_t own_b = own_bytes(setting_.b);
        const std::array<std::int64_t, 3> mine{std::ssize(setting_.steps), own_bytes(setting_.a), own_b - spare.bytes};
        std::array<std::int64_t, 3> most{};
        mpi::check(MPI_Allreduce(mine.data(), most.data(), 3, MPI_INT64_T, MPI_MAX, setting_.context.comm.get()),
                   "MPI_Allreduce");
        most_steps_ = static_cast<std::size_t>(most[0]);
        begin_of_b_ = rounded_to_pages(most[1]);
        if (spare.exposed.window && begin_of_b_ + most[2] <= 0) {  // there is some, and on every rank enough
            bytes_ = spare.bytes;
            exposed_ = std::move(spare.exposed);
        } else {
            spare = {};
            bytes_ = begin_of_b_ + own_b;
            const auto allocate = is_shared() ? mpi::allocate_shared : mpi::allocate_window;
            exposed_ = allocate(comm_, static_cast<std::size_t>(bytes_));
        }
        mpi::together(setting_.context.comm, [&] {
            std::int64_t widest = 0;
            for (const grid::Step& step : setting_.steps) {
                widest = std::max(widest, step.k.size());
            }
            if (!is_shared()) {
                panel_a_ = Buffer(static_cast<std::size_t>(setting_.a.bytes(widest)));
                panel_b_ = Buffer(static_cast<std::size_t>(setting_.b.bytes(widest)));
            }
        });
    }

    std::byte* a_block() override { return exposed_.data; }
    std::byte* b_block() override { return exposed_.data + begin_of_b_; }

    void open() override {
        exchange_.reset();
        std::vector<mpi::MessageSet> sets(most_steps_);
        for (std::size_t step = 0; step < setting_.steps.size(); ++step) {
            const grid::Step& now = setting_.steps[step];
            add(sets[step].in, setting_.a, now.a_owner, now.a_local, 0, panel_a_);
            add(sets[step].in, setting_.b, now.b_owner, now.b_local, begin_of_b_, panel_b_);
        }
        if (most_steps_ > 0) {
            exchange_ = mpi::make_exchange(kind_, {.comm = comm_,
                                                   .ledger = setting_.context.ledger,
                                                   .dtype = setting_.a.dtype,
                                                   .sets = std::move(sets),
                                                   .exposed = &exposed_,
                                                   .stays = true});
        }
    }

    StepPanels fetch(std::size_t step) override {
        const grid::Step& now = setting_.steps[step];
        const bool has_a = travels(setting_.a, now.a_owner, now.a_local);
        const std::byte *a = a_block(), *b = b_block();
        exchange_->begin(step);
        exchange_->complete([&](std::size_t index, const std::byte* data) { (has_a && index == 0 ? a : b) = data; });
        return {panel(setting_.a, now.a_owner, now.a_local, a), panel(setting_.b, now.b_owner, now.b_local, b)};
    }

    /// A fence is collective over all layers, of which some may have fewer steps.
    void finish() override {
        for (std::size_t step = setting_.steps.size(); step < most_steps_; ++step) {
            exchange_->begin(step);
            exchange_->complete();
        }
    }

    BlockMemory give_memory() override {
        exchange_.reset();
        BlockMemory memory;
        memory.exposed = std::move(exposed_);
        memory.bytes = bytes_;
        return memory;
    }

private:
    bool is_shared() const { return kind_ == ExchangeKind::shared; }

    /// Windows are everybody's, and not the layer's: see allocate_window.
    mpi::Communicator whose_memory() const {
        if (!is_shared()) {
            return setting_.context.comm;
        }
        mpi::require_one_node(setting_.context.comm, setting_.layer, "overlap, or collective with summa");
        return setting_.context.comm.node();
    }

    std::int64_t own_bytes(const Side& side) const { return side.bytes(side.inner[static_cast<std::size_t>(me())]); }

    bool travels(const Side& side, int owner, grid::Range local) const {
        return owner != me() && side.bytes(local.size()) > 0;
    }

    void add(std::vector<mpi::Message>& messages, const Side& side, int owner, grid::Range local, std::int64_t begin,
             Buffer& panel) const {
        if (travels(side, owner, local)) {
            const Side::Piece piece = side.piece(owner, local);
            const std::int64_t there = begin + piece.offset * static_cast<std::int64_t>(size_of(side.dtype));
            messages.push_back({first_ + owner, 0, piece.rows, piece.columns, panel.data(), 0, there, piece.stride});
        }
    }

    /// The panel that came to, or lies at, `data`; of this rank's own, its block is there.
    kernel::Operand panel(const Side& side, int owner, grid::Range local, const std::byte* data) const {
        if (!travels(side, owner, local)) {
            return side.in_block(data, owner, local);
        }
        return is_shared() ? kernel::Operand{data, side.piece(owner, local).stride, side.transposed}
                           : side.packed(data, local.size());
    }

    ExchangeKind kind_;
    mpi::Communicator comm_;       ///< the ranks that the memory is exposed to
    int first_;                    ///< the rank in it of the layer's rank 0
    std::size_t most_steps_ = 0;   ///< of any layer
    std::int64_t begin_of_b_ = 0;  ///< in bytes, the same on all ranks
    std::int64_t bytes_ = 0;       ///< that this rank has of …
    mpi::Exposed exposed_;
    Buffer panel_a_, panel_b_;
    std::unique_ptr<mpi::Exchange> exchange_;
};

}  // namespace

std::unique_ptr<Exchange> make_in_place(ExchangeKind kind, Setting setting) {
    return std::make_unique<InPlace>(kind, std::move(setting));
}

}  // namespace tilewise::multiply
