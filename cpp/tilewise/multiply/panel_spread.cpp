// SUMMA's exchange by messages: the owner of a panel gives it to all of its row (A) or column (B).
//
//     a row of 4, owner 1:      1 ─▶ 2 ─▶ 3 ─▶ 0
//
// Along a ring, so that panels of later steps follow close behind; with `collective`, MPI_Bcast decides how.
// A panel that is not contiguous in its owner's block is packed once. Two slots for each matrix: one that is computed
// with and passed on, one that is coming in.
#include <array>
#include <cstring>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/multiply/exchange.hpp"

namespace tilewise::multiply {
namespace {

using mpi::check;

/// The way of one panel to this rank and on to the next.
struct Flight {
    std::byte* data = nullptr;
    MPI_Request in = MPI_REQUEST_NULL, out = MPI_REQUEST_NULL;
    bool forwarded = true;
    std::int64_t elements = 0;
};

/// One matrix, spread over one row or column of the grid.
struct Line {
    Side side;
    mpi::Communicator comm;  ///< the ranks of this row or column, in order
    bool is_a = true;
    Buffer block = {};
    std::array<Buffer, 2> slots = {};
    std::array<Flight, 2> flights = {};

    int position() const { return comm.rank(); }
    int next() const { return (comm.rank() + 1) % comm.size(); }
    int previous() const { return (comm.rank() + comm.size() - 1) % comm.size(); }
};

class PanelSpread final : public Exchange {
public:
    PanelSpread(ExchangeKind kind, Setting setting)
        : Exchange(std::move(setting)),
          kind_(kind),
          a_{.side = setting_.a, .comm = setting_.layer.split(setting_.place.row, setting_.place.column), .is_a = true},
          b_{.side = setting_.b,
             .comm = setting_.layer.split(setting_.place.column, setting_.place.row),
             .is_a = false} {
        mpi::together(setting_.context.comm, [&] {
            allocate(a_);
            allocate(b_);
        });
    }

    std::byte* a_block() override { return a_.block.data(); }
    std::byte* b_block() override { return b_.block.data(); }
    bool overlaps() const override { return kind_ == ExchangeKind::overlap; }

    Panels fetch(std::size_t step) override { return {fetch(a_, step), fetch(b_, step)}; }

    void start(std::size_t step) override {
        if (overlaps()) {
            launch(a_, step);
            launch(b_, step);
        }
    }

    void progress() override {
        for (Line* line : {&a_, &b_}) {
            for (Flight& flight : line->flights) {
                int done = 0;
                if (flight.in != MPI_REQUEST_NULL) {
                    check(MPI_Test(&flight.in, &done, MPI_STATUS_IGNORE), "MPI_Test");
                } else if (flight.out != MPI_REQUEST_NULL) {
                    check(MPI_Test(&flight.out, &done, MPI_STATUS_IGNORE), "MPI_Test");
                }
                forward(*line, flight);
            }
        }
    }

    void rewind() override {
        for (Line* line : {&a_, &b_}) {
            for (Flight& flight : line->flights) {
                finish(*line, flight);
            }
        }
    }

private:
    void allocate(Line& line) {
        line.block = Buffer(static_cast<std::size_t>(line.side.bytes(line.side.inner[static_cast<std::size_t>(me())])));
        if (line.comm.size() > 1) {
            std::int64_t widest = 0;
            for (const auto& step : setting_.steps) {
                widest = std::max(widest, step.k.size());
            }
            for (Buffer& slot : line.slots) {
                slot = Buffer(static_cast<std::size_t>(line.side.bytes(widest)));
            }
        }
    }

    int owner(const Line& line, const grid::Step& step) const { return line.is_a ? step.a_owner : step.b_owner; }
    grid::Range local(const Line& line, const grid::Step& step) const {
        return line.is_a ? step.a_local : step.b_local;
    }
    /// The owner's position in the row or column.
    int root(const Line& line, const grid::Step& step) const {
        const grid::Place place = setting_.grid.place(owner(line, step));
        return line.is_a ? place.column : place.row;
    }

    kernel::Operand fetch(Line& line, std::size_t index) {
        const grid::Step& step = setting_.steps[index];
        Flight& flight = line.flights[index % 2];
        if (line.comm.size() > 1) {
            if (!overlaps() || index == 0) {
                launch(line, index);
            }
            if (flight.in != MPI_REQUEST_NULL) {
                check(MPI_Wait(&flight.in, MPI_STATUS_IGNORE), "MPI_Wait");
            }
            forward(line, flight);
            if (!overlaps()) {
                finish(line, flight);
            }
            if (owner(line, step) != me()) {
                received(line.side, flight.elements);
                return line.side.packed(flight.data, step.k.size());
            }
        }
        return line.side.in_block(line.block.data(), me(), local(line, step));
    }

