// The road of one product: lay out, read, step by step exchange and compute, add layers, prove, write.
#include "tilewise/multiply/multiply.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/work.hpp"
#include "tilewise/io/corrupt_for_test.hpp"
#include "tilewise/io/strategy/mapped.hpp"
#include "tilewise/io/transfer.hpp"
#include "tilewise/mpi/repeat.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/multiply/block_product.hpp"
#include "tilewise/multiply/early_output.hpp"

namespace tilewise::multiply {
namespace {

/// Slices of k between which a progress bar may move.
constexpr std::int64_t slice_without = 768;

/// Of the real and imaginary parts of a rank's block; infinity where one is not finite.
double largest_part(const Part& block, Dtype dtype) {
    return with_compute_type(dtype, [&](auto tag) -> double {
        using T = typename decltype(tag)::type;
        if constexpr (std::is_integral_v<T>) {
            return 0;
        } else {
            using Real = decltype(std::abs(T{}));
            const auto* parts = reinterpret_cast<const Real*>(block.operand.data);
            const std::int64_t count =
                without_numbers() ? 0 : block.block.size() * static_cast<std::int64_t>(sizeof(T) / sizeof(Real));
            Real largest = 0;
            bool finite = true;
            for (std::int64_t i = 0; i < count; ++i) {
                const Real size = std::abs(parts[i]);
                finite = finite && size <= std::numeric_limits<Real>::max();
                largest = std::max(largest, size);
            }
            return finite ? static_cast<double>(largest) : std::numeric_limits<double>::infinity();
        }
    });
}

class ProductInMemory {
public:
    ProductInMemory(Context& context, const io::Region& a, const io::Region& b, const io::Region* c, Dtype dtype,
                    const Options& options, const grid::Layout& layout, const Halving& halving)
        : context_(context),
          a_(a),
          b_(b),
          c_(c),
          dtype_(dtype),
          options_(options),
          layout_(layout),
          arithmetic_(context, layout_, dtype, options_, halving),
          rank_(context.comm.rank()),
          layer_(context.comm.split(layout_.layer(rank_), layout_.in_layer(rank_))) {
        outcome_.halving = halving;
    }

    Outcome operator()() {
        prepare();
        read();
        outcome_.samples = mpi::repeat(
            context_, options_.warmup, options_.repeat, [&](bool last) { multiply_once(last); },
            [&](bool first) {
                if (!first) {
                    const Timed timed(context_.ledger, Phase::exchange, "back to the start");
                    exchange_->rewind();
                }
            });
        if (!streams()) {
            show_to_check(c_owned(), c_data(c_owned()));
        }
        find_not_finite();
        if (check_) {
            const Timed timed(context_.ledger, Phase::verify, "Freivalds' check");
            outcome_.verification = conclude_check();
        }
        if (c_ != nullptr && (!outcome_.verification || outcome_.verification->passed)) {
            const Timed timed(context_.ledger, Phase::output, "output");
            write();
            if (options_.verify == Verify::serial) {
                const Timed checking(context_.ledger, Phase::verify, "serial product");
                outcome_.verification =
                    check_serially(context_, dtype_, a_, b_, io::as_written(context_, *c_), outcome_.halving.growth);
            }
        }
        return std::move(outcome_);
    }

private:
    Side side(const io::Region& region, bool is_a) const {
        return side_of(layout_, rank_, region, dtype_, is_a, b_lies_in_a());
    }

    /// On one row of ranks each step's panel of A has all rows, so that B's columns are among them.
    bool b_lies_in_a() const { return options_.symmetric && layout_.grid().rows == 1; }
    /// Ranks write the mirror images of what they compute to where others have their blocks of C.
    bool shares_c() const { return options_.symmetric && options_.exchange == ExchangeKind::shared; }

