// Pieces of a result: looked at when a job goes on, and written down as it does.
#include "tilewise/io/journal.hpp"

#include <unistd.h>

#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {

bool stop_asked(const std::string& folder) { return access((folder + "/stop").c_str(), F_OK) == 0; }

Journal::Journal(Context& context, const Region& region, const JournalOptions& options)
    : folder_(options.folder),
      flushed_(options.flushed) {
    const Timed timed(context.ledger, context.ledger.phase(), Step::file, "journal of " + region.name);
    mpi::together(context.comm, [&] {
        log_.emplace(folder_, std::to_string(options.start) + '-' + std::to_string(context.comm.rank()) + ".log");
        part_.emplace(region);
    });
    const std::vector<bool> right = part_->right(context, options.standing);
    for (std::size_t index = 0; index < right.size(); ++index) {
        if (right[index]) {
            standing_.push_back(options.standing[index]);
        }
    }
    resumed_.started = options.start;
    resumed_.kept = std::ssize(standing_);
    resumed_.spoilt = std::ssize(options.standing) - std::ssize(standing_);
}

bool Journal::holds(const grid::Block& stored) const {
    std::int64_t found = 0;
    int start = -1;
    // Later starts come last, and have written over what earlier ones left.
    for (auto piece = standing_.rbegin(); piece != standing_.rend() && found < stored.size(); ++piece) {
        const std::int64_t size = grid::common(piece->block.rows, stored.rows).size() *
                                  grid::common(piece->block.columns, stored.columns).size();
        if (size > 0) {
            found = (piece->start == start ? found : 0) + size;
            start = piece->start;
        }
    }
    return stored.size() > 0 && found == stored.size();
}

void Journal::wrote(const grid::Block& stored, const std::byte* data) {
    if (stored.size() == 0) {
        return;
    }
    if (flushed_) {
        part_->flush();
    }
    part_->write_down(*log_, "", stored, data);
    if (flushed_) {
        log_->flush();
    }
}

std::unique_ptr<Journal> make_journal(Context& context, const Region* region, const JournalOptions& options) {
    if (options.folder.empty() || region == nullptr) {
        return nullptr;
    }
    return std::make_unique<Journal>(context, *region, options);
}

Error stopped() { return StoppedError("the job has ended in time, as it was asked to"); }

void stop_together(const Context& context, const Journal* journal) {
    if (journal == nullptr) {
        return;
    }
    if (mpi::of_root(context.comm, context.comm.rank() == 0 && journal->stop_asked())) {
        mpi::throw_agreed(context.comm, stopped());
    }
}

}  // namespace tilewise::io
