// C = A·B, by one road: tile after tile of C, and for each of them one range of k after another. Where all of it has
// room in memory there is one tile and one range, and the product is proved before it is written; else all ranks
// together hold one tile of C (`options.stage`), and of A and B as much of k as meets it at a time:
//
//           A                  B                   C
//         [ K0 | K1 | K2 ]   [ K0 |    | J ]      [   |   |   ]      C(I, J) += A(I, K) · B(K, J), all K in turn;
//       I [ ▓▓ |    |    ]   [ K1 |    | ▓ ]    I [   |   | ▓ ]      then C(I, J) is written
//         [    |    |    ]   [ K2 |    |   ]      [   |   |   ]
//
// Of A and B m·k·⌈n/stage.n⌉ + k·n·⌈m/stage.m⌉ numbers are read: with S numbers in a square tile of C 2·m·n·k/√S, and
// 2·m·n·k/√S − 2·S is the least that any order of the same operations can do with S numbers of memory (T. M. Smith,
// B. Lowery, J. Langou, R. A. van de Geijn, "A tight I/O lower bound for matrix multiplication", 2019).
// What is read next is asked for while the ranks compute. The check of a product in tiles reads A once more, and B
// twice.
//
// Design: docs/design/products.md
#include "tilewise/multiply/multiply.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/io/background.hpp"
#include "tilewise/io/corrupt_for_test.hpp"
#include "tilewise/io/transfer.hpp"
#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/mpi/repeat.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/multiply/block_product.hpp"
#include "tilewise/multiply/early_output.hpp"

namespace tilewise::multiply {
namespace {

/// The ranges of a length, each of `size` but the last.
std::vector<grid::Range> ranges(std::int64_t length, std::int64_t size) {
    std::vector<grid::Range> found;
    for (std::int64_t begin = 0; begin < std::max<std::int64_t>(length, 1); begin += size) {
        found.push_back({begin, std::min(length, begin + size)});
    }
    return found;
}

double work(const grid::Shape& part) {
    return static_cast<double>(part.m) * static_cast<double>(part.n) * static_cast<double>(part.k);
}

/// What is multiplied at a time at most.
grid::Shape stage_of(const grid::Shape& shape, const Options& options) {
    const auto least_one = [](std::int64_t size) { return std::max<std::int64_t>(size, 1); };
    return options.stage.m > 0 ? options.stage
                               : grid::Shape{least_one(shape.m), least_one(shape.n), least_one(shape.k)};
}

class Product {
public:
    /// `layout` is that of the first tile and range.
    Product(Context& context, const io::Region& a, const io::Region& b, const io::Region* c, Dtype dtype,
            const Options& options, const grid::Shape& shape, const grid::Layout& layout, const Halving& halving)
        : context_(context),
          a_(a),
          b_(b),
          c_(c),
          dtype_(dtype),
          options_(options),
          shape_(shape),
          m_(ranges(shape.m, stage_of(shape, options).m)),
          n_(ranges(shape.n, stage_of(shape, options).n)),
          k_(ranges(shape.k, stage_of(shape, options).k)) {
        outcome_.halving = halving;
        prepare(layout);
    }

    Outcome operator()() {
        if (whole()) {
            read();
        }
        refuse_what_overflows();
        if (c_ != nullptr) {
            begin_output();
        }
        for (const grid::Range& m : m_) {
            for (const grid::Range& n : n_) {
                if (journal_ && journal_->holds(stored({m, n}))) {
                    recall(m, n);
                    continue;
                }
                io::stop_together(context_, journal_.get());
                compute(m, n);
                if (output_ && !whole()) {
                    write(m, n);
                }
            }
            end_of_row(m);
        }
        find_not_finite();
        if (check_) {
            conclude_check();
        }
        if (output_ && (!outcome_.verification || outcome_.verification->passed)) {
            if (whole() && !early_output_) {
                write(m_.front(), n_.front());
            }
            finish();
        }
        count_operations();
        return std::move(outcome_);
    }

private:
    /// One tile and one range: all of the product is in memory.
    bool whole() const { return options_.stage.m == 0; }
    Window first() const { return {m_.front(), n_.front(), k_.front()}; }

