// What all mechanisms share: memory for messages that have none, the books, and who tells whom where messages lie.
#include "tilewise/mpi/exchange/exchange.hpp"

#include <cstring>
#include <numeric>
#include <utility>

#include "tilewise/base/names.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::mpi {
namespace {

std::int64_t without_place(const std::vector<Message>& messages) {
    std::int64_t sum = 0;
    for (const Message& message : messages) {
        sum += message.data == nullptr ? message.size() : 0;
    }
    return sum;
}

}  // namespace

ExchangeKind exchange_named(std::string_view name, std::span<const std::string_view> taken) {
    index_of(taken, name, "exchange");
    for (const Mechanism& mechanism : mechanisms) {
        if (mechanism.name == name) {
            return mechanism.kind;
        }
    }
    return ExchangeKind::none;
}

std::unique_ptr<Exchange> make_exchange(ExchangeKind kind, const Setting& setting) {
    return mechanisms[static_cast<std::size_t>(kind)].make(kind, setting);
}

void copy_rows(const std::byte* from, std::int64_t from_stride, std::byte* to, std::int64_t to_stride,
               std::int64_t rows, std::int64_t row_bytes) {
    for (std::int64_t row = 0; row < rows; ++row) {
        std::memcpy(to + row * to_stride, from + row * from_stride, static_cast<std::size_t>(row_bytes));
    }
}

Exchange::Exchange(const Setting& setting, Memory memory)
    : comm_(setting.comm),
      ledger_(setting.ledger),
      dtype_(setting.dtype),
      counts_(setting.counts),
      counts_as_sent_(memory != Memory::node),
      stays_(setting.stays) {
    find_places(setting, memory);
}

/// Messages without a place of their own lie one after the other: those that leave in memory of the kind's sort,
/// those that come in this rank's own. Of the node's memory nothing is received: it is read where it lies.
void Exchange::find_places(const Setting& setting, Memory memory) {
    const bool fixed = !setting.sets.empty();
    const auto bytes = [&](std::vector<Message> MessageSet::* list) {
        return fixed ? static_cast<std::size_t>(without_place(setting.sets[0].*list) * item()) : 0;
    };
    if (memory == Memory::window && fixed && setting.exposed == nullptr) {
        exposed_ = setting.memory.empty() ? allocate_window(comm_, bytes(&MessageSet::out))
                                          : create_window(comm_, setting.memory);
    } else if (memory == Memory::node && setting.exposed == nullptr) {
        exposed_ = allocate_on_one_node(comm_, bytes(&MessageSet::out));
    }
    const Exposed& exposed = setting.exposed != nullptr ? *setting.exposed : exposed_;
    window_ = exposed.window.get();
    memory_ = exposed.data;
    const auto make = [&] {
        if (memory == Memory::own) {
            sent_ = Buffer(bytes(&MessageSet::out));
            memory_ = sent_.data();
        }
        if (memory != Memory::node) {
            received_ = Buffer(bytes(&MessageSet::in));
        }
        for (const MessageSet& set : setting.sets) {
            sets_.push_back(bound(set));
        }
    };
    setting.agrees ? together(comm_, make) : make();
}

Exchange::BoundSet Exchange::bound(const MessageSet& set) const {
    const auto bind = [&](const std::vector<Message>& messages, std::byte* next) {
        std::vector<Bound> all;
        all.reserve(messages.size());
        for (const Message& message : messages) {
            Bound& added = all.emplace_back(message, type());
            if (message.data == nullptr) {
                added.data = next;
                next += next != nullptr ? message.size() * item() : 0;
            }
        }
        return all;
    };
    return {bind(set.out, memory_), bind(set.in, received_.data())};
}

void Exchange::begin(std::size_t set) {
    current_ = set;
    post();
}

void Exchange::begin(const MessageSet& set) {
    sets_.clear();
    sets_.push_back(bound(set));
    begin(0);
}

void Exchange::complete(const Arrived& arrived) {
    move(arrived);
    Counters& count = ledger_.count();
    for (const Bound& message : in()) {
        if (!counts_ || (!counts_as_sent_ && stays_)) {
            continue;  // which is used where it lies
        }
        (counts_as_sent_ ? count.exchanged : count.copied_in_node) += message.size() * item();
        count.messages += counts_as_sent_ ? 1 : 0;
    }
}

void Exchange::deliver(std::size_t index, const Arrived& arrived) const {
    if (arrived) {
        arrived(index, in()[index].data);
    }
}

void Exchange::deliver_all(const Arrived& arrived) const {
    for (std::size_t index = 0; arrived && index < in().size(); ++index) {
        arrived(index, in()[index].data);
    }
}

void Exchange::receive(const Bound& message, MPI_Request* request) const {
    check(MPI_Irecv(message.data, message.span.count(), message.span.type(), message.peer, message.tag, comm_.get(),
                    request),
          "MPI_Irecv");
}

void Exchange::send(const Bound& message, MPI_Request* request) const {
    check(MPI_Isend(message.data, message.span.count(), message.span.type(), message.peer, message.tag, comm_.get(),
                    request),
          "MPI_Isend");
}

/// A collective, since messages would stand beside those of the operation in a trace.
std::vector<Exchange::Source> Exchange::sources(const BoundSet& set) const {
    std::vector<Source> found;
    if (stays_) {
        for (const Bound& m : set.in) {
            found.push_back({m.there, m.rows, m.columns, m.stride_there});
        }
        return found;
    }
    constexpr int numbers = sizeof(Source) / sizeof(std::int64_t);
    struct Grouped {
        Grouped(const std::vector<Bound>& messages, int ranks) : counts(at(ranks)), begins(at(ranks)) {
            for (const Bound& m : messages) {
                counts[at(m.peer)] += numbers;
            }
            std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), 0);
            std::vector<int> next = begins;
            for (const Bound& m : messages) {
                places.push_back(at(std::exchange(next[at(m.peer)], next[at(m.peer)] + numbers) / numbers));
            }
        }
        static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }

        std::vector<int> counts, begins;
        std::vector<std::size_t> places;  ///< of each message among all, by peers
    };
    const Grouped out(set.out, comm_.size()), in(set.in, comm_.size());
    std::vector<Source> mine(set.out.size()), theirs(set.in.size());
    for (std::size_t i = 0; i < mine.size(); ++i) {
        const Bound& m = set.out[i];
        mine[out.places[i]] = {m.data - memory_, m.rows, m.columns, m.stride};
    }
    check(MPI_Alltoallv(mine.data(), out.counts.data(), out.begins.data(), MPI_INT64_T, theirs.data(), in.counts.data(),
                        in.begins.data(), MPI_INT64_T, comm_.get()),
          "MPI_Alltoallv");
    for (const std::size_t place : in.places) {
        found.push_back(theirs[place]);
    }
    return found;
}

}  // namespace tilewise::mpi
