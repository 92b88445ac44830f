// Messages between two ranks by plain MPI: round trips, one-sided puts, and collectives. Nothing of tilewise is in it.
//
//     mpiexec -n 2 truth_mpi BYTES…     "blocking 8 2.1e-07": what, bytes, seconds one way or of one call
//
// The median of eleven samples, each of so many repetitions that it takes some milliseconds.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include <mpi.h>

namespace {

constexpr int samples = 11;
constexpr double seconds_of_a_sample = 5e-3;

double seconds_of(const std::function<void()>& call) {
    const auto timed = [&](int times) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        for (int i = 0; i < times; ++i) {
            call();
        }
        double seconds = (MPI_Wtime() - begin) / times;
        MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        return seconds;
    };
    const int times = std::max(1, static_cast<int>(seconds_of_a_sample / timed(20)));
    std::vector<double> all;
    for (int i = 0; i < samples; ++i) {
        all.push_back(timed(times));
    }
    std::nth_element(all.begin(), all.begin() + samples / 2, all.end());
    return all[samples / 2];
}

}  // namespace

int main(int count, char** words) {
    MPI_Init(&count, &words);
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const auto say = [&](const char* what, int bytes, double seconds) {
        if (rank == 0) {
            std::printf("%s %d %.4g\n", what, bytes, seconds);
        }
    };
    for (int index = 1; index < count; ++index) {
        const int bytes = std::atoi(words[index]), numbers = bytes / 8;
        const auto all = static_cast<std::size_t>(bytes) * static_cast<std::size_t>(ranks);
        std::vector<char> out(all, 'x'), in(all);
        const int other = 1 - rank;
        say("blocking", bytes,
            seconds_of([&] {
                if (rank == 0) {
                    MPI_Send(out.data(), bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
                    MPI_Recv(in.data(), bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                } else {
                    MPI_Recv(in.data(), bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                    MPI_Send(out.data(), bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
                }
            }) / 2);
        MPI_Win window = MPI_WIN_NULL;
        char* base = nullptr;
        MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
        MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
        const double put = seconds_of([&] {
            if (rank == 0) {
                MPI_Put(out.data(), bytes, MPI_BYTE, other, 0, bytes, MPI_BYTE, window);
                MPI_Win_flush(other, window);
            }
        });
        MPI_Win_unlock_all(window);
        MPI_Win_free(&window);
        say("put", bytes, put);
        say("bcast", bytes, seconds_of([&] { MPI_Bcast(out.data(), bytes, MPI_BYTE, 0, MPI_COMM_WORLD); }));
        say("allreduce", bytes,
            seconds_of([&] { MPI_Allreduce(out.data(), in.data(), numbers, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }));
    }
    MPI_Finalize();
    return 0;
}
