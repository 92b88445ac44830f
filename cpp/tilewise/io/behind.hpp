// Asks the system to write to the disk what has been written to the page cache, while something else is computed.
//
// Within a memory limit, pages that wait for the disk are what the system has to write before it can give memory to
// anybody: whoever asks for some then waits, at any moment. Started at once, it is over by then.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "tilewise/io/region.hpp"

namespace tilewise::io {

/// A thread that asks, because asking itself can wait for a device. Nothing depends on it. For numbers that lie in one
/// file as they are; of others nothing is asked for.
class Behind {
public:
    explicit Behind(const Region& region);
    Behind(const Behind&) = delete;
    Behind& operator=(const Behind&) = delete;
    ~Behind();

    /// This rectangle of the stored matrix has been written. Returns at once.
    void wrote(const grid::Block& stored);

private:
    void run();

    const Region& region_;
    int descriptor_ = -1;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<grid::Range> written_;  // bytes of the file that nothing was asked for yet
    bool closed_ = false;
    std::thread thread_;
};

}  // namespace tilewise::io
