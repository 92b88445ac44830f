// C = A·B as of multiply(), which calls it where `options.stage` says so. All ranks together hold one tile of C, and
// of A and B as much of k as meets it at a time:
//
//           A                  B                   C
//         [ K0 | K1 | K2 ]   [ K0 |    | J ]      [   |   |   ]      C(I, J) += A(I, K) · B(K, J), all K in turn;
//       I [ ▓▓ |    |    ]   [ K1 |    | ▓ ]    I [   |   | ▓ ]      then C(I, J) is written
//         [    |    |    ]   [ K2 |    |   ]      [   |   |   ]
//
// Of A and B m·k·⌈n/stage.n⌉ + k·n·⌈m/stage.m⌉ numbers are read: with S numbers in a square tile of C 2·m·n·k/√S, and
// 2·m·n·k/√S − 2·S is the least that any order of the same operations can do with S numbers of memory (T. M. Smith,
// B. Lowery, J. Langou, R. A. van de Geijn, "A tight I/O lower bound for matrix multiplication", 2019).
// What is read next is asked for while the ranks compute. The check reads A once more and B twice.
//
// Memory of a rank: its blocks of a product of `options.stage`. @note Collective.
//
// Tile after tile of C, and for each of them one range of k after another.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/io/background.hpp"
#include "tilewise/io/corrupt_for_test.hpp"
#include "tilewise/io/transfer.hpp"
#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"
#include "tilewise/multiply/block_product.hpp"

namespace tilewise::multiply {
namespace {

/// Which part of A, B and C is at hand: rows and columns of C, and the range of k.
struct Window {
    grid::Range m, n, k;

    grid::Shape shape() const { return {m.size(), n.size(), k.size()}; }
};

grid::Block moved(const grid::Block& block, std::int64_t down, std::int64_t right) {
    return {{block.rows.begin + down, block.rows.end + down}, {block.columns.begin + right, block.columns.end + right}};
}

/// The blocks that all ranks have of one window, which is what of A and B is in memory while it streams past a tile of
/// C, and how their panels travel. Windows of the same shape use it one after the other.
class WindowBlocks {
public:
    /// `spare` is taken where it suffices, and freed where it does not. @note Collective.
    WindowBlocks(Context& context, const io::Region& a, const io::Region& b, Dtype dtype, const Options& options,
                 const grid::Shape& shape, BlockMemory spare = {})
        : context_(context),
          dtype_(dtype),
          layout_(arrange(context.comm.size(), shape, options)),
          arithmetic_(context, layout_, dtype, options, Halving{}),
          layer_(context.comm.split(layout_.layer(me()), layout_.in_layer(me()))),
          steps_(layout_.steps(me())),
          a_(side_of(layout_, me(), a, dtype, true)),
          b_(side_of(layout_, me(), b, dtype, false)),
          exchange_(make_exchange(
              options.exchange, layout_.flow(),
              {context, layer_, layout_.grid(), layout_.place(me()), steps_, a_, b_, std::move(spare)})) {}

    /// See Exchange::give_memory. @note Collective.
    BlockMemory give_memory() { return exchange_->give_memory(); }

    const grid::Layout& layout() const { return layout_; }
    grid::Shape shape() const { return layout_.shape(); }

    /// @note Collective, like those below.
    void load_a(const io::Input& input, const Window& window) {
        input.load(context_, dtype_, a_of(window), exchange_->a_block());
    }
    void load_b(const io::Input& input, const Window& window) {
        input.load(context_, dtype_, b_of(window), exchange_->b_block());
    }
    /// Begin to read what `load` of the same window then finds here.
    void begin_a(io::Input& input, const Window& window) {
        input.begin(context_, dtype_, a_of(window), exchange_->a_block());
    }
    void begin_b(io::Input& input, const Window& window) {
        input.begin(context_, dtype_, b_of(window), exchange_->b_block());
    }
    void multiply(std::byte* c, bool accumulate, const std::function<void(double share)>& report) {
        {
            const Timed timed(context_.ledger, Phase::exchange, "open");
            exchange_->open();
        }
        arithmetic_.multiply_steps(*exchange_, steps_, false, c, accumulate, report);
        exchange_->rewind();
    }

