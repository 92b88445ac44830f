// The threads: each sleeps until somebody wants something, and does it without the lock.
#include "tilewise/io/background.hpp"

#include <algorithm>
#include <fcntl.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace tilewise::io {
namespace {

constexpr std::int64_t under_way = std::int64_t{4} << 20;  // bytes that were asked for and not copied yet

}  // namespace

Prefetch::Prefetch(const Region& region, PosixFile::Cache cache) : region_(region) {
    if (region.is_one_file() && region.bytes() > 0) {
        if (cache == PosixFile::Cache::bypassed) {
            direct_ = std::make_unique<DirectReads>(region.path, region.name);
        }
        if (!direct_ || !direct_->works()) {
            direct_.reset();
            file_ = std::make_unique<PosixFile>(region.path, region.name, PosixFile::Mode::read);
        }
        thread_ = std::thread([this] { run(); });
    }
}

Prefetch::~Prefetch() {
    if (can_read()) {
        given_up_ = true;
        {
            const std::scoped_lock lock(mutex_);
            closed_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }
}

void Prefetch::want(const grid::Share& stored, std::byte* data) {
    if (can_read()) {
        Wish wish{stored, data};
        {
            const std::scoped_lock lock(mutex_);
            const std::optional<Wish>& last = wanted_ ? wanted_ : under_way_ ? under_way_ : done_;
            if (data != nullptr && last && *last == wish) {
                return;
            }
            wanted_ = std::move(wish);
            done_.reset();
        }
        changed_.notify_all();
    }
}

std::optional<std::int64_t> Prefetch::take(const grid::Share& stored, const std::byte* data) {
    if (!can_read()) {
        return std::nullopt;
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !wanted_ && !under_way_; });
    const std::optional<Wish> done = std::exchange(done_, std::nullopt);
    const std::exception_ptr error = std::exchange(error_, nullptr);
    if (!done || !(*done == Wish{stored, const_cast<std::byte*>(data)})) {
        return std::nullopt;
    }
    if (error) {
        std::rethrow_exception(error);
    }
    return calls_;
}

void Prefetch::rest() {
    if (!can_read()) {
        return;
    }
    given_up_ = true;
    std::unique_lock lock(mutex_);
    wanted_.reset();
    changed_.wait(lock, [this] { return !under_way_; });
    done_.reset();
    error_ = nullptr;
    given_up_ = false;
}

void Prefetch::run() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [this] { return closed_ || wanted_; });
        if (closed_) {
            return;
        }
        under_way_ = std::exchange(wanted_, std::nullopt);
        const Wish& wish = *under_way_;  // nobody else changes it
        lock.unlock();
        std::int64_t calls = 0;
        std::exception_ptr error;
        try {
            calls = read(wish);
        } catch (...) {  // for whoever takes it
            error = std::current_exception();
        }
        lock.lock();
        if (!wanted_) {
            done_ = std::move(under_way_);
            calls_ = calls;
            error_ = error;
        }
        under_way_.reset();
        changed_.notify_all();
    }
}

std::int64_t Prefetch::read(const Wish& wish) {
    const auto item = static_cast<std::int64_t>(size_of(region_.dtype));
    const grid::Range all{0, region_.stored_rows() * region_.stored_columns()};
    std::vector<Piece> pieces;
    grid::for_runs(wish.stored, region_.stored_columns(), all,
                   [&](std::int64_t first, std::int64_t count, std::int64_t local) {
                       for (std::int64_t at = 0, end = count * item; at < end; at += under_way) {
                           pieces.push_back({region_.offset + first * item + at, std::min(under_way, end - at),
                                             wish.data == nullptr ? nullptr : wish.data + local * item + at});
                       }
                   });
    if (direct_) {
        return wish.data == nullptr ? 0 : direct_->read(pieces, given_up_);
    }
    // Asks the system for a few runs, then copies them, while it brings the next ones.
    std::int64_t calls = 0, asked_bytes = 0;
    auto asked = pieces.begin();
    for (auto next = pieces.begin(); next != pieces.end() && !given_up_; ++next) {
        for (; asked != pieces.end() && (asked_bytes < under_way || wish.data == nullptr); ++asked) {
            file_->will_need(asked->offset, asked->bytes);
            asked_bytes += asked->bytes;
        }
        if (wish.data != nullptr) {
            calls += file_->read(next->data, next->bytes, next->offset);
            asked_bytes -= next->bytes;
        }
    }
    return calls;
}

Writeback::Writeback(const Region& region) : region_(region) {
    if (!region.is_one_file()) {
        return;
    }
    descriptor_ = Descriptor(open_made(region.path, O_WRONLY));
    if (descriptor_) {
        thread_ = std::thread([this] { run(); });
    }
}

Writeback::~Writeback() {
    if (!descriptor_) {
        return;
    }
    {
        const std::lock_guard lock(mutex_);
        closed_ = true;
    }
    changed_.notify_one();
    thread_.join();
}

void Writeback::wrote(const grid::Block& stored) {
    if (!descriptor_ || stored.size() == 0) {
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

void Writeback::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return closed_ || written_; });
        if (closed_) {
            return;
        }
        const grid::Range bytes = *written_;
        written_.reset();
        lock.unlock();
        sync_file_range(descriptor_.number(), bytes.begin, bytes.size(), SYNC_FILE_RANGE_WRITE);  // a wish
        lock.lock();
    }
}

}  // namespace tilewise::io
