// All of libtilewise that other programs may count on: matrices, files, the four operations, and their errors.
#pragma once

#include "tilewise/library/files.hpp"
#include "tilewise/library/matrix.hpp"
#include "tilewise/library/operations.hpp"
