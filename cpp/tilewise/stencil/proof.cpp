// Whether a file holds what the sweeps make of the input: recomputed from the input's file with the plain kernel,
// without a grid, an exchange or a depth.
//
// Recomputes rectangles of a plane, sweep by sweep, from what lies around them in the input.
//
//     rows and columns that the patch depends on       each sweep needs `radius` cells less on every side
//       [ . . . . . . . ]                                 [ 1 1 1 1 1 ]
//       [ . . . . . . . ]     one sweep, two sweeps       [ 1 2 2 2 1 ]
//       [ . . . P . . . ]                                 [ 1 2 P 2 1 ]
//       [ . . . . . . . ]                                 [ 1 2 2 2 1 ]
//
// A side at an edge of the matrix stays where it is; a periodic direction that is needed from end to end goes round in
// itself.
//
// Design: docs/design/stencil.md
#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/random.hpp"
#include "tilewise/kernel/codec/checksum.hpp"
#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/stencil/evolution.hpp"
#include "tilewise/stencil/fields.hpp"
#include "tilewise/stencil/stencil.hpp"

namespace tilewise::stencil {
namespace {

constexpr std::size_t most_patches = 24, always = 2;
constexpr std::int64_t worth_threads_of_proof = std::int64_t{1} << 17;  // numbers

/// One direction of what a patch depends on, counted from the patch's first plane cell; beyond 0 and `count` in a
/// periodic direction.
struct Reach {
    grid::Range patch, needed;
    bool at_begin = false, at_end = false;  ///< edges of the matrix
    bool ring = false;                      ///< the whole of a periodic direction
};

Reach reach_of(grid::Range patch, std::int64_t count, std::int64_t deep, bool periodic) {
    Reach reach{patch, {patch.begin - deep, patch.end + deep}};
    if (!periodic) {
        reach.needed = grid::common(reach.needed, {0, count});
        reach.at_begin = reach.needed.begin == 0;
        reach.at_end = reach.needed.end == count;
    } else if (reach.needed.size() >= count) {
        reach.needed = {0, count};
        reach.ring = true;
    }
    return reach;
}

/// Its cells that are right after all but `left` cells' worth of sweeps, in the field's coordinates.
grid::Range right_cells(const Reach& reach, std::int64_t left) {
    const std::int64_t begin = reach.needed.begin;
    if (reach.ring) {
        return {0, reach.needed.size()};
    }
    return {reach.at_begin ? 0 : std::max<std::int64_t>(0, reach.patch.begin - left - begin),
            reach.at_end ? reach.needed.size() : std::min(reach.needed.size(), reach.patch.end + left - begin)};
}

struct Patch {
    std::int64_t plane = 0;
    grid::Block cells;
};

class Proof {
public:
    /// Both files are opened by this rank alone.
    Proof(Context& alone, const io::Region& from, const io::Region& to, Dtype dtype, const Options& options)
        : alone_(alone),
          from_(from),
          to_(to),
          dtype_(dtype),
          periodic_(options.boundary == kernel::Boundary::periodic),
          planes_(from, options.planes),
          weights_(planes_.transposed ? transposed(options.weights) : options.weights),
          sweeper_(weights_, options.boundary, dtype, true),
          source_(alone, from, io::StrategyKind::positioned, {}),
          result_(alone, to, io::StrategyKind::positioned, {}) {}