    void prepare(const grid::Layout& layout) {
        const Timed timed(context_.ledger, Phase::input, "allocate");
        if (!whole()) {
            input_a_.emplace(context_, a_, options_.read, options_.hints, true);
            input_b_.emplace(context_, b_, options_.read, options_.hints, true);
            twice_ = input_a_->reads_ahead() || input_b_->reads_ahead();
        }
        blocks_[at_].emplace(context_, a_, b_, dtype_, options_, layout, outcome_.halving);
        if (options_.symmetric && options_.exchange == ExchangeKind::shared) {
            // Ranks write the mirror images of what they compute to where others have their blocks of C.
            c_shared_ =
                mpi::allocate_on_one_node(context_.comm, static_cast<std::size_t>(blocks().c_block().size() * item()));
        }
        mpi::together(context_.comm, [&] {
            if (lets_go_early()) {
                early_output_.emplace(*c_);
            } else if (c_shared_.data == nullptr) {
                c_memory_.grow(blocks().c_block().size() * item());
            }
            if (options_.verify == Verify::fast) {
                check_ = make_random_check(dtype_, shape_, options_.kernel, outcome_.halving.growth);
            }
            if (!whole() && options_.write == io::StrategyKind::positioned && c_ != nullptr) {
                writeback_.emplace(*c_);
            }
        });
        outcome_.working = blocks().works();
    }

    /// One rank with all of C can let go of its rows as soon as they are final: C then needs two small buffers,
    /// whatever its size. Strassen's product has none that are final before the end.
    bool lets_go_early() const {
        return whole() && c_ != nullptr && options_.write == io::StrategyKind::uncached && context_.comm.size() == 1 &&
               !options_.symmetric && !may_halve(options_.kernel, options_.tolerance) && c_->is_one_file() &&
               !c_->column_major && !c_->swap_bytes;
    }

    /// All of A and B.
    void read() {
        const Timed timed(context_.ledger, Phase::input, "input");
        for (const bool is_a : {true, false}) {
            const io::Region& region = is_a ? a_ : b_;
            if ((is_a || !blocks().b_lies_in_a()) && !blocks().borrow(is_a, region)) {
                blocks().load(is_a, io::Input(context_, region, options_.read, options_.hints), first());
            }
            context_.report(Phase::input, is_a ? 0.5 : 1);
        }
        if (outcome_.halving.levels > 0) {
            const Timed measuring(context_.ledger, Phase::compute, "lengths of rows and columns");
            refuse_unlike(context_, dtype_, shape_, blocks().part(true, first()), blocks().part(false, first()),
                          outcome_.halving, options_.tolerance);
        }
        if (!check_ && outcome_.halving.levels == 0) {  // a check looks at C anyway
            const Timed looking(context_.ledger, Phase::verify, "not finite");
            certainly_finite_ = is_certainly_finite(context_, dtype_, shape_, blocks().part(true, first()),
                                                    blocks().part(false, first()));
        }
    }

    /// In tiles by a bound that needs only the largest numbers: closer ones would take more passes. @note Collective.
    void refuse_what_overflows() {
        if (!is_integer(dtype_) || options_.overflow != Overflow::refuse) {
            return;
        }
        const Timed timed(context_.ledger, Phase::input, "largest numbers");
        if (whole()) {
            refuse_overflow(context_, dtype_, shape_, blocks().part(true, first()), blocks().part(false, first()));
            return;
        }
        std::array<double, 2> largest{};
        const auto see = [&](double& most, const Part& part) {
            most = std::max(most, kernel::largest_magnitude(part.operand.data, part.block.size(), dtype_));
        };
        over_a(shape_.m, [&](const Part& a) { see(largest[0], a); });
        over_b([&](const Part& b) { see(largest[1], b); });
        mpi::join_over_ranks(context_.comm, largest.data(), std::ssize(largest), MPI_MAX);
        mpi::together(context_.comm, [&] {
            if (!fits_certainly(dtype_, shape_.k, largest[0], largest[1])) {
                throw UsageError("the product could overflow " + std::string(name_of(dtype_)) +
                                     ", as far as the largest numbers of A and B tell",
                                 -1, 0, "--overflow wrap, floating-point inputs, or memory for all of the product");
            }
        });
    }

