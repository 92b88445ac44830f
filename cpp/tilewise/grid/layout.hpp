// Who owns which block of A, B and C in a product, and who needs which piece of A and B in which step: plain integers,
// made before anybody communicates.
// And who computes which half of a symmetric matrix that is cut into blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewise/grid/grid.hpp"

namespace tilewise::grid {

/// One step of one rank: C += A(:, k)·B(k, :) with both panels over the same range of k.
struct Step {
    Range k;          ///< the range of the inner dimension
    int a_owner = 0;  ///< the rank (of the layer) whose block of A holds this panel
    int b_owner = 0;  ///< the same for B
    Range a_local;    ///< where k lies within the owner's block of A
    Range b_local;    ///< and within the owner's block of B

    bool operator==(const Step&) const = default;
};

/// How panels come to those who need them: around a torus (Cannon), or from their owner to its row or column (SUMMA).
enum class Flow { torus, panels };

/// What an algorithm says of the ranks of one layer of p × q, which share the range `k_all` of the inner dimension.
struct Schedule {
    Flow flow;
    /// Which of q parts of k_all the columns of a rank's block of A are at the beginning, and which of p parts the rows
    /// of its block of B.
    int (*a_part)(Grid grid, Place place);
    int (*b_part)(Grid grid, Place place);
    /// The steps of a rank, in panels at most `width` wide where the algorithm cuts them.
    std::vector<Step> (*steps)(Grid grid, Range k_all, Remainder remainder, std::int64_t width, Place place);
};

/// Cannon's q steps on a q × q torus: rank (i, j) multiplies A(i, k)·B(k, j) with k = i+j, i+j+1, … modulo q.
/// Owners are named by where a block lies after the initial skew: rank (i, j) owns A(i, i+j) and B(i+j, j).
extern const Schedule cannon;

/// SUMMA's steps on any grid: panels are cut wherever the owner of A's columns (the grid's columns share k_all) or of
/// B's rows (the grid's rows share k_all) changes. Same cuts on every rank.
extern const Schedule summa;

/// Elements that a rank must receive: panels whose owner is somebody else. `m` and `n` are its rows and columns of C.
std::int64_t received_elements(const std::vector<Step>& steps, int rank, std::int64_t m, std::int64_t n);

/// The shape of a product: C (m×n) = A (m×k) · B (k×n).
struct Shape {
    std::int64_t m = 0, n = 0, k = 0;
};

/// Ranks are `copies` layers of p × q; layer l computes the share of k that is its own, and the layers' results are
/// added. There may be more ranks than places: those beyond are layers, the last perhaps not full, whose blocks are
/// empty and which have no steps.
///
///     A, one layer, p × q = 2 × 3     B                    C
///       k0  k1  k2                      n0  n1  n2           n0  n1  n2
///     m0 [0] [1] [2]                k0 [0] [1] [2]       m0 [0] [1] [2]
///     m1 [3] [4] [5]                k1 [3] [4] [5]       m1 [3] [4] [5]
///
/// For cannon A's blocks of row i are rotated left by i, and B's of column j up by j, so that each rank begins with
/// blocks that match.
class Layout {
public:
    Layout(Shape shape, Grid grid, int copies, const Schedule& schedule, Remainder remainder = Remainder::spread,
           std::int64_t panel_width = 768);

    Shape shape() const { return shape_; }
    Grid grid() const { return grid_; }
    int copies() const { return copies_; }
    /// Ranks that have a place.
    int size() const { return grid_.size() * copies_; }
    bool has_place(int rank) const { return rank < size(); }
    Flow flow() const { return schedule_.flow; }

    int layer(int rank) const { return rank / grid_.size(); }
    int in_layer(int rank) const { return rank % grid_.size(); }
    Place place(int rank) const { return grid_.place(in_layer(rank)); }

    /// Blocks at the beginning, in coordinates of the whole matrices. Within a layer, A's and B's cover its share of k
    /// once.
    Block a(int rank) const;
    Block b(int rank) const;
    /// The block of C that a rank sums up; the same for all layers.
    Block c(int rank) const;
    /// The rows of it that are the rank's own once the layers are added.
    Block c_owned(int rank) const;

    /// The steps of a rank; owners are ranks within its layer.
    std::vector<Step> steps(int rank) const;

private:
    Range k_of_layer(int layer) const { return Partition(shape_.k, copies_, remainder_)[layer]; }

    Shape shape_;
    Grid grid_;
    int copies_;
    Schedule schedule_;
    Remainder remainder_;
    std::int64_t panel_width_;
};

/// A rank's part in C = Cᵀ, of which each off-diagonal element is computed once. In coordinates of the whole of C.
///
///     p × q = 2 × 2     [ \ # | # # ]   1 computes the upper half of what it shares with 2, which computes the mirror
///                       [ . \ | . . ]   image of the lower half; blocks on the diagonal are computed on and above it.
///                       [ . # | \ # ]   So each rank computes half of its block, whatever the grid.
///                       [ . # | . \ ]
struct SymmetricPart {
    /// What two ranks owe each other: this rank computes `sent`; `filled`, of its own block, is the mirror image of
    /// what the partner computes. Both rectangles may be empty.
    struct Swap {
        int partner;
        Block sent, filled;
    };

    std::vector<Block> computed;  ///< without overlaps; of squares on the diagonal what is on and above it
    std::vector<Block> mirrored;  ///< those of them whose mirror image is in the same block
    std::vector<Swap> swaps;      ///< in an order in which all ranks can do them one after the other
};

/// A rectangle, counted from where the block that it lies in begins.
inline Block within(const Block& rectangle, const Block& block) {
    const auto [rows, columns] = rectangle;
    return {{rows.begin - block.rows.begin, rows.end - block.rows.begin},
            {columns.begin - block.columns.begin, columns.end - block.columns.begin}};
}

/// `layout` must have one layer and a square C. There are as many rectangles as `threads` of each rank need.
SymmetricPart symmetric_part(const Layout& layout, int rank, int threads);

}  // namespace tilewise::grid
