// Asks the system for a few runs, then copies them, while it brings the next ones.
#include "tilewise/io/ahead.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace tilewise::io {
namespace {

constexpr std::int64_t under_way = std::int64_t{4} << 20;  // bytes that were asked for and not copied yet

struct Piece {
    std::int64_t offset, bytes;
    std::byte* data;
};

}  // namespace

Ahead::Ahead(const Region& region) : region_(region) {
    if (region.is_one_file() && region.bytes() > 0) {
        file_ = std::make_unique<PosixFile>(region.path, region.name, PosixFile::Mode::read);
        thread_ = std::thread([this] { run(); });
    }
}

Ahead::~Ahead() {
    if (file_) {
        given_up_ = true;
        {
            const std::scoped_lock lock(mutex_);
            closed_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }
}

void Ahead::want(const grid::Share& stored, std::byte* data) {
    if (file_) {
        {
            const std::scoped_lock lock(mutex_);
            wanted_ = Wish{stored, data};
            done_.reset();
        }
        changed_.notify_all();
    }
}

std::optional<std::int64_t> Ahead::take(const grid::Share& stored, const std::byte* data) {
    if (!file_) {
        return std::nullopt;
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !wanted_ && !busy_; });
    const std::optional<Wish> done = std::exchange(done_, std::nullopt);
    const std::exception_ptr error = std::exchange(error_, nullptr);
    if (!done || done->data != data || done->stored.rows != stored.rows || done->stored.columns != stored.columns) {
        return std::nullopt;
    }
    if (error) {
        std::rethrow_exception(error);
    }
    return calls_;
}

void Ahead::rest() {
    if (!file_) {
        return;
    }
    given_up_ = true;
    std::unique_lock lock(mutex_);
    wanted_.reset();
    changed_.wait(lock, [this] { return !busy_; });
    done_.reset();
    error_ = nullptr;
    given_up_ = false;
}

void Ahead::run() {
    std::unique_lock lock(mutex_);
    while (true) {
        changed_.wait(lock, [this] { return closed_ || wanted_; });
        if (closed_) {
            return;
        }
        Wish wish = *std::exchange(wanted_, std::nullopt);
        busy_ = true;
        lock.unlock();
        std::int64_t calls = 0;
        std::exception_ptr error;
        try {
            calls = read(wish);
        } catch (...) {  // for whoever takes it
            error = std::current_exception();
        }
        lock.lock();
        busy_ = false;
        if (!wanted_) {
            done_ = std::move(wish);
            calls_ = calls;
            error_ = error;
        }
        changed_.notify_all();
    }
}

std::int64_t Ahead::read(const Wish& wish) const {
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

}  // namespace tilewise::io
