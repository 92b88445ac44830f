// One message from each rank to each other one that wants anything of it: both know what, so nothing else is
// said.
#include "tilewise/dist/redistribute_columns.hpp"

#include <algorithm>
#include <cstring>

#include "tilewise/mpi/datatype.hpp"

namespace tilewise::dist {
namespace {

using grid::Block;
using mpi::check;

constexpr std::int64_t item = sizeof(double);

/// Places of the columns that `rank` has, of those in a range.
std::vector<std::int64_t> places_of(int rank, const Owners& owners, grid::Range within) {
    std::vector<std::int64_t> places;
    for (std::int64_t place = within.begin; place < within.end; ++place) {
        if (owners[static_cast<std::size_t>(place)] == rank) {
            places.push_back(place);
        }
    }
    return places;
}

void copy_rows(const double* from, double* to, std::int64_t count) {
    std::memcpy(to, from, static_cast<std::size_t>(count * item));
}

struct PackedMessage {
    Array<double> numbers;
    int peer = 0;
    std::vector<std::int64_t> places;
};

}  // namespace

Owners owners_of(const grid::Partition& columns) {
    Owners owners;
    for (int rank = 0; rank < columns.parts(); ++rank) {
        owners.insert(owners.end(), static_cast<std::size_t>(columns[rank].size()), rank);
    }
    return owners;
}

Array<double> redistribute_columns(Context& context, const kernel::Columns& mine, const Owners& owners,
                                   const Wanted& wanted) {
    const int me = context.comm.rank(), ranks = context.comm.size();
    const Block here = wanted(me);
    const std::int64_t height = here.rows.size();
    Array<double> got(here.size());
    const auto column_of = [&](std::int64_t place) { return got.data() + (place - here.columns.begin) * height; };

    std::vector<PackedMessage> messages;  // those that come, then those that go
    std::vector<MPI_Request> requests;
    messages.reserve(static_cast<std::size_t>(2 * ranks));
    requests.reserve(static_cast<std::size_t>(2 * ranks));
    for (int from = 0; from < ranks && height > 0; ++from) {
        std::vector<std::int64_t> places = places_of(from, owners, here.columns);
        if (from == me || places.empty()) {
            continue;
        }
        const std::int64_t count = height * std::ssize(places);
        PackedMessage& message = messages.emplace_back(PackedMessage{Array<double>(count), from, std::move(places)});
        const mpi::Span span(count, MPI_DOUBLE);
        check(MPI_Irecv(message.numbers.data(), span.count(), span.type(), from, 3, context.comm.get(),
                        &requests.emplace_back(MPI_REQUEST_NULL)),
              "MPI_Irecv");
        context.ledger.count().exchanged += count * item;
        ++context.ledger.count().messages;
    }
    const std::size_t coming = messages.size();
    std::vector<std::int64_t> local(owners.size());  // where a column lies in its owner's memory
    std::vector<std::int64_t> before(static_cast<std::size_t>(ranks));
    for (std::size_t place = 0; place < owners.size(); ++place) {
        local[place] = before[static_cast<std::size_t>(owners[place])]++;
    }
    for (int to = 0; to < ranks; ++to) {
        const Block there = wanted(to);
        const std::vector<std::int64_t> places = places_of(me, owners, there.columns);
        const std::int64_t rows = there.rows.size();
        if (places.empty() || rows == 0) {
            continue;
        }
        const auto source = [&](std::int64_t place) {
            return mine.column(local[static_cast<std::size_t>(place)]) + there.rows.begin;
        };
        if (to == me) {
            for (const std::int64_t place : places) {
                copy_rows(source(place), column_of(place), rows);
            }
            continue;
        }
        const std::int64_t count = rows * std::ssize(places);
        PackedMessage& message = messages.emplace_back(PackedMessage{Array<double>(count), to, {}});
        double* next = message.numbers.data();
        for (const std::int64_t place : places) {
            copy_rows(source(place), next, rows);
            next += rows;
        }
        const mpi::Span span(count, MPI_DOUBLE);
        check(MPI_Isend(message.numbers.data(), span.count(), span.type(), to, 3, context.comm.get(),
                        &requests.emplace_back(MPI_REQUEST_NULL)),
              "MPI_Isend");
    }
    check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    for (std::size_t i = 0; i < coming; ++i) {
        const double* next = messages[i].numbers.data();
        for (const std::int64_t place : messages[i].places) {
            copy_rows(next, column_of(place), height);
            next += height;
        }
    }
    return got;
}

}  // namespace tilewise::dist
