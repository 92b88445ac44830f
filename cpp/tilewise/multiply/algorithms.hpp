// The four ways to multiply, as values: what each is called, where it refuses, and how it lays out A, B and C on the
// ranks; and how panels travel between ranks meanwhile, as one abstract class. Each algorithm is in the file of its
// name, with the exchange by messages that only it has.
//
// Design: docs/design/products.md
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewise/base/buffer.hpp"
#include "tilewise/base/dtype.hpp"
#include "tilewise/grid/layout.hpp"
#include "tilewise/kernel/product/gemm.hpp"
#include "tilewise/mpi/context.hpp"
#include "tilewise/mpi/exchange/kinds.hpp"
#include "tilewise/mpi/window.hpp"

namespace tilewise::multiply {

using mpi::ExchangeKind;

/// The exchanges that panels may travel by.
inline constexpr auto exchange_names = mpi::exchange_names_without(ExchangeKind::one_sided_pscw);
/// Throws UsageError for an unknown name.
inline ExchangeKind exchange_named(std::string_view name) { return mpi::exchange_named(name, exchange_names); }

/// A or B as one rank of a layer sees it: its own block in memory, and the shape of any panel of its row (column) of
/// the grid.
///
/// `outer` is m (of A) or n (of B), the side that C keeps; the inner side is k. A block lies in memory with the inner
/// side along the rows (A as it is, B transposed) or down the columns (A transposed, B as it is); a panel of the first
/// is strided, of the second contiguous.
struct Side {
    Dtype dtype = Dtype::float64;
    bool transposed = false;  ///< memory holds the transpose
    bool is_a = true;
    std::int64_t outer = 0;
    std::vector<std::int64_t> inner;  ///< of every rank's block, by rank in the layer

    bool inner_along_rows() const { return is_a != transposed; }
    std::int64_t bytes(std::int64_t inner_size) const {
        return outer * inner_size * static_cast<std::int64_t>(size_of(dtype));
    }
    std::int64_t largest_inner() const;
    /// How rank `owner`'s block is walked to visit the panel `local`: rows × columns, `stride` apart, from element
    /// `offset`.
    struct Piece {
        std::int64_t rows, columns, stride, offset;
        bool contiguous() const { return stride == columns || rows <= 1; }
    };
    Piece piece(int owner, grid::Range local) const;
    /// The panel as gemm takes it, given where the owner's block begins, or where the panel was packed without gaps.
    kernel::Operand in_block(const std::byte* block, int owner, grid::Range local) const;
    kernel::Operand packed(const std::byte* panel, std::int64_t width) const;
};

struct StepPanels {
    kernel::Operand a, b;
};

/// Memory of blocks that one exchange has done with, for the next one: to get as much anew takes as long as to read it.
struct BlockMemory {
    Buffer a, b;             ///< of a rank alone
    mpi::Exposed exposed;    ///< what others reach, of A and B …
    std::int64_t bytes = 0;  ///< … and how much this rank has of it
};

/// What an exchange needs to know. `layer` are the ranks that exchange, numbered as in the layout's steps.
struct Setting {
    Context& context;
    mpi::Communicator layer;
    grid::Grid grid;
    grid::Place place;
    std::vector<grid::Step> steps;
    Side a, b;
    BlockMemory spare = {};
};

/// Owns the memory of this rank's blocks of A and B, and brings it each step's panels.
class Exchange {
public:
    explicit Exchange(Setting setting) : setting_(std::move(setting)) {}
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;
    virtual ~Exchange() = default;

    /// Where this rank's own blocks must be loaded before step 0.
    virtual std::byte* a_block() = 0;
    virtual std::byte* b_block() = 0;

    /// Takes the whole of A or B where it lies, instead of loading it; only where one rank needs nothing else. False:
    /// load it.
    virtual bool borrow_a(const std::byte* /*data*/) { return false; }
    virtual bool borrow_b(const std::byte* /*data*/) { return false; }

    /// All blocks are loaded: called before the first step, and again where others were loaded after the last one.
    /// @note Collective over the layer.
    virtual void open() {}
    /// The panels of a step; steps are fetched in order, and by all ranks of the layer alike. They stay valid until the
    /// next fetch.
    virtual StepPanels fetch(std::size_t step) = 0;
    /// Lets the panels of a later step start flying, where this kind does that.
    virtual void start(std::size_t /*step*/) {}
    /// Moves what flies a little further: a library may move nothing while a rank computes.
    virtual void progress() {}
    virtual bool overlaps() const { return false; }
    /// After the last step of a repetition, also where there was none. @note Collective over all layers.
    virtual void finish() {}
    /// Makes everything as it was before step 0. @note Collective over the layer.
    virtual void rewind() {}
    /// After the last step: a block of A and one of B that this rank has in memory, so that all ranks together have all
    /// blocks once. `a_owner` and `b_owner` say whose blocks these were at the beginning.
    struct Held {
        kernel::Operand a, b;
        int a_owner, b_owner;
    };
    virtual Held held();

