// What of an output stands in its part file, written down as it comes to stand there: what lets a job go on after a
// death.
//
//     .C.npy.….part       [ ▓▓ | ▓▓ | ░░ ]      the numbers; ░░ was on its way when a rank died
//     .C.npy.….journal/   job.json              the front's: which job this is
//                         0-0.log  0-1.log      each rank's of the first start …
//                         1-0.log               … and of the next, on any number of ranks
//
// A log says what to look at, and never what to believe: each piece that it names is read again, and its checksum
// compared, before the job goes on. So a line may be there before its numbers are on the disk, and nothing has to wait.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tilewise/io/pieces.hpp"

namespace tilewise::io {

struct JournalOptions {
    std::string folder;              ///< empty: there is no journal
    int start = 0;                   ///< how many starts there were before this one
    bool flushed = false;            ///< numbers are on the disk before their line
    std::vector<Standing> standing;  ///< what earlier starts wrote down
};

/// What was found when a job went on.
struct Resumed {
    std::int64_t kept = 0;     ///< pieces that stand where they should
    std::int64_t spoilt = 0;   ///< pieces that were named and are not what was written
    std::int64_t started = 0;  ///< starts before this one
};

/// Whether somebody asks the job whose journal is in `folder` to end with what there is by now. Not collective.
bool stop_asked(const std::string& folder);

class Journal {
public:
    /// Opens this rank's log, and looks at all that earlier starts wrote down; ranks share that. `region` is one binary
    /// file. Throws IoError. @note Collective.
    Journal(Context& context, const Region& region, const JournalOptions& options);

    /// Whether all of a rectangle stands there, written by one start. Not collective; the same on every rank.
    bool holds(const grid::Block& stored) const;
    /// Writes down that this rank has written the rectangle, which lies in `data` as it does in the file, without gaps.
    /// Throws IoError. Not collective.
    void wrote(const grid::Block& stored, const std::byte* data);
    const Resumed& resumed() const { return resumed_; }
    /// Whether somebody asks this job to end with what there is by now. Not collective.
    bool stop_asked() const { return io::stop_asked(folder_); }

private:
    std::string folder_;
    bool flushed_;
    std::optional<PieceFile> part_;
    std::optional<Log> log_;
    std::vector<Standing> standing_;  ///< only what is right
    Resumed resumed_;
};

/// A journal where the options name one. @note Collective.
std::unique_ptr<Journal> make_journal(Context& context, const Region* region, const JournalOptions& options);

/// Throws on every rank what ends a job in time, if rank 0 finds that somebody asks for it. @note Collective.
void stop_together(const Context& context, const Journal* journal);

/// What a job that was asked to end throws: all that it has done is written down.
Error stopped();

}  // namespace tilewise::io
