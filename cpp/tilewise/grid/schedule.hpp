// Who needs which piece of A and B when: the steps of a product C += A·B on a grid of ranks, as plain integers.
#pragma once

#include <cstdint>
#include <vector>

#include "tilewise/grid/grid.hpp"

namespace tilewise::grid {

/// One step of one rank: C += A(:, k)·B(k, :) with both panels over the same range of k.
struct Step {
    Range k;          ///< the range of the inner dimension
    int a_owner = 0;  ///< the rank (of the layer) whose block of A holds this panel
    int b_owner = 0;  ///< the same for B
    Range a_local;    ///< where k lies within the owner's block of A
    Range b_local;    ///< and within the owner's block of B

    bool operator==(const Step&) const = default;
};

/// How panels come to those who need them: around a torus (Cannon), or from their owner to its row or column (SUMMA).
enum class Flow { torus, panels };

/// What an algorithm says of the ranks of one layer of p × q, which share the range `k_all` of the inner dimension.
struct Schedule {
    Flow flow;
    /// Which of q parts of k_all the columns of a rank's block of A are at the beginning, and which of p parts the rows
    /// of its block of B.
    int (*a_part)(Grid grid, Place place);
    int (*b_part)(Grid grid, Place place);
    /// The steps of a rank, in panels at most `width` wide where the algorithm cuts them.
    std::vector<Step> (*steps)(Grid grid, Range k_all, Remainder remainder, std::int64_t width, Place place);
};

/// Cannon's q steps on a q × q torus: rank (i, j) multiplies A(i, k)·B(k, j) with k = i+j, i+j+1, … modulo q.
/// Owners are named by where a block lies after the initial skew: rank (i, j) owns A(i, i+j) and B(i+j, j).
extern const Schedule cannon;

/// SUMMA's steps on any grid: panels are cut wherever the owner of A's columns (the grid's columns share k_all) or of
/// B's rows (the grid's rows share k_all) changes. Same cuts on every rank.
extern const Schedule summa;

/// Elements that a rank must receive: panels whose owner is somebody else. `m` and `n` are its rows and columns of C.
std::int64_t received_elements(const std::vector<Step>& steps, int rank, std::int64_t m, std::int64_t n);

}  // namespace tilewise::grid
