// Two files in turn, so that one of them always holds a state that is whole.
#include "tilewise/io/checkpoints.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>

#include "tilewise/io/journal.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {
namespace {

constexpr double look_every = 0.1;            // seconds
constexpr double spare = 2;                   // times what a state took
constexpr std::int64_t most_calls = 1 << 20;  // between two looks

}  // namespace

Checkpoints::Checkpoints(Context& context, const CheckpointOptions& options)
    : folder_(options.folder),
      flushed_(options.flushed),
      every_(options.every),
      ends_(options.ends) {
    const Timed timed(context.ledger, context.ledger.phase(), Step::file, "checkpoints");
    mpi::together(context.comm, [&] {
        if (options.slots.size() != 2) {
            throw UsageError("states are kept in two files in turn, not in " + std::to_string(options.slots.size()));
        }
        log_.emplace(folder_, std::to_string(options.start) + '-' + std::to_string(context.comm.rank()) + ".state.log");
        for (const Region& slot : options.slots) {
            files_.push_back(std::make_unique<PieceFile>(slot));
        }
    });
    restored_.started = options.start;
    for (const Saved& saved : options.saved) {
        if (saved.slot < 0 || saved.slot > 1) {
            continue;
        }
        const PieceFile& file = *files_[static_cast<std::size_t>(saved.slot)];
        const std::vector<bool> right = file.right(context, saved.pieces);
        std::int64_t numbers = 0;
        for (const Standing& piece : saved.pieces) {
            numbers += piece.block.size();
        }
        if (numbers == file.region().rows * file.region().columns &&
            std::all_of(right.begin(), right.end(), [](bool is) { return is; })) {
            found_ = saved;
            next_ = 1 - saved.slot;
            restored_.version = saved.version;
            break;
        }
        ++restored_.spoilt;
    }
}

Checkpoints::Wish Checkpoints::wish(const Context& context) {
    if (++calls_ < until_) {
        return Wish::none;
    }
    std::array<std::int64_t, 2> told{};
    if (context.comm.rank() == 0) {
        const double now = clock_seconds();
        // One that is about to begin must be over by then, and so must one that would begin at the next look.
        const bool late = ends_ > 0 && cost_ > 0 && now + (now - looked_) + spare * cost_ >= ends_;
        const bool stop = late || stop_asked(folder_), due = every_ > 0 && now - last_ >= every_;
        const double wanted = static_cast<double>(calls_) * look_every / std::max(1e-9, now - looked_);
        told = {static_cast<std::int64_t>(stop  ? Wish::save_and_stop
                                          : due ? Wish::save
                                                : Wish::none),
                static_cast<std::int64_t>(std::clamp(wanted, 1.0, static_cast<double>(most_calls)))};
        looked_ = wished_ = now;
    }
    mpi::check(MPI_Bcast(told.data(), 2, MPI_INT64_T, 0, context.comm.get()), "MPI_Bcast");
    calls_ = 0;
    // Never many more than before: the next calls may each take longer.
    until_ = std::min(told[1], 2 * until_);
    return static_cast<Wish>(told[0]);
}

void Checkpoints::wrote(std::int64_t version, const grid::Block& stored, const std::byte* data) const {
    files_[static_cast<std::size_t>(next_)]->write_down(
        *log_, std::to_string(next_) + ' ' + std::to_string(version) + ' ', stored, data);
}

void Checkpoints::complete(const Context& context, std::int64_t version, const std::vector<double>& facts) {
    mpi::together(context.comm, [&] {
        if (flushed_) {
            files_[static_cast<std::size_t>(next_)]->flush();
            log_->flush();
        }
    });
    mpi::together(context.comm, [&] {
        if (context.comm.rank() != 0) {
            return;
        }
        std::string words = std::to_string(next_) + ' ' + std::to_string(version) + " whole";
        for (const double fact : facts) {
            char digits[18];
            std::snprintf(digits, sizeof digits, " %016llx",
                          static_cast<unsigned long long>(std::bit_cast<std::uint64_t>(fact)));
            words += digits;
        }
        log_->add(words);
        if (flushed_) {
            log_->flush();
        }
    });
    next_ = 1 - next_;
    last_ = looked_ = clock_seconds();
    cost_ = std::max(cost_, last_ - wished_);
    calls_ = 0;
}

std::unique_ptr<Checkpoints> make_checkpoints(Context& context, const CheckpointOptions& options) {
    return options.folder.empty() ? nullptr : std::make_unique<Checkpoints>(context, options);
}

}  // namespace tilewise::io
