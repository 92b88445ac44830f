// The rows of a tall matrix that are in memory, one step after another, in either direction; and the long factor, U, or
// Vᵀ where A is wide, which takes their place and is written step by step, and the triangles, which lie in a file
// between the two readings.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tilewise/base/array.hpp"
#include "tilewise/grid/grid.hpp"
#include "tilewise/io/background.hpp"
#include "tilewise/io/file.hpp"
#include "tilewise/kernel/scalar.hpp"
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

/// W's rows of a step, as the file has them, and the same cut into lanes; what is made of them takes the place of the
/// one or of the other. Memory, in numbers: 2·(most rows of a step)·n.
template <class T> class TallRows {
public:
    /// Opens the file. `work` and `a` must live as long as this. @note Collective.
    TallRows(Context& context, const Work& work, const io::Region& a, const Options& options);

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
    void load(Context& context, std::int64_t step, std::int64_t next);
    /// Looks for numbers that are not finite, and for the largest; false once there was one on this rank. Not
    /// collective.
    bool look();
    /// After a reading: UsageError on every rank for the first number that is not finite. @note Collective.
    void refuse_not_finite(Context& context) { wrong_.refuse(context, a_); }
    /// Whether the numbers that were looked at should be scaled: from the next reading on they are. @note Collective.
    bool needs_scaling(Context& context);
    /// Copies each lane's rows together, column by column. Not collective.
    void split();
    /// A lane's rows after split(), column by column.
    Strip<T> panel(int lane) const;
    /// Place for what is made of this step's rows, each of which becomes `columns` numbers, K ≤ n at most: instead of
    /// the panels, or of the rows as they were read. Row by row without gaps, or column by column.
    Strip<T> place(std::int64_t begin, std::int64_t columns, bool by_rows, bool instead_of_panels) const;
    /// A lane's rows of W·v, v n×K, column by column, in place of the panels. Not collective.
    void multiply(int lane, const T* v, std::int64_t columns, bool by_rows) const;
    /// All memory that is in place of the panels, or of the rows as they were read.
    std::byte* memory(bool of_panels) const { return (of_panels ? panels_ : rows_).raw(); }
    /// Gives the memory back until rows are loaded again.
    void rest() {
        rows_ = {};
        panels_ = {};
    }

private:
    grid::Share share(int rank, std::int64_t step) const;

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
               const Options& options);

    /// Writes what stands in `rows` instead of its panels, or of its rows as they were read; both are lost. @note
    /// Collective.
    void store(Context& context, const TallRows<T>& rows, std::int64_t step, bool instead_of_panels);
    /// Reads all of U again, with `rows` for its memory, and gives each column its sign; makes U·diag(s) meanwhile,
    /// where that is wanted. Nothing happens where nothing changes. @note Collective.
    void point(Context& context, const TallRows<T>& rows, const std::vector<Sign<T>>& ways,
               const std::vector<double>& sigma);
    /// @note Collective.
    void finish(Context& context, bool sync);

private:
    grid::Share share(const TallSteps& steps, int rank, std::int64_t step) const;

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
