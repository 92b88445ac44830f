// The range finder, with both products of a power iteration out of one reading of a panel.
//
//     a panel P of A, while it is in the cache        over all panels, lanes and ranks
//         Y = P·Q                                     W = Aᵀ·(A·Q) = Σ Pᵀ·Y      one reading instead of two
//         W += Pᵀ·Y                                   W = Q'·R, R = S·Σ·Tᵀ:  Q ← Q'·S
//
// `power` + 1 such passes and a last one, Z = A·Q by TSQR = Q_Z·R: A ≈ Q_Z·R·Qᵀ, of which R is decomposed. That is power + 2 readings, and A or Aᵀ is
// applied once more than in the textbook's Q = orth((A·Aᵀ)^power·A·Ω), QᵀA, which reads 2·power + 2 times. Q's columns are sorted towards singular
// vectors in every pass (S), so that those of Y have the sizes of singular values, and a product by Aᵀ rounds each at its own size: what σ² of a small
// one would lose beside σ₁² in the first pass, later ones find.
//
// N. Halko, P. G. Martinsson, J. A. Tropp, "Finding structure with randomness", 2011.
#include "tilewise/svd/randomized.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tilewise/base/random.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/lapack.hpp"
#include "tilewise/kernel/svd_local.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/rounds.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/randomized_out.hpp"
#include "tilewise/svd/randomized_pass.hpp"

