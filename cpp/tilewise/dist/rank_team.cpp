// Collectives for panels and for single columns; with one rank nothing is sent.
#include "tilewise/dist/rank_team.hpp"

#include <algorithm>

#include "tilewise/dist/redistribute_columns.hpp"
#include "tilewise/mpi/datatype.hpp"

namespace tilewise::dist {

using mpi::check;

void RankTeam::largest(std::vector<double>& values) const {
    const Timed timed(context_.ledger, Phase::exchange, "largest");
    const mpi::Span span(std::ssize(values), MPI_DOUBLE);
    if (size() > 1) {
        check(MPI_Allreduce(MPI_IN_PLACE, values.data(), span.count(), span.type(), MPI_MAX, context_.comm.get()),
              "MPI_Allreduce");
    }
}

void RankTeam::broadcast_reals(double* values, std::int64_t count, int root) const {
    if (size() == 1) {
        return;
    }
    const Timed timed(context_.ledger, Phase::exchange, "");
    const mpi::Span span(count, MPI_DOUBLE);
    check(MPI_Bcast(values, span.count(), span.type(), root, context_.comm.get()), "MPI_Bcast");
    if (rank() != root) {
        context_.ledger.count().exchanged += count * static_cast<std::int64_t>(sizeof(double));
        ++context_.ledger.count().messages;
    }
}

void RankTeam::gather_reals(const kernel::SpreadColumns& a, std::int64_t begin, std::int64_t end, std::int64_t top,
                            double* to) const {
    if (size() == 1) {
        Team::gather_reals(a, begin, end, top, to);
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
            context_.ledger.count().exchanged += count * height * static_cast<std::int64_t>(sizeof(double));
            ++context_.ledger.count().messages;
        }
    }
    const int mine = counts[static_cast<std::size_t>(rank())];
    const Timed timed(context_.ledger, Phase::exchange, "gather columns");
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
                         context_.comm.get()),
          "MPI_Allgatherv");
    for (std::int64_t c = begin; c < end && !in_sequence; ++c) {
        int& next = starts[static_cast<std::size_t>(a.owners[static_cast<std::size_t>(c)])];
        std::copy_n(got + next++ * height, height, to + (c - begin) * height);
    }
}

Buffer RankTeam::redistribute_reals(const kernel::SpreadColumns& a, const kernel::WantedBlock& wanted) const {
    const Timed timed(context_.ledger, Phase::exchange, "redistribute");
    return redistribute_columns(context_, a.mine, a.owners, wanted);
}

void RankTeam::on_root(const std::function<void(int threads)>& work, int /*threads*/) const { root_task_.run(work); }

}  // namespace tilewise::dist