    /// The memory of the blocks, where another exchange can take it; nothing is to be asked of this one after that.
    /// @note Collective over all layers.
    virtual BlockMemory give_memory() { return {}; }

protected:
    int me() const { return setting_.layer.rank(); }
    /// Books a message of `elements` numbers that came in.
    void received(const Side& side, std::int64_t elements, std::int64_t messages = 1) const;

    Setting setting_;
};

std::unique_ptr<Exchange> make_alone(Setting setting);
std::unique_ptr<Exchange> make_torus_shift(ExchangeKind kind, Setting setting);
std::unique_ptr<Exchange> make_ring_broadcast(ExchangeKind kind, Setting setting);
std::unique_ptr<Exchange> make_in_place(ExchangeKind kind, Setting setting);

/// Throws UsageError where an exchange does not go with the flow, or with so many ranks in a layer.
void check_exchange(ExchangeKind kind, grid::Flow flow, int layer_ranks);
/// The exchange of this kind for this flow, which must go together. @note Collective over the layer.
std::unique_ptr<Exchange> make_exchange(ExchangeKind kind, grid::Flow flow, Setting setting);

/// What an algorithm may decide by.
struct Arrangement {
    grid::Shape shape;
    grid::Grid grid;
    int copies = 1;
    int ranks = 1;
    ExchangeKind exchange = ExchangeKind::none;
    grid::Remainder remainder = grid::Remainder::spread;
    bool wide_panels = false;  ///< for Strassen's product, which halves them
};

enum class AlgorithmKind { local, cannon, summa, replicated };

template <class A>
concept Algorithm = requires(const Arrangement& arrangement) {
    { A::name } -> std::convertible_to<std::string_view>;
    /// Nothing, or why this arrangement makes no sense and which would.
    { A::refuses(arrangement) } -> std::same_as<std::optional<std::string>>;
    { A::layout(arrangement) } -> std::same_as<grid::Layout>;
};

/// One rank does it all.
struct Local {
    static constexpr std::string_view name = "local";
    static std::optional<std::string> refuses(const Arrangement& arrangement);
    static grid::Layout layout(const Arrangement& arrangement);
};

/// Blocks travel around a square torus: each rank receives 2·(q−1) blocks and keeps two at a time.
struct Cannon {
    static constexpr std::string_view name = "cannon";
    static std::optional<std::string> refuses(const Arrangement& arrangement);
    static grid::Layout layout(const Arrangement& arrangement);
};

/// Panels are given to the owner's row or column, on any grid: each rank receives m·k/p + k·n/q less what it owns.
/// Ranks beyond the grid are idle.
struct Summa {
    static constexpr std::string_view name = "summa";
    /// Columns of A and rows of B in a panel: BLAS runs at full speed and C is passed over seldom, and two panels are
    /// little beside the blocks.
    static constexpr std::int64_t panel_width = 768;
    static constexpr std::int64_t wide_panel_width = 2048;  ///< two levels of Strassen's product pay on it
    static std::optional<std::string> refuses(const Arrangement& arrangement);
    static grid::Layout layout(const Arrangement& arrangement);
};

/// 2.5-D: several layers of a grid share the inner dimension, each does its part by SUMMA, and the layers' results are
/// added. With c layers a rank receives √c times less of A and B, and keeps √c times more of C.
///
/// E. Solomonik and J. Demmel, "Communication-optimal parallel 2.5D matrix multiplication and LU factorization
/// algorithms", 2011.
struct Replicated {
    static constexpr std::string_view name = "replicated";
    static std::optional<std::string> refuses(const Arrangement& arrangement);
    static grid::Layout layout(const Arrangement& arrangement);
};

struct AlgorithmEntry {
    std::string_view name;
    std::optional<std::string> (*refuses)(const Arrangement&);
    grid::Layout (*layout)(const Arrangement&);
};

template <Algorithm A> constexpr AlgorithmEntry entry() { return {A::name, A::refuses, A::layout}; }

/// In the order of AlgorithmKind: one line here is one algorithm more.
inline constexpr std::array algorithms{entry<Local>(), entry<Cannon>(), entry<Summa>(), entry<Replicated>()};

/// Throws UsageError for an unknown name, listing the known ones.
AlgorithmKind algorithm_named(std::string_view name);

/// What a rank sends or receives at a time of the partial results.
inline constexpr std::int64_t layer_piece_bytes = std::int64_t{16} << 20;

///     stack of 2 ranks, before   [ C' C' ]   [ C" C" ]      after   [ C  .. ]   [ ..  C ]
///
/// `c` is the rank's whole block of partial sums; afterwards the rows `layout.c_owned(rank)` of it are the result, the
/// others are undefined. Does nothing for one layer. @note Collective over `context.comm`.
void add_layers(Context& context, const grid::Layout& layout, Dtype dtype, std::byte* c);

}  // namespace tilewise::multiply
