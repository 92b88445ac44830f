// Brings consecutive elements together from all who own some of them, in the file's order, or deals them out: what is
// done before anything is written by panels, and after it is read by pieces.
#pragma once

#include <vector>

#include "tilewise/io/elements.hpp"

namespace tilewise::io {

/// Brings what anybody has of elements `ranges[rank]` to that rank: into `rows`, in the file's order; what nobody has
/// stays as it was there. `packed` has room for as many elements. Messages go only between ranks that have something
/// for each other. @note Collective.
void gather(const Context& context, const Transfer& transfer, const Shares& shares,
            const std::vector<grid::Range>& ranges, std::byte* packed, std::byte* rows);

/// The other way: `rows` are this rank's elements in the file's order, and what anybody wants of all ranks' `ranges`
/// comes into its share. @note Collective.
void scatter(const Context& context, const Transfer& transfer, const Shares& shares,
             const std::vector<grid::Range>& ranges, const std::byte* rows, std::byte* packed);

}  // namespace tilewise::io