    void prepare() {
        const Timed timed(context_.ledger, Phase::input, "allocate");
        steps_ = layout_.steps(rank_);
        const grid::Block c = layout_.c(rank_);
        const auto bytes = static_cast<std::size_t>(c.size()) * size_of(dtype_);
        exchange_ = make_exchange(
            options_.exchange, layout_.flow(),
            {context_, layer_, layout_.grid(), layout_.place(rank_), steps_, side(a_, true), side(b_, false)});
        if (shares_c()) {
            c_shared_ = mpi::allocate_on_one_node(context_.comm, bytes);
            c_data_ = c_shared_.data;
        }
        mpi::together(context_.comm, [&] {
            if (streams()) {
                early_output_.emplace(*c_);
            } else if (!shares_c()) {
                c_memory_ = Buffer(bytes);
                c_data_ = c_memory_.data();
            }
            if (options_.verify == Verify::fast) {
                check_ = make_random_check(dtype_, layout_.shape(), options_.kernel, outcome_.halving.growth);
            }
        });
        outcome_.working = c.size() > 0 && !steps_.empty();
        outcome_.ideal_exchanged = grid::received_elements(steps_, layer_.rank(), c.rows.size(), c.columns.size()) *
                                   static_cast<std::int64_t>(size_of(dtype_));
        outcome_.plain_flops = arithmetic_.plain_flops();
        outcome_.flops = arithmetic_.flops();
    }

    void read() {
        const Timed timed(context_.ledger, Phase::input, "input");
        const auto load = [&](const io::Region& region, grid::Block (grid::Layout::*block)(int) const,
                              std::byte* data) {
            io::Input(context_, region, options_.read, options_.hints)
                .load(context_, dtype_, [&](int rank) { return (layout_.*block)(rank); }, data);
        };
        if (!borrow(a_, a_map_, &Exchange::borrow_a)) {
            load(a_, &grid::Layout::a, exchange_->a_block());
        }
        context_.report(Phase::input, 0.5);
        if (!b_lies_in_a() && !borrow(b_, b_map_, &Exchange::borrow_b)) {
            load(b_, &grid::Layout::b, exchange_->b_block());
        }
        context_.report(Phase::input, 1);
        if (is_integer(dtype_) && options_.overflow == Overflow::refuse) {
            refuse_overflow(context_, dtype_, layout_.shape(), loaded(true), loaded(false));
        }
        if (outcome_.halving.levels > 0) {
            const Timed measuring(context_.ledger, Phase::compute, "lengths of rows and columns");
            refuse_unlike(context_, dtype_, layout_.shape(), loaded(true), loaded(false), outcome_.halving,
                          options_.tolerance);
        }
        if (check_) {
            const Timed checking(context_.ledger, Phase::verify, "norms of columns");
            check_->prepare(context_, loaded(false));
        }
        certainly_finite_ = is_certainly_finite();
        exchange_->open();
    }

    /// Whether the largest numbers of A and B say so of C; looked up where that takes less than a look at C, which a
    /// check takes anyway. @note Collective.
    bool is_certainly_finite() {
        const grid::Shape shape = layout_.shape();
        if (check_ || is_integer(dtype_) || outcome_.halving.levels > 0 ||
            4 * shape.k * (shape.m + shape.n) > shape.m * shape.n) {
            return is_integer(dtype_);
        }
        const Timed timed(context_.ledger, Phase::verify, "not finite");
        std::array<double, 2> largest{largest_part(loaded(true), dtype_), largest_part(loaded(false), dtype_)};
        mpi::join_over_ranks(context_.comm, largest.data(), std::ssize(largest), MPI_MAX);
        return 4 * static_cast<double>(shape.k) * largest[0] * largest[1] < largest_number(dtype_);
    }

    /// This rank's block of A or B, before anything moves.
    Part loaded(bool is_a) {
        if (!is_a && b_lies_in_a()) {
            return loaded(true).transposed();
        }
        const grid::Block block = is_a ? layout_.a(rank_) : layout_.b(rank_);
        const grid::Range inner{0, is_a ? block.columns.size() : block.rows.size()};
        return {side(is_a ? a_ : b_, is_a).in_block(block_data(is_a), layer_.rank(), inner), block};
    }

