// Samples come in lots that grow, so that asking whether they suffice stays cheap.
#include "tilewise/measure/samples.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "tilewise/measure/clock.hpp"
#include "tilewise/mpi/mpi.hpp"
#include "tilewise/mpi/sum.hpp"

namespace tilewise::measure {

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) {
        return *middle;
    }
    return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double relative_half_width(std::vector<double> samples) {
    if (samples.size() < 6) {
        return std::numeric_limits<double>::infinity();
    }
    std::sort(samples.begin(), samples.end());
    const auto count = static_cast<double>(samples.size());
    const double reach = 1.96 * std::sqrt(count) / 2;
    const auto low = static_cast<std::size_t>(std::max(0.0, std::floor(count / 2 - reach)));
    const auto high = static_cast<std::size_t>(std::min(count - 1, std::ceil(count / 2 + reach)));
    const double middle = median(samples);
    return middle > 0 ? (samples[high] - samples[low]) / 2 / middle : std::numeric_limits<double>::infinity();
}

std::vector<double> gathered(const mpi::Communicator& comm, double mine) {
    std::vector<double> all(comm.rank() == 0 ? static_cast<std::size_t>(comm.size()) : 0);
    mpi::check(MPI_Gather(&mine, 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, 0, comm.get()), "MPI_Gather");
    return all;
}

std::vector<std::string> gathered(const mpi::Communicator& comm, const std::string& mine) {
    constexpr int width = 160;
    std::array<char, width> text{};
    std::memcpy(text.data(), mine.data(), std::min<std::size_t>(mine.size(), width - 1));
    std::vector<char> all(comm.rank() == 0 ? static_cast<std::size_t>(comm.size()) * width : 0);
    mpi::check(MPI_Gather(text.data(), width, MPI_CHAR, all.data(), width, MPI_CHAR, 0, comm.get()), "MPI_Gather");
    std::vector<std::string> texts;
    for (std::size_t at = 0; at < all.size(); at += width) {
        texts.emplace_back(all.data() + at);
    }
    return texts;
}

std::int64_t repetitions(const mpi::Communicator& comm, double once, double wanted, std::int64_t most) {
    std::int64_t count = once > 0 ? static_cast<std::int64_t>(std::ceil(wanted / once)) : most;
    return mpi::of_root(comm, std::clamp<std::int64_t>(count, 1, most));
}

std::int64_t calibrate(const mpi::Communicator& comm, const Stop& stop, double wanted, std::int64_t most,
                       const std::function<double(std::int64_t count)>& seconds_of) {
    // The slowest rank's figures of one operation: what was timed, and all it took, with barriers and what else there
    // is.
    struct Look {
        double once, wall;
    };
    const double begin = now();
    const auto look = [&](std::int64_t count) {
        const double entered = now(), timed = seconds_of(count);
        std::array<double, 2> all{timed, now() - entered};
        mpi::check(MPI_Allreduce(MPI_IN_PLACE, all.data(), 2, MPI_DOUBLE, MPI_MAX, comm.get()), "MPI_Allreduce");
        return Look{all[0] / static_cast<double>(count), all[1] / static_cast<double>(count)};
    };
    Look last = look(1);
    if (last.wall > stop.seconds) {
        return 1;
    }
    for (std::int64_t count = 1;;) {  // the first look was also that of connections and pages: another at 1
        last = look(count);
        const double lasted = last.once * static_cast<double>(count);
        if (lasted >= 2 * wanted && count == 1) {
            return 1;
        }
        const bool late = mpi::of_root(comm, now() - begin > stop.seconds / 4);
        if (lasted >= wanted / 2 || count >= most || late) {
            const Look again = look(count);  // one of the two may have been disturbed
            const double wall = std::min(last.wall, again.wall);
            const auto affordable = static_cast<std::int64_t>(stop.seconds / 10 / std::max(wall, 1e-9));
            return repetitions(comm, std::min(last.once, again.once), wanted,
                               std::clamp<std::int64_t>(affordable, 1, most));
        }
        count = std::min(count * 8, most);
    }
}