    /// Numbers of the patch that the file holds differently.
    std::int64_t differences(const Patch& patch, std::int64_t sweeps) {
        const std::int64_t deep = sweeps * weights_.radius;
        const Reach down = reach_of(patch.cells.rows, planes_.rows, deep, periodic_),
                    across = reach_of(patch.cells.columns, planes_.columns, deep, periodic_);
        const Fields fields(alone_,
                            kernel::field_shape(down.needed.size(), across.needed.size(), weights_.radius, dtype_),
                            dtype_, false);
        load(patch.plane, down, across, fields);
        // A direction that goes round is a block with itself as its neighbour.
        const Layout layout(down.needed.size(), across.needed.size(), {1, 1}, grid::Remainder::spread, false);
        const Halo halo(layout, weights_.radius, true, true);
        int field = 0;
        for (std::int64_t done = 0; done < sweeps; ++done, field = 1 - field) {
            if (down.ring || across.ring) {
                copy_wrapped(fields, halo.wrapped(0), field);
            }
            const std::int64_t left = deep - (done + 1) * weights_.radius;
            const grid::Range rows = right_cells(down, left), columns = right_cells(across, left);
            sweeper_.sweep(fields.shape(), {down.at_begin, down.at_end, across.at_begin, across.at_end}, fields[field],
                           fields[1 - field], {rows.begin, rows.end, columns.begin, columns.end}, 1,
                           fields.shape().elements < worth_threads_of_proof ? 1 : alone_.threads);
        }
        return compare(patch, down, across, fields, field);
    }

private:
    void load(std::int64_t plane, const Reach& down, const Reach& across, const Fields& fields) {
        const grid::Partition rows(planes_.rows, 1), columns(planes_.columns, 1);
        for (const Stretch& r : pieces(rows, down.needed)) {
            for (const Stretch& c : pieces(columns, across.needed)) {
                // In bands, so that what was read takes little memory beside the fields.
                const std::int64_t item = static_cast<std::int64_t>(size_of(from_.dtype)),
                                   height = std::max<std::int64_t>(1, proof_band_bytes / item / c.there.size());
                for (std::int64_t row = 0; row < r.there.size(); row += height) {
                    const std::int64_t end = std::min(row + height, r.there.size());
                    const grid::Block there{{r.there.begin + row, r.there.begin + end}, c.there};
                    memory_.grow(there.size() * item);
                    source_.load_raw(alone_, [&](int) { return planes_.wanted(plane, there); }, memory_.data());
                    fill_field(memory_.data(), from_.dtype, from_.swap_bytes && from_.generator.empty(), fields, 0,
                               {{r.here.begin + row, r.here.begin + end}, c.here}, 1);
                }
            }
        }
    }

    /// A range that may lie beyond [0, count) on both sides, as what there is of it; `here` counts from its begin.
    std::vector<Stretch> pieces(const grid::Partition& whole, grid::Range needed) const {
        return stretches(whole, {needed.begin, needed.begin}, 0, needed.size(), periodic_);
    }

    std::int64_t compare(const Patch& patch, const Reach& down, const Reach& across, const Fields& fields, int field) {
        const std::int64_t item = static_cast<std::int64_t>(size_of(to_.dtype)), width = patch.cells.columns.size(),
                           height =
                               std::max<std::int64_t>(1, proof_band_bytes / item / std::max<std::int64_t>(1, width));
        const bool transposed = to_.stored_transposed() != planes_.transposed;
        std::int64_t count = 0;
        for (std::int64_t row = patch.cells.rows.begin; row < patch.cells.rows.end; row += height) {
            const grid::Block cells{{row, std::min(row + height, patch.cells.rows.end)}, patch.cells.columns};
            const std::int64_t bytes = cells.size() * item;
            memory_.grow(2 * bytes);
            std::byte *expected = memory_.data(), *found = memory_.data() + bytes;
            take_from_field(fields, field,
                            {{cells.rows.begin - down.needed.begin, cells.rows.end - down.needed.begin},
                             {cells.columns.begin - across.needed.begin, cells.columns.end - across.needed.begin}},
                            expected, to_.dtype, false, 1);
            result_.load_raw(alone_, [&](int) { return planes_.wanted(patch.plane, cells); }, found);
            if (to_.swap_bytes) {
                kernel::swap_bytes(found, found, cells.size(), size_of(to_.dtype));
            }
            if (!is_integer(to_.dtype)) {  // what a NaN says besides depends on which of two an addition kept
                kernel::make_nans_equal(expected, cells.size(), size_of(to_.dtype));
                kernel::make_nans_equal(found, cells.size(), size_of(to_.dtype));
            }
            for (std::int64_t i = 0; i < cells.rows.size(); ++i) {
                for (std::int64_t j = 0; j < width; ++j) {
                    const std::int64_t there = transposed ? j * cells.rows.size() + i : i * width + j;
                    count += std::memcmp(expected + (i * width + j) * item, found + there * item,
                                         static_cast<std::size_t>(item)) != 0;
                }
            }
        }
        return count;
    }

