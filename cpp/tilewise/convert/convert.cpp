// Band after band: read, turn, convert, write.
#include "tilewise/convert/convert.hpp"

#include <algorithm>
#include <atomic>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/threads.hpp"
#include "tilewise/dist/bands.hpp"
#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/kernel/transpose/transpose.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::convert {
namespace {

constexpr std::int64_t worth_threads = std::int64_t{1} << 16;  // numbers

class Run {
public:
    Run(Context& context, const io::Region& from, const io::Region& to, const Options& options)
        : context_(context),
          from_(from),
          to_(to),
          options_(options),
          transposed_(from.stored_transposed() != to.stored_transposed()),
          bands_(to, options.grid, elements(), transposed_, &from) {}

    Outcome operator()() {
        const io::Input input = [&] {
            const Timed timed(context_.ledger, Phase::input, "open");
            return io::Input(context_, from_, options_.read, options_.hints);
        }();
        const Timed writing(context_.ledger, Phase::output, "output");
        io::Output output(context_, to_, options_.write, options_.hints, options_.read_back);
        outcome_.working = false;
        for (std::int64_t band = 0; band < bands_.count(); ++band) {
            const auto wanted = [&](int rank) {
                const grid::Share stored = bands_(band, rank);
                return to_.stored_transposed() ? stored.transposed() : stored;
            };
            const std::int64_t size = wanted(context_.comm.rank()).size();
            outcome_.working = outcome_.working || size > 0;
            read(input, wanted, size);
            std::byte* ready = turn(wanted(context_.comm.rank()));
            ready = change(ready, size);
            output.store(context_, wanted, ready);
            context_.report(Phase::output, static_cast<double>(band + 1) / static_cast<double>(bands_.count()));
        }
        output.finish(context_, options_.sync);
        if (options_.read_back) {
            const bool holds = output.holds_what_was_written(context_);
            outcome_.verification = {.method = "read_back", .passed = holds, .error = holds ? 0.0 : 1.0};
        }
        outcome_.changed = mpi::sum_of<std::int64_t>(context_.comm, changed_);
        return outcome_;
    }

private:
    std::int64_t elements() const {
        const auto item = static_cast<std::int64_t>(std::max(size_of(from_.dtype), size_of(to_.dtype)));
        return std::max<std::int64_t>(1, options_.band_bytes / item);
    }

    void read(const io::Input& input, const io::WantedShare& wanted, std::int64_t size) {
        const Timed timed(context_.ledger, Phase::input, "input");
        mpi::together(context_.comm, [&] { make(raw_, size, from_.dtype); });
        input.load_raw(context_, wanted, raw_.data());
    }

    /// From the order in which the source stores a block to the one in which the target does.
    std::byte* turn(const grid::Share& wanted) {
        if (!transposed_) {
            return raw_.data();
        }
        const Timed timed(context_.ledger, Phase::compute, "turn");
        const grid::Share stored = from_.stored(wanted);
        mpi::together(context_.comm, [&] {
            make(transposed_memory_, stored.size(), from_.dtype);
            const std::size_t item = size_of(from_.dtype);
            const auto size = static_cast<std::int64_t>(item);
            kernel::transpose(raw_.data(), stored.width() * size, stored.height(), stored.width(), item,
                              transposed_memory_.data(), stored.height() * size, context_.threads);
        });
        return transposed_memory_.data();
    }

    std::byte* change(std::byte* data, std::int64_t size) {
        if (from_.dtype == to_.dtype && from_.swap_bytes == to_.swap_bytes && !options_.scale) {
            return data;
        }
        const Timed timed(context_.ledger, Phase::output, Step::convert, "convert");
        mpi::together(context_.comm, [&] {
            make(changed_memory_, size, to_.dtype);
            const auto from_item = static_cast<std::int64_t>(size_of(from_.dtype)),
                       to_item = static_cast<std::int64_t>(size_of(to_.dtype));
            parallel_ranges(size < worth_threads ? 1 : context_.threads, size,
                            [&](std::int64_t begin, std::int64_t end, int) {
                                changed_ += kernel::convert(data + begin * from_item, from_.dtype, from_.swap_bytes,
                                                            changed_memory_.data() + begin * to_item, to_.dtype,
                                                            to_.swap_bytes, end - begin, options_.scale);
                            });
        });
        return changed_memory_.data();
    }

    static void make(Array<std::byte>& buffer, std::int64_t count, Dtype dtype) {
        buffer.grow(count * static_cast<std::int64_t>(size_of(dtype)));
    }

    Context& context_;
    const io::Region &from_, &to_;
    const Options& options_;
    bool transposed_;
    dist::Bands bands_;
    Array<std::byte> raw_, transposed_memory_, changed_memory_;
    std::atomic<std::int64_t> changed_ = 0;
    Outcome outcome_;
};

void check(const Context& context, const io::Region& from, const io::Region& to, const Options& options) {
    if (to.logical_rows() != from.logical_rows() || to.logical_columns() != from.logical_columns()) {
        throw UsageError(from.name + " does not have the rows and columns of " + to.name);
    }
    if (options.grid.size() != context.comm.size()) {
        throw UsageError("the grid has " + std::to_string(options.grid.size()) + " places for " +
                         std::to_string(context.comm.size()) + " ranks");
    }
}

}  // namespace

Outcome convert(Context& context, const io::Region& from, const io::Region& to, const Options& options) {
    mpi::together(context.comm, [&] { check(context, from, to, options); });
    return mpi::no_return(context.comm, [&] { return Run(context, from, to, options)(); });
}

}  // namespace tilewise::convert