namespace {

struct WarmUp {
    int done;  ///< samples
    int lot;   ///< how many can then be afforded at once
};

/// Samples that do not count, fewer than asked for where they are slow.
WarmUp warm_up(const mpi::Communicator& comm, const Stop& stop, const Sample& sample) {
    const int lot = std::max(1, std::min(stop.least, stop.most));
    const double begin = now();
    for (int number = -stop.warmup; number < 0; ++number) {
        sample(number);
        const int done = number + stop.warmup + 1;
        const double each = (now() - begin) / done;
        if (mpi::of_root(comm, each * (stop.warmup + lot) > stop.seconds)) {
            return {done, std::min(3, lot)};
        }
    }
    return {std::max(0, stop.warmup), lot};
}

}  // namespace

std::vector<Series> take_samples(const mpi::Communicator& comm, const Stop& stop, const std::vector<std::string>& names,
                                 const Sample& sample) {
    const WarmUp before = warm_up(comm, stop, sample);
    int lot = before.lot;
    const std::size_t width = names.size();
    const bool is_root = comm.rank() == 0;
    std::vector<Series> series(width);
    std::vector<double> sums(width, 0.0);
    const double begin = now();
    int taken = 0;
    while (lot > 0) {
        std::vector<double> mine, most(static_cast<std::size_t>(lot) * width);
        for (int i = 0; i < lot; ++i, ++taken) {
            const std::vector<double> seconds = sample(taken);
            mine.insert(mine.end(), seconds.begin(), seconds.end());
            for (std::size_t s = 0; s < width; ++s) {
                sums[s] += seconds[s];
            }
        }
        mpi::check(
            MPI_Reduce(mine.data(), most.data(), static_cast<int>(mine.size()), MPI_DOUBLE, MPI_MAX, 0, comm.get()),
            "MPI_Reduce");
        if (is_root) {
            bool enough = true;
            for (std::size_t s = 0; s < width; ++s) {
                for (std::size_t i = s; i < most.size(); i += width) {
                    series[s].samples.push_back(most[i]);
                }
                enough = enough && relative_half_width(series[s].samples) <= stop.relative;
            }
            const double spent = now() - begin, each = spent / taken;
            const double affordable = std::max(0.0, stop.seconds - spent) / std::max(each, 1e-9);
            lot = enough ? 0
                         : std::min({stop.most - taken, std::max(2, taken / 2),
                                     static_cast<int>(std::min(affordable, 1e6))});
            lot = lot < 1 && taken < std::min(3, stop.most) ? 1 : std::max(lot, 0);
        }
        lot = mpi::of_root(comm, lot);
    }
    std::vector<double> all(is_root ? width * static_cast<std::size_t>(comm.size()) : 0);
    mpi::check(MPI_Gather(sums.data(), static_cast<int>(width), MPI_DOUBLE, all.data(), static_cast<int>(width),
                          MPI_DOUBLE, 0, comm.get()),
               "MPI_Gather");
    for (std::size_t s = 0; s < width; ++s) {
        series[s].name = names[s];
        series[s].warmup = before.done;
        for (std::size_t i = s; is_root && i < all.size(); i += width) {
            series[s].by_rank.push_back(all[i] / taken);
        }
    }
    return series;
}

Series take_costly_samples(const mpi::Communicator& comm, Stop stop, const std::string& name, int least,
                           const std::function<Timing()>& go) {
    const double begin = now();
    const Timing trial = go();
    const double seconds = mpi::most_of(comm, now() - begin);
    const double affordable = std::floor(stop.seconds / seconds);
    const bool fixed = stop.least >= stop.most && least > 1;
    const bool few = !fixed && affordable < stop.least;
    if (few) {
        stop.least = std::min(std::max(static_cast<int>(affordable), least), stop.most);
        stop.most = stop.least;
    }
    const bool counts = few || stop.warmup < 1;
    stop.warmup = counts ? 0 : stop.warmup - 1;
    double own = 0;
    int taken = 0;
    Series series = take_samples(comm, stop, {name}, [&](int number) {
        const Timing timing = counts && number == 0 ? trial : go();
        own += number < 0 ? 0 : timing.own;
        taken += number < 0 ? 0 : 1;
        return std::vector<double>{timing.whole};
    })[0];
    series.warmup += counts ? 0 : 1;
    series.by_rank = gathered(comm, own / std::max(1, taken));
    return series;
}

}  // namespace tilewise::measure
