// Writes finished rows of C in the background, past the page cache, while the next rows are computed.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/io/region.hpp"
#include "tilewise/io/strategy/uncached.hpp"

namespace tilewise::multiply {

///     compute    | part 0 | part 1 | part 2 | part 3 |
///     device              | part 0 | part 1 | part 2 | part 3 |      only the last part is waited for
///     buffer          0        1        0        1                  C is never in memory as a whole
///
/// The device fetches the data itself, so the processor loses little; through the page cache it would copy every byte.
class EarlyOutput {
public:
    static constexpr std::int64_t part_bytes = std::int64_t{64} << 20;  ///< at most, but for the fewest rows
    static constexpr std::int64_t least_rows = 512;  ///< fewer, and packing B for each part takes its share
    static constexpr std::int64_t row_multiple = 8;  ///< whole register tiles

    /// Rows cut into parts that are nearly equal: large, because each part costs packing B once more, and small enough
    /// for two of them to be little beside the whole.
    static std::vector<grid::Range> parts(std::int64_t rows, std::int64_t row_bytes);

    explicit EarlyOutput(const io::Region& region);
    EarlyOutput(const EarlyOutput&) = delete;
    EarlyOutput& operator=(const EarlyOutput&) = delete;
    ~EarlyOutput();

    const std::vector<grid::Range>& parts() const { return parts_; }
    /// Opens the part file and starts the thread; throws IoError.
    void open();
    /// Where part `index` is to be computed, so that its pages and the file's fall together. Waits until the part
    /// before the last, which had the same buffer, is written.
    std::byte* buffer_for(std::size_t index);
    /// The rows of this part are final: begin to write them. Returns at once. Parts come in order.
    void submit(std::size_t index);
    /// Waits until all is written; rethrows what went wrong. Returns the number of system calls.
    std::int64_t finish();

private:
    void run();
    std::byte* place(std::size_t index) const;

    const io::Region& region_;
    std::vector<grid::Range> parts_;
    Buffer buffers_[2];
    std::unique_ptr<io::UncachedFile> file_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::size_t> waiting_;
    std::size_t written_ = 0;
    bool closed_ = false;
    std::int64_t calls_ = 0;
    std::exception_ptr failure_;
    std::thread thread_;
};

}  // namespace tilewise::multiply