    /// What this rank has of A and B, in coordinates of the whole matrices. Not collective.
    Part a(const Window& window) { return part(a_, exchange_->a_block(), layout_.a(me()), window.m, window.k); }
    Part b(const Window& window) { return part(b_, exchange_->b_block(), layout_.b(me()), window.k, window.n); }
    /// Bytes that this rank receives while a window is multiplied.
    std::int64_t received() const {
        const grid::Block c = layout_.c(me());
        return grid::received_elements(steps_, layer_.rank(), c.rows.size(), c.columns.size()) *
               static_cast<std::int64_t>(size_of(dtype_));
    }

private:
    int me() const { return context_.comm.rank(); }
    io::WantedShare a_of(const Window& window) const {
        return [this, window](int rank) { return grid::Share(moved(layout_.a(rank), window.m.begin, window.k.begin)); };
    }
    io::WantedShare b_of(const Window& window) const {
        return [this, window](int rank) { return grid::Share(moved(layout_.b(rank), window.k.begin, window.n.begin)); };
    }
    Part part(const Side& side, const std::byte* data, const grid::Block& block, const grid::Range& rows,
              const grid::Range& columns) const {
        const grid::Range inner{0, side.is_a ? block.columns.size() : block.rows.size()};
        return {side.in_block(data, layer_.rank(), inner), moved(block, rows.begin, columns.begin)};
    }

    Context& context_;
    Dtype dtype_;
    grid::Layout layout_;
    Arithmetic arithmetic_;
    mpi::Communicator layer_;
    std::vector<grid::Step> steps_;
    Side a_, b_;
    std::unique_ptr<Exchange> exchange_;
};

/// The ranges of a length, each of `size` but the last.
std::vector<grid::Range> ranges(std::int64_t length, std::int64_t size) {
    std::vector<grid::Range> found;
    for (std::int64_t begin = 0; begin < std::max<std::int64_t>(length, 1); begin += size) {
        found.push_back({begin, std::min(length, begin + size)});
    }
    return found;
}

class StreamedProduct {
public:
    StreamedProduct(Context& context, const io::Region& a, const io::Region& b, const io::Region* c, Dtype dtype,
                    const Options& options)
        : context_(context),
          a_(a),
          b_(b),
          c_(c),
          dtype_(dtype),
          options_(options),
          shape_{a.logical_rows(), b.logical_columns(), a.logical_columns()},
          m_(ranges(shape_.m, options.stage.m)),
          n_(ranges(shape_.n, options.stage.n)),
          k_(ranges(shape_.k, options.stage.k)) {}

