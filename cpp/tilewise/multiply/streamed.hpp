// A product larger than memory: a tile of C stays, A and B stream past it.
#pragma once

#include "tilewise/multiply/multiply.hpp"

namespace tilewise::multiply {

/// C = A·B as of multiply(), which calls it where `options.stage` says so. All ranks together hold one tile of C, and
/// of A and B as much of k as meets it at a time:
///
///           A                  B                   C
///         [ K0 | K1 | K2 ]   [ K0 |    | J ]      [   |   |   ]      C(I, J) += A(I, K) · B(K, J), all K in turn;
///       I [ ▓▓ |    |    ]   [ K1 |    | ▓ ]    I [   |   | ▓ ]      then C(I, J) is written
///         [    |    |    ]   [ K2 |    |   ]      [   |   |   ]
///
/// Of A and B m·k·⌈n/stage.n⌉ + k·n·⌈m/stage.m⌉ numbers are read: with S numbers in a square tile of C 2·m·n·k/√S, and
/// 2·m·n·k/√S − 2·S is the least that any order of the same operations can do with S numbers of memory (T. M. Smith,
/// B. Lowery, J. Langou, R. A. van de Geijn, "A tight I/O lower bound for matrix multiplication", 2019).
/// What is read next is asked for while the ranks compute. The check reads A once more and B twice.
///
/// Memory of a rank: its blocks of a product of `options.stage`. @note Collective.
Outcome multiply_streamed(Context& context, const io::Region& a, const io::Region& b, const io::Region* c, Dtype dtype,
                          const Options& options);

}  // namespace tilewise::multiply