    const std::byte* block_data(bool is_a) {
        const auto& map = is_a ? a_map_ : b_map_;
        return map ? map->data() : is_a ? exchange_->a_block() : exchange_->b_block();
    }

    /// With `mapped` on one rank, numbers of the right type are computed with where the page cache has them: nothing is
    /// copied.
    bool borrow(const io::Region& region, std::optional<io::Mapping>& map, bool (Exchange::*take)(const std::byte*)) {
        if (options_.read != io::StrategyKind::mapped || context_.comm.size() > 1 ||
            !io::usable_in_place(region, dtype_)) {
            return false;
        }
        io::check_file(context_, region);
        const Timed timed(context_.ledger, Phase::input, Step::file, "map " + region.name);
        map.emplace(region, io::Direction::read);
        if (!(exchange_.get()->*take)(map->data())) {
            map.reset();
            return false;
        }
        map->populate(context_.threads);
        Counters& count = context_.ledger.count();
        count.read += region.bytes();
        count.useful += region.bytes();
        count.meanwhile += region.bytes();
        count.io_calls += 1;
        return true;
    }

    /// One rank with all of C can let go of its rows as soon as they are final: C then needs two small buffers,
    /// whatever its size. Strassen's product has none that are final before the end.
    bool streams() const {
        return c_ != nullptr && options_.write == io::StrategyKind::uncached && context_.comm.size() == 1 &&
               !options_.symmetric && !may_halve(options_.kernel, options_.tolerance) && c_->is_one_file() &&
               !c_->column_major && !c_->swap_bytes;
    }

    void write() {
        if (!streams()) {
            std::byte* data = to_file_layout(context_, *c_, c_owned(), c_data(c_owned()), c_transposed_);
            io::Output output(context_, *c_, options_.write, options_.hints, options_.read_back);
            output.store(context_, [this](int rank) { return grid::Share(layout_.c_owned(rank)); }, data);
            finish(output);
            return;
        }
        {
            const Timed timed(context_.ledger, Phase::output, Step::file, "wait for direct pwrite");
            context_.ledger.count().io_calls += early_output_->finish();
            context_.ledger.count().written += c_->bytes();
        }
        finish(*output_);
    }

    void finish(io::Output& output) {
        output.finish(context_, options_.sync);
        if (options_.read_back && !output.holds_what_was_written(context_)) {
            outcome_.verification = Verification{.method = "read_back", .passed = false, .error = 1};
        }
    }

    void multiply_once(bool last) {
        if (last && streams()) {
            const Timed timed(context_.ledger, Phase::output, "open");
            output_.emplace(context_, *c_, options_.write, options_.hints, options_.read_back);
            early_output_->open();
        }
        if (streams()) {
            multiply_by_parts(last);
            return;
        }
        arithmetic_.multiply_steps(*exchange_, steps_, b_lies_in_a(), c_data_, false,
                                   [this](double share) { context_.report(Phase::compute, share); });
        arithmetic_.complete(c_data_, c_shared_);
        add_layers(context_, layout_, dtype_, c_data_);
    }

    /// One rank, part after part of C's rows: compute, show to the check, hand over to be written.
    void multiply_by_parts(bool last) {
        const grid::Shape shape = layout_.shape();
        const StepPanels panels = steps_.empty() ? StepPanels{} : exchange_->fetch(0);
        for (std::size_t index = 0; index < early_output_->parts().size(); ++index) {
            const grid::Range rows = early_output_->parts()[index];
            std::byte* data = nullptr;
            {
                const Timed timed(context_.ledger, Phase::output, Step::file, "wait for a buffer");
                data = early_output_->buffer_for(index);
            }
            {
                const Timed timed(context_.ledger, Phase::compute, "gemm " + std::to_string(index));
                kernel::Product product =
                    kernel::rows_of({dtype_, shape.m, shape.n, shape.k, panels.a, panels.b, nullptr, shape.n}, rows);
                product.c = data;
                kernel::Between between;
                if (context_.progress) {
                    between = [&](double of_part) {
                        const double rows_done =
                            static_cast<double>(rows.begin) + of_part * static_cast<double>(rows.size());
                        context_.report(Phase::compute,
                                        rows_done / static_cast<double>(std::max<std::int64_t>(1, shape.m)));
                    };
                }
                kernel::gemm(product, context_.threads, options_.kernel, between, slice_without);
            }
            if (last) {
                show_to_check({rows, {0, shape.n}}, data);
                output_->note(c_->stored(grid::Block{rows, {0, shape.n}}), data);
                early_output_->submit(index);
            }
        }
    }

