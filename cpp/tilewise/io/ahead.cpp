// posix_fadvise, run after run.
#include "tilewise/io/ahead.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace tilewise::io {

Ahead::Ahead(const Region& region) : region_(region) {
    if (region.is_one_file() && region.bytes() > 0) {
        descriptor_ = ::open(region.path.c_str(), O_RDONLY | O_CLOEXEC);
    }
    if (descriptor_ >= 0) {
        thread_ = std::thread([this] { run(); });
    }
}

Ahead::~Ahead() {
    if (descriptor_ >= 0) {
        {
            const std::scoped_lock lock(mutex_);
            closed_ = true;
        }
        changed_.notify_one();
        thread_.join();
        ::close(descriptor_);
    }
}

void Ahead::want(const grid::Share& stored) {
    if (descriptor_ >= 0) {
        {
            const std::scoped_lock lock(mutex_);
            wanted_ = stored;
        }
        changed_.notify_one();
    }
}

void Ahead::run() {
    while (true) {
        std::optional<grid::Share> next;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return closed_ || wanted_; });
            if (closed_) {
                return;
            }
            next = std::exchange(wanted_, std::nullopt);
        }
        ask_for(*next);
    }
}

void Ahead::ask_for(const grid::Share& stored) const {
    const auto item = static_cast<std::int64_t>(size_of(region_.dtype));
    const grid::Range all{0, region_.stored_rows() * region_.stored_columns()};
    grid::for_runs(
        stored, region_.stored_columns(), all, [&](std::int64_t first, std::int64_t count, std::int64_t /*local*/) {
            // What this returns is of no use: it is a wish.
            static_cast<void>(
                ::posix_fadvise(descriptor_, region_.offset + first * item, count * item, POSIX_FADV_WILLNEED));
        });
}

}  // namespace tilewise::io
