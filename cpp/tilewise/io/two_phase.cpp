// One loop over stages for reading, one for writing; two buffers, so that file and exchange can work at the same time.
#include "tilewise/io/two_phase.hpp"

#include <algorithm>
#include <array>
#include <future>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/page.hpp"
#include "tilewise/io/gather.hpp"
#include "tilewise/io/runs.hpp"
#include "tilewise/mpi/datatype.hpp"

namespace tilewise::io {
namespace {

using mpi::check;

/// A stage in the file's order, in memory that lies to pages as the file does, and the same packed by rank.
struct Stage {
    Buffer memory, packed;
    std::byte* rows = nullptr;
    std::vector<MPI_Request> requests;
    Counters count;
    std::future<void> work;

    explicit Stage(std::int64_t bytes)
        : memory(static_cast<std::size_t>(bytes + page)),
          packed(static_cast<std::size_t>(bytes)) {}

    void lie_like(std::int64_t file_offset) { rows = memory.data() + file_offset % page; }
    void wait() {
        check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
        requests.clear();
    }
    MPI_Request* next_request() {
        requests.push_back(MPI_REQUEST_NULL);
        return &requests.back();
    }
};

void add(Counters& to, Counters& from) {
    to.read += from.read;
    to.written += from.written;
    to.io_calls += from.io_calls;
    from = {};
}

class TwoPhase final : public Strategy {
public:
    TwoPhase(PosixFile::Cache cache, std::int64_t stage_bytes) : cache_(cache), stage_bytes_(stage_bytes) {}

    void read(Context& context, const Transfer& transfer) const override {
        const Shares shares(context, transfer);
        const auto file = open(context, transfer, PosixFile::Mode::read);
        if (cache_ == PosixFile::Cache::used && shares.contiguous()) {
            serve_own_panel(context, transfer, shares, file->step(), "read ", [&](grid::Range some, std::byte* data) {
                file->read(context.ledger.count(), some, data);
                context.ledger.count().useful += some.size() * shares.item;
            });
            return;
        }
        const Panels panels(transfer, shares.span, context.comm.size(), stage_bytes_);
        read_panels(context, transfer, shares, panels, *file, ahead());
    }

    void write(Context& context, const Transfer& transfer) const override {
        const Shares shares(context, transfer);
        const auto file = open(context, transfer, PosixFile::Mode::write);
        if (cache_ == PosixFile::Cache::used && shares.contiguous()) {
            serve_own_panel(context, transfer, shares, Step::file, "write ", [&](grid::Range some, std::byte* data) {
                file->write(context.ledger.count(), some, data);
            });
        } else {
            const Panels panels(transfer, shares.span, context.comm.size(), stage_bytes_);
            write_panels(context, transfer, shares, panels, *file, ahead());
        }
        mpi::together(context.comm, [&] { file->close(); });
    }

private:
    bool ahead() const {
        return cache_ == PosixFile::Cache::bypassed;
    }  // from the page cache it would only cost a core

    /// Where every rank's share is one piece of the file, it is its panel: nothing is exchanged, and nothing staged.
    template <class Move>
    void serve_own_panel(Context& context, const Transfer& transfer, const Shares& shares, Step step,
                         const std::string& name, Move move) const {
        const Timed timed(context.ledger, context.ledger.phase(), step, name + transfer.region.name);
        const grid::Range mine = shares.span_of(context.comm.rank());
        constexpr std::int64_t stages_between_reports = 8;
        const std::int64_t most = std::max<std::int64_t>(1, stages_between_reports * stage_bytes_ / shares.item);
        mpi::together(context.comm, [&] {
            for (std::int64_t begin = mine.begin; begin < mine.end; begin += most) {
                const std::int64_t end = std::min(begin + most, mine.end);
                move(grid::Range{begin, end}, transfer.data + (begin - mine.begin) * shares.item);
                context.report(context.ledger.phase(),
                               static_cast<double>(end - mine.begin) / static_cast<double>(mine.size()));
            }
        });
    }

    std::unique_ptr<ElementFile> open(Context& context, const Transfer& transfer, PosixFile::Mode mode) const {
        std::unique_ptr<ElementFile> file;
        mpi::together(context.comm, [&] { file = open_elements(transfer, mode, cache_, context.threads); });
        return file;
    }

