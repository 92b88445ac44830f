// Helpers sleep between rounds, and spin only from when they are summoned until they may begin.
#include "tilewise/measure/memory_team.hpp"

#include <algorithm>

#include "tilewise/measure/clock.hpp"

namespace tilewise::measure {
namespace {

/// Spins, and lets others run where that takes long: there may be more threads than cores.
template <class Condition> void spin_until(const Condition& condition) {
    constexpr int patience = 4000;
    for (int turn = 0; !condition(); ++turn) {
        if (turn > patience) {
            std::this_thread::yield();
        }
    }
}

}  // namespace

Team::Team(int threads) : ends_(static_cast<std::size_t>(std::max(threads, 1))) {
    try {
        for (int thread = 1; thread < threads; ++thread) {
            helpers_.emplace_back([this, thread] { help(thread); });
        }
    } catch (...) {
        dismiss();
        throw;
    }
}

Team::~Team() { dismiss(); }

void Team::dismiss() {
    over_ = true;
    ++summoned_;
    summoned_.notify_all();
    helpers_.clear();  // each is joined
}

double Team::run(const std::function<void(int)>& work, const std::function<void()>& ready) {
    const auto helpers = static_cast<int>(helpers_.size());
    work_ = &work;
    waiting_ = 0;
    done_ = 0;
    ++summoned_;
    summoned_.notify_all();
    spin_until([&] { return waiting_ == helpers; });
    double begin = 0;
    try {
        if (ready) {
            ready();
        }
        begin = now();
    } catch (...) {
        work_ = nullptr;
        ++gone_;
        spin_until([&] { return done_ == helpers; });
        throw;
    }
    ++gone_;
    work(0);
    ends_[0] = now();
    spin_until([&] { return done_ == helpers; });
    return *std::max_element(ends_.begin(), ends_.end()) - begin;
}

void Team::help(int thread) {
    for (int round = 1;; ++round) {
        summoned_.wait(round - 1);
        if (over_) {
            return;
        }
        ++waiting_;
        spin_until([&] { return gone_ == round; });
        if (work_ != nullptr) {
            (*work_)(thread);
        }
        ends_[static_cast<std::size_t>(thread)] = now();
        ++done_;
    }
}

}  // namespace tilewise::measure