namespace tilewise::svd {
namespace {

template <class T> class Finder {
public:
    Finder(Context& context, const io::Region& a, const Options& options)
        : context_(context),
          options_(options),
          columns_(std::min({options.components + options.oversample, a.wanted_rows(), a.wanted_columns()})),
          passes_(context, a, options, columns_),
          width_(passes_.panels().width()) {
        mpi::together(context.comm,
                      [&] { q_ = Buffer(static_cast<std::size_t>(width_ * passes_.stride()) * sizeof(T)); });
    }

    Found<T> operator()() {
        const Timed timed(context_.ledger, Phase::compute, "randomized");
        passes_.start_counting();
        mpi::together(context_.comm, [&] {
            set_q([&](std::int64_t i, std::int64_t j) {
                const std::uint64_t key = row_key(options_.seed, static_cast<std::uint64_t>(i));
                return normal(random_bits(key, static_cast<std::uint64_t>(j)));
            });
        });
        for (int pass = 0; pass <= options_.power; ++pass) {
            turn(pass == 0);
        }
        return project();
    }

    std::int64_t reads() const { return passes_.reads(); }
    double flops() const {
        const Panels& panels = passes_.panels();
        return 2.0 * static_cast<double>(panels.height()) * static_cast<double>(width_) *
               static_cast<double>(columns_) * (2.0 * (options_.power + 1) + 1);
    }
    bool working() const { return passes_.panels().mine().size() > 0; }

private:
    T* q() const { return reinterpret_cast<T*>(q_.data()); }

    template <class Value> void set_q(const Value& value) {
        parallel_ranges(context_.threads, width_, [&](std::int64_t begin, std::int64_t end, int) {
            for (std::int64_t i = begin; i < end; ++i) {
                for (std::int64_t j = 0; j < columns_; ++j) {
                    q()[i * passes_.stride() + j] = static_cast<T>(value(i, j));
                }
            }
        });
    }

    /// One pass: Q becomes an orthonormal basis of Aᵀ·A·Q, sorted.
    void turn(bool first) {
        const auto wide = passes_.normal_product(context_, q(), first);
        std::vector<double> left(static_cast<std::size_t>(columns_ * columns_));
        mpi::together(context_.comm, [&] {
            const kernel::BlasThreads one(1);
            parallel_tasks(context_.threads, wide->chunks(), [&](std::int64_t index, int) { wide->factor(index); });
            wide->combine(nullptr, 1);
            if (context_.comm.rank() == 0) {
                std::vector<double> r = wide->r(), sigma(static_cast<std::size_t>(columns_)), right(left.size());
                kernel::gesdd<double>(columns_, columns_, r.data(), columns_, sigma.data(), left.data(), right.data(),
                                      1);
            }
        });
        broadcast(left);
        mpi::together(context_.comm, [&] {
            wide->hand_down(left.data(), columns_, 1);
            const double* basis = wide->apply(context_.threads);
            set_q([&](std::int64_t i, std::int64_t j) { return basis[i * columns_ + j]; });
        });
    }

    /// What decides on signs comes from one rank: processors that round differently must not disagree.
    void broadcast(std::vector<double>& small) const {
        if (context_.comm.size() > 1) {
            const Timed timed(context_.ledger, Phase::exchange, "broadcast");
            const mpi::Span span(std::ssize(small), MPI_DOUBLE);
            mpi::check(MPI_Bcast(small.data(), span.count(), span.type(), 0, context_.comm.get()), "MPI_Bcast");
        }
    }

    Found<T> project() {
        std::shared_ptr<TallQr<T>> tall = passes_.product(context_, q());
        {
            const Timed timed(context_.ledger, Phase::exchange, "combine rows");
            mpi::no_return(context_.comm, [&] { tall->combine(&context_.comm, context_.threads); });
        }
        const auto l = static_cast<std::size_t>(columns_);
        std::vector<double> small(2 * l * l + l);  // U, Vᵀ and σ of R
        mpi::together(context_.comm, [&] {
            if (context_.comm.rank() == 0) {
                std::vector<double> r(tall->r().begin(), tall->r().end());
                kernel::gesdd<double>(columns_, columns_, r.data(), columns_, small.data() + 2 * l * l, small.data(),
                                      small.data() + l * l, 1);
            }
        });
        broadcast(small);
        Found<T> found;
        found.high = passes_.panels().mine();
        found.width = width_;
        found.turned = passes_.panels().turned();
        const std::int64_t count = options_.components;
        for (std::int64_t j = 0; j < count; ++j) {
            found.sigma.push_back(small[2 * l * l + static_cast<std::size_t>(j)] / passes_.factor());
        }
        if (!options_.values_only) {
            mpi::no_return(context_.comm, [&] {
                const Timed timed(context_.ledger, Phase::exchange, "hand down U");
                const std::vector<T> left(small.data(), small.data() + l * l);
                tall->hand_down(left.data(), count, context_.threads);
            });
            mpi::together(context_.comm, [&] {
                const std::vector<T> right(small.data() + l * l, small.data() + 2 * l * l);
                found.tall = tall->apply(context_.threads);
                found.memory = std::move(tall);  // which holds those rows
                found.across = across(right, count);
            });
        }
        return found;
    }

    /// Q times the first columns of what `right` has row by row transposed.
    Buffer across(const std::vector<T>& right, std::int64_t count) const {
        Buffer memory(static_cast<std::size_t>(width_ * count) * sizeof(T));
        kernel::gemm({.dtype = sizeof(T) == 4 ? Dtype::float32 : Dtype::float64,
                      .m = width_,
                      .n = count,
                      .k = columns_,
                      .a = {q_.data(), passes_.stride(), false},
                      .b = {reinterpret_cast<const std::byte*>(right.data()), columns_, false},
                      .c = memory.data(),
                      .c_stride = count},
                     context_.threads);
        return memory;
    }

    Context& context_;
    const Options& options_;
    std::int64_t columns_;
    Passes<T> passes_;
    std::int64_t width_;
    Buffer q_;  ///< width × columns, row by row, padded
};

template <class T>
Outcome run(Context& context, const io::Region& a, const Files& files, const Options& options) {
    Ledger& ledger = context.ledger;
    Writer writer = [&] {
        const Timed timed(ledger, Phase::output, "reserve");
        return Writer(context, files, options);
    }();
    Finder<T> finder(context, a, options);
    Outcome outcome;
    Found<T> found;
    outcome.samples = mpi::run_rounds(context, options.warmup, options.repeat, [&](bool) {
        found = Found<T>{};
        found = finder();
    });
    Shown& shown = outcome.shown;
    shown.components = options.components;
    shown.sigma_max = found.sigma.front();
    shown.sigma_min = found.sigma.back();
    const double smallest = shown.sigma_max * std::numeric_limits<T>::epsilon() *
                            static_cast<double>(std::max(a.wanted_rows(), a.wanted_columns()));
    shown.rank = std::count_if(found.sigma.begin(), found.sigma.end(), [&](double s) { return s > smallest; });
    shown.start = "randomized range finder, " + std::to_string(options.power) + " power iterations, TSQR";
    shown.reads = finder.reads();
    refuse_overflow(context, a, shown.sigma_max, files.s.dtype);
    outcome.flops = finder.flops();
    outcome.working = finder.working();
    write(context, found, writer, options.sync);
    return outcome;
}

}  // namespace

Outcome randomized(Context& context, const io::Region& a, const Files& files, Dtype dtype, const Options& wanted) {
    const std::int64_t most = std::min(a.wanted_rows(), a.wanted_columns());
    Options options = wanted;
    options.components = wanted.components > 0 ? wanted.components : most;
    mpi::together(context.comm, [&] {
        if (options.components < 1 || options.components > most) {
            throw UsageError(a.name + ": has " + std::to_string(most) + " singular values, not " +
                             std::to_string(options.components));
        }
        if (options.power < 0 || options.oversample < 0 || options.repeat < 1 || options.warmup < 0) {
            throw UsageError("power iterations and oversampling count from 0, repetitions from 1");
        }
        if (dtype != Dtype::float32 && dtype != Dtype::float64) {
            throw UsageError("a decomposition is computed in float32 or float64, not in " +
                             std::string(name_of(dtype)));
        }
    });
    return dtype == Dtype::float32 ? run<float>(context, a, files, options) : run<double>(context, a, files, options);
}

}  // namespace tilewise::svd
