// The memory of both fields is got at once. Row by row numbers go through the cache, whatever the types, and by all
// threads.
#include "tilewise/stencil/fields.hpp"

#include <atomic>
#include <cmath>

#include "tilewise/base/threads.hpp"
#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/kernel/transpose/transpose.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::stencil {
namespace {

constexpr std::int64_t worth_threads = std::int64_t{1} << 16;  // numbers

template <class T> void round_row(const std::byte* row, std::int64_t count, std::byte* rounded) {
    for (std::int64_t i = 0; i < count; ++i) {
        reinterpret_cast<T*>(rounded)[i] = std::nearbyint(reinterpret_cast<const T*>(row)[i]);
    }
}

int threads_for(const grid::Block& cells, int threads) { return cells.size() < worth_threads ? 1 : threads; }

void make(const mpi::Communicator& comm, Buffer& buffer, std::int64_t bytes) {
    mpi::together(comm, [&] {
        if (static_cast<std::int64_t>(buffer.bytes()) < bytes) {
            buffer = Buffer(static_cast<std::size_t>(bytes));
        }
    });
}

}  // namespace

Fields::Fields(const Context& context, const kernel::FieldShape& shape, Dtype dtype, bool shared)
    : shape_(shape),
      dtype_(dtype) {
    const auto bytes = static_cast<std::size_t>(2 * stride());
    if (!shared) {
        mpi::together(context.comm, [&] { own_ = Buffer(bytes); });
        memory_ = own_.data();
        return;
    }
    exposed_ = mpi::allocate_on_one_node(context.comm, bytes);
    memory_ = exposed_.data;
}

void Fields::touch(int threads) const {
    constexpr std::int64_t worth_threads = std::int64_t{4} << 20;  // bytes
    parallel_ranges(stride() < worth_threads ? 1 : threads, 2 * stride() / page,
                    [&](std::int64_t begin, std::int64_t end, int) {
                        for (std::int64_t index = begin; index < end; ++index) {
                            memory_[index * page] = std::byte{0};
                        }
                    });
}

std::int64_t fill_field(const std::byte* dense, Dtype from, bool swap_bytes, const Fields& fields, int field,
                        const grid::Block& cells, int threads, std::int64_t line) {
    const std::int64_t width = cells.columns.size(),
                       row_bytes = (line > 0 ? line : width) * static_cast<std::int64_t>(size_of(from));
    std::atomic<std::int64_t> found = 0;
    parallel_ranges(threads_for(cells, threads), cells.rows.size(), [&](std::int64_t begin, std::int64_t end, int) {
        std::int64_t mine = 0;
        for (std::int64_t i = begin; i < end; ++i) {
            std::byte* row = fields.at(field, cells.rows.begin + i, cells.columns.begin);
            kernel::convert(dense + i * row_bytes, from, swap_bytes, row, fields.dtype(), false, width);
            if (!is_integer(from)) {
                mine += kernel::count_not_finite(row, width, fields.dtype());
            }
        }
        found += mine;
    });
    return found;
}

Tally take_from_field(const Fields& fields, int field, const grid::Block& cells, std::byte* dense, Dtype to,
                      bool swap_bytes, int threads) {
    const std::int64_t width = cells.columns.size(), row_bytes = width * static_cast<std::int64_t>(size_of(to));
    const bool rounded = is_integer(to);
    std::atomic<std::int64_t> non_finite = 0, held = 0;
    parallel_ranges(threads_for(cells, threads), cells.rows.size(), [&](std::int64_t begin, std::int64_t end, int) {
        std::vector<std::byte> buffer(rounded ? static_cast<std::size_t>(width * fields.item()) : 0);
        Tally mine;
        for (std::int64_t i = begin; i < end; ++i) {
            const std::byte* row = fields.at(field, cells.rows.begin + i, cells.columns.begin);
            const std::int64_t found = kernel::count_not_finite(row, width, fields.dtype());
            mine.non_finite += found;
            if (rounded) {  // conversion alone would cut the fraction off
                fields.dtype() == Dtype::float32 ? round_row<float>(row, width, buffer.data())
                                                 : round_row<double>(row, width, buffer.data());
                row = buffer.data();
            }
            const std::int64_t lost =
                kernel::convert(row, fields.dtype(), false, dense + i * row_bytes, to, swap_bytes, width);
            mine.held += rounded ? lost - found : lost;  // an integer can be neither NaN nor infinite
        }
        non_finite += mine.non_finite;
        held += mine.held;
    });
    return {non_finite, held};
}

Source::Source(Context& context, const io::Region& region, const Layout& layout, const Planes& planes,
               const Options& options)
    : region_(region),
      layout_(layout),
      planes_(planes),
      input_(context, region, options.read, options.hints),
      keep_(options.repeat > 1 || options.warmup > 0) {}

void Source::read(Context& context, std::int64_t plane, const Fields& fields) {
    const std::int64_t bytes =
        layout_.block(context.comm.rank()).size() * static_cast<std::int64_t>(size_of(region_.dtype));
    std::byte* raw = fields[1];
    if (keep_ || size_of(region_.dtype) > size_of(fields.dtype())) {
        make(context.comm, own_, bytes);
        raw = own_.data();
    }
    input_.load_raw(context, [&](int rank) { return planes_.wanted(plane, layout_.block(rank)); }, raw);
    raw_ = raw;
}

std::int64_t Source::fill(const Context& context, const Fields& fields) const {
    // A generated matrix is made in this machine's byte order.
    return fill_field(raw_, region_.dtype, region_.swap_bytes && region_.generator.empty(), fields, 0,
                      own_cells(layout_, context.comm.rank()), context.threads);
}

Sink::Sink(Context& context, const io::Region& region, const Planes& planes, io::StrategyKind write,
           const io::Hints& hints)
    : region_(region),
      planes_(planes),
      output_(context, region, write, hints, false) {}

Tally Sink::write(Context& context, std::int64_t plane, const BlockOf& block_of, const Fields& fields, int field,
                  const grid::Block& cells, Staging& staging) {
    const auto item = static_cast<std::int64_t>(size_of(region_.dtype));
    context.comm.barrier();  // neighbours may still read the other field
    std::byte* dense = fields[1 - field];
    Tally lost;
    if (item > fields.item()) {
        make(context.comm, staging.wide, cells.size() * item);
        dense = staging.wide.data();
    }
    {
        const Timed timed(context.ledger, context.ledger.phase(), Step::convert, "round");
        mpi::together(context.comm, [&] {
            lost = take_from_field(fields, field, cells, dense, region_.dtype, region_.swap_bytes, context.threads);
        });
        if (region_.stored_transposed() != planes_.transposed) {
            make(context.comm, staging.transposed, cells.size() * item);
            mpi::together(context.comm, [&] {
                kernel::transpose(dense, cells.columns.size() * item, cells.rows.size(), cells.columns.size(),
                                  static_cast<std::size_t>(item), staging.transposed.data(), cells.rows.size() * item,
                                  context.threads);
            });
            dense = staging.transposed.data();
        }
    }
    output_.store(context, [&](int rank) { return planes_.wanted(plane, block_of(rank)); }, dense);
    return lost;
}

}  // namespace tilewise::stencil