    void begin_output() {
        const Timed timed(context_.ledger, Phase::output, "output");
        output_.emplace(context_, *c_, options_.write, options_.hints, options_.read_back);
        journal_ = io::make_journal(context_, c_, options_.journal);
        if (journal_) {
            outcome_.resumed = journal_->resumed();
        }
        if (check_ && outcome_.resumed && outcome_.resumed->kept > 0) {  // not all of B comes by before C is seen
            const Timed checking(context_.ledger, Phase::verify, "norms of columns");
            over_b([&](const Part& b) { check_->measure(context_, b); });
            check_->weigh(context_, check_->columns());
            seen_ = Seen::nothing;
        }
    }

    // What the check wants to see of A and B comes by while C is computed, row of tiles after row of tiles, and only
    // what is left is looked at once more, and read for that where it is not in memory:
    //
    //     the first row    B: how long its columns are         the second    B: times random vectors
    //     all others       A: times what came of that          then          A of the first two rows, again
    //
    // Where a job goes on from tiles that are written, too little comes by.

    void show(const Window& window) {
        if (!check_ || seen_ == Seen::nothing || (seen_ == Seen::images && window.n.begin > 0)) {
            return;
        }
        const Timed timed(context_.ledger, Phase::verify, "A and B times random vectors");
        mpi::together(context_.comm, [&] {
            switch (seen_) {
                case Seen::norms:
                    check_->measure(context_, blocks().part(false, window));
                    break;
                case Seen::products:
                    check_->apply_b(context_, blocks().part(false, window));
                    break;
                default:
                    check_->apply_a(context_, blocks().part(true, window));
                    break;
            }
        });
        if (seen_ == Seen::norms && window.k.end == shape_.k) {
            check_->weigh(context_, window.n);
        }
    }

    /// @note Collective.
    void end_of_row(const grid::Range& m) {
        if (!check_ || seen_ == Seen::nothing) {
            return;
        }
        if (seen_ == Seen::products) {
            const Timed timed(context_.ledger, Phase::verify, "A and B times random vectors");
            check_->join(context_);
        }
        if (seen_ != Seen::images) {
            left_of_a_ = m.end;
            seen_ = seen_ == Seen::norms ? Seen::products : Seen::images;
        }
    }

    void conclude_check() {
        const Timed timed(context_.ledger, Phase::verify, "Freivalds' check");
        if (seen_ != Seen::images) {
            over_b([&](const Part& b) { check_->apply_b(context_, b); });
            check_->join(context_);
        }
        over_a(seen_ == Seen::images ? left_of_a_ : shape_.m, [&](const Part& a) { check_->apply_a(context_, a); });
        outcome_.verification = check_->judge(context_);
    }

    /// @note Collective.
    void find_not_finite() {
        const Timed timed(context_.ledger, Phase::verify, "not finite");
        outcome_.not_finite.add_up(context_, [&] {
            over_a(shape_.m, [&](const Part& a) { outcome_.not_finite.a += NotFinite::of(context_, dtype_, a); });
            over_b([&](const Part& b) { outcome_.not_finite.b += NotFinite::of(context_, dtype_, b); });
        });
    }

    // There are blocks for two windows, where a thread can read: one is multiplied, the other is being filled.

    BlockProduct& blocks() { return *blocks_[at_]; }
    const BlockProduct& blocks() const { return *blocks_[at_]; }
    void turn() { at_ = twice_ ? 1 - at_ : at_; }

    /// Makes the blocks at hand fit a window, where they have another shape. @note Collective.
    void blocks_for(const Window& window) {
        const grid::Shape wanted = window.shape();
        const auto same = [&](const grid::Shape& shape) {
            return shape.m == wanted.m && shape.n == wanted.n && shape.k == wanted.k;
        };
        std::optional<BlockProduct>& there = blocks_[at_];
        if (!there || !same(there->shape())) {
            input_a_->rest();
            input_b_->rest();
            BlockMemory spare = there ? there->give_memory() : BlockMemory{};
            there.reset();
            there.emplace(context_, a_, b_, dtype_, options_, arrange(context_.comm.size(), wanted, options_),
                          outcome_.halving, std::move(spare));
        }
    }

