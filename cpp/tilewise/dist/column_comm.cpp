// One message from each rank to each other one that wants any of its columns: both know what, so nothing else is said.
// Collectives for panels and for single columns; with one rank nothing is sent. Ranks sleep while rank 0 works, and
// their binding is lifted meanwhile.
#include "tilewise/dist/column_comm.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <sched.h>
#include <unistd.h>
#include <vector>

#include "tilewise/mpi/exchange/exchange.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::dist {
namespace {

using grid::Block;

using mpi::check;

constexpr unsigned nap = 100;  // microseconds
constexpr int done_tag = 7;

/// Rank 0 tells each rank itself: of a tree, or a barrier that does not block, every level would sleep through a nap.
void tell_done(const mpi::Communicator& comm) {
    if (comm.rank() == 0) {
        std::vector<MPI_Request> told(static_cast<std::size_t>(comm.size() - 1), MPI_REQUEST_NULL);
        for (int rank = 1; rank < comm.size(); ++rank) {
            check(
                MPI_Isend(nullptr, 0, MPI_BYTE, rank, done_tag, comm.get(), &told[static_cast<std::size_t>(rank - 1)]),
                "MPI_Isend");
        }
        check(MPI_Waitall(comm.size() - 1, told.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
        return;
    }
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Irecv(nullptr, 0, MPI_BYTE, 0, done_tag, comm.get(), &request), "MPI_Irecv");
    for (int done = 0; done == 0;) {
        check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        if (done == 0) {
            usleep(nap);
        }
    }
}

/// The calling thread may run on `cores` for the time being. Threads that it starts meanwhile may, too, and go
/// on to: those that the BLAS keeps for later are not bound again.
class Unbound {
public:
    explicit Unbound(const std::vector<unsigned char>& cores) {
        if (sched_getaffinity(0, sizeof before_, &before_) == 0) {
            // Where it is not allowed, threads share what this one is bound to.
            changed_ = sched_setaffinity(0, cores.size(), reinterpret_cast<const cpu_set_t*>(cores.data())) == 0;
        }
    }
    Unbound(const Unbound&) = delete;
    Unbound& operator=(const Unbound&) = delete;
    ~Unbound() {
        if (changed_) {
            sched_setaffinity(0, sizeof before_, &before_);
        }
    }

private:
    cpu_set_t before_{};
    bool changed_ = false;
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
    std::vector<std::vector<grid::Range>> places(static_cast<std::size_t>(context.comm.size()));
    for (std::int64_t place = 0; place < std::ssize(owners); ++place) {
        places[static_cast<std::size_t>(owners[static_cast<std::size_t>(place)])].push_back({place, place + 1});
    }
    // Columns are the rows of shares.
    const auto overlap = [&](int holder, int wanter) {
        const Block block = wanted(wanter);
        return grid::Overlap({places[static_cast<std::size_t>(holder)], {block.rows}}, block.transposed());
    };
    const int me = context.comm.rank();
    const std::int64_t height = wanted(me).rows.size();
    Array<double> got(wanted(me).size());
    using Run = grid::Overlap::Run;
    const auto source = [&](const Run& run) { return mine.column(run.first.row) + run.in_matrix.column; };
    const auto place = [&](const Run& run) { return got.data() + run.second.row * height + run.second.column; };

    const mpi::Parcels<grid::Overlap> parcels(context.comm, overlap);
    const auto exchange = mpi::make_exchange(mpi::ExchangeKind::overlap, {.comm = context.comm,
                                                                          .ledger = context.ledger,
                                                                          .dtype = Dtype::float64,
                                                                          .sets = {parcels.messages},
                                                                          .agrees = false});
    exchange->begin();
    for (std::size_t index = 0; index < parcels.out.size(); ++index) {
        auto* packed = reinterpret_cast<double*>(exchange->place(index));
        parcels.out[index].for_runs([&](const Run& run) { std::copy_n(source(run), run.count, packed + run.at); });
        exchange->ready(index);
    }
    overlap(me, me).for_runs([&](const Run& run) { std::copy_n(source(run), run.count, place(run)); });
    exchange->complete([&](std::size_t index, const std::byte* data) {
        const auto* packed = reinterpret_cast<const double*>(data);
        parcels.in[index].for_runs([&](const Run& run) { std::copy_n(packed + run.at, run.count, place(run)); });
    });
    return got;
}

RootTask::RootTask(Context& context) : context_(context), threads_(context.threads), cores_(sizeof(cpu_set_t)) {
    if (context.comm.size() == 1) {
        return;
    }
    const mpi::Communicator node = context.comm.node();
    std::vector<unsigned char> mine(sizeof(cpu_set_t));
    // It fails where there are more processors than such a set has room for.
    const bool known = sched_getaffinity(0, mine.size(), reinterpret_cast<cpu_set_t*>(mine.data())) == 0;
    std::array<int, 2> sums{context.threads, known ? 0 : 1};
    check(MPI_Allreduce(MPI_IN_PLACE, sums.data(), 2, MPI_INT, MPI_SUM, node.get()), "MPI_Allreduce");
    check(MPI_Allreduce(mine.data(), cores_.data(), static_cast<int>(mine.size()), MPI_BYTE, MPI_BOR, node.get()),
          "MPI_Allreduce");
    if (sums[1] > 0) {
        cores_.clear();  // then rank 0 stays on its own, with its own threads
        return;
    }
    threads_ = sums[0];
    // Ranks that take turns on a core have no more cores together than there are.
    threads_ = std::max(1, std::min(threads_, CPU_COUNT(reinterpret_cast<const cpu_set_t*>(cores_.data()))));
}

void RootTask::run(const std::function<void(int threads)>& work) const {
    const mpi::Communicator& comm = context_.comm;
    if (comm.size() == 1) {
        const Timed timed(context_.ledger, Phase::compute, "alone");
        mpi::together(comm, [&] { work(threads_); });
        return;
    }
    std::optional<Error> failure;
    if (comm.rank() == 0) {
        const Timed timed(context_.ledger, Phase::compute, "alone");
        try {
            std::optional<Unbound> unbound;
            if (!cores_.empty()) {
                unbound.emplace(cores_);
            }
            work(threads_);
        } catch (...) {
            failure = error_in_flight();
        }
    }
    const Timed timed(context_.ledger, Phase::exchange, "wait for rank 0");
    tell_done(comm);
    mpi::agree(comm, failure);
}

void ColumnComm::largest(std::vector<double>& values) const {
    if (context_ == nullptr) {
        return;
    }
    const Timed timed(context_->ledger, Phase::exchange, "largest");
    const mpi::Span span(std::ssize(values), MPI_DOUBLE);
    if (size() > 1) {
        check(MPI_Allreduce(MPI_IN_PLACE, values.data(), span.count(), span.type(), MPI_MAX, context_->comm.get()),
              "MPI_Allreduce");
    }
}

void ColumnComm::broadcast_reals(double* values, std::int64_t count, int root) const {
    if (size() == 1) {
        return;
    }
    const Timed timed(context_->ledger, Phase::exchange, "");
    const mpi::Span span(count, MPI_DOUBLE);
    check(MPI_Bcast(values, span.count(), span.type(), root, context_->comm.get()), "MPI_Bcast");
    if (rank() != root) {
        context_->ledger.count().exchanged += count * static_cast<std::int64_t>(sizeof(double));
        ++context_->ledger.count().messages;
    }
}

void ColumnComm::gather_reals(const SpreadColumns& a, std::int64_t begin, std::int64_t end, std::int64_t top,
                              double* to) const {
    if (size() == 1) {
        for (std::int64_t c = begin; c < end; ++c) {
            to = std::copy_n(a.mine.column(c) + top, a.mine.rows - top, to);
        }
        return;
    }
    const std::int64_t height = a.mine.rows - top, before = a.of_rank(rank(), 0, begin);
    std::vector<int> counts(static_cast<std::size_t>(size())), starts;
    for (std::int64_t c = begin; c < end; ++c) {  // once, however many ranks there are
        ++counts[static_cast<std::size_t>(a.owners[static_cast<std::size_t>(c)])];
    }
    int all = 0;
    for (int from = 0; from < size(); ++from) {
        starts.push_back(all);
        const int count = counts[static_cast<std::size_t>(from)];
        all += count;
        if (from != rank() && count > 0) {
            context_->ledger.count().exchanged += count * height * static_cast<std::int64_t>(sizeof(double));
            ++context_->ledger.count().messages;
        }
    }
    const int mine = counts[static_cast<std::size_t>(rank())];
    const Timed timed(context_->ledger, Phase::exchange, "gather columns");
    const mpi::Datatype column = mpi::strided(1, height, height, MPI_DOUBLE);
    // Columns of a rank follow each other in `to` already where all before them are of lower ranks.
    const bool in_sequence = std::is_sorted(a.owners.begin() + begin, a.owners.begin() + end);
    const Buffer memory(in_sequence ? 0 : static_cast<std::size_t>(height * (end - begin)) * sizeof(double));
    double* const got = in_sequence ? to : reinterpret_cast<double*>(memory.data());
    for (std::int64_t c = 0; c < mine; ++c) {
        std::copy_n(a.mine.column(before + c) + top, height,
                    got + (starts[static_cast<std::size_t>(rank())] + c) * height);
    }
    check(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, got, counts.data(), starts.data(), column.get(),
                         context_->comm.get()),
          "MPI_Allgatherv");
    for (std::int64_t c = begin; c < end && !in_sequence; ++c) {
        int& next = starts[static_cast<std::size_t>(a.owners[static_cast<std::size_t>(c)])];
        std::copy_n(got + next++ * height, height, to + (c - begin) * height);
    }
}

Array<double> ColumnComm::redistribute_reals(const SpreadColumns& a, const Wanted& wanted) const {
    if (context_ != nullptr) {
        const Timed timed(context_->ledger, Phase::exchange, "redistribute");
        return redistribute_columns(*context_, a.mine, a.owners, wanted);
    }
    const Block block = wanted(0);
    Array<double> got(block.size());
    double* to = got.data();
    for (std::int64_t c = block.columns.begin; c < block.columns.end; ++c) {
        to = std::copy_n(a.mine.column(c) + block.rows.begin, block.rows.size(), to);
    }
    return got;
}

void ColumnComm::on_root(const std::function<void(int threads)>& work, int threads) const {
    root_task_ == nullptr ? work(threads) : root_task_->run(work);
}

}  // namespace tilewise::dist
