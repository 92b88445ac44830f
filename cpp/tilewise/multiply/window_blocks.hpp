// The blocks that ranks have of a part of a product: what of A and B is in memory while it streams past a tile of C.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tilewise/io/transfer.hpp"
#include "tilewise/multiply/arithmetic.hpp"
#include "tilewise/multiply/exchange.hpp"
#include "tilewise/multiply/multiply.hpp"
#include "tilewise/multiply/part.hpp"

namespace tilewise::multiply {

/// Which part of A, B and C is at hand: rows and columns of C, and the range of k.
struct Window {
    grid::Range m, n, k;

    grid::Shape shape() const { return {m.size(), n.size(), k.size()}; }
};

inline grid::Block moved(const grid::Block& block, std::int64_t down, std::int64_t right) {
    return {{block.rows.begin + down, block.rows.end + down}, {block.columns.begin + right, block.columns.end + right}};
}

/// Of all ranks for one window, and how their panels travel. Windows of the same shape use it one after the other.
class WindowBlocks {
public:
    /// `spare` is taken where it suffices, and freed where it does not. @note Collective.
    WindowBlocks(Context& context, const io::Region& a, const io::Region& b, Dtype dtype, const Options& options,
                 const grid::Shape& shape, BlockMemory spare = {});

    /// See Exchange::give_memory. @note Collective.
    BlockMemory give_memory() { return exchange_->give_memory(); }

    const grid::Layout& layout() const { return layout_; }
    grid::Shape shape() const { return layout_.shape(); }

    /// @note Collective, like those below.
    void load_a(const io::Input& input, const Window& window);
    void load_b(const io::Input& input, const Window& window);
    /// Begin to read what `load` of the same window then finds here.
    void begin_a(io::Input& input, const Window& window);
    void begin_b(io::Input& input, const Window& window);
    void multiply(std::byte* c, bool accumulate, const std::function<void(double share)>& report);

    /// What this rank has of A and B, in coordinates of the whole matrices. Not collective.
    Part a(const Window& window) { return part(a_, exchange_->a_block(), layout_.a(me()), window.m, window.k); }
    Part b(const Window& window) { return part(b_, exchange_->b_block(), layout_.b(me()), window.k, window.n); }
    /// Bytes that this rank receives while a window is multiplied.
    std::int64_t received() const;

private:
    int me() const { return context_.comm.rank(); }
    io::WantedShare a_of(const Window& window) const;
    io::WantedShare b_of(const Window& window) const;
    Part part(const Side& side, const std::byte* data, const grid::Block& block, const grid::Range& rows,
              const grid::Range& columns) const;

    Context& context_;
    Dtype dtype_;
    grid::Layout layout_;
    Arithmetic arithmetic_;
    mpi::Communicator layer_;
    std::vector<grid::Step> steps_;
    Side a_, b_;
    std::unique_ptr<Exchange> exchange_;
};

}  // namespace tilewise::multiply