    /// Lets the panel of a step leave its owner, or makes ready for it; blocking kinds do here all that they do.
    void launch(Line& line, std::size_t index) {
        if (line.comm.size() == 1) {
            return;
        }
        const grid::Step& step = setting_.steps[index];
        Flight& flight = line.flights[index % 2];
        finish(line, flight);
        flight.elements = line.side.outer * step.k.size();
        const bool mine = owner(line, step) == me();
        flight.data = mine ? outgoing(line, step, index) : line.slots[index % 2].data();
        const mpi::Span span(flight.elements, mpi::type_of(line.side.dtype));
        const int tag = static_cast<int>(index % 2);
        if (kind_ == ExchangeKind::collective) {
            check(MPI_Bcast(flight.data, span.count(), span.type(), root(line, step), line.comm.get()), "MPI_Bcast");
            return;
        }
        flight.forwarded = line.next() == root(line, step);  // the last of the ring passes nothing on
        if (!mine) {
            if (kind_ == ExchangeKind::synchronous || kind_ == ExchangeKind::blocking) {
                check(MPI_Recv(flight.data, span.count(), span.type(), line.previous(), tag, line.comm.get(),
                               MPI_STATUS_IGNORE),
                      "MPI_Recv");
            } else {
                check(MPI_Irecv(flight.data, span.count(), span.type(), line.previous(), tag, line.comm.get(),
                                &flight.in),
                      "MPI_Irecv");
            }
        }
        forward(line, flight);
    }

    /// Passes the panel on as soon as it is here.
    void forward(Line& line, Flight& flight) {
        if (flight.forwarded || flight.in != MPI_REQUEST_NULL) {
            return;
        }
        flight.forwarded = true;
        const mpi::Span span(flight.elements, mpi::type_of(line.side.dtype));
        const int tag = static_cast<int>(&flight - line.flights.data());
        switch (kind_) {
            case ExchangeKind::synchronous:
                check(MPI_Ssend(flight.data, span.count(), span.type(), line.next(), tag, line.comm.get()),
                      "MPI_Ssend");
                break;
            case ExchangeKind::blocking:
                check(MPI_Send(flight.data, span.count(), span.type(), line.next(), tag, line.comm.get()), "MPI_Send");
                break;
            default:
                check(MPI_Isend(flight.data, span.count(), span.type(), line.next(), tag, line.comm.get(), &flight.out),
                      "MPI_Isend");
        }
    }

    /// Waits until the flight's slot may be used again.
    void finish(Line& line, Flight& flight) {
        if (flight.in != MPI_REQUEST_NULL) {
            check(MPI_Wait(&flight.in, MPI_STATUS_IGNORE), "MPI_Wait");
        }
        forward(line, flight);
        if (flight.out != MPI_REQUEST_NULL) {
            check(MPI_Wait(&flight.out, MPI_STATUS_IGNORE), "MPI_Wait");
        }
    }

    /// The owner's panel without gaps: in its block, or packed into the slot.
    std::byte* outgoing(Line& line, const grid::Step& step, std::size_t index) {
        const Side::Piece piece = line.side.piece(me(), local(line, step));
        const auto item = static_cast<std::int64_t>(size_of(line.side.dtype));
        std::byte* start = line.block.data() + piece.offset * item;
        if (piece.contiguous()) {
            return start;
        }
        std::byte* slot = line.slots[index % 2].data();
        const auto width = static_cast<std::size_t>(piece.columns * item);
        const int threads = piece.rows * piece.columns * item < (1 << 20) ? 1 : setting_.context.threads;
        parallel_ranges(threads, piece.rows, [&](std::int64_t begin, std::int64_t end, int) {
            for (std::int64_t row = begin; row < end; ++row) {
                std::memcpy(slot + static_cast<std::size_t>(row) * width, start + row * piece.stride * item, width);
            }
        });
        return slot;
    }

    ExchangeKind kind_;
    Line a_, b_;
};

}  // namespace

std::unique_ptr<Exchange> make_panel_spread(ExchangeKind kind, Setting setting) {
    return std::make_unique<PanelSpread>(kind, std::move(setting));
}

}  // namespace tilewise::multiply
