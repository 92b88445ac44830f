// Strategies `shared_pointer` and `ordered`, which only read: MPI-IO with one file pointer for all ranks, so that each
// call goes on where the one before it ended.
//
//        file             [ a a a | b b b | c c c | d d d | … ]     pieces of one size, in the order of the calls
//        ordered              0       1       0       1             read_ordered: a collective call, in order of ranks
//        shared_pointer       0       1       0       1             read_shared: a rank after the one before it
//        shares           [ 0 1 0 1 … ]                             pieces are dealt out to their owners afterwards
//
// With a shared pointer MPI demands the same view of all ranks, so none can have a view of its own block. It does not
// say either which piece a call of read_shared got, so that the ranks take turns.
#include <algorithm>

#include "tilewise/base/buffer.hpp"
#include "tilewise/io/file_view.hpp"
#include "tilewise/io/gather.hpp"
#include "tilewise/io/samples.hpp"
#include "tilewise/mpi/datatype.hpp"

namespace tilewise::io {
namespace {

using mpi::check;

constexpr std::int64_t standard_piece = std::int64_t{4} << 20;
constexpr int turn_tag = 1;

/// The numbers of a region as one row, of which all ranks see the same part.
struct SameView {
    SameView(const Transfer& whole, grid::Range seen) : region(whole.region) {
        region.rows = 1;
        region.columns = whole.rows() * whole.columns();
        region.column_major = false;
        const grid::Share all = grid::Block{{0, 1}, seen};
        transfer = std::make_unique<Transfer>(Transfer{region, [all](int) { return all; }});
    }

    Region region;
    std::unique_ptr<Transfer> transfer;
};

/// Lets one rank after the other do something, whether or not it fails.
class Turn {
public:
    explicit Turn(const mpi::Communicator& comm) : comm_(comm) {
        if (comm_.rank() > 0) {
            check(MPI_Recv(nullptr, 0, MPI_BYTE, comm_.rank() - 1, turn_tag, comm_.get(), MPI_STATUS_IGNORE),
                  "MPI_Recv");
        }
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() {
        if (comm_.rank() + 1 < comm_.size()) {
            MPI_Send(nullptr, 0, MPI_BYTE, comm_.rank() + 1, turn_tag, comm_.get());
        }
    }

private:
    const mpi::Communicator& comm_;
};

class SharedPointer final : public Strategy {
public:
    SharedPointer(bool ordered, std::int64_t piece_bytes, Hints hints)
        : ordered_(ordered),
          piece_bytes_(piece_bytes),
          hints_(std::move(hints)) {}

    void read(Context& context, const Transfer& transfer) const override {
        const Shares shares(context, transfer);
        if (shares.span.size() == 0) {
            return;
        }
        mpi::no_return(context.comm, [&] {
            const SameView same(transfer, shares.span);
            FileView view(context, *same.transfer, MPI_MODE_RDONLY, hints_);
            if (in_order(shares)) {
                next(context, view, same, shares.span.begin, shares.span_of(context.comm.rank()), transfer.data);
                context.ledger.count().useful += shares.count(context.comm.rank(), shares.span) * shares.item;
            } else {
                deal_out(context, transfer, shares, view, same);
            }
            view.close();
        });
    }

    void write(Context& context, const Transfer& transfer) const override {
        mpi::throw_agreed(context.comm,
                          UsageError(transfer.region.name + ": is to be written with a file pointer that " +
                                         "all ranks share, which only reads",
                                     -1, 0, "--io READ:collective or READ:positioned"));
    }

private:
    const char* call() const { return ordered_ ? "MPI_File_read_ordered" : "MPI_File_read_shared"; }

    /// Whether every rank wants one piece of the file, which begins where that of the rank before it ends.
    static bool in_order(const Shares& shares) {
        std::int64_t end = shares.span.begin;
        for (int rank = 0; rank < static_cast<int>(shares.all.size()); ++rank) {
            const grid::Range its = shares.span_of(rank);
            if (its.size() > 0 && its.begin != end) {
                return false;
            }
            end = its.size() > 0 ? its.end : end;
        }
        return shares.contiguous();
    }

    void deal_out(Context& context, const Transfer& transfer, const Shares& shares, const FileView& view,
                  const SameView& same) const {
        const Timed moving(context.ledger, context.ledger.phase(), Step::move, "deal out pieces");
        const std::int64_t piece = std::max<std::int64_t>(1, piece_bytes_ / shares.item);
        const std::int64_t most = std::min(piece, shares.span.size());
        const Buffer rows(static_cast<std::size_t>(most * shares.item)), packed(rows.bytes());
        const int me = context.comm.rank();
        for (std::int64_t begin = shares.span.begin; begin < shares.span.end; begin += piece * context.comm.size()) {
            std::vector<grid::Range> pieces;
            for (int rank = 0; rank < context.comm.size(); ++rank) {
                const std::int64_t at = begin + rank * piece;
                pieces.push_back(grid::common(shares.span, {at, at + piece}));
            }
            const grid::Range mine = pieces[static_cast<std::size_t>(me)];
            next(context, view, same, begin, mine, rows.data());
            scatter(context, transfer, shares, pieces, rows.data(), packed.data());
            context.ledger.count().useful += shares.owned(mine) * shares.item;
            const std::int64_t done = std::min(begin + piece * context.comm.size(), shares.span.end);
            context.report(context.ledger.phase(),
                           static_cast<double>(done - shares.span.begin) / static_cast<double>(shares.span.size()));
        }
    }

    /// The next call of every rank, which gets elements `mine`; that of rank 0 begins with element `begin`.
    void next(Context& context, const FileView& view, const SameView& same, std::int64_t begin, grid::Range mine,
              std::byte* out) const {
        const Timed timed(context.ledger, context.ledger.phase(), Step::file, call() + (" " + same.region.name));
        const grid::Share share = grid::Block{{0, 1}, mine};
        const Transfer piece{same.region, {}, out};
        const Unchanged unchanged(context, same.region);
        const Delivery delivery(piece, share, mine, sample_cell, -1);
        const std::string where = std::string(call()) + " from byte " + std::to_string(piece.at(mine.begin)) + " on";
        bool again = false;
        view.step([&] {
            if (again) {  // nobody knows how far the interrupted calls have moved the pointer
                check(MPI_File_seek_shared(view.get(), begin - view.share().columns[0].begin, MPI_SEEK_SET),
                      "MPI_File_seek_shared");
            }
            again = true;
            const mpi::Span span(mine.size(), view.item());
            MPI_Status status{};
            if (ordered_) {
                check(MPI_File_read_ordered(view.get(), out, span.count(), span.type(), &status), where.c_str());
            } else {
                const Turn turn(context.comm);
                check(MPI_File_read_shared(view.get(), out, span.count(), span.type(), &status), where.c_str());
            }
            view.require_moved(status, mine.size(), call());
        });
        const bool still = unchanged.still(context);
        mpi::together(context.comm, [&] { delivery.check(!still); });
        context.ledger.count().io_calls += 1;
        context.ledger.count().read += mine.size() * piece.item();
    }

    bool ordered_;
    std::int64_t piece_bytes_;
    Hints hints_;
};

std::unique_ptr<Strategy> make(bool ordered, const Hints& hints) {
    return std::make_unique<SharedPointer>(ordered, buffer_size(hints, "cb_buffer_size", standard_piece), hints);
}

}  // namespace

std::unique_ptr<Strategy> make_shared_pointer(const Hints& hints) { return make(false, hints); }

std::unique_ptr<Strategy> make_ordered(const Hints& hints) { return make(true, hints); }

}  // namespace tilewise::io
