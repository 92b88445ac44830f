// Takes samples on all ranks until there are enough of them; rank 0 decides, and every rank does the same number.
//
//      rank 0   |warm|  s s s s …  ┐ maximum over ranks ┌─▶ enough? ──▶ all ranks: more, or done
//      rank 1   |warm|  s s s s …  ┘    of each sample  ┘
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tilewise/measure/point.hpp"
#include "tilewise/mpi/communicator.hpp"

namespace tilewise::measure {

/// The middle one; of an even number the mean of the middle two. `values` may not be empty.
double median(std::vector<double> values);

/// Half the width of the 95 % interval of the median, as a share of the median; infinity below six samples.
double relative_half_width(std::vector<double> samples);

/// Every rank's value on rank 0, in the order of ranks; nothing elsewhere. @note Collective.
std::vector<double> gathered(const mpi::Communicator& comm, double mine);
/// The same of texts, of which 159 bytes are kept. @note Collective.
std::vector<std::string> gathered(const mpi::Communicator& comm, const std::string& mine);

/// Does the operation once on this rank, and returns seconds for each series; a rank that has no part in one says 0.
/// It sees to a synchronised start by itself.
using Sample = std::function<std::vector<double>(int number)>;

/// All series of `names`, sampled as `stop` says. The numbers that `sample` sees start at −warmup; below 0 they do
/// not count. On ranks other than 0 the series are empty. @note Collective.
std::vector<Series> take_samples(const mpi::Communicator& comm, const Stop& stop, const std::vector<std::string>& names,
                                 const Sample& sample);

/// What one go of something took: from the common start of all ranks to their common end, and on this rank alone.
struct Timing {
    double whole, own;
};

/// One series of what may take long, such as reading a file: `go` does it on all ranks at once. A trial says how many
/// can be had in stop.seconds. Fewer than stop.least: so many are taken, though never below `least`, and the trial is
/// one of them. Otherwise as in take_samples, with the trial as its first warm-up, if it is to have any.
/// stop.least == stop.most: exactly so many, where `least` is above 1. @note Collective.
Series take_costly_samples(const mpi::Communicator& comm, Stop stop, const std::string& name, int least,
                           const std::function<Timing()>& go);

/// How often an operation is to be repeated within a sample so that it lasts `wanted` seconds: all ranks agree on
/// rank 0's figure, which `once`, seconds of a single one there, leads to. @note Collective.
std::int64_t repetitions(const mpi::Communicator& comm, double once, double wanted, std::int64_t most);

/// How often to repeat an operation so that a sample lasts `wanted` seconds, by trial: `seconds_of` does it so many
/// times on every rank and says how long that took, or 0 where a rank reads no clock; the slowest counts. It takes a
/// few samples' time; a sample of that many takes no more than a tenth of stop.seconds, barriers and all. @note
/// Collective.
std::int64_t calibrate(const mpi::Communicator& comm, const Stop& stop, double wanted, std::int64_t most,
                       const std::function<double(std::int64_t count)>& seconds_of);

}  // namespace tilewise::measure
