// The road from W in the ranks' memory to the blocks that are swept.
#include "tilewise/svd/start.hpp"

#include <algorithm>
#include <array>

#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/lapack.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/deal.hpp"

namespace tilewise::svd {
namespace {

using mpi::check;

/// Rows of W for each of its columns above which it counts as tall; python/tilewise/plan/svd_need.py counts memory by the same number.
constexpr double tall = 1.5;
/// Rows that are factored at once, for each column: fewer make more of the work that goes into combining.
constexpr std::int64_t chunk_factor = 4;

template <class T> void broadcast(Context& context, T* data, std::int64_t count, MPI_Datatype type) {
    const mpi::Span span(count, type);
    check(MPI_Bcast(data, span.count(), span.type(), 0, context.comm.get()), "MPI_Bcast");
    if (context.comm.rank() > 0) {
        context.ledger.count().exchanged += count * static_cast<std::int64_t>(sizeof(T));
        ++context.ledger.count().messages;
    }
}

std::unique_ptr<TallQr<double>> factor_rows(Context& context, const Source& source, const Work& work) {
    std::unique_ptr<TallQr<double>> qr;
    const std::int64_t rows = source.rows(context).size();
    const Timed timed(context.ledger, Phase::compute, "QR of rows");
    mpi::together(context.comm, [&] {
        const std::int64_t shared = (rows + context.threads - 1) / context.threads;
        const std::int64_t chunk = std::max<std::int64_t>(1, std::max(std::min(shared, chunk_factor * work.n), work.n));
        qr = std::make_unique<TallQr<double>>(rows, work.n, chunk);
        const kernel::BlasThreads one(1);
        parallel_tasks(context.threads, qr->chunks(), [&](std::int64_t index, int) {
            source.copy_rows(index * chunk, qr->rows_of(index), qr->chunk(index));
            qr->factor(index);
        });
    });
    return qr;
}

/// Gives every rank the reflectors, where there are any.
void share_factors(Context& context, kernel::Factors& f) {
    std::array<std::int64_t, 9> sizes{f.rows,
                                      f.columns,
                                      f.q1.rows,
                                      f.q1.count,
                                      f.q2.rows,
                                      f.q2.count,
                                      std::ssize(f.tau1),
                                      std::ssize(f.permutation),
                                      std::ssize(f.row_order)};
    broadcast(context, sizes.data(), std::ssize(sizes), MPI_INT64_T);
    broadcast(context, &f.scale, 1, MPI_DOUBLE);
    if (context.comm.rank() > 0) {
        mpi::no_return(context.comm, [&] {
            f.rows = sizes[0];
            f.columns = sizes[1];
            if (sizes[2] > 0) {
                f.q1 = kernel::Matrix(sizes[2], sizes[3]);
                f.q2 = kernel::Matrix(sizes[4], sizes[5]);
            }
            f.tau1.resize(static_cast<std::size_t>(sizes[6]));
            f.tau2.resize(static_cast<std::size_t>(sizes[6]));
            f.permutation.resize(static_cast<std::size_t>(sizes[7]));
            f.row_order.resize(static_cast<std::size_t>(sizes[8]));
        });
    }
    if (sizes[2] > 0) {
        broadcast(context, f.q1.data(), f.q1.stride * f.q1.count, MPI_DOUBLE);
        broadcast(context, f.q2.data(), f.q2.stride * f.q2.count, MPI_DOUBLE);
        broadcast(context, f.tau1.data(), std::ssize(f.tau1), MPI_DOUBLE);
        broadcast(context, f.tau2.data(), std::ssize(f.tau2), MPI_DOUBLE);
        broadcast(context, f.permutation.data(), std::ssize(f.permutation), MPI_INT);
        broadcast(context, f.row_order.data(), std::ssize(f.row_order), MPI_INT);
    }
}

}  // namespace

bool by_rows_first(const Work& work, int ranks) {
    return ranks > 1 && static_cast<double>(work.m) >= tall * static_cast<double>(work.n);
}

Start start(Context& context, const Leader& leader, Source& source, const Work& work, bool eigen, bool want_v,
            const std::function<grid::Range(int rank, bool eigen)>& mine, bool again) {
    Start begun;
    Buffer whole;
    kernel::Columns a;
    if (by_rows_first(work, context.comm.size())) {
        begun.rows_of_q = factor_rows(context, source, work);
        if (!again) {
            source.release();
        }
        const Timed timed(context.ledger, Phase::exchange, "combine rows");
        mpi::no_return(context.comm, [&] { begun.rows_of_q->combine(&context.comm, context.threads); });
        // Only read, and only on rank 0, which has it.
        a = {const_cast<double*>(begun.rows_of_q->r().data()), work.n, work.n, work.n};
        begun.steps = "QR of the ranks' rows, ";
    } else {
        whole = source.whole(context, again);
        a = {reinterpret_cast<double*>(whole.data()), work.m, work.n, work.m};
    }
    kernel::SweepStart made;
    leader.run([&](int threads) { made = kernel::start_sweeps(a, eigen, want_v, threads); });
    whole = Buffer();
    begun.steps += made.steps;
    begun.fallback = made.fallback;
    begun.factors = std::move(made.factors);
    if (!want_v) {  // without vectors nothing is turned back: of the factors the scale is enough
        begun.factors.q1 = {};
        begun.factors.q2 = {};
        for (auto* taus : {&begun.factors.tau1, &begun.factors.tau2}) {
            *taus = std::vector<double>();
        }
        for (auto* orders : {&begun.factors.permutation, &begun.factors.row_order}) {
            *orders = std::vector<int>();
        }
        begun.rows_of_q.reset();
    }

    const Timed timed(context.ledger, Phase::exchange, "deal out");
    std::array<std::int64_t, 3> facts{made.x.rows, made.v.rows, made.eigen ? 1 : 0};
    broadcast(context, facts.data(), std::ssize(facts), MPI_INT64_T);
    begun.x_rows = facts[0];
    begun.v_rows = facts[1];
    begun.eigen = facts[2] != 0;
    const Owners owners(static_cast<std::size_t>(work.n), 0);
    mpi::no_return(context.comm, [&] {
        begun.x = deal(context, made.x.columns(), owners,
                       [&](int rank) { return grid::Block{{0, begun.x_rows}, mine(rank, begun.eigen)}; });
        made.x = {};
        if (begun.v_rows > 0) {
            begun.v = deal(context, made.v.columns(), owners,
                           [&](int rank) { return grid::Block{{0, begun.v_rows}, mine(rank, begun.eigen)}; });
            made.v = {};
        }
    });
    share_factors(context, begun.factors);
    return begun;
}

}  // namespace tilewise::svd
