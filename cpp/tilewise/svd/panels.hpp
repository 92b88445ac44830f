// Reads a matrix of any size in panels, each of which is multiplied with a few vectors before the next one takes its
// place.
//
//     rows stored          ranks   lanes (threads)        at most 4096 stored rows that are longer than the matrix is
//     [ = = = = = = = ]    ┐       0 ┐ panel after        high are cut across, and the matrix seen from the side:
//     [ = = = = = = = ]    │ 0       ┘ panel                  [ | | ¦ | | ]
//     [ - - - - - - - ]    ┘       1                          [ | | ¦ | | ]      ranks 0 and 1, panels of columns,
//     [ = = = = = = = ]    ┐ 1                                [ | | ¦ | | ]      each a piece of every row
//     [ = = = = = = = ]    ┘
//
// A view has `height` rows, which are dealt out in panels, and `width` columns; it is the matrix or its transpose.
#pragma once

#include <functional>
#include <memory>

#include "tilewise/io/file.hpp"
#include "tilewise/io/strategy/mapped.hpp"
#include "tilewise/io/transfer.hpp"
#include "tilewise/kernel/product/gemm.hpp"

namespace tilewise::svd {

/// Which side of the stored matrix is cut into panels. `longer` takes the columns only of a single binary file with few
/// rows.
enum class PanelAxis { longer, rows, columns };

struct PanelOptions {
    /// `mapped`, `positioned`: each lane for itself; others: panel after panel, by all ranks together.
    io::StrategyKind read = io::StrategyKind::positioned;
    io::Hints hints;
    std::int64_t bytes =
        0;  ///< most bytes of panels in a node's memory, but for one row of each lane; 0: as caches like it
    std::int64_t vectors = 1;  ///< that are kept for each column of the view
    PanelAxis axis = PanelAxis::longer;
    int lanes = 0;  ///< 0: as suits the vectors
};

class Panels {
public:
    static constexpr std::int64_t lane_panel_bytes = std::int64_t{1} << 20;     ///< what a second-level cache holds
    static constexpr std::int64_t shared_panel_bytes = std::int64_t{16} << 20;  ///< where all threads share a panel
    static constexpr std::int64_t lane_vector_bytes = std::int64_t{8} << 20;    ///< more, and threads share a panel
    static constexpr std::int64_t least_panel_rows = 32;                        ///< a product with fewer is slow
    /// Of a panel of columns: bytes of each stored row, and the most rows, that is pieces.
    static constexpr std::int64_t piece_bytes = 4096, most_pieces = 4096;

    /// Told rows [rows.begin, rows.end) of the view, as a matrix of numbers of the type asked for. A lane is on one
    /// thread, and meets rows in their order.
    using Use = std::function<void(int lane, grid::Range rows, const kernel::Operand& panel)>;

    /// `type`: float32 or float64, or a complex one for a complex matrix. `region` must live as long as this. Throws
    /// the same Error on every rank. @note Collective.
    Panels(Context& context, const io::Region& region, Dtype type, const PanelOptions& options);
    ~Panels();
    Panels(const Panels&) = delete;
    Panels& operator=(const Panels&) = delete;

    std::int64_t height() const { return height_; }
    std::int64_t width() const { return width_; }
    /// Whether rows of the view are columns of the matrix.
    bool transposed() const { return by_columns_ != region_.stored_transposed(); }
    /// This rank's rows of the view.
    grid::Range mine() const;
    /// Threads that have panels of their own; where the vectors are too large for each to have some, one lane uses all
    /// threads.
    int lanes() const { return lanes_; }
    int threads_of_lane() const { return threads_ / lanes_; }
    /// Most rows of a panel.
    std::int64_t panel_rows() const { return panel_rows_; }
    /// Memory that a lane needs.
    std::int64_t bytes_of_lane() const;
    /// From now on panels hold the matrix times `factor`.
    void scale_by(double factor) { factor_ = factor; }

    /// Shows all rows of this rank. Panels end at multiples of `chunk` rows, counted from the first, and all panels of
    /// a chunk have the same lane. Reading is booked where lane 0 waits for it. An exception of `use` is thrown on
    /// every rank. @note Collective.
    void walk(Context& context, std::int64_t chunk, const Use& use);
    /// Any rows of the view, for a lane that keeps them until it takes others. Only of single binary files that are
    /// read `mapped` or `positioned`. Not collective.
    kernel::Operand take(Context& context, int lane, grid::Range rows) const;

private:
    struct Lane;

    bool by_all() const { return input_ != nullptr; }
    void choose_shape(const PanelOptions& options, int node_ranks);
    void walk_lanes(Context& context, std::int64_t chunk, const Use& use);
    void walk_together(Context& context, std::int64_t chunk, const Use& use);
    kernel::Operand get(Context& context, Lane& lane, grid::Range rows) const;
    std::int64_t read(std::byte* to, const io::PosixFile& file, grid::Range rows) const;
    void want_next(const Lane& lane, grid::Range rows) const;
    kernel::Operand numbers(Lane& lane, const std::byte* raw, std::int64_t stride, grid::Range rows) const;

    const io::Region& region_;
    Dtype type_;
    int ranks_, rank_, threads_, lanes_ = 1;
    bool mapped_, by_columns_ = false;
    double factor_ = 1;
    std::int64_t height_ = 0, width_ = 0, panel_rows_ = 1;
    io::Mapping mapping_;
    std::unique_ptr<io::Input> input_;
    std::vector<std::unique_ptr<Lane>> states_;
};

}  // namespace tilewise::svd
