// One thread, one queue, two buffers: the thread sleeps in the kernel while the device works.
#include "tilewise/multiply/early_output.hpp"

#include <algorithm>

#include "tilewise/base/memory.hpp"

namespace tilewise::multiply {

std::vector<grid::Range> EarlyOutput::parts(std::int64_t rows, std::int64_t row_bytes) {
    const std::int64_t wanted = std::max(least_rows, part_bytes / std::max<std::int64_t>(1, row_bytes));
    const std::int64_t count = std::max<std::int64_t>(1, (rows + wanted - 1) / wanted);
    const std::int64_t height = ((rows + count - 1) / count + row_multiple - 1) / row_multiple * row_multiple;
    std::vector<grid::Range> all;
    for (std::int64_t begin = 0; begin < rows || all.empty(); begin += height) {
        all.push_back({begin, std::min(begin + height, rows)});
    }
    return all;
}

EarlyOutput::EarlyOutput(const io::Region& region)
    : region_(region),
      parts_(parts(region.rows, region.columns * static_cast<std::int64_t>(size_of(region.dtype)))) {
    const std::int64_t bytes = parts_[0].size() * region.columns * static_cast<std::int64_t>(size_of(region.dtype));
    for (std::size_t index = 0; index < std::min<std::size_t>(2, parts_.size()); ++index) {
        buffers_[index] = Buffer(static_cast<std::size_t>(bytes + page));
    }
}

EarlyOutput::~EarlyOutput() {
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        waiting_.clear();
    }
    changed_.notify_all();
    if (thread_.joinable()) {
        thread_.join();
    }
}

void EarlyOutput::open() {
    file_ = std::make_unique<io::UncachedFile>(region_.path, region_.name, io::PosixFile::Mode::write);
    thread_ = std::thread([this] { run(); });
}

std::byte* EarlyOutput::place(std::size_t index) const {
    const std::int64_t row_bytes = region_.columns * static_cast<std::int64_t>(size_of(region_.dtype));
    return buffers_[index % 2].data() + (region_.offset + parts_[index].begin * row_bytes) % page;
}

std::byte* EarlyOutput::buffer_for(std::size_t index) {
    if (thread_.joinable() && index >= 2) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return written_ + 2 > index || failure_; });
    }
    return place(index);
}

void EarlyOutput::submit(std::size_t index) {
    {
        const std::lock_guard lock(mutex_);
        waiting_.push_back(index);
    }
    changed_.notify_all();
}

std::int64_t EarlyOutput::finish() {
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
    }
    changed_.notify_all();
    thread_.join();
    if (failure_) {
        std::rethrow_exception(failure_);
    }
    file_->close();
    return calls_;
}

void EarlyOutput::run() {
    for (;;) {
        std::size_t index = 0;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
            if (waiting_.empty()) {
                return;
            }
            index = waiting_.front();
            waiting_.pop_front();
        }
        std::exception_ptr failure;
        try {
            const std::int64_t row_bytes = region_.columns * static_cast<std::int64_t>(size_of(region_.dtype));
            calls_ += file_->write(place(index), parts_[index].size() * row_bytes,
                                   region_.offset + parts_[index].begin * row_bytes);
        } catch (...) {
            failure = std::current_exception();
        }
        {
            const std::lock_guard lock(mutex_);
            ++written_;
            failure_ = failure;
        }
        changed_.notify_all();
        if (failure) {
            return;
        }
    }
}

}  // namespace tilewise::multiply
