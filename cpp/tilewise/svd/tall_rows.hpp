// The rows of a tall matrix that are in memory, one step after another, in either direction; and the long factor, U, or
// Vᵀ where A is wide, which takes their place and is written step by step, and the triangles, which lie in a file
// between the two readings.
//
// Two buffers: what was read, and what is computed with. The long factor is rounded on the way to the file, and turned
// where it lies.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/grid/grid.hpp"
#include "tilewise/io/background.hpp"
#include "tilewise/io/file.hpp"
#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/kernel/factor/lapack.hpp"
#include "tilewise/kernel/scalar.hpp"
#include "tilewise/kernel/transpose/transpose.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/svd/result.hpp"
#include "tilewise/svd/source.hpp"

namespace tilewise::svd {

/// Rows of W (A, or Aᵀ where A is wide) for each column, in each lane, of which a panel has about so many where there
/// is room: fewer make more of the work that goes into triangles.
inline constexpr std::int64_t tall_panel_factor = 4;
/// And the bytes of a lane's panel, at least, below which calls take longer than what they are for.
inline constexpr std::int64_t tall_panel_bytes = std::int64_t{4} << 20;

/// Which rows a rank has in memory at a time, when a matrix of many rows passes through: integers only.
///
/// Step 0 of each rank is a head of n rows for each lane, or all its rows if these are fewer; further steps have
/// `rows` each, but for the last.
///
///     rank 0  [ head | 1 | 2 | 3 ]      a lane is a thread with rows of its own in each step:  [ lane 0 | lane 1 ]
///     rank 1  [ head | 1 | 2 |3]
class TallSteps {
public:
    /// Rows of a rank for each column, in each lane, from which it pays to have several.
    static constexpr std::int64_t lane_factor = 2;

    /// m×n over all ranks, m ≥ n ≥ 1; `rows`: at least 1, and n for each lane where there are several.
    TallSteps(std::int64_t m, std::int64_t n, int ranks, int threads, std::int64_t rows)
        : all_(m, ranks),
          lanes_(static_cast<int>(
              std::clamp<std::int64_t>(std::min(m / ranks / (lane_factor * n), rows / n), 1, threads))),
          head_(lanes_ * n),
          rows_(rows) {}