    /// Reads a window's blocks of A and B, or of one of them, to where that was begun, if it was; and begins to read
    /// what comes `next` into the other blocks, which all ranks have done with. @note Collective.
    void load(const Window& window, const std::optional<Window>& next, bool of_a, bool of_b) {
        turn();
        blocks_for(window);
        if (of_a) {
            blocks().load(true, *input_a_, window);
        }
        if (of_b) {
            blocks().load(false, *input_b_, window);
        }
        if (!next || !twice_) {
            return;
        }
        turn();
        blocks_for(*next);
        if (of_a) {
            blocks().begin(true, *input_a_, *next);
        }
        if (of_b) {
            blocks().begin(false, *input_b_, *next);
        }
        turn();
    }

    /// What is multiplied after the part `index` of k for a tile, the next tile's first part after its last.
    std::optional<Window> after(const grid::Range& m, const grid::Range& n, std::size_t index) const {
        if (index + 1 < k_.size()) {
            return Window{m, n, k_[index + 1]};
        }
        if (&n != &n_.back()) {
            return Window{m, *(&n + 1), k_.front()};
        }
        return &m != &m_.back() ? std::optional(Window{*(&m + 1), n_.front(), k_.front()}) : std::nullopt;
    }

    /// Shows all of B, or the rows of A before `end`, once, part after part, which is read where it is not in memory.
    /// @note Collective.
    template <class Visit> void over_b(const Visit& visit) {
        for (const grid::Range& n : n_) {
            for (std::size_t index = 0; index < k_.size(); ++index) {
                const Window window{m_.back(), n, k_[index]};
                if (!whole()) {
                    load(window, after(m_.back(), n, index), false, true);
                }
                visit(blocks().part(false, window));
            }
        }
    }
    template <class Visit> void over_a(std::int64_t end, const Visit& visit) {
        for (const grid::Range& m : m_) {
            for (std::size_t index = 0; index < k_.size() && m.begin < end; ++index) {
                const Window window{m, n_.back(), k_[index]};
                if (!whole()) {
                    const std::optional<Window> next = after(m, n_.back(), index);
                    load(window, next && next->m.begin < end ? next : std::nullopt, true, false);
                }
                visit(blocks().part(true, window));
            }
        }
    }

    void compute(const grid::Range& m, const grid::Range& n) {
        for (std::size_t index = 0; index < k_.size(); ++index) {
            const Window window{m, n, k_[index]};
            if (!whole()) {
                const Timed timed(context_.ledger, Phase::input, "input");
                load(window, after(m, n, index), true, true);
            }
            show(window);
            if (index == 0 && !whole()) {
                mpi::together(context_.comm, [&] { c_memory_.grow(blocks().c_block().size() * item()); });
            }
            {
                const Timed timed(context_.ledger, Phase::exchange, "open");
                blocks().open();
            }
            if (whole()) {
                outcome_.samples = mpi::repeat(
                    context_, options_.warmup, options_.repeat, [&](bool last) { multiply(window, false, last); },
                    [&](bool first) {
                        if (!first) {
                            const Timed timed(context_.ledger, Phase::exchange, "back to the start");
                            blocks().rewind();
                        }
                    });
            } else {
                multiply(window, index > 0, true);
                blocks().rewind();
            }
            outcome_.ideal_exchanged += blocks().received();
            done_ += work(window.shape());
        }
        if (!early_output_) {
            show_to_check(owned(m, n), c_data());
        }
    }

    /// Adds a window to the tile of C: all of a rank's rows at once, or part after part of those that are let go of.
    void multiply(const Window& window, bool accumulate, bool last) {
        const std::int64_t height = blocks().c_block().rows.size();
        const std::vector<grid::Range> parts =
            early_output_ ? early_output_->parts() : std::vector{grid::Range{0, height}};
        if (early_output_ && last) {
            const Timed timed(context_.ledger, Phase::output, "open");
            early_output_->open();
        }
        for (std::size_t index = 0; index < parts.size(); ++index) {
            const grid::Range rows = parts[index];
            std::byte* data = early_output_ ? wait_for_buffer(index) : c_begin();
            blocks().multiply(rows, data, accumulate, [&](double share) {
                const double rows_done = static_cast<double>(rows.begin) + share * static_cast<double>(rows.size());
                report(rows_done / static_cast<double>(std::max<std::int64_t>(1, height)));
            });
            if (early_output_ && last) {
                const grid::Block block{rows, window.n};
                show_to_check(block, data);
                output_->note(stored(block), data);
                early_output_->submit(index);
            }
        }
        blocks().complete(c_begin(), c_shared_);
    }

