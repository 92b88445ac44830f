// The last step of a symmetric product on several ranks: each gives its partners the mirror image of what it computed.
// By messages pairs of ranks swap rectangles in pieces, all in the same order of pairs, so that no waits form a circle.
#include <algorithm>

#include "tilewise/base/buffer.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/kernel/transpose/transpose.hpp"
#include "tilewise/mpi/exchange/exchange.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/multiply/block_product.hpp"

namespace tilewise::multiply {
namespace {

/// In how many pieces a rectangle and its answer go: both partners find the same.
std::int64_t pieces_of(const grid::SymmetricPart::Swap& swap, std::int64_t item) {
    const std::int64_t most = std::max(swap.sent.size(), swap.filled.size()) * item;
    return (most + swap_piece_bytes - 1) / swap_piece_bytes;
}

/// Rows of a rectangle, as many as piece `index` has.
grid::Block piece_of(const grid::Block& block, std::int64_t index, std::int64_t pieces) {
    const std::int64_t rows = block.rows.size();
    return {{block.rows.begin + rows * index / pieces, block.rows.begin + rows * (index + 1) / pieces}, block.columns};
}

std::size_t largest_piece(const grid::SymmetricPart& part, std::int64_t item) {
    std::int64_t most = 0;
    for (const auto& swap : part.swaps) {
        const std::int64_t pieces = std::max<std::int64_t>(1, pieces_of(swap, item));
        for (const grid::Block& block : {swap.sent, swap.filled.transposed()}) {
            most = std::max(most, (block.rows.size() + pieces - 1) / pieces * block.columns.size() * item);
        }
    }
    return static_cast<std::size_t>(most);
}

///     rank 0 [ a | a . ]   [ a | a b' ]      what is computed goes as it is, and is turned round where it arrives
///     rank 1 [ . b | b ]   [ a' b | b ]
///
/// `c` is the rank's block `block` of C, of which `part.swaps` say what is computed and what is missing. The ranks of
/// the swaps are those of `context.comm`. @note Collective over it.
void mirror_exchange(Context& context, const grid::SymmetricPart& part, const grid::Block& block, Dtype dtype,
                     std::byte* c) {
    const auto item = static_cast<std::int64_t>(size_of(dtype));
    const std::int64_t stride = block.columns.size() * item;
    const auto at = [&](const grid::Block& rectangle) {
        return c + (rectangle.rows.begin - block.rows.begin) * stride +
               (rectangle.columns.begin - block.columns.begin) * item;
    };
    Buffer out, in;
    mpi::together(context.comm, [&] {
        out = Buffer(largest_piece(part, item));
        in = Buffer(largest_piece(part, item));
    });
    const auto exchange =
        mpi::make_exchange(mpi::ExchangeKind::nonblocking,
                           {.comm = context.comm, .ledger = context.ledger, .dtype = dtype, .agrees = false});
    for (const auto& swap : part.swaps) {
        const std::int64_t pieces = pieces_of(swap, item);
        for (std::int64_t index = 0; index < pieces; ++index) {
            const grid::Block sent = piece_of(swap.sent, index, pieces),
                              arriving = piece_of(swap.filled.transposed(), index, pieces);
            const std::int64_t width = sent.columns.size() * item;
            mpi::copy_rows(at(sent), stride, out.data(), width, sent.rows.size(), width);
            exchange->start(mpi::MessageSet{{{swap.partner, 0, 1, sent.size(), out.data()}},
                                            {{swap.partner, 0, 1, arriving.size(), in.data()}}});
            exchange->complete();
            kernel::transpose(in.data(), arriving.columns.size() * item, arriving.rows.size(), arriving.columns.size(),
                              static_cast<std::size_t>(item), at(arriving.transposed()), stride, context.threads);
        }
    }
}

/// The same where ranks reach each other's blocks of C: each writes the mirror image of what it computed to where its
/// partner lacks it, once and without waiting.
class MirrorWriter {
public:
    /// `blocks` are those of all ranks of `context.comm`. Nobody else writes to what is missing of them.
    MirrorWriter(Context& context, const mpi::Exposed& blocks) : context_(context), window_(blocks.window.get()) {
        mpi::check(MPI_Win_lock_all(MPI_MODE_NOCHECK, window_), "MPI_Win_lock_all");
    }

    MirrorWriter(const MirrorWriter&) = delete;
    MirrorWriter& operator=(const MirrorWriter&) = delete;

    ~MirrorWriter() {
        if (!mpi::must_not_free()) {
            MPI_Win_unlock_all(window_);
        }
    }

    void operator()(const grid::SymmetricPart& part, const grid::Layout& layout, Dtype dtype) {
        const auto item = static_cast<std::int64_t>(size_of(dtype));
        const int me = context_.comm.rank();
        const auto place = [&](int rank, const grid::Block& rectangle, std::int64_t& stride) {
            const auto [rows, columns] = layout.c(rank);
            stride = columns.size() * item;
            return mpi::shared_data(window_, rank) + (rectangle.rows.begin - rows.begin) * stride +
                   (rectangle.columns.begin - columns.begin) * item;
        };
        for (const auto& swap : part.swaps) {
            std::int64_t from_stride = 0, to_stride = 0;
            const std::byte* from = place(me, swap.sent, from_stride);
            std::byte* to = place(swap.partner, swap.sent.transposed(), to_stride);
            kernel::transpose(from, from_stride, swap.sent.rows.size(), swap.sent.columns.size(),
                              static_cast<std::size_t>(item), to, to_stride, context_.threads);
            context_.ledger.count().copied_in_node += swap.sent.size() * item;
        }
    }

    /// Until this rank's block is whole. @note Collective.
    void wait() {
        mpi::check(MPI_Win_sync(window_), "MPI_Win_sync");
        context_.comm.barrier();
        mpi::check(MPI_Win_sync(window_), "MPI_Win_sync");
    }

private:
    Context& context_;
    MPI_Win window_;
};

}  // namespace

void complete_symmetric(Context& context, const grid::Layout& layout, const grid::SymmetricPart& half, Dtype dtype,
                        std::byte* c, const mpi::Exposed& shared) {
    const grid::Block block = layout.c(context.comm.rank());
    const auto mirror = [&] {
        const Timed timed(context.ledger, Phase::compute, "mirror");
        kernel::mirror(c, block, size_of(dtype), half.mirrored, context.threads);
    };
    if (shared.data == nullptr) {
        mirror();
        const Timed timed(context.ledger, Phase::exchange, "swap halves");
        mirror_exchange(context, half, block, dtype, c);
        return;
    }
    MirrorWriter hand_over(context, shared);
    {
        const Timed timed(context.ledger, Phase::exchange, "hand halves over");
        hand_over(half, layout, dtype);
    }
    mirror();
    const Timed timed(context.ledger, Phase::exchange, "wait for halves");
    hand_over.wait();
}

}  // namespace tilewise::multiply