    int lanes() const { return lanes_; }
    /// The same on all ranks; the last ones may have nothing to do in a step.
    std::int64_t count() const { return 1 + (std::max<std::int64_t>(0, all_.largest() - head_) + rows_ - 1) / rows_; }
    grid::Range operator()(int rank, std::int64_t step) const {
        const grid::Range mine = all_[rank];
        const std::int64_t behind_head = std::min(mine.begin + head_, mine.end);
        if (step == 0) {
            return {mine.begin, behind_head};
        }
        const std::int64_t begin = std::min(behind_head + (step - 1) * rows_, mine.end);
        return {begin, std::min(begin + rows_, mine.end)};
    }
    /// Of the rows of a step, counted from its first one.
    grid::Range of_lane(std::int64_t rows, int lane) const { return grid::Partition(rows, lanes_)[lane]; }
    /// Most rows of a step on any rank.
    std::int64_t most() const { return std::min(all_.largest(), std::max(head_, rows_)); }

private:
    grid::Partition all_;
    int lanes_;
    std::int64_t head_, rows_;
};

/// Rows or columns `stride` apart.
template <class T> struct Strip {
    T* data = nullptr;
    std::int64_t count = 0, stride = 0;
};

/// Powers of two that the largest magnitude may be away from 1: reflections know no squares, so this is far.
inline constexpr int most_exponent = 900;

/// Rows of a step that fit in what a node may have of A; all lanes' together.
template <class T> std::int64_t rows_of_step(const Context& context, std::int64_t n, const Options& options) {
    const auto row = n * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t wanted = context.threads * std::max(tall_panel_factor * n, tall_panel_bytes / row);
    const int node_ranks = context.comm.node().size();
    return std::max<std::int64_t>(
        1, options.panel_bytes > 0 ? std::min(wanted, options.panel_bytes / node_ranks / row) : wanted);
}

/// u (rows×count), of the type of the file, times ways; and us, if there is one, that times sigma.
template <class N, class W>
void turn(std::byte* u, std::byte* us, std::int64_t rows, const std::vector<W>& ways,
          const std::vector<double>& sigma) {
    const auto count = std::ssize(ways);
    auto* numbers = reinterpret_cast<N*>(u);
    auto* scaled = reinterpret_cast<N*>(us);
    for (std::int64_t i = 0; i < rows * count; ++i) {
        const auto j = static_cast<std::size_t>(i % count);
        numbers[i] = static_cast<N>(static_cast<W>(numbers[i]) * ways[j]);
        if (scaled != nullptr) {
            scaled[i] = static_cast<N>(static_cast<W>(numbers[i]) * sigma[j]);
        }
    }
}

/// W's rows of a step, as the file has them, and the same cut into lanes; what is made of them takes the place of the
/// one or of the other. Memory, in numbers: 2·(most rows of a step)·n.
template <class T> class TallRows {
public:
    /// Opens the file. `work` and `a` must live as long as this. @note Collective.
    TallRows(Context& context, const Work& work, const io::Region& a, const Options& options)
        : work_(work),
          a_(a),
          rank_(context.comm.rank()),
          threads_(context.threads),
          input_(context, work.region, options.read, options.hints),
          steps_(work.m, work.n, context.comm.size(), context.threads, rows_of_step<T>(context, work.n, options)) {
        mpi::together(context.comm, [&] {
            if (options.read == io::StrategyKind::positioned) {
                prefetch_.emplace(work.region);
            }
        });
    }

    const TallSteps& steps() const { return steps_; }
    int threads_of_lane() const { return steps_.lanes() > 1 ? 1 : threads_; }
    /// This rank's rows of the step at hand.
    grid::Range here() const { return here_; }
    grid::Range of_lane(int lane) const { return steps_.of_lane(here_.size(), lane); }
    /// Whether this rank has rows at all.
    bool working() const { return steps_(rank_, 0).size() > 0; }
    /// Of W.
    double numbers() const { return static_cast<double>(work_.m) * static_cast<double>(work_.n); }
    /// What all numbers in memory are multiplied with: a power of two.
    double scale() const { return scale_; }

    /// Reads the rows of a step; those of step `next` are asked for meanwhile, if there is one. @note Collective.
    void load(Context& context, std::int64_t step, std::int64_t next) {
        const Timed timed(context.ledger, Phase::input, "input");
        here_ = steps_(rank_, step);
        mpi::together(context.comm, [&] {
            rows_.grow(steps_.most() * work_.n);
            panels_.grow(steps_.most() * work_.n);
        });
        input_.load(
            context, kernel::is_complex_number<T> ? Dtype::complex128 : Dtype::float64,
            [&](int rank) { return share(rank, step); }, rows_.raw());
        if (prefetch_ && next >= 0 && next < steps_.count()) {
            prefetch_->want(work_.region.stored(share(rank_, next)));
        }
        if (scale_ != 1) {
            double* reals = kernel::reals_of(rows_.data());
            const std::int64_t count = here_.size() * work_.n * kernel::parts_of<T>;
            std::transform(reals, reals + count, reals, [&](double value) { return value * scale_; });
        }
    }

    /// Looks for numbers that are not finite, and for the largest; false once there was one on this rank. Not
    /// collective.
    bool look() {
        constexpr std::int64_t parts = kernel::parts_of<T>;
        const double* data = kernel::reals_of(rows_.data());
        const std::int64_t count = here_.size() * work_.n * parts;
        std::mutex mutex;
        parallel_ranges(threads_, count, [&](std::int64_t begin, std::int64_t end, int) {
            double sum = 0, most = 0;
            for (std::int64_t i = begin; i < end; ++i) {
                sum += data[i] * 0;
                most = std::max(most, std::abs(data[i]));
            }
            const std::scoped_lock lock(mutex);
            largest_ = std::max(largest_, most);
            finite_ = finite_ && sum == 0;
            for (std::int64_t i = begin; i < end && !(sum == 0); ++i) {
                const std::int64_t line = i / parts / (work_.by_columns() ? here_.size() : work_.n),
                                   along = i / parts % (work_.by_columns() ? here_.size() : work_.n),
                                   row = here_.begin + (work_.by_columns() ? along : line),
                                   column = work_.by_columns() ? line : along;
                wrong_.note(work_.transposed ? column * work_.m + row : row * work_.n + column, data[i]);
            }
        });
        return finite_;
    }

    /// After a reading: UsageError on every rank for the first number that is not finite. @note Collective.
    void refuse_not_finite(Context& context) { wrong_.refuse(context, a_); }
    /// Whether the numbers that were looked at should be scaled: from the next reading on they are. @note Collective.
    bool needs_scaling(Context& context) {
        const double largest = mpi::most_of(context.comm, largest_);
        int exponent = 0;
        std::frexp(largest, &exponent);
        if (scale_ != 1 || largest == 0 || std::abs(exponent) <= most_exponent) {
            return false;
        }
        scale_ = std::ldexp(1.0, -std::max(exponent, -1020));  // which must be a number itself
        return true;
    }

    /// Copies each lane's rows together, column by column. Not collective.
    void split() {
        const std::int64_t n = work_.n, all = here_.size();
        constexpr auto item = static_cast<std::int64_t>(sizeof(T));
        const int threads = threads_of_lane();
        parallel(steps_.lanes(), [&](int lane) {
            const grid::Range rows = of_lane(lane);
            const std::int64_t count = rows.size();
            T* to = panels_.data() + rows.begin * n;
            if (work_.by_columns()) {
                parallel_ranges(threads, n, [&](std::int64_t begin, std::int64_t end, int) {
                    for (std::int64_t column = begin; column < end; ++column) {
                        std::copy_n(rows_.data() + column * all + rows.begin, count, to + column * count);
                    }
                });
            } else if (count > 0) {
                kernel::transpose(rows_.raw() + rows.begin * n * item, n * item, count, n, sizeof(T),
                                  reinterpret_cast<std::byte*>(to), count * item, threads);
            }
        });
    }

    /// A lane's rows after split(), column by column.
    Strip<T> panel(int lane) const {
        const grid::Range rows = of_lane(lane);
        return {panels_.data() + rows.begin * work_.n, rows.size(), std::max<std::int64_t>(1, rows.size())};
    }

    /// Place for what is made of this step's rows, each of which becomes `columns` numbers, K ≤ n at most: instead of
    /// the panels, or of the rows as they were read. Row by row without gaps, or column by column.
    Strip<T> place(std::int64_t begin, std::int64_t columns, bool by_rows, bool instead_of_panels) const {
        T* all = (instead_of_panels ? panels_ : rows_).data();
        return by_rows ? Strip<T>{all + begin * columns, here_.size() - begin, columns}
                       : Strip<T>{all + begin, here_.size() - begin, here_.size()};
    }

    /// A lane's rows of W·v, v n×K, column by column, in place of the panels. Not collective.
    void multiply(int lane, const T* v, std::int64_t columns, bool by_rows) const {
        const grid::Range rows = of_lane(lane);
        if (rows.size() == 0) {
            return;
        }
        const bool stored = work_.by_columns();  // W column by column
        const T* w = rows_.data() + (stored ? rows.begin : rows.begin * work_.n);
        const auto [to, count, to_stride] = place(rows.begin, columns, by_rows, true);
        const int high = kernel::lapack_int(rows.size()), k = kernel::lapack_int(columns),
                  n = kernel::lapack_int(work_.n), ldw = stored ? kernel::lapack_int(here_.size()) : n;
        if (by_rows) {  // the transpose, column by column
            kernel::lapack::gemm("T", stored ? "T" : "N", k, high, n, 1.0, v, n, w, ldw, 0.0, to, k);
        } else {
            kernel::lapack::gemm(stored ? "N" : "T", "N", high, k, n, 1.0, w, ldw, v, n, 0.0, to,
                                 kernel::lapack_int(to_stride));
        }
    }

    /// All memory that is in place of the panels, or of the rows as they were read.
    std::byte* memory(bool of_panels) const { return (of_panels ? panels_ : rows_).raw(); }
    /// Gives the memory back until rows are loaded again.
    void rest() {
        rows_ = {};
        panels_ = {};
    }

private:
    grid::Share share(int rank, std::int64_t step) const {
        const grid::Range rows = steps_(rank, step);
        return grid::Block{rows, {0, rows.size() > 0 ? work_.n : 0}};
    }

    const Work& work_;
    const io::Region& a_;
    int rank_, threads_;
    io::Input input_;
    std::optional<io::Prefetch> prefetch_;
    TallSteps steps_;
    grid::Range here_;
    Array<T> rows_, panels_;
    FirstNotFinite wrong_;
    bool finite_ = true;
    double largest_ = 0, scale_ = 1;
};

template <class T> class LongFactor {
public:
    /// Gets the disk space. `file`: M×K row by row, or, `across`, K×N; it and the options must live as long as this.
    /// `scaled`: of U·diag(s), only where not `across`. @note Collective.
    LongFactor(Context& context, const io::Region& file, const std::optional<io::Region>& scaled, bool across,
               const Options& options)
        : file_(file),
          across_(across),
          scaled_(across ? std::nullopt : scaled),
          options_(options) {
        output_.emplace(context, file, options.write, options.hints, false);
        if (scaled_) {
            scaled_output_.emplace(context, *scaled_, options.write, options.hints, false);
        }
    }

    /// Writes what stands in `rows` instead of its panels, or of its rows as they were read; both are lost. @note
    /// Collective.
    void store(Context& context, const TallRows<T>& rows, std::int64_t step, bool instead_of_panels) {
        const Timed timed(context.ledger, Phase::output, "output");
        constexpr Dtype wide = kernel::is_complex_number<T> ? Dtype::complex128 : Dtype::float64;
        std::byte* data = rows.memory(instead_of_panels);
        if (file_.dtype != wide) {
            const Timed rounding(context.ledger, Phase::output, Step::convert, "round");
            std::byte* to = rows.memory(!instead_of_panels);
            const std::int64_t count = rows.here().size() * (across_ ? file_.rows : file_.columns);
            parallel_ranges(context.threads, count, [&](std::int64_t begin, std::int64_t end, int) {
                kernel::convert(data + begin * static_cast<std::int64_t>(sizeof(T)), wide, false,
                                to + begin * static_cast<std::int64_t>(size_of(file_.dtype)), file_.dtype, false,
                                end - begin);
            });
            data = to;
        }
        output_->store(context, [&](int rank) { return share(rows.steps(), rank, step); }, data);
    }

    /// Reads all of U again, with `rows` for its memory, and gives each column its sign; makes U·diag(s) meanwhile,
    /// where that is wanted. Nothing happens where nothing changes. @note Collective.
    void point(Context& context, const TallRows<T>& rows, const std::vector<Sign<T>>& ways,
               const std::vector<double>& sigma) {
        if (!scaled_ && std::all_of(ways.begin(), ways.end(), [](const Sign<T>& way) { return way == 1.0; })) {
            return;
        }
        const Timed timed(context.ledger, Phase::output, "signs");
        context.comm.barrier();  // what ranks wrote for each other is there
        const auto strategy = file_.memory != nullptr ? io::StrategyKind::independent : io::StrategyKind::positioned;
        const io::Input input(context, file_, strategy, {});
        output_.emplace(context, file_, options_.write, options_.hints, false);  // what was noted of it goes
        const TallSteps& steps = rows.steps();
        std::byte *u = rows.memory(false), *us = scaled_ ? rows.memory(true) : nullptr;
        const auto item = static_cast<std::int64_t>(size_of(file_.dtype)) * std::ssize(ways);
        for (std::int64_t step = 0; step < steps.count(); ++step) {
            const auto wanted = [&](int rank) { return share(steps, rank, step); };
            input.load_raw(context, wanted, u);
            const bool narrow = real_type(file_.dtype) == Dtype::float32;
            parallel_ranges(context.threads, steps(context.comm.rank(), step).size(),
                            [&](std::int64_t begin, std::int64_t end, int) {
                                std::byte *here = u + begin * item,
                                          *scaled = us != nullptr ? us + begin * item : nullptr;
                                if constexpr (kernel::is_complex_number<T>) {
                                    narrow ? turn<std::complex<float>>(here, scaled, end - begin, ways, sigma)
                                           : turn<T>(here, scaled, end - begin, ways, sigma);
                                } else {
                                    narrow ? turn<float>(here, scaled, end - begin, ways, sigma)
                                           : turn<T>(here, scaled, end - begin, ways, sigma);
                                }
                            });
            output_->store(context, wanted, u);
            if (scaled_output_) {
                scaled_output_->store(context, wanted, us);
            }
        }
    }

    /// @note Collective.
    void finish(Context& context, bool sync) {
        output_->finish(context, sync);
        if (scaled_output_) {
            scaled_output_->finish(context, sync);
        }
    }

private:
    grid::Share share(const TallSteps& steps, int rank, std::int64_t step) const {
        const grid::Range rows = steps(rank, step), columns{0, rows.size() == 0 ? 0
                                                               : across_        ? file_.rows
                                                                                : file_.columns};
        return across_ ? grid::Block{columns, rows} : grid::Block{rows, columns};
    }

    const io::Region& file_;
    bool across_;
    std::optional<io::Region> scaled_;
    const Options& options_;
    std::optional<io::Output> output_;
    std::optional<io::Output> scaled_output_;
};

/// The triangles before each panel of a rank's chains while they are wanted, in a file without a name beside `output`:
/// where there is room for that, there is some for what it is made of. Any thread may keep and recall. Throws IoError.
template <class T> class TriangleFile {
public:
    /// Numbers of a triangle as it is kept.
    static std::int64_t packed(std::int64_t columns) { return columns * (columns + 1) / 2; }

    /// `output`: a path, or empty for something in memory.
    TriangleFile(const std::string& output, std::int64_t columns, int lanes)
        : bytes_(packed(columns) * static_cast<std::int64_t>(sizeof(T))),
          lanes_(lanes),
          folder_(output.empty() ? std::filesystem::temp_directory_path().string()
                                 : std::filesystem::absolute(output).parent_path().string()),
          file_(folder_, folder_, io::PosixFile::Mode::scratch) {}

    void keep(std::int64_t step, int lane, const Array<T>& packed) const {
        file_.write(packed.raw(), bytes_, place(step, lane));
    }
    void recall(std::int64_t step, int lane, const Array<T>& packed) const {
        file_.read(packed.raw(), bytes_, place(step, lane));
    }

private:
    std::int64_t place(std::int64_t step, int lane) const { return (step * lanes_ + lane) * bytes_; }

    std::int64_t bytes_, lanes_;
    std::string folder_;
    io::PosixFile file_;
};

}  // namespace tilewise::svd
