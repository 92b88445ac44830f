// Moves sets of messages between ranks by any kind of exchange: operations say what goes where, and each mechanism is
// written once.
//
//     begin(set)     ready(i)                    progress()              complete(arrived)
//     receives are   outgoing message i lies     messages move while     all have arrived: `arrived` is told of each
//     posted         in its place                this rank computes      as it comes, where the kind knows
//
// Design: docs/design/exchanges.md
#pragma once

#include <functional>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/mpi/context.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/exchange/kinds.hpp"
#include "tilewise/mpi/window.hpp"

namespace tilewise::mpi {

/// A rectangle of numbers on its way to or from `peer`. Two ranks tell their messages apart by the tag, and by their
/// order where tags are alike. Kinds that take turns go from the lowest tag to the highest, so a turn has the same
/// tag on all ranks.
struct Message {
    int peer = 0, tag = 0;
    std::int64_t rows = 1, columns = 0;
    std::byte* data = nullptr;  ///< null: the exchange has memory for it, where it is dense
    std::int64_t stride = 0;    ///< numbers from one row to the next; 0: dense
    /// Of a message that comes out of a Setting that `stays`: bytes from the beginning of the sender's memory, and
    /// numbers from one row to the next there.
    std::int64_t there = 0, stride_there = 0;

    std::int64_t size() const { return rows * columns; }
};

struct MessageSet {
    std::vector<Message> out, in;
};

/// What travels where each rank holds some of a matrix and wants some.
template <class Part> struct Parcels {
    std::vector<Part> out, in;
    MessageSet messages;  ///< one for each part, in that order, without a place of its own

    /// `part_of(holder, wanter)` is what the one has to send to the other, and has a size; both work it out. In turn k
    /// rank r sends to r+k and receives from r−k, so that nobody waits in a circle.
    template <class PartOf> Parcels(const Communicator& comm, const PartOf& part_of) {
        const auto turn = [&](int from, int to) { return (to - from + comm.size()) % comm.size(); };
        for (int me = comm.rank(), peer = 0; peer < comm.size(); ++peer) {
            if (Part part = part_of(me, peer); peer != me && part.size() > 0) {
                messages.out.push_back({peer, turn(me, peer), 1, part.size()});
                out.push_back(std::move(part));
            }
            if (Part part = part_of(peer, me); peer != me && part.size() > 0) {
                messages.in.push_back({peer, turn(peer, me), 1, part.size()});
                in.push_back(std::move(part));
            }
        }
    }
};

struct Setting {
    const Communicator& comm;
    Ledger& ledger;
    Dtype dtype;
    /// Sets that are moved again and again. Where messages have no place of their own there is one set. None: each
    /// set comes with its begin().
    std::vector<MessageSet> sets = {};
    /// All that outgoing messages with a place of their own lie in, for one-sided kinds; where it has a window, as the
    /// node's memory has, that.
    std::span<std::byte> memory = {};
    const Exposed* exposed = nullptr;
    /// What lies in `exposed` is there when the exchange is made and stays as it is, and receivers know where: sets
    /// have incoming messages alone, which one-sided kinds and `shared` fetch without waiting for their senders.
    bool stays = false;
    /// Most ranks send to most others: a collective over all ranks is better than one over neighbours.
    bool all_to_all = false;
    /// Where sets come one by one: tags are below `tags`, and messages have at most `largest` numbers.
    int tags = 1;
    std::int64_t largest = 0;
    bool agrees = true;  ///< ranks agree that none has failed to make it; false where a failure aborts the job
    bool counts = true;  ///< whether what arrives is in the books: not what is on its way between file and ranks
};

/// Told that the incoming message with this index lies at `data`.
using Arrived = std::function<void(std::size_t index, const std::byte* data)>;

/// A failure of one rank leaves others waiting: call begin(), ready(), progress() and complete() where that aborts
/// the job.
class Exchange {
public:
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;
    virtual ~Exchange() = default;

    /// Where outgoing message `index` is to be put, if it has no place of its own.
    std::byte* place(std::size_t index) { return sets_[0].out[index].data; }

    void begin(std::size_t set = 0);
    void begin(const MessageSet& set);
    /// Outgoing message `index` is in its place, and stays untouched until complete().
    virtual void ready(std::size_t /*index*/) {}
    /// begin(), and all is in its place.
    template <class Set> void start(const Set& set) {
        begin(set);
        for (std::size_t index = 0; index < out().size(); ++index) {
            ready(index);
        }
    }
    virtual void progress() {}
    /// All messages of the set have arrived, and those sent may be written over. With `shared` and several sets
    /// others may still read them: they are to be left alone until the next exchange, or a barrier. @note Collective
    /// for some kinds.
    void complete(const Arrived& arrived = {});

protected:
    /// What outgoing messages lie in: memory of this rank, of a window, or of the node.
    enum class Memory { own, window, node };

    /// @note Collective; throws the same Error on every rank.
    Exchange(const Setting& setting, Memory memory);

    /// A message as MPI's calls take it.
    struct Bound : Message {
        Bound(const Message& message, MPI_Datatype item)
            : Message(message),
              span(message.rows, message.columns, message.stride == 0 ? message.columns : message.stride, item) {
            stride = stride == 0 ? columns : stride;
        }
        Span span;
    };
    struct BoundSet {
        std::vector<Bound> out, in;
    };

    virtual void post() {}
    virtual void move(const Arrived& arrived) = 0;

    std::size_t current() const { return current_; }
    const std::vector<BoundSet>& sets() const { return sets_; }
    const std::vector<Bound>& out() const { return sets_[current_].out; }
    const std::vector<Bound>& in() const { return sets_[current_].in; }
    std::int64_t item() const { return static_cast<std::int64_t>(size_of(dtype_)); }
    MPI_Datatype type() const { return type_of(dtype_); }
    const Communicator& comm() const { return comm_; }
    MPI_Win window() const { return window_; }
    bool stays() const { return stays_; }
    std::byte* memory() const { return memory_; }  ///< the beginning of what outgoing messages lie in

    void deliver(std::size_t index, const Arrived& arrived) const;
    void deliver_all(const Arrived& arrived) const;
    void receive(const Bound& message, MPI_Request* request) const;
    void send(const Bound& message, MPI_Request* request) const;

    /// Where incoming messages of a set lie in their senders' memory, as these tell where receivers do not know: bytes
    /// from its beginning, and the shape.
    struct Source {
        std::int64_t at, rows, columns, stride;
    };
    /// @note Collective.
    std::vector<Source> sources(const BoundSet& set) const;

private:
    BoundSet bound(const MessageSet& set) const;
    void find_places(const Setting& setting, Memory memory);

    Communicator comm_;
    Ledger& ledger_;
    Dtype dtype_;
    bool counts_, counts_as_sent_, stays_;
    std::size_t current_ = 0;
    Buffer sent_, received_;
    Exposed exposed_;
    MPI_Win window_ = MPI_WIN_NULL;
    std::byte* memory_ = nullptr;
    std::vector<BoundSet> sets_;
};

/// @note Collective; throws the same Error on every rank.
std::unique_ptr<Exchange> make_exchange(ExchangeKind kind, const Setting& setting);

/// Copies a rectangle of `row_bytes` wide rows between memories whose rows lie `from_stride` and `to_stride` bytes
/// apart.
void copy_rows(const std::byte* from, std::int64_t from_stride, std::byte* to, std::int64_t to_stride,
               std::int64_t rows, std::int64_t row_bytes);

}  // namespace tilewise::mpi
