// Who owns which block of A, B and C in a product, and in which steps it is computed: a value, made before anybody
// communicates.
#pragma once

#include <vector>

#include "tilewise/grid/schedule.hpp"

namespace tilewise::grid {

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

}  // namespace tilewise::grid