    Context& alone_;
    const io::Region &from_, &to_;
    Dtype dtype_;
    bool periodic_;
    Planes planes_;
    kernel::Weights weights_;
    kernel::Sweeper sweeper_;
    io::Input source_, result_;
    Array<std::byte> memory_;
};

/// Where parts meet in the middle of a direction, or the middle itself where there is one part.
std::int64_t middle_seam(const grid::Partition& cut) {
    return cut.parts() > 1 ? cut[cut.parts() / 2].begin : cut.count() / 2;
}

/// Patches in order of importance: the last corner, a crossing of seams, then places in turn where
/// something may go wrong.
std::vector<Patch> patches_of(const Planes& planes, const Seams& seams) {
    std::vector<std::int64_t> rows{planes.rows, 0}, columns{planes.columns, 0};
    for (int part = 1; part < seams.rows.parts(); ++part) {
        rows.push_back(seams.rows[part].begin);
    }
    for (int part = 1; part < seams.columns.parts(); ++part) {
        columns.push_back(seams.columns[part].begin);
    }
    const auto around = [](std::int64_t at, std::int64_t count) -> grid::Range {
        const std::int64_t begin =
            std::clamp<std::int64_t>(at - patch_side / 2, 0, std::max<std::int64_t>(0, count - patch_side));
        return {begin, std::min(begin + patch_side, count)};
    };
    std::vector<Patch> patches;
    const std::uint64_t key = row_key(0x7374656E63696Cu, static_cast<std::uint64_t>(planes.points()));
    const auto draw = [&](std::size_t index, std::int64_t count) {
        return static_cast<std::int64_t>(uniform(random_bits(key, index)) * static_cast<double>(count));
    };
    for (std::size_t i = 0; i < most_patches; ++i) {
        Patch patch{planes.count - 1, {around(rows[0], planes.rows), around(columns[0], planes.columns)}};
        if (i == 1) {
            patch = {
                0, {around(middle_seam(seams.rows), planes.rows), around(middle_seam(seams.columns), planes.columns)}};
        } else if (i > 1) {
            patch.plane = draw(4 * i, planes.count);
            const bool drawn = i % 4 == 3;
            const std::int64_t row = i % 4 == 1 || drawn
                                         ? draw(4 * i + 1, planes.rows)
                                         : rows[static_cast<std::size_t>(draw(4 * i + 1, std::ssize(rows)))];
            const std::int64_t column = i % 4 == 2 || drawn
                                            ? draw(4 * i + 2, planes.columns)
                                            : columns[static_cast<std::size_t>(draw(4 * i + 2, std::ssize(columns)))];
            patch.cells = {around(row, planes.rows), around(column, planes.columns)};
        }
        patches.push_back(patch);
    }
    return patches;
}

std::vector<Patch> whole_planes(const Planes& planes) {
    std::vector<Patch> patches;
    for (std::int64_t plane = 0; plane < planes.count; ++plane) {
        patches.push_back({plane, {{0, planes.rows}, {0, planes.columns}}});
    }
    return patches;
}

/// The part of all numbers that lies in a patch. Patches may overlap, so they are laid over a grid of all their edges.
double covered(const std::vector<Patch>& patches, const Planes& planes) {
    std::set<std::int64_t> rows, columns;
    for (const Patch& patch : patches) {
        rows.insert({patch.cells.rows.begin, patch.cells.rows.end});
        columns.insert({patch.cells.columns.begin, patch.cells.columns.end});
    }
    std::int64_t count = 0;
    for (std::int64_t plane = 0; plane < planes.count; ++plane) {
        for (auto row = rows.begin(); row != rows.end() && std::next(row) != rows.end(); ++row) {
            for (auto column = columns.begin(); column != columns.end() && std::next(column) != columns.end();
                 ++column) {
                const bool within = std::any_of(patches.begin(), patches.end(), [&](const Patch& patch) {
                    return patch.plane == plane && patch.cells.rows.begin <= *row && *row < patch.cells.rows.end &&
                           patch.cells.columns.begin <= *column && *column < patch.cells.columns.end;
                });
                count += within ? (*std::next(row) - *row) * (*std::next(column) - *column) : 0;
            }
        }
    }
    const std::int64_t all = planes.count * planes.points();
    return all > 0 ? static_cast<double>(count) / static_cast<double>(all) : 1;
}

/// Cells that are swept to recompute a patch, about.
double work_of(const Patch& patch, const Planes& planes, std::int64_t sweeps, std::int64_t radius) {
    const auto along = [&](std::int64_t size, std::int64_t count) {
        return static_cast<double>(std::min(count, size + sweeps * radius));  // on the average over the sweeps
    };
    return static_cast<double>(sweeps) * along(patch.cells.rows.size(), planes.rows) *
           along(patch.cells.columns.size(), planes.columns);
}

/// What `fast` looks at: everything where that is next to nothing, else the patches that are worth it.
std::vector<Patch> chosen_patches(const Planes& planes, const Seams& seams, const std::vector<std::int64_t>& sweeps,
                                  const Options& options) {
    const auto points = static_cast<double>(planes.points());
    // By the steps that were asked for, as the memory for this was planned by them.
    if (points * static_cast<double>(planes.count * std::max<std::int64_t>(1, options.steps)) <= points_swept_again) {
        return whole_planes(planes);
    }
    double left = 0;
    for (const std::int64_t of_plane : sweeps) {
        left += points * static_cast<double>(of_plane) / points_per_patch_point;
    }
    std::vector<Patch> chosen;
    for (const Patch& patch : patches_of(planes, seams)) {
        const double work =
            work_of(patch, planes, sweeps[static_cast<std::size_t>(patch.plane)], options.weights.radius);
        if (chosen.size() < always || work <= left) {
            left -= work;
            chosen.push_back(patch);
        }
    }
    return chosen;
}

}  // namespace

Verification verify(Context& context, const io::Region& from, const io::Region& to, Dtype dtype, const Options& options,
                    const std::vector<std::int64_t>& sweeps, const Seams& seams) {
    const Timed timed(context.ledger, Phase::verify, "verify");
    const io::Region written = io::as_written(context, to);
    const Planes planes(from, options.planes);
    const bool fast = options.verify == Verify::fast;
    const std::vector<Patch> patches = fast ? chosen_patches(planes, seams, sweeps, options) : whole_planes(planes);
    std::vector<Patch> mine;
    for (std::size_t i = 0; i < patches.size(); ++i) {
        if (static_cast<int>(fast ? i % static_cast<std::size_t>(context.comm.size()) : 0) == context.comm.rank()) {
            mine.push_back(patches[i]);
        }
    }
    std::int64_t found = 0;
    const mpi::Communicator self(MPI_COMM_SELF);
    mpi::together(context.comm, [&] {
        if (!mine.empty()) {
            Context alone{self, context.ledger, context.threads};
            Proof proof(alone, from, written, dtype, options);
            for (const Patch& patch : mine) {
                found += proof.differences(patch, sweeps[static_cast<std::size_t>(patch.plane)]);
            }
        }
    });
    const std::int64_t all = mpi::sum_of(context.comm, found);
    return {.method = fast ? "fast" : "serial",
            .passed = all == 0,
            .error = static_cast<double>(all),
            .share = covered(patches, planes)};
}

}  // namespace tilewise::stencil
