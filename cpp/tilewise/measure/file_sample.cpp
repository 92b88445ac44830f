// System calls on the sample files that are no reading or writing.
#include "tilewise/measure/file_sample.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tilewise/base/memory.hpp"
#include "tilewise/io/file.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::measure {
namespace {

io::Descriptor opened(const std::string& path, int flags) {
    return io::Descriptor(open(path.c_str(), flags | O_CLOEXEC, 0600));
}

IoError failed(const std::string& path, const std::string& what) {
    return IoError(path + ": " + what + ": " + system_reason(errno));
}

}  // namespace

std::int64_t free_on_disk(const std::string& path, std::int64_t buffers) {
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    struct statvfs facts{};
    if (statvfs(folder.c_str(), &facts) != 0) {
        throw failed(folder, "its free space could not be determined");
    }
    const auto free = static_cast<std::int64_t>(facts.f_bavail) * static_cast<std::int64_t>(facts.f_frsize);
    struct statfs kind{};
    if (statfs(folder.c_str(), &kind) == 0 && (kind.f_type == TMPFS_MAGIC || kind.f_type == RAMFS_MAGIC)) {
        const auto usable = static_cast<std::int64_t>(0.8 * static_cast<double>(free_host_memory()));
        return std::clamp<std::int64_t>(usable - buffers, 0, free);
    }
    return free;
}

double cached_share(const std::string& path) {
    const io::Descriptor file = opened(path, O_RDONLY);
    struct stat facts{};
    if (!file || fstat(file.number(), &facts) != 0) {
        throw failed(path, "could not be opened");
    }
    if (facts.st_size == 0) {
        return 0;
    }
    const auto bytes = static_cast<std::size_t>(facts.st_size);
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* map = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.number(), 0);
    if (map == MAP_FAILED) {
        throw failed(path, "could not be mapped");
    }
    std::vector<unsigned char> pages((bytes + page - 1) / page);
    const int code = mincore(map, bytes, pages.data());
    const int reason = errno;
    munmap(map, bytes);
    if (code != 0) {
        errno = reason;
        throw failed(path, "its cached pages could not be determined");
    }
    const auto there = std::count_if(pages.begin(), pages.end(), [](unsigned char state) { return (state & 1) != 0; });
    return static_cast<double>(there) / static_cast<double>(pages.size());
}

void SampleFiles::make(const std::string& path) {
    const io::Descriptor file = opened(path, O_RDWR | O_CREAT | O_EXCL);
    if (!file) {
        if (errno == EEXIST) {
            throw UsageError(path + ": already exists; a sample file must be new, because it is removed afterwards");
        }
        throw failed(path, "a sample file could not be created");
    }
    made_.push_back(path);
    if (ftruncate(file.number(), place_.file_bytes()) != 0) {
        throw failed(path, "could not be given its size of " + std::to_string(place_.file_bytes()) + " bytes");
    }
}

void SampleFiles::make_new() {
    mpi::together(comm_, [&] {
        if (comm_.rank() == 0) {
            remove();
            for (int file = 0; file < place_.files(); ++file) {
                make(place_.path_of(file));
            }
        }
    });
}

void SampleFiles::remove() noexcept {
    for (const std::string& path : made_) {
        unlink(path.c_str());
    }
    made_.clear();
}

template <class F> void SampleFiles::on_each_file(const F& act) const {
    const mpi::Communicator node = comm_.node();
    mpi::together(comm_, [&] {
        for (int file = node.rank(); file < place_.files(); file += node.size()) {
            act(place_.path_of(file));
        }
    });
}

double SampleFiles::drop_from_cache() const {
    on_each_file([](const std::string& path) {
        const io::Descriptor file = opened(path, O_RDWR);
        if (!file || fdatasync(file.number()) != 0) {
            throw failed(path, "flushing to disk failed");
        }
    });
    double stayed = 0;
    on_each_file([&](const std::string& path) {
        const io::Descriptor file = opened(path, O_RDONLY);
        if (!file) {
            throw failed(path, "could not be opened");
        }
        posix_fadvise(file.number(), 0, 0, POSIX_FADV_DONTNEED);  // advice: what came of it is looked at
        stayed = std::max(stayed, cached_share(path));
    });
    return mpi::most_of(comm_, stayed);
}

double SampleFiles::cached() const {
    double there = 1;
    on_each_file([&](const std::string& path) { there = std::min(there, cached_share(path)); });
    return mpi::least_of(comm_, there);
}

std::string SampleFiles::refuses_direct() const {
    const io::Descriptor file = opened(place_.path_of(0), O_RDWR | O_DIRECT);
    return file ? "" : system_reason(errno);
}

}  // namespace tilewise::measure
