// Strategies `two_phase` and `uncached`: contiguous panels between file and ranks, then an exchange of our own between
// the ranks.
//
//        file       [ panel of rank 0     | panel of rank 1     ]       each panel in stages of a bounded size:
//        stage s    [    ####             |    ####             ]       read by its rank in one piece, then sent,
//        shares       0 1 0 1 …              0 1 0 1 …                  each piece to its place in its owner's share
//
// What a rank gets out of a range of elements is consecutive in its share, so nothing is unpacked on arrival. Messages
// are sent one by one rather than by Alltoallv: only ranks that have something for each other take part, and no
// displacement has to fit 31 bits.
#pragma once

#include "tilewise/io/elements.hpp"

namespace tilewise::io {

inline constexpr std::int64_t standard_stage = std::int64_t{4} << 20;
inline constexpr std::int64_t uncached_stage = std::int64_t{4} << 20;

/// The panels of all ranks over a span of elements, and their stages. Borders fall on whole lines of a text, and on
/// pages of a binary file where its offset allows.
class Panels {
public:
    Panels(const Transfer& transfer, grid::Range span, int ranks, std::int64_t stage_bytes);

    std::int64_t stages() const { return stages_; }
    grid::Range stage(int rank, std::int64_t index) const;
    std::int64_t largest() const { return step_; }

private:
    std::int64_t border(int rank) const;
    std::int64_t aligned(std::int64_t element) const { return first_ + (element - first_) / unit_ * unit_; }

    grid::Range span_;
    int ranks_;
    std::int64_t unit_ = 1, first_ = 0;  // borders are first_ + a multiple of unit_
    std::int64_t step_ = 1, stages_ = 0;
};

/// Reads by panels of `file`, which every rank has opened; `ahead` reads the next stage while this one is exchanged.
/// @note Collective; a failure aborts.
void read_panels(Context& context, const Transfer& transfer, const Shares& shares, const Panels& panels,
                 const ElementFile& file, bool ahead);
void write_panels(Context& context, const Transfer& transfer, const Shares& shares, const Panels& panels,
                  const ElementFile& file, bool behind);

}  // namespace tilewise::io