    grid::Block c_owned() const { return layout_.c_owned(rank_); }
    std::byte* c_data(const grid::Block& part) const {
        const grid::Block c = layout_.c(rank_);
        return c_data_ +
               (part.rows.begin - c.rows.begin) * c.columns.size() * static_cast<std::int64_t>(size_of(dtype_));
    }

    /// These rows of C are final. A test may want one of them to be wrong.
    void show_to_check(const grid::Block& block, std::byte* data) {
        const Timed timed(context_.ledger, Phase::verify, "C times random vectors");
        if (rank_ == 0) {
            io::corrupt_for_test(dtype_, data, block.size());
        }
        const Part part{{data, block.columns.size(), false}, block};
        outcome_.not_finite.c += check_              ? check_->see(context_, part)
                                 : certainly_finite_ ? 0
                                                     : NotFinite::of(context_, dtype_, part);
    }

    /// Blocks of A and B, all of which some rank has in the end.
    std::pair<Part, Part> held() {
        const Exchange::Held held = exchange_->held();
        const int first = layout_.layer(rank_) * layout_.grid().size();
        const Part a{held.a, layout_.a(first + held.a_owner)};
        return {a, b_lies_in_a() ? a.transposed() : Part{held.b, layout_.b(first + held.b_owner)}};
    }

    Verification conclude_check() {
        const auto [a, b] = held();
        return check_->conclude(context_, a, b);
    }

    /// @note Collective.
    void find_not_finite() {
        const Timed timed(context_.ledger, Phase::verify, "not finite");
        outcome_.not_finite.add_up(context_, [&] {
            const auto [a, b] = held();
            outcome_.not_finite.a = NotFinite::of(context_, dtype_, a);
            outcome_.not_finite.b = NotFinite::of(context_, dtype_, b);
        });
    }

    Context& context_;
    const io::Region &a_, &b_;
    const io::Region* c_;
    Dtype dtype_;
    const Options& options_;
    grid::Layout layout_;
    Arithmetic arithmetic_;
    int rank_;
    mpi::Communicator layer_;
    std::vector<grid::Step> steps_;
    std::unique_ptr<Exchange> exchange_;
    std::optional<io::Mapping> a_map_, b_map_;
    Buffer c_memory_;                          // the rank's block of C …
    mpi::Exposed c_shared_;                    // … or where the node's ranks can write to it …
    std::byte* c_data_ = nullptr;              // … which begins here …
    Buffer c_transposed_;                      // the same, transposed for a file that is stored column by column
    std::optional<EarlyOutput> early_output_;  // … or what it is streamed through
    std::optional<io::Output> output_;         // the checks around that
    std::unique_ptr<RandomCheck> check_;
    bool certainly_finite_ = false;  // all of C
    Outcome outcome_;
};

}  // namespace

Outcome multiply(Context& context, const io::Region& a, const io::Region& b, const io::Region* c, Dtype dtype,
                 const Options& options) {
    std::optional<grid::Layout> layout;
    Halving halving;
    mpi::together(context.comm, [&] {
        const grid::Shape shape = shape_of(a, b, options);
        if (options.stage.m > 0) {
            return;
        }
        layout = arrange(context.comm.size(), shape, options);
        halving = options.symmetric ? Halving{} : halving_of(*layout, dtype, options.kernel, options.tolerance);
    });
    if (!layout) {
        return multiply_streamed(context, a, b, c, dtype, options);
    }
    return mpi::no_return(context.comm,
                          [&] { return ProductInMemory(context, a, b, c, dtype, options, *layout, halving)(); });
}

}  // namespace tilewise::multiply
