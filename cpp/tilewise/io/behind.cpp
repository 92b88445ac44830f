// sync_file_range, which writes what is dirty in a range, and waits for nothing.
#include "tilewise/io/behind.hpp"

#include <algorithm>
#include <fcntl.h>
#include <unistd.h>

#include "tilewise/io/file.hpp"

namespace tilewise::io {

Behind::Behind(const Region& region) : region_(region) {
    if (!region.is_one_file()) {
        return;
    }
    descriptor_ = open_made(region.path, O_WRONLY);
    if (descriptor_ >= 0) {
        thread_ = std::thread([this] { run(); });
    }
}

Behind::~Behind() {
    if (descriptor_ < 0) {
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
    }
    changed_.notify_one();
    thread_.join();
    close(descriptor_);
}

void Behind::wrote(const grid::Block& stored) {
    if (descriptor_ < 0 || stored.size() == 0) {
        return;
    }
    const auto item = static_cast<std::int64_t>(size_of(region_.dtype));
    const auto place = [&](std::int64_t row, std::int64_t column) {
        return region_.offset + (row * region_.stored_columns() + column) * item;
    };
    const grid::Range bytes{place(stored.rows.begin, stored.columns.begin),
                            place(stored.rows.end - 1, stored.columns.end)};
    {
        const std::lock_guard lock(mutex_);
        written_ =
            written_ ? grid::Range{std::min(written_->begin, bytes.begin), std::max(written_->end, bytes.end)} : bytes;
    }
    changed_.notify_one();
}

void Behind::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return closed_ || written_; });
        if (closed_) {
            return;
        }
        const grid::Range bytes = *written_;
        written_.reset();
        lock.unlock();
        sync_file_range(descriptor_, bytes.begin, bytes.size(), SYNC_FILE_RANGE_WRITE);  // a wish
        lock.lock();
    }
}

}  // namespace tilewise::io
