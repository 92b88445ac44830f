// For code that must end up in the function that calls it, and so be compiled for that function's instructions.
#pragma once

#define TILEWISE_INLINE [[gnu::always_inline]] inline

/// For a function of no name, between its parameters and its body.
#define TILEWISE_INLINE_LAMBDA __attribute__((always_inline))