    Outcome operator()() {
        prepare();
        if (is_integer(dtype_) && options_.overflow == Overflow::refuse) {
            refuse_large();
        }
        std::optional<io::Output> output;
        if (c_ != nullptr) {
            const Timed timed(context_.ledger, Phase::output, "output");
            output.emplace(context_, *c_, options_.write, options_.hints, options_.read_back);
            journal_ = io::make_journal(context_, c_, options_.journal);
            if (journal_) {
                outcome_.resumed = journal_->resumed();
            }
        }
        if (check_ && outcome_.resumed && outcome_.resumed->kept > 0) {  // not all of B comes by before C is seen
            const Timed timed(context_.ledger, Phase::verify, "norms of columns");
            over_b([&](const Window& window) { check_->measure(context_, blocks().b(window)); });
            check_->weigh(context_, check_->columns());
            seen_ = Seen::nothing;
        }
        for (const grid::Range& m : m_) {
            for (const grid::Range& n : n_) {
                if (journal_ && journal_->holds(stored({m, n}))) {
                    recall(m, n);
                    continue;
                }
                io::stop_together(context_, journal_.get());
                compute(m, n);
                if (output) {
                    write(*output, m, n);
                }
            }
            end_of_row(m);
        }
        {
            const Timed timed(context_.ledger, Phase::verify, "not finite");
            outcome_.not_finite.add_up(context_, [&] {
                over_a(shape_.m, [&](const Window& window) { outcome_.not_finite.a += count(blocks().a(window)); });
                over_b([&](const Window& window) { outcome_.not_finite.b += count(blocks().b(window)); });
            });
        }
        if (check_) {
            const Timed timed(context_.ledger, Phase::verify, "Freivalds' check");
            if (seen_ != Seen::images) {
                over_b([&](const Window& window) { check_->apply_b(context_, blocks().b(window)); });
                check_->join(context_);
            }
            over_a(seen_ == Seen::images ? left_of_a_ : shape_.m,
                   [&](const Window& window) { check_->apply_a(context_, blocks().a(window)); });
            outcome_.verification = check_->judge(context_);
        }
        if (output && (!outcome_.verification || outcome_.verification->passed)) {
            finish(*output);
        }
        outcome_.flops = outcome_.plain_flops = (is_complex(dtype_) ? 8.0 : 2.0) * work(shape_);
        return std::move(outcome_);
    }

private:
    void prepare() {
        const Timed timed(context_.ledger, Phase::input, "allocate");
        input_a_.emplace(context_, a_, options_.read, options_.hints, true);
        input_b_.emplace(context_, b_, options_.read, options_.hints, true);
        twice_ = input_a_->reads_ahead() || input_b_->reads_ahead();
        blocks_for({m_.front(), n_.front(), k_.front()});
        mpi::together(context_.comm, [&] {
            if (options_.verify == Verify::fast) {
                check_ = make_random_check(dtype_, shape_, options_.kernel);
            }
            if (options_.write == io::StrategyKind::positioned && c_ != nullptr) {
                writeback_.emplace(*c_);
            }
        });
        outcome_.working = c_block().size() > 0 && shape_.k > 0;
    }

