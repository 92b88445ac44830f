// Strategies `two_phase` and `uncached`: contiguous panels between file and ranks, then an exchange of our own between
// the ranks.
//
//        file       [ panel of rank 0     | panel of rank 1     ]       each panel in stages of a bounded size:
//        stage s    [    ####             |    ####             ]       read by its rank in one piece, then sent,
//        shares       0 1 0 1 …              0 1 0 1 …                  each piece to its place in its owner's share
//
// What a rank gets out of a range of elements is consecutive in its share, so nothing is unpacked on arrival. Messages
// are sent one by one rather than by Alltoallv: only ranks that have something for each other take part, and no
// displacement has to fit 31 bits. Past the page cache there are two buffers at work, so that file and exchange can be
// used at the same time.
#include <algorithm>
#include <future>
#include <optional>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/memory.hpp"
#include "tilewise/io/elements.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {
namespace {

constexpr std::int64_t standard_stage = std::int64_t{4} << 20;
constexpr std::int64_t stages_between_reports = 8;  // where nothing is staged

/// The panels of all ranks over a span of elements, and their stages. Borders fall on whole lines of a text, and on
/// pages of a binary file where its offset allows.
class Panels {
public:
    Panels(const Transfer& transfer, grid::Range span, int ranks, std::int64_t stage_bytes)
        : span_(span),
          ranks_(ranks) {
        const std::int64_t item = transfer.item();
        if (transfer.region.text) {
            unit_ = std::max<std::int64_t>(1, transfer.region.text->elements());
        } else if (page % item == 0 && transfer.region.offset % item == 0) {
            unit_ = page / item;
            first_ = (page - transfer.region.offset % page) % page / item - unit_;
        }
        step_ = std::max<std::int64_t>(unit_, stage_bytes / item / unit_ * unit_);
        for (int rank = 0; rank < ranks; ++rank) {
            stages_ = std::max(stages_, (border(rank + 1) - aligned(border(rank)) + step_ - 1) / step_);
        }
    }

    std::int64_t stages() const { return stages_; }
    std::int64_t largest() const { return step_; }
    /// Of every rank.
    std::vector<grid::Range> stage(std::int64_t index) const {
        std::vector<grid::Range> all;
        for (int rank = 0; rank < ranks_; ++rank) {
            // The first stage of a panel that begins off a border is cut short, so that all others begin on one.
            const grid::Range panel{border(rank), border(rank + 1)};
            const std::int64_t begin = aligned(panel.begin) + index * step_;
            all.push_back(grid::common(panel, {begin, begin + step_}));
        }
        return all;
    }

private:
    std::int64_t border(int rank) const {
        if (rank == 0 || rank == ranks_) {
            return rank == 0 ? span_.begin : span_.end;
        }
        const std::int64_t even = span_.begin + grid::Partition(span_.size(), ranks_)[rank].begin;
        return std::clamp(aligned(even + unit_ - 1), span_.begin, span_.end);
    }
    std::int64_t aligned(std::int64_t element) const { return first_ + (element - first_) / unit_ * unit_; }

    grid::Range span_;
    int ranks_;
    std::int64_t unit_ = 1, first_ = 0;  // borders are first_ + a multiple of unit_
    std::int64_t step_ = 1, stages_ = 0;
};

/// A stage in the file's order, in memory that lies to pages as the file does, and the same packed by rank.
struct Stage {
    Buffer memory, packed;
    std::byte* rows = nullptr;
    Counters count;
    std::future<void> work;  ///< with the file

    explicit Stage(std::int64_t bytes)
        : memory(static_cast<std::size_t>(bytes + page)),
          packed(static_cast<std::size_t>(bytes)) {}

    void lie_like(std::int64_t file_offset) { rows = memory.data() + file_offset % page; }
};

class TwoPhase final : public OpenFile {
public:
    TwoPhase(Context& context, const Transfer& transfer, Direction direction, PosixFile::Cache cache,
             std::int64_t stage_bytes)
        : OpenFile(context, transfer, direction),
          shares_(context, transfer),
          exchange_(context, transfer, shares_),
          cached_(cache == PosixFile::Cache::used),
          stage_bytes_(stage_bytes) {
        mpi::together(context.comm, [&] { file_ = open_elements(transfer, direction, cache, context.threads); });
    }

    void move() override {
        if (cached_ && shares_.contiguous()) {
            serve_own_panel();
            return;
        }
        const Timed moving(context_.ledger, context_.ledger.phase(), Step::move, "exchange panels");
        const Panels panels(transfer_, shares_.span, context_.comm.size(), stage_bytes_);
        mpi::no_return(context_.comm, [&] { reads() ? read(panels) : write(panels); });
    }

