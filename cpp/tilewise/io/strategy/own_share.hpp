// What the strategies share in which each rank serves itself: run after run of consecutive elements, on all threads of
// the rank.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tilewise/base/threads.hpp"
#include "tilewise/io/background.hpp"
#include "tilewise/io/elements.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::io {

inline constexpr std::int64_t worth_threads = std::int64_t{1} << 20;  // bytes

/// A file that every rank that owns something of it opens, as a `File`.
template <class File> class OwnShare : public OpenFile {
public:
    using Opener = std::function<std::unique_ptr<File>()>;

    /// `call` is what a trace calls it. @note Collective.
    OwnShare(Context& context, const Transfer& transfer, Direction direction, const std::string& call, Opener opener)
        : OpenFile(context, transfer, direction),
          timed_(timed(Step::file, call)),
          share_(transfer.share_of(context.comm.rank())),
          opener_(std::move(opener)) {
        if (transfer.prefetch == nullptr) {
            mpi::together(context.comm, [&] { open(); });
        }
    }

    void move() final {
        const std::int64_t bytes = share_.size() * transfer_.item();
        std::atomic<std::int64_t> calls = 0;
        mpi::together(context_.comm, [&] {
            if (bytes > 0 && transfer_.prefetch != nullptr && reads()) {
                if (const auto read = transfer_.prefetch->take(share_, transfer_.data)) {
                    calls += *read;
                    count().meanwhile += bytes;
                    return;
                }
                open();
            }
            const grid::Range span = grid::span_of(share_, transfer_.columns());
            parallel_ranges(bytes < worth_threads ? 1 : context_.threads, span.size(),
                            [&](std::int64_t begin, std::int64_t end, int) {
                                calls += serve({span.begin + begin, span.begin + end});
                            });
        });
        count().io_calls += calls;
        (reads() ? count().useful : count().written) += bytes;
        count().read += bytes_read(reads() ? bytes : 0);
    }

    void move_part(std::int64_t begin, std::int64_t end) final {
        serve(elements_of(share_, transfer_.columns(), begin, end));
    }

    void close() final {
        if (!reads()) {
            mpi::together(context_.comm, [&] {
                if (file_) {
                    file_->close();
                }
            });
        }
    }

protected:
    /// Moves what the share has of elements `within`; returns how many calls to the system that took. Several threads
    /// call it.
    virtual std::int64_t serve(grid::Range within) = 0;
    /// How much was read, where `wanted` was to be.
    virtual std::int64_t bytes_read(std::int64_t wanted) const { return wanted; }

    const Timed timed_;
    grid::Share share_;
    std::unique_ptr<File> file_;

private:
    void open() {
        if (share_.size() > 0) {
            file_ = opener_();
        }
    }

    Opener opener_;
};

/// The file of a transfer that has one.
inline std::unique_ptr<PosixFile> open_whole(const Transfer& transfer, Direction direction) {
    return std::make_unique<PosixFile>(transfer.region.path, transfer.region.name, mode_of(direction));
}

}  // namespace tilewise::io
