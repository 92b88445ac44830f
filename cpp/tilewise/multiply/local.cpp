// `local`: one rank has all of A, B and C; its threads share C. Nothing travels.
//
// Its exchange is `none`: memory of its own, or where the file is mapped.
#include <algorithm>

#include "tilewise/base/buffer.hpp"
#include "tilewise/multiply/algorithms.hpp"

namespace tilewise::multiply {
namespace {

/// A or B, wherever it lies.
struct OwnBlock {
    Buffer own;
    const std::byte* borrowed = nullptr;

    std::byte* block(const Side& side, Buffer& spare) {
        const auto bytes = static_cast<std::size_t>(side.bytes(side.inner.front()));
        if (own.data() == nullptr && spare.bytes() >= bytes) {
            own = std::move(spare);
        }
        if (own.data() == nullptr) {
            spare = {};
            own = Buffer(bytes);
        }
        return own.data();
    }
    const std::byte* data() const { return borrowed != nullptr ? borrowed : own.data(); }
};

class Alone final : public Exchange {
public:
    using Exchange::Exchange;

    std::byte* a_block() override { return a_.block(setting_.a, setting_.spare.a); }
    std::byte* b_block() override { return b_.block(setting_.b, setting_.spare.b); }
    bool borrow_a(const std::byte* data) override {
        a_.borrowed = data;
        return true;
    }
    bool borrow_b(const std::byte* data) override {
        b_.borrowed = data;
        return true;
    }

    StepPanels fetch(std::size_t step) override {
        const grid::Step& now = setting_.steps[step];
        return {setting_.a.in_block(a_.data(), 0, now.a_local), setting_.b.in_block(b_.data(), 0, now.b_local)};
    }

    Held held() override {
        return {setting_.a.in_block(a_.data(), 0, {0, setting_.a.inner.front()}),
                setting_.b.in_block(b_.data(), 0, {0, setting_.b.inner.front()}), 0, 0};
    }

    BlockMemory give_memory() override {
        BlockMemory memory;
        memory.a = std::move(a_.own);
        memory.b = std::move(b_.own);
        return memory;
    }

private:
    OwnBlock a_, b_;
};

}  // namespace

std::optional<std::string> Local::refuses(const Arrangement& arrangement) {
    if (arrangement.ranks != 1) {
        return "local runs on one rank, not on " + std::to_string(arrangement.ranks) + "; summa takes any number";
    }
    return std::nullopt;
}

grid::Layout Local::layout(const Arrangement& arrangement) {
    return {arrangement.shape,
            {1, 1},
            1,
            grid::summa,
            arrangement.remainder,
            std::max<std::int64_t>(arrangement.shape.k, 1)};
}

std::unique_ptr<Exchange> make_alone(Setting setting) { return std::make_unique<Alone>(std::move(setting)); }

}  // namespace tilewise::multiply
