// The limit for reading: P processes each pread one contiguous share of a file; prints the slowest one's seconds.
//
// pread_limit FILE OFFSET BYTES PROCESSES fresh|touched
// `fresh` buffers are huge-page memory that nobody has touched yet, as a program's are when it reads its input;
// `touched` ones are warm.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <pthread.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr int most_processes = 64;

struct Shared {
    pthread_barrier_t start;
    double seconds[most_processes];
};

void fail(const char* what) {
    std::perror(what);
    std::_Exit(1);
}

char* huge_pages(std::size_t bytes) {
    void* memory = mmap(nullptr, bytes + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    const auto address = (reinterpret_cast<std::uintptr_t>(memory) + huge_page - 1) / huge_page * huge_page;
    madvise(reinterpret_cast<void*>(address), bytes, MADV_HUGEPAGE);
    return reinterpret_cast<char*>(address);
}

double read_share(const char* path, std::int64_t offset, std::size_t bytes, bool touch, pthread_barrier_t* start) {
    char* data = huge_pages(bytes);
    if (touch)
        std::memset(data, 1, bytes);
    pthread_barrier_wait(start);
    const auto before = std::chrono::steady_clock::now();
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        fail(path);
    for (std::size_t done = 0; done < bytes;) {
        const ssize_t got = pread(file, data + done, bytes - done, offset + static_cast<std::int64_t>(done));
        if (got <= 0)
            fail("pread");
        done += static_cast<std::size_t>(got);
    }
    close(file);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 6) {
        std::fprintf(stderr, "usage: pread_limit FILE OFFSET BYTES PROCESSES fresh|touched\n");
        return 2;
    }
    const std::int64_t offset = std::atoll(argv[2]), bytes = std::atoll(argv[3]);
    const int processes = std::min(std::atoi(argv[4]), most_processes);
    const bool touch = std::string_view(argv[5]) == "touched";

    auto* shared =
        static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    if (shared == MAP_FAILED)
        fail("mmap");
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->start, &attributes, static_cast<unsigned>(processes));

    for (int process = 0; process < processes; ++process) {
        if (fork() == 0) {
            const std::int64_t begin = bytes * process / processes, end = bytes * (process + 1) / processes;
            shared->seconds[process] =
                read_share(argv[1], offset + begin, static_cast<std::size_t>(end - begin), touch, &shared->start);
            std::_Exit(0);
        }
    }
    bool failed = false;
    for (int process = 0, status = 0; process < processes; ++process) {
        wait(&status);
        failed |= status != 0;
    }
    std::printf("%.6f\n", *std::max_element(shared->seconds, shared->seconds + processes));
    return failed ? 1 : 0;
}
