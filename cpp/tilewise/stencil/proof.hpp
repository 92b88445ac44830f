// Whether a file holds what the sweeps make of the input: recomputed from the input's file with the plain kernel,
// without a grid, an exchange or a depth.
#pragma once

#include "tilewise/stencil/stencil.hpp"

namespace tilewise::stencil {

/// `sweeps` of each plane. `fast`: patches are recomputed out of the cells that they depend on, dealt out to the ranks,
/// and compared bit by bit with the file: always the last corner of the last plane, and of the first plane the
/// middlemost place where ranks' blocks meet (on one rank its middle); then corners, edges, seams and places drawn by a
/// fixed seed, while all together cost less than four thousandths of the points that were swept. `serial`: rank 0 alone
/// recomputes everything. Memory: two fields of a patch with all that it depends on (`serial`: of a plane), and as much
/// again for the numbers of the files. @note Collective.
Verification verify(Context& context, const io::Region& from, const io::Region& to, Dtype dtype, const Options& options,
                    const std::vector<std::int64_t>& sweeps);

}  // namespace tilewise::stencil