    std::byte* wait_for_buffer(std::size_t index) {
        const Timed timed(context_.ledger, Phase::output, Step::file, "wait for a buffer");
        return early_output_->buffer_for(index);
    }

    void report(double share) {
        const double all = work(shape_);
        context_.report(Phase::compute, all > 0 ? (done_ + share * work(blocks().shape())) / all : 1);
    }

    /// These numbers of C are final. A test may want one of them to be wrong.
    void show_to_check(const grid::Block& block, std::byte* data) {
        const Timed timed(context_.ledger, Phase::verify, "C times random vectors");
        if (context_.comm.rank() == 0 && block.rows.begin == 0 && block.columns.begin == 0) {
            io::corrupt_for_test(dtype_, data, block.size());
        }
        see({{data, block.columns.size(), false}, block});
    }
    void see(const Part& c) {
        outcome_.not_finite.c += check_              ? check_->see(context_, c)
                                 : certainly_finite_ ? 0
                                                     : NotFinite::of(context_, dtype_, c);
    }

    void write(const grid::Range& m, const grid::Range& n) {
        const Timed timed(context_.ledger, Phase::output, "output");
        const grid::Block mine = owned(m, n);
        std::byte* data = to_file_layout(context_, *c_, mine, c_data(), c_transposed_);
        output_->store(context_, owned_by(m, n), data);
        if (writeback_) {
            writeback_->wrote(stored(mine));
        }
        if (journal_) {
            mpi::together(context_.comm, [&] { journal_->wrote(stored(mine), data); });
        }
    }

    /// A tile that an earlier start has written: it only has to be looked at. @note Collective.
    void recall(const grid::Range& m, const grid::Range& n) {
        blocks_for({m, n, k_.front()});
        done_ += work({m.size(), n.size(), shape_.k});
        if (!check_ && is_integer(dtype_)) {
            return;
        }
        const grid::Block block = owned(m, n);
        mpi::together(context_.comm, [&] { c_memory_.grow(block.size() * item()); });
        {
            const Timed timed(context_.ledger, Phase::input, "what was written");
            const io::StrategyKind kind =
                options_.read == io::StrategyKind::uncached ? io::StrategyKind::positioned : options_.read;
            const io::Input written(context_, *c_, kind, options_.hints);  // of which the page cache may hold much
            written.load(context_, dtype_, owned_by(m, n), c_memory_.data());
        }
        const Timed timed(context_.ledger, Phase::verify, "C times random vectors");
        see({{c_memory_.data(), stored(block).columns.size(), c_->stored_transposed()}, block});
    }

    void finish() {
        const Timed timed(context_.ledger, Phase::output, "output");
        if (early_output_) {
            const Timed waiting(context_.ledger, Phase::output, Step::file, "wait for direct pwrite");
            context_.ledger.count().io_calls += early_output_->finish();
            context_.ledger.count().written += c_->bytes();
        }
        output_->finish(context_, options_.sync);
        if (options_.read_back && !output_->holds_what_was_written(context_)) {
            outcome_.verification = Verification{.method = "read_back", .passed = false, .error = 1};
        }
        if (options_.verify == Verify::serial) {
            const Timed checking(context_.ledger, Phase::verify, "serial product");
            outcome_.verification =
                check_serially(context_, dtype_, a_, b_, io::as_written(context_, *c_), outcome_.halving.growth);
        }
    }

