// `summa`: C stays; panels of A go along their row of the grid, panels of B along their column, one range of k after
// another.
//
//     p × q = 2 × 2      A [ a | · ]      B [ b b ]        step k: the owners of A(:, k) give it to their row,
//                          [ a | · ]        [ · · ]                the owners of B(k, :) to their column, and all
//                                                                  ranks add the product of the two to their C
//
// SUMMA's exchange by messages: the owner of a panel gives it to all of its row (A) or column (B).
//
//     a row of 4, owner 1:      1 ─ 2 1 0 ▶ 2 ─ 1 0 ▶ 3 ─ 0 ▶ 0
//
// Along a ring, in pieces that a rank passes on while the next are on their way to it: the last of the ring has the
// panel hardly later than the first, and panels of later steps follow close behind. With `collective`, MPI_Bcast
// decides how. A panel that is not contiguous in its owner's block is packed once. Two slots for each matrix: one that
// is computed with and passed on, one that is coming in.
#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/multiply/algorithms.hpp"

namespace tilewise::multiply {
namespace {

using mpi::check;

/// Smaller pieces would spend their time on being sent at all.
constexpr std::int64_t least_piece_bytes = std::int64_t{2} << 20;
constexpr std::size_t all_pieces = std::numeric_limits<std::size_t>::max();

/// The way of one panel to this rank and on to the next, piece by piece.
struct Flight {
    std::byte* data = nullptr;
    std::int64_t elements = 0;
    std::int64_t pieces = 0, forwarded = 0;
    std::vector<MPI_Request> in = {}, out = {};

    /// Elements before piece `index`.
    std::int64_t begin(std::int64_t index) const { return elements * index / pieces; }
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

class RingBroadcast final : public Exchange {
public:
    RingBroadcast(ExchangeKind kind, Setting setting)
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

    StepPanels fetch(std::size_t step) override {
        if (!overlaps() || step == 0) {
            launch(a_, step);
            launch(b_, step);
        }
        for (;;) {
            forward(1);
            std::vector<MPI_Request*> awaited = coming(step);
            if (awaited.empty()) {
                break;
            }
            for (Flight* flight : all_flights()) {
                std::transform(flight->out.begin(), flight->out.end(), std::back_inserter(awaited),
                               [](MPI_Request& each) { return &each; });
            }
            std::vector<MPI_Request> requests(awaited.size());
            std::transform(awaited.begin(), awaited.end(), requests.begin(), [](MPI_Request* each) { return *each; });
            int index = 0;
            check(MPI_Waitany(static_cast<int>(requests.size()), requests.data(), &index, MPI_STATUS_IGNORE),
                  "MPI_Waitany");
            *awaited[static_cast<std::size_t>(index)] = MPI_REQUEST_NULL;
        }
        forward(all_pieces);  // nobody will while this rank computes
        if (!overlaps()) {
            finish(a_, a_.flights[step % 2]);
            finish(b_, b_.flights[step % 2]);
        }
        return {panel(a_, step), panel(b_, step)};
    }

    void start(std::size_t step) override {
        if (overlaps()) {
            launch(a_, step);
            launch(b_, step);
        }
    }

    void progress() override {
        for (Line* line : {&a_, &b_}) {
            for (Flight& flight : line->flights) {
                for (MPI_Request* next = first_of(flight.in); next != nullptr && has_come(*next);) {
                    next = first_of(flight.in);
                }
                std::erase_if(flight.out, [](MPI_Request& each) { return has_come(each); });
                forward(*line, flight, all_pieces);
            }
        }
    }

