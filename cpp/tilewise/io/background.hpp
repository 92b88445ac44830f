// Work on a file while something else is computed, on a thread of its own: reads what will be wanted next, and asks the
// system to write to the disk what has been written to the page cache.
//
//     the rank     │ load 1 │ compute with 1 │ load 2 │ compute with 2 │ …
//     Prefetch              │ read 2         │         │ read 3         │ …
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "tilewise/io/region.hpp"
#include "tilewise/io/strategy/uncached.hpp"

namespace tilewise::io {

/// A thread that reads numbers that lie in one file as they are; of others nothing is read. It has no more than a few
/// mebibytes in the page cache that are not in memory yet, so that it does not matter how small that is; or goes past
/// it, and then only to where numbers are wanted.
class Prefetch {
public:
    /// Throws IoError where the file cannot be opened in that way.
    explicit Prefetch(const Region& region, PosixFile::Cache cache = PosixFile::Cache::used);
    Prefetch(const Prefetch&) = delete;
    Prefetch& operator=(const Prefetch&) = delete;
    ~Prefetch();

    /// These numbers come next, in the order in which the file stores them, and go to `data`; without that, into the
    /// page cache only. Returns at once. What was wanted before is read before, or not at all; what is wanted again
    /// before it was taken is read once.
    void want(const grid::Share& stored, std::byte* data = nullptr);
    /// How many calls to the system it took to bring to `data` just what was wanted last; nothing where that was
    /// something else. Waits until nothing is being read. Throws IoError.
    std::optional<std::int64_t> take(const grid::Share& stored, const std::byte* data);
    /// Reads no more of what was wanted; then nobody writes to its `data` any more.
    void rest();

private:
    struct Wish {
        grid::Share stored;
        std::byte* data = nullptr;

        bool operator==(const Wish& other) const {
            return data == other.data && stored.rows == other.stored.rows && stored.columns == other.stored.columns;
        }
    };

    void run();
    bool can_read() const { return thread_.joinable(); }
    std::int64_t read(const Wish& wish);

    const Region& region_;
    std::unique_ptr<PosixFile> file_;
    std::unique_ptr<DirectReads> direct_;  // instead, past the page cache
    std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<Wish> wanted_, under_way_, done_;
    std::int64_t calls_ = 0;    // of what is done …
    std::exception_ptr error_;  // … or why it is not
    bool closed_ = false;
    std::atomic<bool> given_up_ = false;
    std::thread thread_;
};

/// Asks for what was written to go to the disk (sync_file_range), on a thread, because asking itself can wait for a
/// device. Nothing depends on it. For numbers that lie in one file as they are; of others nothing is asked for.
///
/// Within a memory limit, pages that wait for the disk are what the system has to write before it can give memory to
/// anybody: whoever asks for some then waits, at any moment. Started at once, it is over by then.
class Writeback {
public:
    explicit Writeback(const Region& region);
    Writeback(const Writeback&) = delete;
    Writeback& operator=(const Writeback&) = delete;
    ~Writeback();

    /// This rectangle of the stored matrix has been written. Returns at once.
    void wrote(const grid::Block& stored);

private:
    void run();

    const Region& region_;
    Descriptor descriptor_{-1};
    std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<grid::Range> written_;  // bytes of the file that nothing was asked for yet
    bool closed_ = false;
    std::thread thread_;
};

}  // namespace tilewise::io