    void close() override {
        if (!reads()) {
            mpi::together(context_.comm, [&] { file_->close(); });
        }
    }

private:
    /// Where every rank's share is one piece of the file, it is its panel: nothing is exchanged, and nothing staged.
    void serve_own_panel() {
        const Timed moving = timed(reads() ? file_->step() : Step::file, reads() ? "read" : "write");
        const grid::Range mine = shares_.span_of(me());
        const std::int64_t most = std::max<std::int64_t>(1, stages_between_reports * stage_bytes_ / shares_.item);
        mpi::together(context_.comm, [&] {
            for (std::int64_t begin = mine.begin; begin < mine.end; begin += most) {
                const grid::Range some{begin, std::min(begin + most, mine.end)};
                std::byte* data = transfer_.data + (begin - mine.begin) * shares_.item;
                if (reads()) {
                    file_->read(count(), some, data);
                    count().useful += some.size() * shares_.item;
                } else {
                    file_->write(count(), some, data);
                }
                report(some.end - mine.begin, mine.size());
            }
        });
    }

    void read(const Panels& panels) {
        std::vector<Stage> stages = stages_for(panels);
        const auto launch = [&](std::int64_t index) {
            Stage& stage = stages[static_cast<std::size_t>(index % 2)];
            stage.work = begun([this, &stage, mine = own(panels.stage(index))] {
                if (shares_.owned(mine) > 0) {
                    stage.lie_like(transfer_.at(mine.begin));
                    file_->read(stage.count, mine, stage.rows);
                }
            });
        };
        if (panels.stages() > 0) {
            launch(0);
        }
        for (std::int64_t index = 0; index < panels.stages(); ++index) {
            Stage& stage = stages[static_cast<std::size_t>(index % 2)];
            const std::vector<grid::Range> ranges = panels.stage(index);
            exchange_.begin_scatter(ranges, stage.packed.data());
            finish(stage, file_->step(), "read");
            if (index + 1 < panels.stages()) {  // its buffer was sent before the last stage ended
                launch(index + 1);
            }
            exchange_.send(stage.rows);
            exchange_.finish_scatter();
            count().useful += shares_.owned(own(ranges)) * shares_.item;
            report(index + 1, panels.stages());
        }
    }

    void write(const Panels& panels) {
        std::vector<Stage> stages = stages_for(panels);
        for (std::int64_t index = 0; index < panels.stages(); ++index) {
            Stage& stage = stages[static_cast<std::size_t>(index % 2)];
            finish(stage, Step::file, "write");
            const std::vector<grid::Range> ranges = panels.stage(index);
            const grid::Range mine = own(ranges);
            stage.lie_like(transfer_.at(mine.begin));
            exchange_.begin_gather(ranges, stage.packed.data());
            exchange_.finish_gather(stage.rows);
            stage.work = begun([this, &stage, mine] { write_owned(*file_, stage.count, shares_, mine, stage.rows); });
            if (cached_) {
                finish(stage, Step::file, "write");
            }
            report(index + 1, panels.stages());
        }
        for (Stage& stage : stages) {
            finish(stage, Step::file, "write");
        }
    }

    std::vector<Stage> stages_for(const Panels& panels) const {
        std::vector<Stage> stages;
        for (std::int64_t index = 0; index < std::min<std::int64_t>(2, panels.stages() + 1); ++index) {
            stages.emplace_back(panels.largest() * shares_.item);
        }
        return stages;
    }

    /// Work with the file: past the page cache on a thread of its own, which for a copy from it or to it would only
    /// cost a core.
    template <class F> std::future<void> begun(F work) const {
        return std::async(cached_ ? std::launch::deferred : std::launch::async, work);
    }
    /// Waits for a stage's work, if there is any, and counts it.
    void finish(Stage& stage, Step step, const char* name) const {
        if (stage.work.valid()) {
            const Timed waiting = timed(step, name);
            stage.work.get();
            count().read += stage.count.read;
            count().written += stage.count.written;
            count().io_calls += stage.count.io_calls;
            stage.count = {};
        }
    }

    grid::Range own(const std::vector<grid::Range>& ranges) const { return ranges[static_cast<std::size_t>(me())]; }

    Shares shares_;
    RangeExchange exchange_;
    bool cached_;
    std::int64_t stage_bytes_;
    std::unique_ptr<ElementFile> file_;
};

Strategy by_panels(const Hints& hints, PosixFile::Cache cache) {
    return strategy_of<TwoPhase>(cache, buffer_size(hints, "cb_buffer_size", standard_stage));
}

}  // namespace

Strategy make_two_phase(const Hints& hints) { return by_panels(hints, PosixFile::Cache::used); }

Strategy make_uncached(const Hints& hints) { return by_panels(hints, PosixFile::Cache::bypassed); }

}  // namespace tilewise::io
