// `cannon`: q × q ranks on a torus; after each of q steps A moves one place left and B one place up.
//
//     q = 3, what each rank multiplies, as (k of A, k of B):
//
//        step 0          step 1          step 2
//       [0] [1] [2]     [1] [2] [0]     [2] [0] [1]        every rank sees every k exactly once, and no two ranks
//       [1] [2] [0]     [2] [0] [1]     [0] [1] [2]        of a row or of a column use the same block at the same time
//       [2] [0] [1]     [0] [1] [2]     [1] [2] [0]
//
// Cannon's exchange by messages: after each step, blocks of A move one place left and blocks of B one place up.
//
//     q = 3, row 1 of A:   step 0  [a1 a2 a0]      a rank sends its block to the left,
//                          step 1  [a2 a0 a1]      and gets the one on its right
//                          step 2  [a0 a1 a2]
//
// The row is a ring, so nothing ever falls off. The skew that the textbook begins with costs no message here: ranks
// read the block that they begin with from the file.
//
// Each rank has two buffers for A and two for B: the block that is computed with and sent, and the one that is coming
// in.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "tilewise/base/buffer.hpp"
#include "tilewise/mpi/exchange/exchange.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/multiply/algorithms.hpp"

namespace tilewise::multiply {
namespace {

/// One matrix on its ring.
struct Ring {
    Side side;
    int to = 0, from = 0;
    Buffer current = {}, coming = {};
};

class TorusShift final : public Exchange {
public:
    TorusShift(ExchangeKind kind, Setting setting)
        : Exchange(std::move(setting)),
          kind_(kind),
          rings_{Ring{setting_.a, beside(0, -1), beside(0, 1)}, Ring{setting_.b, beside(-1, 0), beside(1, 0)}} {
        mpi::together(setting_.context.comm, [&] {
            for (Ring& ring : rings_) {
                const auto bytes = static_cast<std::size_t>(ring.side.bytes(ring.side.largest_inner()));
                ring.current = Buffer(bytes);
                if (moves()) {
                    ring.coming = Buffer(bytes);
                }
            }
        });
        // What is described once always moves the largest block, from either buffer to the other.
        std::vector<mpi::MessageSet> described;
        if (mpi::is_described_once(kind) && moves()) {
            const std::int64_t largest = rings_[0].side.largest_inner();
            described.push_back(set(largest, largest));
            turn();
            described.push_back(set(largest, largest));
            turn();
        }
        exchange_ = mpi::make_exchange(kind, {.comm = setting_.layer,
                                              .ledger = setting_.context.ledger,
                                              .dtype = setting_.a.dtype,
                                              .sets = std::move(described)});
    }

    std::byte* a_block() override { return rings_[0].current.data(); }
    std::byte* b_block() override { return rings_[1].current.data(); }
    bool overlaps() const override { return kind_ == ExchangeKind::overlap; }

    StepPanels fetch(std::size_t step) override {
        if (step > 0 && moves()) {
            if (!flying_) {
                launch(step);
            }
            land();
        }
        step_ = step;
        return {packed(rings_[0]), packed(rings_[1])};
    }

    void start(std::size_t step) override {
        if (overlaps() && moves()) {
            launch(step);
        }
    }

    void progress() override {
        if (flying_) {
            exchange_->progress();
        }
    }

    void rewind() override {
        if (moves()) {  // the q-th shift brings everything home
            launch(setting_.steps.size());
            land();
        }
    }

    Held held() override {
        const grid::Step& now = setting_.steps[step_];
        return {packed(rings_[0]), packed(rings_[1]), now.a_owner, now.b_owner};
    }

private:
    bool moves() const { return setting_.grid.size() > 1; }

    /// The rank some places further down and to the right.
    int beside(int down, int right) const {
        const grid::Grid& grid = setting_.grid;
        return grid.rank({(setting_.place.row + down + grid.rows) % grid.rows,
                          (setting_.place.column + right + grid.columns) % grid.columns});
    }

    kernel::Operand packed(const Ring& ring) const {
        return ring.side.packed(ring.current.data(), setting_.steps[step_].k.size());
    }

    /// The blocks that leave, and those that come, which have so many of k.
    mpi::MessageSet set(std::int64_t leaving, std::int64_t coming) {
        mpi::MessageSet set;
        for (int tag = 0; tag < 2; ++tag) {
            const Ring& ring = rings_[static_cast<std::size_t>(tag)];
            set.out.push_back({ring.to, tag, 1, ring.side.outer * leaving, ring.current.data()});
            set.in.push_back({ring.from, tag, 1, ring.side.outer * coming, ring.coming.data()});
        }
        return set;
    }

    void launch(std::size_t step) {
        const auto size = [&](std::size_t index) { return setting_.steps[index % setting_.steps.size()].k.size(); };
        if (mpi::is_described_once(kind_)) {
            exchange_->start(std::size_t{turned_});
        } else {
            exchange_->start(set(size(step - 1), size(step)));
        }
        flying_ = true;
    }

    void land() {
        exchange_->complete();
        turn();
        flying_ = false;
    }

    void turn() {
        for (Ring& ring : rings_) {
            std::swap(ring.current, ring.coming);
        }
        turned_ = !turned_;
    }

    ExchangeKind kind_;
    std::array<Ring, 2> rings_;
    std::unique_ptr<mpi::Exchange> exchange_;
    bool flying_ = false, turned_ = false;
    std::size_t step_ = 0;
};

}  // namespace

std::optional<std::string> Cannon::refuses(const Arrangement& arrangement) {
    const grid::Grid grid = arrangement.grid;
    if (grid.rows != grid.columns || grid.size() != arrangement.ranks) {
        return "cannon needs a square number of ranks on a square grid (1, 4, 9, 16 …), not " +
               std::to_string(arrangement.ranks) + " as " + std::to_string(grid.rows) + "x" +
               std::to_string(grid.columns) + "; summa takes any grid";
    }
    return std::nullopt;
}

grid::Layout Cannon::layout(const Arrangement& arrangement) {
    return {arrangement.shape, arrangement.grid, 1, grid::cannon, arrangement.remainder};
}

std::unique_ptr<Exchange> make_torus_shift(ExchangeKind kind, Setting setting) {
    return std::make_unique<TorusShift>(kind, std::move(setting));
}

}  // namespace tilewise::multiply