    PosixFile::Cache cache_;
    std::int64_t stage_bytes_;
};

}  // namespace

Panels::Panels(const Transfer& transfer, grid::Range span, int ranks, std::int64_t stage_bytes)
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

std::int64_t Panels::border(int rank) const {
    if (rank == 0 || rank == ranks_) {
        return rank == 0 ? span_.begin : span_.end;
    }
    const std::int64_t even = span_.begin + grid::Partition(span_.size(), ranks_)[rank].begin;
    return std::clamp(aligned(even + unit_ - 1), span_.begin, span_.end);
}

grid::Range Panels::stage(int rank, std::int64_t index) const {
    // The first stage of a panel that begins off a border is cut short, so that all others begin on one.
    const grid::Range panel{border(rank), border(rank + 1)};
    const std::int64_t begin = aligned(panel.begin) + index * step_;
    return grid::common(panel, {begin, begin + step_});
}

void read_panels(Context& context, const Transfer& transfer, const Shares& shares, const Panels& panels,
                 const ElementFile& file, bool ahead) {
    const Timed moving(context.ledger, context.ledger.phase(), Step::move, "exchange panels");
    const int me = context.comm.rank();
    const MPI_Datatype item = mpi::type_of(transfer.region.dtype);
    mpi::no_return(context.comm, [&] {
        std::vector<Stage> stages;
        for (std::int64_t index = 0; index < std::min<std::int64_t>(2, panels.stages() + 1); ++index) {
            stages.emplace_back(panels.largest() * shares.item);
        }
        const auto fetch = [&](std::int64_t index, Stage& stage) {
            const grid::Range mine = panels.stage(me, index);
            if (shares.owned(mine) > 0) {
                stage.lie_like(transfer.at(mine.begin));
                file.read(stage.count, mine, stage.rows);
            }
        };
        const auto launch = [&](std::int64_t index) {
            Stage& stage = stages[static_cast<std::size_t>(index % 2)];
            stage.work = std::async(ahead ? std::launch::async : std::launch::deferred, fetch, index, std::ref(stage));
        };
        if (panels.stages() > 0) {
            launch(0);
        }
        for (std::int64_t index = 0; index < panels.stages(); ++index) {
            Stage& stage = stages[static_cast<std::size_t>(index % 2)];
            const grid::Range mine = panels.stage(me, index);
            for (int rank = 0; rank < context.comm.size(); ++rank) {
                const grid::Range its = panels.stage(rank, index);
                const std::int64_t count = rank == me ? 0 : shares.count(me, its);
                if (count > 0) {
                    check(MPI_Irecv(transfer.data + shares.local(me, its) * shares.item, static_cast<int>(count), item,
                                    rank, 0, context.comm.get(), stage.next_request()),
                          "MPI_Irecv");
                }
            }
            {
                const Timed timed(context.ledger, context.ledger.phase(), file.step(), "read " + transfer.region.name);
                stage.work.get();
                add(context.ledger.count(), stage.count);
            }
            if (index + 1 < panels.stages()) {  // its buffer was sent before the last stage ended
                launch(index + 1);
            }
            std::byte* packed = stage.packed.data();
            for (int rank = 0; rank < context.comm.size(); ++rank) {
                const std::int64_t count = shares.count(rank, mine);
                context.ledger.count().useful += count * shares.item;
                if (rank == me) {
                    pack(shares, me, mine, stage.rows, transfer.data + shares.local(me, mine) * shares.item);
                } else if (count > 0) {
                    pack(shares, rank, mine, stage.rows, packed);
                    check(MPI_Isend(packed, static_cast<int>(count), item, rank, 0, context.comm.get(),
                                    stage.next_request()),
                          "MPI_Isend");
                    packed += count * shares.item;
                }
            }
            stage.wait();
            context.report(context.ledger.phase(),
                           static_cast<double>(index + 1) / static_cast<double>(panels.stages()));
        }
    });
}

void write_panels(Context& context, const Transfer& transfer, const Shares& shares, const Panels& panels,
                  const ElementFile& file, bool behind) {
    const Timed moving(context.ledger, context.ledger.phase(), Step::move, "exchange panels");
    const int me = context.comm.rank();
    mpi::no_return(context.comm, [&] {
        std::vector<Stage> stages;
        for (std::int64_t index = 0; index < std::min<std::int64_t>(2, panels.stages() + 1); ++index) {
            stages.emplace_back(panels.largest() * shares.item);
        }
        const auto finish = [&](Stage& stage) {
            if (stage.work.valid()) {
                const Timed timed(context.ledger, context.ledger.phase(), Step::file, "write " + transfer.region.name);
                stage.work.get();
                add(context.ledger.count(), stage.count);
            }
        };
        for (std::int64_t index = 0; index < panels.stages(); ++index) {
            Stage& stage = stages[static_cast<std::size_t>(index % 2)];
            finish(stage);
            const grid::Range mine = panels.stage(me, index);
            stage.lie_like(transfer.at(mine.begin));
            std::vector<grid::Range> ranges;
            for (int rank = 0; rank < context.comm.size(); ++rank) {
                ranges.push_back(panels.stage(rank, index));
            }
            gather(context, transfer, shares, ranges, stage.packed.data(), stage.rows);
            stage.work = std::async(
                behind ? std::launch::async : std::launch::deferred,
                [&file, &shares, mine, own = &stage] { write_owned(file, own->count, shares, mine, own->rows); });
            if (!behind) {
                finish(stage);
            }
            context.report(context.ledger.phase(),
                           static_cast<double>(index + 1) / static_cast<double>(panels.stages()));
        }
        for (Stage& stage : stages) {
            finish(stage);
        }
    });
}

std::unique_ptr<Strategy> make_two_phase(const Hints& hints) {
    return std::make_unique<TwoPhase>(PosixFile::Cache::used, buffer_size(hints, "cb_buffer_size", standard_stage));
}

std::unique_ptr<Strategy> make_uncached(const Hints& hints) {
    return std::make_unique<TwoPhase>(PosixFile::Cache::bypassed, buffer_size(hints, "cb_buffer_size", uncached_stage));
}

}  // namespace tilewise::io
