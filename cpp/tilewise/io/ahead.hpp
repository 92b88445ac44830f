// Asks the system to read into the page cache what will be wanted next.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "tilewise/io/region.hpp"

namespace tilewise::io {

/// A thread that asks, because asking itself can wait for a device. Nothing depends on it: where the system does not
/// listen, or forgets again what it read, the numbers are read when they are wanted. For numbers that lie in one file
/// as they are; of others nothing is asked for.
class Ahead {
public:
    explicit Ahead(const Region& region);
    Ahead(const Ahead&) = delete;
    Ahead& operator=(const Ahead&) = delete;
    ~Ahead();

    /// These numbers, in the order in which the file stores them, come next. Returns at once.
    void want(const grid::Share& stored);

private:
    void run();
    void ask_for(const grid::Share& stored) const;

    const Region& region_;
    int descriptor_ = -1;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<grid::Share> wanted_;  // the last that was asked for: those before it are late
    bool closed_ = false;
    std::thread thread_;
};

}  // namespace tilewise::io
