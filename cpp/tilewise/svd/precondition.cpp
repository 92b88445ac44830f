// The road from W in the ranks' memory to the blocks that are swept.
#include <algorithm>

#include "tilewise/base/threads.hpp"
#include "tilewise/dist/column_comm.hpp"
#include "tilewise/kernel/factor/lapack.hpp"
#include "tilewise/kernel/isa/backend.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/jacobi.hpp"

namespace tilewise::svd {
namespace {

template <class T>
std::unique_ptr<dist::TallQr<T>> factor_rows(Context& context, const Source<T>& source, const Work& work) {
    std::unique_ptr<dist::TallQr<T>> qr;
    const std::int64_t rows = source.rows(context).size();
    const Timed timed(context.ledger, Phase::compute, "QR of rows");
    mpi::together(context.comm, [&] {
        const std::int64_t shared = (rows + context.threads - 1) / context.threads;
        const std::int64_t chunk =
            std::max<std::int64_t>(1, std::max(std::min(shared, dist::chunk_factor * work.n), work.n));
        qr = std::make_unique<dist::TallQr<T>>(rows, work.n, chunk);
        const kernel::BlasThreads one(1);
        parallel_tasks(context.threads, qr->chunks(), [&](std::int64_t index, int) {
            source.copy_rows(index * chunk, qr->rows_of(index), qr->chunk(index));
            qr->factor(index);
        });
    });
    return qr;
}

/// What kernels round by: those of BLAS, and ours.
std::string processor() { return kernel::blas_facts().kernel + " " + std::string(kernel::backend().name); }

}  // namespace

bool by_rows_first(const Work& work, int ranks, StartKind kind) {
    return kind != StartKind::none && ranks > 1 && 100 * work.m >= tall_percent * work.n;
}

template <class T> Preconditioned<T> precondition(Context& context, const dist::ColumnComm& comm, Source<T>& source,
                                                  const Work& work, StartKind kind, bool share_eigen, bool want_v,
                                                  const ColumnsOfRank& wanted, bool again) {
    Preconditioned<T> begun;
    Array<T> memory;
    const grid::Partition columns(work.n, comm.size());
    const bool tall = by_rows_first(work, comm.size(), kind);
    if (tall) {
        begun.rows_of_q = factor_rows(context, source, work);
        if (!again) {
            source.release();
        }
        const Timed timed(context.ledger, Phase::exchange, "combine rows");
        begun.rows_of_q->combine(&context.comm, context.threads);
        // Only read, and only on rank 0, which has it.
        const kernel::ColumnsOf<T> r{const_cast<T*>(begun.rows_of_q->r().data()), work.n, work.n, work.n};
        memory = dist::redistribute_columns(context, r, dist::Owners(static_cast<std::size_t>(work.n), 0),
                                            [&](int rank) { return grid::Block{{0, work.n}, columns[rank]}; });
        if (!want_v) {
            begun.rows_of_q.reset();
        }
    } else {
        memory = source.columns(context, again);
    }
    const Timed timed(context.ledger, Phase::compute, "start");
    const std::int64_t rows = tall ? work.n : work.m;
    const dist::SpreadColumnsOf<T> a{{memory.data(), rows, columns[comm.rank()].size(), rows},
                                     dist::owners_of(columns)};
    if (kind == StartKind::none) {
        kernel::MatrixOf<T>& x = begun.sweeps.x;
        x.rows = x.stride = begun.sweeps.factors.rows = work.m;
        x.count = wanted(comm.rank(), true).size();
        begun.sweeps.factors.columns = work.n;
        x.memory = dist::redistribute_columns(context, a.mine, a.owners,
                                              [&](int rank) { return grid::Block{{0, work.m}, wanted(rank, true)}; });
        return begun;
    }
    // Ranks that share it decide alike by the same numbers: to the last bit, which takes processors that round alike.
    const auto eigen = kind != StartKind::eigen                                 ? EigenStart::none
                       : share_eigen && mpi::is_same(context.comm, processor()) ? EigenStart::shared
                                                                                : EigenStart::on_root;
    begun.sweeps = start_sweeps(a, std::move(memory), eigen, want_v, wanted, comm, context.threads);
    begun.used = begun.sweeps.eigen ? StartKind::eigen : StartKind::qr;
    if (tall) {
        begun.sweeps.steps.insert(0, "QR of the ranks' rows, ");
    }
    if (!want_v) {  // without vectors nothing is turned back: of the factors the sizes and the scale are enough
        FactorsOf<T>& f = begun.sweeps.factors;
        FactorsOf<T> few;
        few.rows = f.rows;
        few.columns = f.columns;
        few.scale = f.scale;
        f = std::move(few);
    }
    return begun;
}

template Preconditioned<double> precondition(Context&, const dist::ColumnComm&, Source<double>&, const Work&, StartKind,
                                             bool, bool, const ColumnsOfRank&, bool);
template Preconditioned<kernel::Complex> precondition(Context&, const dist::ColumnComm&, Source<kernel::Complex>&,
                                                      const Work&, StartKind, bool, bool, const ColumnsOfRank&, bool);

}  // namespace tilewise::svd
