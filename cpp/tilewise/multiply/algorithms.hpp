// The four ways to multiply, as values: what each is called, where it refuses, and how it lays out A, B and C on the
// ranks.
#pragma once

#include <array>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>

#include "tilewise/grid/layout.hpp"
#include "tilewise/multiply/exchange.hpp"

namespace tilewise::multiply {

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

}  // namespace tilewise::multiply
