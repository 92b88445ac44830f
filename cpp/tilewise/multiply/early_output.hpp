// Writes the finished rows of C in the background, past the page cache, while the rest of C is still computed.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include "tilewise/io/uncached.hpp"

namespace tilewise::multiply {

///     compute    | rows 0–½ | ½–¾ | ¾–⅞ | ⅞–1 |
///     device                | rows 0–½ | ½–¾ | ¾–⅞ | ⅞–1 |        only the last, smallest part is waited for
///
/// The device fetches the data itself, so the processor loses little; through the page cache it would copy every byte.
class EarlyOutput {
public:
    /// Parts of `rows` rows to compute and submit one after the other; few, because each costs packing B once more.
    static std::vector<grid::Range> parts(std::int64_t rows, std::int64_t row_bytes);

    /// Opens the file; throws IoError. `transfer` and the memory that it names must outlive this.
    EarlyOutput(io::Transfer transfer, grid::Block block);
    EarlyOutput(const EarlyOutput&) = delete;
    EarlyOutput& operator=(const EarlyOutput&) = delete;
    ~EarlyOutput();

    /// These rows of the block are final: begin to write them. Returns at once.
    void submit(grid::Range rows);
    /// Waits until all is written; rethrows what went wrong. Returns the number of system calls.
    std::int64_t finish();

private:
    void run();

    io::Transfer transfer_;
    grid::Block block_;
    io::UncachedFile file_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<grid::Range> waiting_;
    bool closed_ = false;
    std::int64_t calls_ = 0;
    std::exception_ptr failure_;
    std::thread thread_;
};

}  // namespace tilewise::multiply
