// Cannon's exchange by messages: after each step, blocks of A move one place left and blocks of B one place up.
//
//     q = 3, row 1 of A:   step 0  [a1 a2 a0]      a rank sends its block to the left, and gets the one on its right; the row is a
//                          step 1  [a2 a0 a1]      ring, so nothing ever falls off. The skew that the textbook begins with costs no
//                          step 2  [a0 a1 a2]      message here: ranks read the block that they begin with from the file.
//
// Each rank has two buffers for A and two for B: the block that is computed with and sent, and the one that is coming in.
#include <array>
#include <utility>

#include "tilewise/base/buffer.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/multiply/exchange.hpp"

namespace tilewise::multiply {
namespace {

using mpi::check;

/// One matrix on its ring.
struct Ring {
    Side side;
    int to = 0, from = 0;
    bool sends_first = true;
    int tag = 0;
    Buffer current, coming;
    std::array<MPI_Request, 2> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    // For `persistent`: [which of the two buffers is current][receive, send]. They always move the largest block.
    std::array<std::array<MPI_Request, 2>, 2> prepared{};
    int turn = 0;
};

class TorusShift final : public Exchange {
public:
    TorusShift(ExchangeKind kind, Setting setting) : Exchange(std::move(setting)), kind_(kind) {
        const std::array dims{setting_.grid.rows, setting_.grid.columns};
        const std::array periods{1, 1};
        MPI_Comm torus = MPI_COMM_NULL;
        check(MPI_Cart_create(setting_.layer.get(), 2, dims.data(), periods.data(), 0, &torus), "MPI_Cart_create");
        torus_ = mpi::Comm(torus);
        check(MPI_Comm_set_errhandler(torus, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
        mpi::together(setting_.context.comm, [&] {
            prepare(a_, setting_.a, 1, setting_.place.column, 0);
            prepare(b_, setting_.b, 0, setting_.place.row, 1);
        });
    }

    ~TorusShift() override {
        for (Ring* ring : {&a_, &b_}) {
            for (auto& pair : ring->prepared) {
                for (auto& request : pair) {
                    if (persistent_ && !mpi::must_not_free()) {
                        MPI_Request_free(&request);
                    }
                }
            }
        }
    }
    TorusShift(const TorusShift&) = delete;
    TorusShift& operator=(const TorusShift&) = delete;

    std::byte* a_block() override { return a_.current.data(); }
    std::byte* b_block() override { return b_.current.data(); }

    void open() override {
        if (kind_ == ExchangeKind::persistent && setting_.grid.size() > 1) {
            prepare_requests(a_);
            prepare_requests(b_);
            persistent_ = true;
        }
    }

    bool overlaps() const override { return kind_ == ExchangeKind::overlap; }

    Panels fetch(std::size_t step) override {
        if (step > 0 && setting_.grid.size() > 1) {
            if (!flying_) {
                launch(step);
            }
            land(step);
        }
        const grid::Step& now = setting_.steps[step];
        step_ = step;
        return {a_.side.packed(a_.current.data(), now.k.size()), b_.side.packed(b_.current.data(), now.k.size())};
    }

    void start(std::size_t step) override {
        if (overlaps() && setting_.grid.size() > 1) {
            launch(step);
        }
    }

    void progress() override {
        if (flying_) {
            std::array<MPI_Request, 4> all{a_.requests[0], a_.requests[1], b_.requests[0], b_.requests[1]};
            std::array<int, 4> finished{};
            int count = 0;
            check(MPI_Testsome(4, all.data(), &count, finished.data(), MPI_STATUSES_IGNORE), "MPI_Testsome");
            a_.requests = {all[0], all[1]};
            b_.requests = {all[2], all[3]};
        }
    }

    void rewind() override {
        if (setting_.grid.size() > 1) {  // the q-th shift brings everything home
            launch(setting_.steps.size());
            land(setting_.steps.size());
        }
    }

    Held held() override {
        const grid::Step& now = setting_.steps[step_];
        return {a_.side.packed(a_.current.data(), now.k.size()), b_.side.packed(b_.current.data(), now.k.size()),
                now.a_owner, now.b_owner};
    }

private:
    void prepare(Ring& ring, const Side& side, int direction, int coordinate, int tag) {
        ring.side = side;
        ring.tag = tag;
        // Even places send first and odd ones receive first: no circle of ranks that all wait to send, whatever its length.
        ring.sends_first = coordinate % 2 == 0;
        check(MPI_Cart_shift(torus_.get(), direction, -1, &ring.from, &ring.to), "MPI_Cart_shift");
        const auto bytes = static_cast<std::size_t>(side.bytes(side.largest_inner()));
        ring.current = Buffer(bytes);
        if (setting_.grid.size() > 1) {
            ring.coming = Buffer(bytes);
        }
    }

    std::int64_t elements(const Ring& ring, std::size_t step) const {
        return ring.side.outer * setting_.steps[step % setting_.steps.size()].k.size();
    }

    void prepare_requests(Ring& ring) {
        const mpi::Span span(ring.side.outer * ring.side.largest_inner(), mpi::type_of(ring.side.dtype));
        const std::array buffers{ring.current.data(), ring.coming.data()};
        for (std::size_t turn = 0; turn < 2; ++turn) {
            check(MPI_Recv_init(buffers[1 - turn], span.count(), span.type(), ring.from, ring.tag, torus_.get(),
                                &ring.prepared[turn][0]),
                  "MPI_Recv_init");
            check(MPI_Send_init(buffers[turn], span.count(), span.type(), ring.to, ring.tag, torus_.get(),
                                &ring.prepared[turn][1]),
                  "MPI_Send_init");
        }
    }

    void launch(std::size_t step) {
        for (Ring* ring : {&a_, &b_}) {
            const MPI_Datatype item = mpi::type_of(ring->side.dtype);
            const mpi::Span out(elements(*ring, step - 1), item), in(elements(*ring, step), item);
            std::byte *from = ring->current.data(), *to = ring->coming.data();
            switch (kind_) {
                case ExchangeKind::persistent:
                    ring->requests = ring->prepared[static_cast<std::size_t>(ring->turn)];
                    check(MPI_Startall(2, ring->requests.data()), "MPI_Startall");
                    break;
                case ExchangeKind::synchronous:
                case ExchangeKind::blocking: {
                    const auto send = kind_ == ExchangeKind::synchronous ? MPI_Ssend : MPI_Send;
                    if (ring->sends_first) {
                        check(send(from, out.count(), out.type(), ring->to, ring->tag, torus_.get()), "MPI_Send");
                    }
                    check(MPI_Recv(to, in.count(), in.type(), ring->from, ring->tag, torus_.get(), MPI_STATUS_IGNORE),
                          "MPI_Recv");
                    if (!ring->sends_first) {
                        check(send(from, out.count(), out.type(), ring->to, ring->tag, torus_.get()), "MPI_Send");
                    }
                    break;
                }
                default:
                    check(MPI_Irecv(to, in.count(), in.type(), ring->from, ring->tag, torus_.get(),
                                    ring->requests.data()),
                          "MPI_Irecv");
                    check(MPI_Isend(from, out.count(), out.type(), ring->to, ring->tag, torus_.get(),
                                    ring->requests.data() + 1),
                          "MPI_Isend");
            }
        }
        flying_ = true;
    }

    void land(std::size_t step) {
        for (Ring* ring : {&a_, &b_}) {
            check(MPI_Waitall(2, ring->requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
            std::swap(ring->current, ring->coming);
            ring->turn = 1 - ring->turn;
            received(ring->side, persistent_ ? ring->side.outer * ring->side.largest_inner() : elements(*ring, step));
        }
        flying_ = false;
    }

    ExchangeKind kind_;
    mpi::Comm torus_;
    Ring a_, b_;
    bool flying_ = false;
    bool persistent_ = false;
    std::size_t step_ = 0;
};

}  // namespace

std::unique_ptr<Exchange> make_torus_shift(ExchangeKind kind, Setting setting) {
    return std::make_unique<TorusShift>(kind, std::move(setting));
}

}  // namespace tilewise::multiply
