// Which passes there are, and what a pass does.
// Pieces of a halo as messages: dense in memory of the exchange that they are packed into, as rectangles of the
// field, or cell by cell.
//
//     field, datatype      [ . . . . . . ]        packed
//                          [ . a b . . . ]          [ a b c d e f ]
//                          [ . c d . . . ]
//                          [ . e f . . . ]
#include "tilewise/stencil/evolution.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "tilewise/base/names.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/stencil/fields.hpp"

namespace tilewise::stencil {
namespace {

/// Between a piece in a field and a dense rectangle.
void copy_piece(const Fields& fields, int field, const Piece& piece, std::byte* dense, bool out) {
    const std::int64_t row_bytes = piece.here.columns.size() * fields.item();
    const std::int64_t pitch = fields.shape().pitch * fields.item();
    std::byte* cells = fields.at(field, piece.here.rows.begin, piece.here.columns.begin);
    mpi::copy_rows(out ? cells : dense, out ? pitch : row_bytes, out ? dense : cells, out ? row_bytes : pitch,
                   piece.here.rows.size(), row_bytes);
}

/// Parts smaller than this spend more time on sweeping their surroundings than on themselves.
constexpr std::int64_t least_slice = 64;
constexpr std::int64_t most_slices = 4;

/// Of the parts that have a neighbour other than themselves.
std::int64_t smallest_part(const Layout& layout) {
    std::int64_t smallest = std::numeric_limits<std::int64_t>::max();
    for (const grid::Partition& cut : {layout.rows(), layout.columns()}) {
        for (int part = 0; cut.parts() > 1 && part < cut.parts(); ++part) {
            smallest = std::min(smallest, cut[part].size());
        }
    }
    return smallest;
}

/// Margins deeper than for the longest pass that there is would carry cells that nobody looks at.
std::int64_t longest_pass(const Options& options) {
    std::int64_t sweeps = options.steps;
    if (options.snapshot_every > 0) {
        sweeps = std::min(sweeps, options.snapshot_every);
    }
    if (options.until_change > 0) {  // the sweep that is looked at is a pass of its own
        sweeps = std::min(sweeps, options.check_every - 1);
    }
    return std::max<std::int64_t>(1, sweeps);
}

/// Of one block with edges all around nobody fills a margin, and no sweep looks there.
std::int64_t margin_of(const Options& options, const Layout& layout, std::int64_t reach) {
    return layout.ranks() == 1 && options.boundary != kernel::Boundary::periodic ? 0 : reach;
}

kernel::Edges edges_of(const Layout& layout, int rank, bool periodic) {
    const grid::Place place = layout.place(rank);
    return {!periodic && place.row == 0, !periodic && place.row + 1 == layout.rows().parts(),
            !periodic && place.column == 0, !periodic && place.column + 1 == layout.columns().parts()};
}

template <class T> double largest_change(const Fields& fields, int field, std::int64_t begin, std::int64_t end) {
    T most = 0;
    for (std::int64_t row = begin; row < end; ++row) {
        const T* before = reinterpret_cast<const T*>(fields.at(field, row, 0));
        const T* after = reinterpret_cast<const T*>(fields.at(1 - field, row, 0));
        bool finite = true;
        for (std::int64_t column = 0; column < fields.shape().columns; ++column) {
            const T change = std::abs(after[column] - before[column]);
            most = change > most ? change : most;
            finite = finite && change <= std::numeric_limits<T>::max();
        }
        if (!finite) {
            return std::numeric_limits<double>::infinity();
        }
    }
    return static_cast<double>(most);
}

}  // namespace

HaloForm halo_named(std::string_view name) { return static_cast<HaloForm>(index_of(halo_names, name, "halo")); }

void check_exchange(ExchangeKind kind, HaloForm form, int ranks) {
    if (kind == ExchangeKind::none && ranks > 1) {
        throw UsageError("exchange 'none' works on one rank only");
    }
    if (form == HaloForm::elementwise && kind > ExchangeKind::overlap) {
        throw UsageError(
            "--halo elementwise works with the exchanges synchronous, blocking, nonblocking and overlap, not with " +
            std::string(mpi::name_of(kind)));
    }
    if (form == HaloForm::datatype && kind == ExchangeKind::shared) {
        throw UsageError("--halo datatype does not work with the exchange shared, which sends nothing; use packed");
    }
}

void copy_wrapped(const Fields& fields, const std::vector<Piece>& wrapped, int field) {
    const std::int64_t stride = fields.shape().pitch * fields.item();
    for (const Piece& piece : wrapped) {
        mpi::copy_rows(fields.at(field, piece.there.rows.begin, piece.there.columns.begin), stride,
                       fields.at(field, piece.here.rows.begin, piece.here.columns.begin), stride,
                       piece.here.rows.size(), piece.here.columns.size() * fields.item());
    }
}

Margins::Margins(const Context& context, const Halo& halo, const Fields& fields, ExchangeKind kind, HaloForm form)
    : fields_(fields),
      form_(form),
      packs_(form == HaloForm::packed && kind != ExchangeKind::shared),
      outgoing_(halo.outgoing(context.comm.rank())),
      incoming_(halo.incoming(context.comm.rank())),
      wrapped_(halo.wrapped(context.comm.rank())) {
    is_needed_ = !wrapped_.empty() || context.comm.size() > 1;
    mpi::Setting setting{.comm = context.comm, .ledger = context.ledger, .dtype = fields.dtype()};
    for (int field = 0; field < (packs_ ? 1 : 2); ++field) {
        setting.sets.push_back({messages(outgoing_, field), messages(incoming_, field)});
    }
    if (!packs_) {
        setting.memory = {fields.memory(), static_cast<std::size_t>(2 * fields.stride())};
    }
    if (kind == ExchangeKind::shared) {
        setting.exposed = &fields.exposed();
    }
    exchange_ = mpi::make_exchange(kind, setting);
}

std::vector<mpi::Message> Margins::messages(const std::vector<Piece>& pieces, int field) const {
    std::vector<mpi::Message> found;
    for (const Piece& piece : pieces) {
        const grid::Block& cells = piece.here;
        if (form_ == HaloForm::elementwise) {
            for (std::int64_t row = cells.rows.begin; row < cells.rows.end; ++row) {
                for (std::int64_t column = cells.columns.begin; column < cells.columns.end; ++column) {
                    found.push_back({piece.peer, piece.side, 1, 1, fields_.at(field, row, column)});
                }
            }
            continue;
        }
        found.push_back({piece.peer, piece.side, cells.rows.size(), cells.columns.size(),
                         packs_ ? nullptr : fields_.at(field, cells.rows.begin, cells.columns.begin),
                         packs_ ? 0 : fields_.shape().pitch});
    }
    return found;
}

void Margins::begin(int field) {
    for (std::size_t i = 0; packs_ && i < outgoing_.size(); ++i) {
        copy_piece(fields_, field, outgoing_[i], exchange_->place(i), true);
    }
    exchange_->start(packs_ ? std::size_t{0} : static_cast<std::size_t>(field));
}

void Margins::finish(int field) {
    copy_wrapped(fields_, wrapped_, field);
    if (packs_) {
        exchange_->complete([&](std::size_t index, const std::byte* data) {
            copy_piece(fields_, field, incoming_[index], const_cast<std::byte*>(data), false);  // it is only read
        });
    } else {
        exchange_->complete();
    }
}

int Evolution::agreed_depth(const kernel::Weights& weights) {
    const std::int64_t room = smallest_part(layout_) / weights.radius;
    int depth = options_.depth;
    if (depth == 0) {
        depth = static_cast<int>(std::min<std::int64_t>(sweeper_.best_steps(), std::max<std::int64_t>(1, room)));
    }
    depth = static_cast<int>(std::min<std::int64_t>(depth, longest_pass(options_)));
    mpi::together(context_.comm, [&] {
        if (depth > room) {
            throw UsageError("--depth " + std::to_string(depth) + " with weights of radius " +
                             std::to_string(weights.radius) + " needs margins of " +
                             std::to_string(std::int64_t{depth} * weights.radius) +
                             " cells, and the smallest block has " + std::to_string(smallest_part(layout_)) +
                             "; use a smaller --depth or fewer ranks");
        }
    });
    return depth;
}

Evolution::Evolution(Context& context, const Options& options, const kernel::Weights& weights, const Layout& layout,
                     Dtype dtype)
    : context_(context),
      options_(options),
      radius_(weights.radius),
      sweeper_(weights, options.boundary, dtype, options.plain),
      layout_(layout),
      depth_(agreed_depth(weights)),
      edges_(edges_of(layout, context.comm.rank(), options.boundary == kernel::Boundary::periodic)),
      halo_(layout, margin_of(options, layout, std::int64_t{depth_} * weights.radius),
            options.boundary == kernel::Boundary::periodic, depth_ > 1 || has_corners(weights)),
      exchange_(options.exchange) {
    const grid::Block mine = layout.block(context.comm.rank());
    fields_ = std::make_shared<Fields>(
        context, kernel::field_shape(mine.rows.size(), mine.columns.size(), halo_.margin(), dtype), dtype,
        exchange_ == ExchangeKind::shared);
    margins_.emplace(context_, halo_, *fields_, exchange_, options.halo);
}

Evolution::Pass Evolution::next_pass(std::int64_t done) const {
    std::int64_t sweeps = std::min<std::int64_t>(depth_, options_.steps - done);
    if (options_.snapshot_every > 0) {
        sweeps = std::min(sweeps, options_.snapshot_every - done % options_.snapshot_every);
    }
    bool checked = false;
    if (options_.until_change > 0) {
        const std::int64_t to_check = options_.check_every - done % options_.check_every;
        checked = to_check == 1;
        sweeps = std::min(sweeps, checked ? 1 : to_check - 1);
    }
    return {static_cast<int>(sweeps), checked};
}

State Evolution::run(std::int64_t begun, const AtState& snapshot, const AtState& between, double before, double share) {
    State state{.sweeps = begun};
    moved_ = 0;
    while (state.sweeps < options_.steps) {
        const Pass next = next_pass(state.sweeps);
        pass(state.field, next.sweeps);
        state.field = 1 - state.field;
        state.sweeps += next.sweeps;
        if (next.checked) {  // first of all, as a snapshot is staged in the other field
            state.change = change(1 - state.field);
            state.diverged = std::isfinite(*state.change) ? 0 : not_finite(state.field);
            if (state.diverged > 0) {
                break;
            }
        }
        if (options_.snapshot_every > 0 && state.sweeps % options_.snapshot_every == 0 &&
            state.sweeps < options_.steps) {
            snapshot(state.sweeps, state.field);
        }
        if (next.checked && *state.change < options_.until_change) {
            break;
        }
        if (state.sweeps < options_.steps) {
            between(state.sweeps, state.field);
        }
        context_.report(Phase::compute,
                        before + share * static_cast<double>(state.sweeps) / static_cast<double>(options_.steps));
    }
    state.moved = moved_;
    return state;
}

void Evolution::sweep(int field, const kernel::Part& part, int sweeps) {
    if (part.row_begin < part.row_end && part.column_begin < part.column_end) {
        const Timed timed(context_.ledger, Phase::compute, "sweep");
        moved_ += sweeper_.sweep(fields_->shape(), edges_, (*fields_)[field], (*fields_)[1 - field], part, sweeps,
                                 context_.threads);
    }
}

void Evolution::pass(int field, int sweeps) {
    if (margins_->is_needed()) {
        if (exchange_ == ExchangeKind::overlap) {
            pass_with_overlap(field, sweeps);
            return;
        }
        const Timed timed(context_.ledger, Phase::exchange, "exchange");
        margins_->begin(field);
        margins_->finish(field);
    }
    sweep(field, {0, fields_->shape().rows, 0, fields_->shape().columns}, sweeps);
}

//     [ t t t t t t ]      while margins fly, the inside i, which needs none of them, slice after slice;
//     [ l i i i i r ]      then the rim: top, bottom, left, right
//     [ l i i i i r ]
//     [ b b b b b b ]      along an edge of the matrix there is no rim
void Evolution::pass_with_overlap(int field, int sweeps) {
    const std::int64_t rows = fields_->shape().rows, columns = fields_->shape().columns;
    const std::int64_t reach = std::int64_t{sweeps} * radius_;
    const std::int64_t top = edges_.top ? 0 : std::min(reach, rows), left = edges_.left ? 0 : std::min(reach, columns);
    const std::int64_t bottom = std::max(top, edges_.bottom ? rows : rows - reach),
                       right = std::max(left, edges_.right ? columns : columns - reach);
    {
        const Timed timed(context_.ledger, Phase::exchange, "begin");
        margins_->begin(field);
    }
    const grid::Partition slices(
        bottom - top,
        static_cast<int>(std::clamp((bottom - top) / std::max(least_slice, 16 * reach), std::int64_t{1}, most_slices)));
    for (int slice = 0; slice < slices.parts(); ++slice) {
        sweep(field, {top + slices[slice].begin, top + slices[slice].end, left, right}, sweeps);
        const Timed timed(context_.ledger, Phase::exchange, "");
        margins_->progress();
    }
    {
        const Timed timed(context_.ledger, Phase::exchange, "finish");
        margins_->finish(field);
    }
    sweep(field, {0, top, 0, columns}, sweeps);
    sweep(field, {bottom, rows, 0, columns}, sweeps);
    sweep(field, {top, bottom, 0, left}, sweeps);
    sweep(field, {top, bottom, right, columns}, sweeps);
}

double Evolution::change(int field) const {
    double mine = 0;
    {
        const Timed timed(context_.ledger, Phase::compute, "change");
        std::vector<double> found(static_cast<std::size_t>(std::max(1, context_.threads)));
        parallel_ranges(fields_->shape().elements < (std::int64_t{1} << 17) ? 1 : context_.threads,
                        fields_->shape().rows, [&](std::int64_t begin, std::int64_t end, int thread) {
                            found[static_cast<std::size_t>(thread)] =
                                fields_->dtype() == Dtype::float32
                                    ? largest_change<float>(*fields_, field, begin, end)
                                    : largest_change<double>(*fields_, field, begin, end);
                        });
        mine = *std::max_element(found.begin(), found.end());
    }
    const Timed timed(context_.ledger, Phase::exchange, "agree");
    return mpi::most_of(context_.comm, mine);
}

std::int64_t Evolution::not_finite(int field) const {
    std::int64_t mine = 0;
    {
        const Timed timed(context_.ledger, Phase::compute, "not finite");
        for (std::int64_t row = 0; row < fields_->shape().rows; ++row) {
            mine += kernel::count_not_finite(fields_->at(field, row, 0), fields_->shape().columns, fields_->dtype());
        }
    }
    const Timed timed(context_.ledger, Phase::exchange, "agree");
    return mpi::sum_of(context_.comm, mine);
}

}  // namespace tilewise::stencil