    // What the check wants to see of A and B comes by while C is computed, row of tiles after row of tiles, and only
    // what is left is read once more:
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
                    check_->measure(context_, blocks().b(window));
                    break;
                case Seen::products:
                    check_->apply_b(context_, blocks().b(window));
                    break;
                default:
                    check_->apply_a(context_, blocks().a(window));
                    break;
            }
        });
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

    /// The bound that needs only the largest numbers: closer ones would take more passes. @note Collective.
    void refuse_large() {
        const Timed timed(context_.ledger, Phase::input, "largest numbers");
        std::array<double, 2> largest{};
        const auto see = [&](double& most, const Part& part) {
            most = std::max(most, kernel::largest_magnitude(part.operand.data, part.block.size(), dtype_));
        };
        over_a(shape_.m, [&](const Window& window) { see(largest[0], blocks().a(window)); });
        over_b([&](const Window& window) { see(largest[1], blocks().b(window)); });
        mpi::join_over_ranks(context_.comm, largest.data(), std::ssize(largest), MPI_MAX);
        mpi::together(context_.comm, [&] {
            if (!fits_certainly(dtype_, shape_.k, largest[0], largest[1])) {
                throw UsageError("the product could overflow " + std::string(name_of(dtype_)) +
                                     ", as far as the largest numbers of A and B tell",
                                 -1, 0, "--overflow wrap, floating-point inputs, or memory for all of the product");
            }
        });
    }

    // There are blocks for two windows, where a thread can read: one is multiplied, the other is being filled.

    WindowBlocks& blocks() { return *blocks_[at_]; }
    const WindowBlocks& blocks() const { return *blocks_[at_]; }

    /// Makes the blocks at hand fit a window, where they have another shape. @note Collective.
    void blocks_for(const Window& window) {
        const grid::Shape wanted = window.shape();
        const auto same = [&](const grid::Shape& shape) {
            return shape.m == wanted.m && shape.n == wanted.n && shape.k == wanted.k;
        };
        std::optional<WindowBlocks>& there = blocks_[at_];
        if (!there || !same(there->shape())) {
            input_a_->rest();
            input_b_->rest();
            BlockMemory spare = there ? there->give_memory() : BlockMemory{};
            there.reset();
            there.emplace(context_, a_, b_, dtype_, options_, wanted, std::move(spare));
        }
    }

    /// To the blocks that the window was begun in, if it was. @note Collective.
    void enter(const Window& window) {
        turn();
        blocks_for(window);
    }

    /// Begins to read what comes next into the other blocks, which all ranks have done with. @note Collective.
    void begin(const std::optional<Window>& next, bool of_a, bool of_b) {
        if (!next || !twice_) {
            return;
        }
        turn();
        blocks_for(*next);
        if (of_a) {
            blocks().begin_a(*input_a_, *next);
        }
        if (of_b) {
            blocks().begin_b(*input_b_, *next);
        }
        turn();
    }

    void turn() { at_ = twice_ ? 1 - at_ : at_; }

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

    void compute(const grid::Range& m, const grid::Range& n) {
        for (std::size_t index = 0; index < k_.size(); ++index) {
            const Window window{m, n, k_[index]};
            {
                const Timed timed(context_.ledger, Phase::input, "input");
                enter(window);
                blocks().load_a(*input_a_, window);
                blocks().load_b(*input_b_, window);
                begin(after(m, n, index), true, true);
            }
            show(window);
            if (index == 0) {
                mpi::together(context_.comm, [&] { c_memory_.grow(c_block().size() * item()); });
            }
            blocks().multiply(c_memory_.data(), index > 0, [&](double share) { report(share); });
            outcome_.ideal_exchanged += blocks().received();
            done_ += work(window.shape());
        }
        const grid::Block block = moved(c_block(), m.begin, n.begin);
        const Timed timed(context_.ledger, Phase::verify, "C times random vectors");
        if (context_.comm.rank() == 0 && m.begin == 0 && n.begin == 0) {
            io::corrupt_for_test(dtype_, c_memory_.data(), block.size());
        }
        if (check_ && seen_ == Seen::norms) {
            check_->weigh(context_, n);
        }
        see({{c_memory_.data(), block.columns.size(), false}, block});
    }

    std::int64_t count(const Part& part) const { return NotFinite::of(context_, dtype_, part); }
    void see(const Part& part) { outcome_.not_finite.c += check_ ? check_->see(context_, part) : count(part); }

    void write(io::Output& output, const grid::Range& m, const grid::Range& n) {
        const Timed timed(context_.ledger, Phase::output, "output");
        const auto wanted = [&](int rank) { return grid::Share(moved(blocks().layout().c(rank), m.begin, n.begin)); };
        const grid::Block mine = moved(c_block(), m.begin, n.begin);
        std::byte* data = to_file_layout(context_, *c_, mine, c_memory_.data(), c_transposed_);
        output.store(context_, wanted, data);
        if (writeback_) {
            writeback_->wrote(stored(mine));
        }
        if (journal_) {
            mpi::together(context_.comm, [&] { journal_->wrote(stored(mine), data); });
        }
    }

    grid::Block stored(const grid::Block& block) const { return c_->stored_transposed() ? block.transposed() : block; }

    /// A tile that an earlier start has written: it only has to be looked at. @note Collective.
    void recall(const grid::Range& m, const grid::Range& n) {
        blocks_for({m, n, k_.front()});
        done_ += work({m.size(), n.size(), shape_.k});
        if (!check_ && is_integer(dtype_)) {
            return;
        }
        const grid::Block block = moved(c_block(), m.begin, n.begin);
        mpi::together(context_.comm, [&] { c_memory_.grow(block.size() * item()); });
        {
            const Timed timed(context_.ledger, Phase::input, "what was written");
            const io::StrategyKind kind =
                options_.read == io::StrategyKind::uncached ? io::StrategyKind::positioned : options_.read;
            const io::Input written(context_, *c_, kind, options_.hints);  // of which the page cache may hold much
            written.load(
                context_, dtype_,
                [&](int rank) { return grid::Share(moved(blocks().layout().c(rank), m.begin, n.begin)); },
                c_memory_.data());
        }
        const Timed timed(context_.ledger, Phase::verify, "C times random vectors");
        const grid::Block lies = stored(block);
        see({{c_memory_.data(), lies.columns.size(), c_->stored_transposed()}, block});
    }

    void finish(io::Output& output) {
        const Timed timed(context_.ledger, Phase::output, "output");
        output.finish(context_, options_.sync);
        if (options_.read_back && !output.holds_what_was_written(context_)) {
            outcome_.verification = Verification{.method = "read_back", .passed = false, .error = 1};
        }
        if (options_.verify == Verify::serial) {
            const Timed checking(context_.ledger, Phase::verify, "serial product");
            outcome_.verification = check_serially(context_, dtype_, a_, b_, io::as_written(context_, *c_));
        }
    }

    /// Reads all of B, or the rows of A before `end`, once, part after part. @note Collective.
    template <class Visit> void over_b(const Visit& visit) {
        for (const grid::Range& n : n_) {
            for (std::size_t index = 0; index < k_.size(); ++index) {
                const Window window{m_.back(), n, k_[index]};
                enter(window);
                blocks().load_b(*input_b_, window);
                begin(after(m_.back(), n, index), false, true);
                visit(window);
            }
        }
    }
    template <class Visit> void over_a(std::int64_t end, const Visit& visit) {
        for (const grid::Range& m : m_) {
            for (std::size_t index = 0; index < k_.size() && m.begin < end; ++index) {
                const Window window{m, n_.back(), k_[index]};
                enter(window);
                blocks().load_a(*input_a_, window);
                const std::optional<Window> next = after(m, n_.back(), index);
                begin(next && next->m.begin < end ? next : std::nullopt, true, false);
                visit(window);
            }
        }
    }

    grid::Block c_block() const { return blocks().layout().c(context_.comm.rank()); }
    std::int64_t item() const { return static_cast<std::int64_t>(size_of(dtype_)); }
    static double work(const grid::Shape& part) {
        return static_cast<double>(part.m) * static_cast<double>(part.n) * static_cast<double>(part.k);
    }
    void report(double share) {
        const double all = work(shape_);
        context_.report(Phase::compute, all > 0 ? (done_ + share * work(blocks().shape())) / all : 1);
    }

    Context& context_;
    const io::Region &a_, &b_;
    const io::Region* c_;
    Dtype dtype_;
    const Options& options_;
    grid::Shape shape_;
    std::vector<grid::Range> m_, n_, k_;
    std::optional<io::Writeback> writeback_;
    std::array<std::optional<WindowBlocks>, 2> blocks_;
    std::size_t at_ = 0;                          // of the blocks at hand
    bool twice_ = false;                          // whether the others are in use
    std::optional<io::Input> input_a_, input_b_;  // these may be writing to blocks, and end before them
    Array<std::byte> c_memory_;                   // this rank's block of the tile of C …
    Buffer c_transposed_;                         // … and the same as a file has it that is stored column by column
    std::unique_ptr<RandomCheck> check_;
    /// What the check is shown of the tiles that are being computed.
    enum class Seen { nothing, norms, products, images };
    Seen seen_ = Seen::norms;
    std::int64_t left_of_a_ = 0;  // rows that it has not seen when all tiles are computed
    std::unique_ptr<io::Journal> journal_;
    double done_ = 0;  // operations, in pairs
    Outcome outcome_;
};

void check(const Options& options) {
    if (options.algorithm != AlgorithmKind::local && options.algorithm != AlgorithmKind::summa) {
        throw UsageError("a product larger than memory is computed by local or summa");
    }
    if (options.symmetric || may_halve(options.kernel, options.tolerance) || options.copies > 1 || options.repeat > 1 ||
        options.warmup > 0) {
        throw UsageError("a product larger than memory is computed once, plainly and by one copy of the grid");
    }
}

}  // namespace

Outcome multiply_streamed(Context& context, const io::Region& a, const io::Region& b, const io::Region* c, Dtype dtype,
                          const Options& options) {
    mpi::together(context.comm, [&] { check(options); });
    return mpi::no_return(context.comm, [&] { return StreamedProduct(context, a, b, c, dtype, options)(); });
}

}  // namespace tilewise::multiply
