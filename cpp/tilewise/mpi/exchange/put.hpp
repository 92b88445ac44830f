// Messages put straight into the receiver's window.
#pragma once

#include "tilewise/mpi/exchange/exchange.hpp"

namespace tilewise::mpi {

/// For sets that come one by one, between ranks that always exchange both ways. @note Collective; throws the same
/// Error on every rank.
std::unique_ptr<Exchange> make_put(const Setting& setting);

}  // namespace tilewise::mpi
