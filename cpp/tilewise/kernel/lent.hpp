// Workspaces that live as long as the process.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

namespace tilewise::kernel {

/// Takes a T from a stock, and gives it back: fresh memory for each call would be touched for the first time each time.
template <class T> class Lent {
public:
    Lent() {
        const std::lock_guard lock(mutex());
        if (!stock().empty()) {
            item_ = std::move(stock().back());
            stock().pop_back();
        } else {
            item_ = std::make_unique<T>();
        }
    }
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    ~Lent() {
        const std::lock_guard lock(mutex());
        stock().push_back(std::move(item_));
    }
    T& operator*() const { return *item_; }

private:
    static std::mutex& mutex() {
        static std::mutex one;
        return one;
    }
    static std::vector<std::unique_ptr<T>>& stock() {
        static std::vector<std::unique_ptr<T>> all;
        return all;
    }
    std::unique_ptr<T> item_;
};

}  // namespace tilewise::kernel
