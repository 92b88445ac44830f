// Whether a file holds what the sweeps make of the input: recomputed from the input's file with the plain kernel,
// without a grid, an exchange or a depth.
#pragma once

#include "tilewise/stencil/stencil.hpp"

namespace tilewise::stencil {

inline constexpr std::int64_t patch_side = 24;  ///< rows and columns of a patch that is recomputed
/// Points times sweeps up to which all are swept again: a few milliseconds, beside which patches save nothing.
inline constexpr std::int64_t points_swept_again = 2'000'000;
/// Beyond that, one of so many points that were swept may be swept again for patches.
inline constexpr std::int64_t points_per_patch_point = 250;
inline constexpr std::int64_t proof_band_bytes = std::int64_t{4} << 20;  ///< of a file that is read again

/// How a plane was cut, as it is stored: where faults are most likely.
struct Seams {
    grid::Partition rows, columns;
};

/// `sweeps` of each plane. `fast`: patches are recomputed out of the cells that they depend on, dealt out to the ranks,
/// and compared bit by bit with the file: always the last corner of the last plane, and of the first plane the
/// middlemost place where blocks meet by `seams` (where there is one block its middle); then corners, edges, seams and
/// places drawn by a fixed seed, while all together cost less than `points_per_patch_point` says. `serial`: rank 0
/// alone recomputes everything. Memory: two fields of a patch with all that it depends on (`serial`: of a plane), and
/// as much again for the numbers of the files. @note Collective.
Verification verify(Context& context, const io::Region& from, const io::Region& to, Dtype dtype, const Options& options,
                    const std::vector<std::int64_t>& sweeps, const Seams& seams);

}  // namespace tilewise::stencil