    /// The next rank still waits for what has yet to be passed on.
    void finish() override {
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

    /// The panel of a step, which is here.
    kernel::Operand panel(Line& line, std::size_t index) {
        const grid::Step& step = setting_.steps[index];
        if (line.comm.size() == 1 || owner(line, step) == me()) {
            return line.side.in_block(line.block.data(), me(), local(line, step));
        }
        const Flight& flight = line.flights[index % 2];
        received(line.side, flight.elements, std::max<std::int64_t>(1, flight.pieces));
        return line.side.packed(flight.data, step.k.size());
    }

    std::array<Flight*, 4> all_flights() { return {&a_.flights[0], &a_.flights[1], &b_.flights[0], &b_.flights[1]}; }

    /// The first of these that has not come yet, or null.
    static MPI_Request* first_of(std::vector<MPI_Request>& requests) {
        const auto found = std::find_if(requests.begin(), requests.end(),
                                        [](const MPI_Request& each) { return each != MPI_REQUEST_NULL; });
        return found == requests.end() ? nullptr : &*found;
    }

    /// The next piece of either panel of a step that is still on its way here.
    std::vector<MPI_Request*> coming(std::size_t step) {
        std::vector<MPI_Request*> found{first_of(a_.flights[step % 2].in), first_of(b_.flights[step % 2].in)};
        std::erase(found, nullptr);
        return found;
    }

    /// As many pieces as there are ranks to pass on to, but none that is too small.
    std::int64_t pieces_of(const Line& line, std::int64_t elements) const {
        const std::int64_t large = elements * static_cast<std::int64_t>(size_of(line.side.dtype)) / least_piece_bytes;
        return std::clamp<std::int64_t>(large, 1, std::max(1, line.comm.size() - 1));
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
        flight.pieces = flight.forwarded = 0;
        const bool mine = owner(line, step) == me();
        flight.data = mine ? outgoing(line, step, index) : line.slots[index % 2].data();
        if (kind_ == ExchangeKind::collective) {
            const mpi::Span span(flight.elements, mpi::type_of(line.side.dtype));
            check(MPI_Bcast(flight.data, span.count(), span.type(), root(line, step), line.comm.get()), "MPI_Bcast");
            return;
        }
        flight.pieces = pieces_of(line, flight.elements);
        // The last of the ring passes nothing on.
        flight.forwarded = line.next() == root(line, step) ? flight.pieces : 0;
        const bool blocking = kind_ == ExchangeKind::synchronous || kind_ == ExchangeKind::blocking;
        flight.in.assign(static_cast<std::size_t>(mine || blocking ? 0 : flight.pieces), MPI_REQUEST_NULL);
        for (std::int64_t piece = 0; !mine && piece < flight.pieces; ++piece) {
            const Sent sent = sent_of(line, flight, piece);
            if (blocking) {
                check(MPI_Recv(sent.data, sent.span.count(), sent.span.type(), line.previous(), sent.tag,
                               line.comm.get(), MPI_STATUS_IGNORE),
                      "MPI_Recv");
                if (flight.forwarded == piece) {
                    send(line, flight, piece);
                }
            } else {
                check(MPI_Irecv(sent.data, sent.span.count(), sent.span.type(), line.previous(), sent.tag,
                                line.comm.get(), &flight.in[static_cast<std::size_t>(piece)]),
                      "MPI_Irecv");
            }
        }
        forward(line, flight, all_pieces);
    }

    struct Sent {
        std::byte* data;
        mpi::Span span;
        int tag;
    };
    /// Pieces of one panel come in the sequence in which they are sent, and so need no tags of their own.
    static Sent sent_of(const Line& line, const Flight& flight, std::int64_t piece) {
        const std::int64_t begin = flight.begin(piece);
        return {flight.data + begin * static_cast<std::int64_t>(size_of(line.side.dtype)),
                mpi::Span(flight.begin(piece + 1) - begin, mpi::type_of(line.side.dtype)),
                static_cast<int>(&flight - line.flights.data())};
    }

    static bool has_come(MPI_Request& request) {
        int done = 0;
        check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        return done != 0;
    }

    /// Passes on what is here, with `most` pieces on their way: together they share it, and all come late.
    void forward(Line& line, Flight& flight, std::size_t most) {
        std::erase(flight.out, MPI_REQUEST_NULL);
        while (flight.forwarded < flight.pieces && flight.out.size() < most &&
               (flight.in.empty() || flight.in[static_cast<std::size_t>(flight.forwarded)] == MPI_REQUEST_NULL)) {
            send(line, flight, flight.forwarded);
        }
    }
    void forward(std::size_t most) {
        for (Line* line : {&a_, &b_}) {
            for (Flight& flight : line->flights) {
                forward(*line, flight, most);
            }
        }
    }

    void send(Line& line, Flight& flight, std::int64_t piece) {
        const Sent sent = sent_of(line, flight, piece);
        flight.forwarded = piece + 1;
        switch (kind_) {
            case ExchangeKind::synchronous:
                check(MPI_Ssend(sent.data, sent.span.count(), sent.span.type(), line.next(), sent.tag, line.comm.get()),
                      "MPI_Ssend");
                break;
            case ExchangeKind::blocking:
                check(MPI_Send(sent.data, sent.span.count(), sent.span.type(), line.next(), sent.tag, line.comm.get()),
                      "MPI_Send");
                break;
            default:
                check(MPI_Isend(sent.data, sent.span.count(), sent.span.type(), line.next(), sent.tag, line.comm.get(),
                                &flight.out.emplace_back(MPI_REQUEST_NULL)),
                      "MPI_Isend");
        }
    }

    /// Waits until the flight's slot may be used again.
    void finish(Line& line, Flight& flight) {
        for (MPI_Request* next = first_of(flight.in); next != nullptr; next = first_of(flight.in)) {
            check(MPI_Wait(next, MPI_STATUS_IGNORE), "MPI_Wait");
            forward(line, flight, all_pieces);
        }
        forward(line, flight, all_pieces);
        check(MPI_Waitall(static_cast<int>(flight.out.size()), flight.out.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
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

std::optional<std::string> Summa::refuses(const Arrangement& arrangement) {
    if (arrangement.grid.size() > arrangement.ranks) {
        return "summa needs a grid of at most " + std::to_string(arrangement.ranks) + " ranks, not " +
               std::to_string(arrangement.grid.rows) + "x" + std::to_string(arrangement.grid.columns);
    }
    return std::nullopt;
}

grid::Layout Summa::layout(const Arrangement& arrangement) {
    // Where nothing is copied (`shared`), only the owners' borders cut.
    const bool in_place = arrangement.exchange == ExchangeKind::shared;
    const std::int64_t width = in_place                  ? std::max<std::int64_t>(arrangement.shape.k, 1)
                               : arrangement.wide_panels ? wide_panel_width
                                                         : panel_width;
    return {arrangement.shape, arrangement.grid, arrangement.copies, grid::summa, arrangement.remainder, width};
}

std::unique_ptr<Exchange> make_ring_broadcast(ExchangeKind kind, Setting setting) {
    return std::make_unique<RingBroadcast>(kind, std::move(setting));
}

}  // namespace tilewise::multiply
