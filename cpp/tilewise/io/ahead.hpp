// Reads what will be wanted next while the last is computed with.
//
//     the rank     │ load 1 │ compute with 1 │ load 2 │ compute with 2 │ …
//     this thread           │ read 2         │         │ read 3         │ …
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "tilewise/io/direct_reads.hpp"
#include "tilewise/io/region.hpp"

namespace tilewise::io {

/// A thread that reads numbers that lie in one file as they are; of others nothing is read. It has no more than a few
/// mebibytes in the page cache that are not in memory yet, so that it does not matter how small that is; or goes past
/// it, and then only to where numbers are wanted.
class Ahead {
public:
    /// Throws IoError where the file cannot be opened in that way.
    explicit Ahead(const Region& region, PosixFile::Cache cache = PosixFile::Cache::used);
    Ahead(const Ahead&) = delete;
    Ahead& operator=(const Ahead&) = delete;
    ~Ahead();

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

}  // namespace tilewise::io
