// Exchange `shared`: within a node nothing needs to be copied; each rank multiplies straight from the owner's memory.
//
//     rank 0 [A0 B0]  rank 1 [A1 B1]     one window of shared memory that all ranks of the node have mapped: gemm packs its
//          └────────┬──────┘             panels from there, just as it would from its own block
#include <algorithm>
#include <numeric>

#include "tilewise/mpi/together.hpp"
#include "tilewise/mpi/window.hpp"
#include "tilewise/multiply/exchange.hpp"

namespace tilewise::multiply {
namespace {

class SharedMemory final : public Exchange {
public:
    explicit SharedMemory(Setting setting) : Exchange(std::move(setting)) {
        // On the node's communicator and not the layer's: see allocate_window.
        const mpi::Communicator node = setting_.context.comm.node();
        const std::vector<int> on_node = ranks_in(node);
        mpi::together(setting_.context.comm, [&] {
            if (std::find(on_node.begin(), on_node.end(), MPI_UNDEFINED) != on_node.end()) {
                throw UsageError(
                    "exchange 'shared' needs all ranks on one node; use overlap, or collective with summa");
            }
        });
        const auto bytes = [&](const Side& side) {
            return static_cast<std::size_t>(side.bytes(side.inner[static_cast<std::size_t>(me())]));
        };
        a_ = mpi::allocate_shared(node, bytes(setting_.a));
        b_ = mpi::allocate_shared(node, bytes(setting_.b));
        for (const int rank : on_node) {
            a_of_.push_back(mpi::shared_data(a_, rank));
            b_of_.push_back(mpi::shared_data(b_, rank));
        }
    }

    ~SharedMemory() override {
        if (open_ && !mpi::must_not_free()) {
            MPI_Win_unlock_all(a_.window.get());
            MPI_Win_unlock_all(b_.window.get());
        }
    }
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;

    std::byte* a_block() override { return a_.data; }
    std::byte* b_block() override { return b_.data; }

    void open() override {
        for (const auto* exposed : {&a_, &b_}) {
            mpi::check(MPI_Win_lock_all(MPI_MODE_NOCHECK, exposed->window.get()), "MPI_Win_lock_all");
            mpi::check(MPI_Win_sync(exposed->window.get()), "MPI_Win_sync");
        }
        setting_.layer.barrier();
        for (const auto* exposed : {&a_, &b_}) {
            mpi::check(MPI_Win_sync(exposed->window.get()), "MPI_Win_sync");
        }
        open_ = true;
    }

    Panels fetch(std::size_t step) override {
        const grid::Step& now = setting_.steps[step];
        return {setting_.a.in_block(a_of_[static_cast<std::size_t>(now.a_owner)], now.a_owner, now.a_local),
                setting_.b.in_block(b_of_[static_cast<std::size_t>(now.b_owner)], now.b_owner, now.b_local)};
    }

private:
    /// For every rank of the layer its rank in `node`, or MPI_UNDEFINED.
    std::vector<int> ranks_in(const mpi::Communicator& node) const {
        std::vector<int> all(static_cast<std::size_t>(setting_.layer.size())), found(all.size());
        std::iota(all.begin(), all.end(), 0);
        MPI_Group from = MPI_GROUP_NULL, to = MPI_GROUP_NULL;
        mpi::check(MPI_Comm_group(setting_.layer.get(), &from), "MPI_Comm_group");
        mpi::check(MPI_Comm_group(node.get(), &to), "MPI_Comm_group");
        mpi::check(MPI_Group_translate_ranks(from, setting_.layer.size(), all.data(), to, found.data()),
                   "MPI_Group_translate_ranks");
        MPI_Group_free(&from);
        MPI_Group_free(&to);
        return found;
    }

    mpi::Exposed a_, b_;
    std::vector<const std::byte*> a_of_, b_of_;
    bool open_ = false;
};

}  // namespace

std::unique_ptr<Exchange> make_shared(Setting setting) { return std::make_unique<SharedMemory>(std::move(setting)); }

}  // namespace tilewise::multiply