    void count_operations() {
        double elements = static_cast<double>(shape_.m) * static_cast<double>(shape_.n);
        if (options_.symmetric) {
            elements = static_cast<double>(shape_.m) * static_cast<double>(shape_.m + 1) / 2;
        }
        outcome_.plain_flops = (is_complex(dtype_) ? 8.0 : 2.0) * elements * static_cast<double>(shape_.k);
        outcome_.flops = outcome_.plain_flops * kernel::strassen_work(outcome_.halving.levels);
    }

    grid::Block stored(const grid::Block& block) const { return c_->stored_transposed() ? block.transposed() : block; }
    /// What a rank has of a tile of C once the layers are added, in coordinates of the whole matrix.
    io::WantedShare owned_by(const grid::Range& m, const grid::Range& n) const {
        return [this, m, n](int rank) { return grid::Share(moved(blocks().layout().c_owned(rank), m.begin, n.begin)); };
    }
    grid::Block owned(const grid::Range& m, const grid::Range& n) const {
        return moved(blocks().layout().c_owned(context_.comm.rank()), m.begin, n.begin);
    }
    /// Where this rank's block of the tile begins, and where what it owns of it does.
    std::byte* c_begin() const { return c_shared_.data != nullptr ? c_shared_.data : c_memory_.data(); }
    std::byte* c_data() const {
        const grid::Block all = blocks().c_block(), mine = blocks().layout().c_owned(context_.comm.rank());
        return c_begin() + (mine.rows.begin - all.rows.begin) * all.columns.size() * item();
    }
    std::int64_t item() const { return static_cast<std::int64_t>(size_of(dtype_)); }

    Context& context_;
    const io::Region &a_, &b_;
    const io::Region* c_;
    Dtype dtype_;
    const Options& options_;
    grid::Shape shape_;
    std::vector<grid::Range> m_, n_, k_;
    std::optional<io::Writeback> writeback_;
    std::array<std::optional<BlockProduct>, 2> blocks_;
    std::size_t at_ = 0;  // of the blocks at hand
    bool twice_ = false;  // whether the others are in use
    std::optional<io::Input> input_a_,
        input_b_;                // of a product in tiles: they may be writing to blocks, and end before them
    Array<std::byte> c_memory_;  // this rank's block of the tile of C …
    mpi::Exposed c_shared_;      // … or where the node's ranks can write to it …
    std::optional<EarlyOutput> early_output_;  // … or what it is let go of through
    Buffer c_transposed_;                      // the same as a file has it that is stored column by column
    std::optional<io::Output> output_;
    std::unique_ptr<RandomCheck> check_;
    /// What the check is shown of the tiles that are being computed.
    enum class Seen { nothing, norms, products, images };
    Seen seen_ = Seen::norms;
    std::int64_t left_of_a_ = 0;     // rows that it has not seen when all tiles are computed
    bool certainly_finite_ = false;  // all of C
    std::unique_ptr<io::Journal> journal_;
    double done_ = 0;  // operations, in pairs
    Outcome outcome_;
};

void require_plain(const Options& options) {
    if (options.algorithm != AlgorithmKind::local && options.algorithm != AlgorithmKind::summa) {
        throw UsageError("a product larger than memory is computed by local or summa");
    }
    if (options.symmetric || may_halve(options.kernel, options.tolerance) || options.copies > 1 || options.repeat > 1 ||
        options.warmup > 0) {
        throw UsageError("a product larger than memory is computed once, plainly and by one copy of the grid");
    }
}

}  // namespace

Outcome multiply(Context& context, const io::Region& a, const io::Region& b, const io::Region* c, Dtype dtype,
                 const Options& options) {
    grid::Shape shape;
    std::optional<grid::Layout> layout;
    Halving halving;
    mpi::together(context.comm, [&] {
        shape = shape_of(a, b, options);
        if (options.stage.m > 0) {
            require_plain(options);
        }
        const grid::Shape most = stage_of(shape, options);
        layout = arrange(context.comm.size(),
                         {std::min(shape.m, most.m), std::min(shape.n, most.n), std::min(shape.k, most.k)}, options);
        halving = options.symmetric ? Halving{} : halving_of(*layout, dtype, options.kernel, options.tolerance);
    });
    return mpi::no_return(context.comm,
                          [&] { return Product(context, a, b, c, dtype, options, shape, *layout, halving)(); });
}

}  // namespace tilewise::multiply
