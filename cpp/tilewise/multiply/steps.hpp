// The steps of one product of blocks in memory: panels come in, and are multiplied into this rank's block of C.
#pragma once

#include <functional>
#include <vector>

#include "tilewise/multiply/arithmetic.hpp"
#include "tilewise/multiply/exchange.hpp"
#include "tilewise/multiply/part.hpp"

namespace tilewise::multiply {

struct Steps {
    Context& context;
    const grid::Layout& layout;
    const Arithmetic& arithmetic;
    Exchange& exchange;
    const std::vector<grid::Step>& steps;
    Dtype dtype;
    bool b_lies_in_a = false;  ///< each panel of A has all rows, among which B's columns are
};

/// C = A·B of the blocks that the exchange holds, or C += A·B; `c` is this rank's block, row after row. `report` hears
/// which share of it is done. @note Collective over the layer.
void multiply_steps(const Steps& of, std::byte* c, bool accumulate, const std::function<void(double share)>& report);

}  // namespace tilewise::multiply
