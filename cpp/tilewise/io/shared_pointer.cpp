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
#include <optional>

#include "tilewise/base/buffer.hpp"
#include "tilewise/io/mpi_io.hpp"
#include "tilewise/io/read_back.hpp"
#include "tilewise/mpi/together.hpp"

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

class SharedPointer final : public OpenFile {
public:
    SharedPointer(Context& context, const Transfer& transfer, Direction direction, bool ordered,
                  std::int64_t piece_bytes, const Hints& hints)
        : OpenFile(context, transfer, direction),
          ordered_(ordered),
          piece_bytes_(piece_bytes),
          shares_(context, transfer),
          same_(transfer, shares_.span) {
        if (!reads()) {
            mpi::throw_agreed(context.comm,
                              UsageError(transfer.region.name + ": is to be written with a file pointer that " +
                                             "all ranks share, which only reads",
                                         -1, 0, "--io READ:collective or READ:positioned"));
        }
        if (shares_.span.size() > 0) {
            view_.emplace(context, *same_.transfer, Direction::read, hints);
        }
    }

    void move() override {
        if (!view_) {
            return;
        }
        mpi::no_return(context_.comm, [&] {
            if (in_order()) {
                next(shares_.span.begin, shares_.span_of(me()), transfer_.data);
                count().useful += shares_.count(me(), shares_.span) * shares_.item;
            } else {
                deal_out();
            }
        });
    }

    void close() override {
        if (view_) {
            view_->close();
        }
    }

private:
    const char* call() const { return ordered_ ? "MPI_File_read_ordered" : "MPI_File_read_shared"; }

    /// Whether every rank wants one piece of the file, which begins where that of the rank before it ends.
    bool in_order() const {
        std::int64_t end = shares_.span.begin;
        for (int rank = 0; rank < context_.comm.size(); ++rank) {
            const grid::Range its = shares_.span_of(rank);
            if (its.size() > 0 && its.begin != end) {
                return false;
            }
            end = its.size() > 0 ? its.end : end;
        }
        return shares_.contiguous();
    }

    void deal_out() {
        const Timed moving(context_.ledger, context_.ledger.phase(), Step::move, "deal out pieces");
        const grid::Range span = shares_.span;
        const std::int64_t piece = std::max<std::int64_t>(1, piece_bytes_ / shares_.item);
        const std::int64_t most = std::min(piece, span.size());
        const Buffer rows(static_cast<std::size_t>(most * shares_.item)), packed(rows.bytes());
        for (std::int64_t begin = span.begin; begin < span.end; begin += piece * context_.comm.size()) {
            std::vector<grid::Range> pieces;
            for (int rank = 0; rank < context_.comm.size(); ++rank) {
                const std::int64_t at = begin + rank * piece;
                pieces.push_back(grid::common(span, {at, at + piece}));
            }
            const grid::Range mine = pieces[static_cast<std::size_t>(me())];
            next(begin, mine, rows.data());
            scatter(context_, transfer_, shares_, pieces, packed.data(), [&] { return rows.data(); });
            count().useful += shares_.owned(mine) * shares_.item;
            report(std::min(begin + piece * context_.comm.size(), span.end) - span.begin, span.size());
        }
    }

    /// The next call of every rank, which gets elements `mine`; that of rank 0 begins with element `begin`.
    void next(std::int64_t begin, grid::Range mine, std::byte* out) {
        const Timed calling = timed(Step::file, call());
        const Transfer piece{same_.region, {}, out};
        const ShortReadCheck came(context_, piece, grid::Block{{0, 1}, mine}, {.cell = sample_cell, .turn = -1});
        const std::string where = std::string(call()) + " from byte " + std::to_string(piece.at(mine.begin)) + " on";
        bool again = false;
        view_->step([&] {
            if (again) {  // nobody knows how far the interrupted calls have moved the pointer
                check(MPI_File_seek_shared(view_->get(), begin - view_->share().columns[0].begin, MPI_SEEK_SET),
                      "MPI_File_seek_shared");
            }
            again = true;
            const mpi::Span span(mine.size(), view_->item());
            MPI_Status status{};
            if (ordered_) {
                check(MPI_File_read_ordered(view_->get(), out, span.count(), span.type(), &status), where.c_str());
            } else {
                const Turn turn(context_.comm);
                check(MPI_File_read_shared(view_->get(), out, span.count(), span.type(), &status), where.c_str());
            }
            view_->require_moved(status, mine.size(), call());
        });
        came.require_read();
        count().io_calls += 1;
        count().read += mine.size() * piece.item();
    }

    bool ordered_;
    std::int64_t piece_bytes_;
    Shares shares_;
    SameView same_;
    std::optional<FileView> view_;  ///< none where nobody wants anything
};

Strategy make(bool ordered, const Hints& hints) {
    return strategy_of<SharedPointer>(ordered, buffer_size(hints, "cb_buffer_size", standard_piece), hints);
}

}  // namespace

Strategy make_shared_pointer(const Hints& hints) { return make(false, hints); }

Strategy make_ordered(const Hints& hints) { return make(true, hints); }

}  // namespace tilewise::io
