// One thread, one queue: the thread sleeps in the kernel while the device works.
#include "tilewise/multiply/early_output.hpp"

#include <algorithm>

namespace tilewise::multiply {

std::vector<grid::Range> EarlyOutput::parts(std::int64_t rows, std::int64_t row_bytes) {
    constexpr std::int64_t least_bytes = std::int64_t{16} << 20, least_rows = 256;
    std::vector<grid::Range> all;
    std::int64_t begin = 0;
    for (int cut = 0; cut < 3; ++cut) {
        const std::int64_t half = (rows - begin) / 2 / 8 * 8;  // whole register tiles
        if (half < least_rows || half * row_bytes < least_bytes) {
            break;
        }
        all.push_back({begin, begin + half});
        begin += half;
    }
    all.push_back({begin, rows});
    return all;
}

EarlyOutput::EarlyOutput(io::Transfer transfer, grid::Block block)
    : transfer_(std::move(transfer)),
      block_(block),
      file_(transfer_.region.path, transfer_.region.name, io::PosixFile::Mode::write),
      thread_([this] { run(); }) {}

EarlyOutput::~EarlyOutput() {
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        waiting_.clear();
    }
    changed_.notify_one();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void EarlyOutput::submit(grid::Range rows) {
    {
        const std::lock_guard lock(mutex_);
        waiting_.push_back(rows);
    }
    changed_.notify_one();
}

std::int64_t EarlyOutput::finish() {
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
    }
    changed_.notify_one();
    thread_.join();
    if (failure_) {
        std::rethrow_exception(failure_);
    }
    return calls_;
}

void EarlyOutput::run() {
    for (;;) {
        grid::Range rows;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
            if (waiting_.empty()) {
                return;
            }
            rows = waiting_.front();
            waiting_.pop_front();
        }
        try {
            calls_ += io::write_rows_uncached(file_, transfer_, block_, rows);
        } catch (...) {
            failure_ = std::current_exception();
            return;
        }
    }
}

}  // namespace tilewise::multiply
